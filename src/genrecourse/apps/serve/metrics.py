"""Meters: what /metrics shows, in a registry of each application's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
QUESTIONS = (1, 2, 4, 8, 16, 32, 64)


class Meters:
    """Counts of requests, answers and people; no label holds a value of a person.

    >>> meters = Meters()
    >>> meters.answered("/healthz", "GET", 200, 0.01)
    >>> "genrecourse_requests_total" in meters.text().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        kind: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "genrecourse_requests", "Requests by route and status", ["route", "method", "status"],
            **kind,
        )  # fmt: skip
        self._seconds = Histogram(
            "genrecourse_request_seconds", "Time of a request", ["route"], buckets=SECONDS, **kind
        )
        self._statuses = Counter("genrecourse_plans", "People by status", ["status"], **kind)
        self._people = Counter("genrecourse_people", "People who were computed for", **kind)
        self._batches = Histogram(
            "genrecourse_batch_requests", "Requests that one call of the method answered",
            buckets=QUESTIONS, **kind,
        )  # fmt: skip
        self._waiting = Gauge("genrecourse_waiting_requests", "Requests in the queue", **kind)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def planned(self, statuses: list[str]) -> None:
        for status in statuses:
            self._statuses.labels(status).inc()

    def computed(self, questions: int, people: int) -> None:
        self._batches.observe(questions)
        self._people.inc(people)

    def watch_queue(self, length: Callable[[], int]) -> None:
        self._waiting.set_function(length)

    def text(self) -> bytes:
        """Return the numbers in Prometheus' text format."""
        return generate_latest(self._registry)
