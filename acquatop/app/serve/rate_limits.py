"""Rate limit per client."""

from __future__ import annotations

import math
from collections import OrderedDict

from replica.clocks import Clock


class Rates:
    """Token bucket per client: ``burst`` at once, then ``rate`` per second.

    Only the ``most`` latest clients have a bucket, so memory is bounded. A forgotten client starts
    with a full bucket. O(1). Not safe for several threads.

    >>> now = 0.0
    >>> rates = Rates(2.0, 2, clock=lambda: now)
    >>> [rates.wait("ann") for _ in range(3)], rates.wait("bob")
    ([0.0, 0.0, 0.5], 0.0)
    >>> now = 0.5
    >>> rates.wait("ann")
    0.0
    """

    def __init__(self, rate: float, burst: int, *, clock: Clock, most: int = 1_024) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> float:
        """Take a token and return 0; if there is none, return the seconds until the next."""
        now = self._clock()
        tokens, at = self._buckets.pop(who, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - at) * self._rate)
        enough = tokens >= 1 or math.isclose(tokens, 1)
        self._buckets[who] = (tokens - 1 if enough else tokens, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1 - tokens) / self._rate
