"""Settings: where the service listens, and every limit of what it accepts, in one place."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from typing import Any

from genrecourse.errors import UserError

LOOPBACK_NAMES = ("localhost",)


def _limit(default: Any, says: str) -> Any:
    return field(default=default, metadata={"says": says})


@dataclass(frozen=True)
class Settings:
    """Where the service listens, what it is called, and its limits.

    name: of the model, in the addresses of KServe and the Open Inference Protocol.
    hosts: names under which the service may be addressed (the Host header); (): on loopback the
        names of loopback, elsewhere any name.

    >>> Settings(people=10).people, Settings().is_loopback, Settings(host="0.0.0.0").is_loopback
    (10, True, False)
    """

    host: str = "127.0.0.1"
    port: int = 8000
    name: str = "model"
    hosts: tuple[str, ...] = ()

    body_bytes: int = _limit(4_000_000, "bytes of a request's body")
    nested: int = _limit(20, "nested lists and objects of a body")
    people: int = _limit(1_000, "people of one request")
    asked_values: int = _limit(50_000, "values in the rules and the options of one request")
    reasons_people: int = _limit(10, "people of one request for reasons")
    plans_each: int = _limit(10, "plans for each person (`n`)")
    plans_at_once: int = _limit(2_000, "people times plans of one request")
    draws_each: int = _limit(1_000, "draws for each person (the option `n_draws`)")
    draws_at_once: int = _limit(100_000, "people times draws of one request")
    answer_seconds: float = _limit(30.0, "seconds until an answer; then 504")
    body_seconds: float = _limit(10.0, "seconds until a request's body is complete; then 408")
    head_seconds: float = _limit(
        10.0, "seconds until a request's head is complete; then the connection is closed"
    )
    idle_seconds: int = _limit(15, "seconds that an open connection may wait for its next request")
    connections: int = _limit(1_000, "open connections; a further one is closed")
    at_once: int = _limit(256, "requests that are read or answered at once; then 503")
    waiting: int = _limit(64, "requests that wait for the method; then 503")
    batch_people: int = _limit(64, "people whom one call of the method answers together")
    rate: float = _limit(50.0, "requests a second of one key, on average; then 429")
    burst: int = _limit(100, "requests of one key at once, beyond the rate")

    def __post_init__(self) -> None:
        for each in limits_of(self):
            if each[1] <= 0:
                raise UserError(f"the limit {each[0]} is {each[1]:g}; it must be above 0")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host in LOOPBACK_NAMES:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def known_hosts(self) -> tuple[str, ...]:
        """The names that a Host header may have; (): any.

        Another site's name that leads to this machine is refused on loopback, because a page of
        that site could read the answers otherwise (DNS rebinding).
        """
        if self.hosts or not self.is_loopback:
            return self.hosts
        return tuple(dict.fromkeys((self.host, *LOOPBACK_NAMES, "127.0.0.1", "::1")))


def limits_of(settings: Settings) -> list[tuple[str, float, str]]:
    """Return each limit: its name, its value, and what it limits.

    >>> limits_of(Settings())[0]
    ('body_bytes', 4000000, "bytes of a request's body")
    """
    return [
        (each.name, getattr(settings, each.name), each.metadata["says"])
        for each in fields(settings)
        if "says" in each.metadata
    ]
