"""Rates: how often each caller may ask, as a bucket of tokens for each."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

CALLERS = 10_000  # buckets that are remembered; who asked longest ago is forgotten first


class Rates:
    """One bucket for each caller: it holds `burst` tokens and is refilled by `rate` a second.

    >>> now = [0.0]
    >>> rates = Rates(rate=2, burst=1, clock=lambda: now[0])
    >>> rates.wait("office"), rates.wait("office")
    (0.0, 0.5)
    >>> now[0] = 0.5
    >>> rates.wait("office")
    0.0
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self.rate, self.burst, self.clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Take a token and return 0, or return how many seconds the caller has to wait for one."""
        now = self.clock()
        tokens, since = self._buckets.pop(caller, (float(self.burst), now))
        tokens = min(self.burst, tokens + (now - since) * self.rate)
        is_free = tokens >= 1
        self._buckets[caller] = (tokens - is_free, now)
        if len(self._buckets) > CALLERS:
            self._buckets.popitem(last=False)
        return 0.0 if is_free else (1 - tokens) / self.rate
