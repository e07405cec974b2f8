"""Waiting times before the next attempt to reach X, as its documentation requires."""

from __future__ import annotations

NETWORK_STEP, NETWORK_MOST = 0.25, 16.0
HTTP_FIRST, HTTP_MOST = 5.0, 320.0
RATE_FIRST, RATE_MOST = 60.0, 960.0
"""First and longest wait for rate limits.

The documentation sets no longest wait for them; their period is 15 minutes.
"""


class Backoff:
    """Counter of consecutive failures that gives the seconds to wait after each.

    After the end of an established connection the next attempt is immediate. A failure to connect
    adds 0.25 s each time, up to 16 s. A refusal starts with 5 s and doubles, up to 320 s. A refusal
    for too many requests starts with 60 s and doubles, up to 960 s, and lasts at least until the
    limit's reset.

    >>> backoff = Backoff()
    >>> (
    ...     backoff.network(),
    ...     backoff.network(),
    ...     backoff.http(),
    ...     backoff.http(),
    ...     backoff.rate_limited(until_reset=300.0),
    ... )
    (0.25, 0.5, 5.0, 10.0, 300.0)
    >>> backoff.established()
    >>> backoff.network()
    0.25
    """

    def __init__(self) -> None:
        self.established()

    def established(self) -> None:
        """Forget all failures: a connection works."""
        self._network, self._http, self._rate = 0.0, HTTP_FIRST, RATE_FIRST

    def network(self) -> float:
        """Return the seconds to wait after a failure below HTTP."""
        self._network = min(self._network + NETWORK_STEP, NETWORK_MOST)
        return self._network

    def http(self) -> float:
        """Return the seconds to wait after an error reply."""
        wait, self._http = self._http, min(2 * self._http, HTTP_MOST)
        return wait

    def rate_limited(self, until_reset: float = 0.0) -> float:
        """Return the seconds to wait after a reply of too many requests or connections."""
        wait, self._rate = self._rate, min(2 * self._rate, RATE_MOST)
        return max(wait, until_reset)
