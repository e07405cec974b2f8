"""How many keys one request may carry, found out by trying."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIRST = 100
_SUCCESSES_BEFORE_A_PROBE = 100


class BlockSize:
    """Grows towards the largest block that a remote answers, and falls back when one is too large.

    A full block that succeeds doubles the size until one is too large; that halves it, and from there it grows by a
    tenth at a time, below the smallest size known to fail. There it stays, but for one larger block after every hundred
    that succeeded, as the limit may have been lifted. So a limit L is found with about log2(L) requests and a dozen
    more; from then on blocks have between L/2 and L keys, nearly always more than 0.9 L - 1, and one in a hundred is
    too large.

    Failures that do not come from the size leave it as it is. Blocks of another size than the present one, as they were
    sent before it changed or are the last of several, say something only if they were too large. To be used by one
    thread at a time.

    >>> size = BlockSize(most=1000)
    >>> size.now
    100
    >>> size.succeeded(100)
    >>> size.now
    200
    >>> size.failed(200, too_large=True)
    >>> size.now
    100
    >>> size.succeeded(100)
    >>> size.now
    110
    """

    def __init__(self, most: int, *, first: int | None = None) -> None:
        if most < 1 or (first is not None and first < 1):
            raise ValueError(f"a block holds at least one key, not {most if most < 1 else first}")
        self.most = most
        self._now = min(most, _FIRST if first is None else first)
        self._good = 0
        """The largest size known to succeed, since one that had succeeded failed."""
        self._bad: int | None = None
        """The smallest size known to fail, until larger ones are tried again."""
        self._successes = 0
        self._slow: int | None = None
        """The size that has not been answered in time, as long as that may have had other reasons."""
        self._before = 0
        """The size before that, to which it goes back by doubling."""
        self._was_answered = False
        """Whether anything smaller has been answered since."""

    @property
    def now(self) -> int:
        """How many keys the next request may carry."""
        return self._now

    def succeeded(self, keys: int) -> None:
        """Note that a block was answered."""
        self._was_answered = True
        if self._slow is not None and keys >= self._slow:
            self._slow = None
        if keys != self._now:
            return
        self._good = max(self._good, keys)
        if self._bad is not None and keys >= self._bad:
            self._bad = None
        self._now = min(self.most, self._next())

    def failed(self, keys: int, too_large: bool = False) -> None:
        """Note that a block failed, and whether a smaller one might not have."""
        if not too_large:
            return
        self._slow, self._before = None, 0
        if keys <= 1:
            self._bad = None  # there is no smaller one: the size is not what is wrong
            return
        if keys <= self._good:
            self._good = 0
        self._bad = keys if self._bad is None else min(self._bad, keys)
        self._now = min(self._now, max(1, keys // 2))
        self._successes = 0

    def timed_out(self, keys: int) -> None:
        """Note that a block was not answered in time: the remote may hang, or so many keys may take it too long.

        It is too many when it happens again after smaller blocks have been answered. Until then the size is
        halved, and doubled again with each answer.
        """
        if self._slow is not None and self._was_answered and keys >= self._slow:
            self.failed(keys, too_large=True)
            return
        self._slow = keys if self._slow is None else min(self._slow, keys)
        self._before = max(self._before, self._now)
        self._was_answered = False
        self._now = min(self._now, max(1, keys // 2))

    def state(self) -> dict[str, Any]:
        """Return all that has been found out, as plain values."""
        return {
            "now": self._now,
            "good": self._good,
            "bad": self._bad,
            "successes": self._successes,
            "slow": self._slow,
            "before": self._before,
            "was answered": self._was_answered,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._now = min(self.most, state["now"])
        self._good, self._bad, self._successes = state["good"], state["bad"], state["successes"]
        self._slow, self._before, self._was_answered = state["slow"], state["before"], state["was answered"]

    def _next(self) -> int:
        """Return the size after a full block that succeeded."""
        if self._now < self._before:
            return min(2 * self._now, self._before)
        self._before = 0
        if self._now < self._good:
            return min(2 * self._now, self._good)
        if self._bad is None:
            return 2 * self._now
        larger = self._now + max(1, self._now // 10)
        if larger < self._bad:
            return larger
        self._successes += 1
        return self._now if self._successes < _SUCCESSES_BEFORE_A_PROBE else larger
