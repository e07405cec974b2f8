"""How long to stay away from X before the next attempt, as its documentation asks."""

from __future__ import annotations

NETWORK_STEP, NETWORK_MOST = 0.25, 16.0
HTTP_FIRST, HTTP_MOST = 5.0, 320.0
RATE_FIRST, RATE_MOST = 60.0, 960.0
"""The documentation names no longest wait for rate limits; their period is 15 minutes."""


class Backoff:
    """Counts failures in a row, and says how many seconds to wait after each.

    A connection that was established and ends is tried again at once; one that cannot be made after 0.25 s more each
    time, up to 16; one that is refused after 5 s, and twice as long each time, up to 320; one that is refused because
    there were too many after a minute, twice as long each time, and not before the limit is reset.

    >>> backoff = Backoff()
    >>> backoff.network(), backoff.network(), backoff.http(), backoff.http(), backoff.rate_limited(until_reset=300.0)
    (0.25, 0.5, 5.0, 10.0, 300.0)
    >>> backoff.established()
    >>> backoff.network()
    0.25
    """

    def __init__(self) -> None:
        self.established()

    def established(self) -> None:
        """Forget all failures: a connection brings something."""
        self._network, self._http, self._rate = 0.0, HTTP_FIRST, RATE_FIRST

    def network(self) -> float:
        """Return how long to wait after a failure below HTTP."""
        self._network = min(self._network + NETWORK_STEP, NETWORK_MOST)
        return self._network

    def http(self) -> float:
        """Return how long to wait after a reply that is an error."""
        wait, self._http = self._http, min(2 * self._http, HTTP_MOST)
        return wait

    def rate_limited(self, until_reset: float = 0.0) -> float:
        """Return how long to wait after a reply that there were too many requests or connections."""
        wait, self._rate = self._rate, min(2 * self._rate, RATE_MOST)
        return max(wait, until_reset)
