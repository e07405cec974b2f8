"""Adaptive number of keys per request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIRST = 100
_SUCCESSES_BEFORE_A_PROBE = 100


class BlockSize:
    """Block size that grows towards the largest a remote answers, and shrinks if one is too large.

    A full block that succeeds doubles the size until one is too large. That halves the size; from
    there it grows by a tenth at a time, below the smallest size known to fail. Then it stays,
    except for one larger block after every hundred successes, as the limit may have been lifted. So
    a limit L is found with about log2(L) requests and a dozen more. From then on blocks have
    between L/2 and L keys, nearly always more than 0.9 L - 1, and one in a hundred is too large.

    Failures that are not due to the size leave it as it is. Blocks of another size than the present
    one (sent before it changed, or the last of several) count only if they were too large. For one
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
        """Largest size known to succeed, reset if such a size fails."""
        self._bad: int | None = None
        """Smallest size known to fail, until larger ones are tried again."""
        self._successes = 0
        self._slow: int | None = None
        """Size that was not answered in time, while this may have had other reasons."""
        self._before = 0
        """Size before that, which it returns to by doubling."""
        self._was_answered = False
        """True if any block has been answered since."""

    @property
    def now(self) -> int:
        """Most keys of the next request."""
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
        """Note that a block failed; ``too_large`` means that a smaller one might have succeeded."""
        if not too_large:
            return
        self._slow, self._before = None, 0
        if keys <= 1:
            self._bad = None  # there is no smaller one: the size is not the cause
            return
        if keys <= self._good:
            self._good = 0
        self._bad = keys if self._bad is None else min(self._bad, keys)
        self._now = min(self._now, max(1, keys // 2))
        self._successes = 0

    def timed_out(self, keys: int) -> None:
        """Note that a block timed out: the remote may hang, or the block may be too large.

        It counts as too large if this happens again after smaller blocks were answered. Until then
        the size is halved, and doubled again with each answer.
        """
        if self._slow is not None and self._was_answered and keys >= self._slow:
            self.failed(keys, too_large=True)
            return
        self._slow = keys if self._slow is None else min(self._slow, keys)
        self._before = max(self._before, self._now)
        self._was_answered = False
        self._now = min(self._now, max(1, keys // 2))

    def state(self) -> dict[str, Any]:
        """Return the complete state as plain values."""
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
        """Continue from a state."""
        self._now = min(self.most, state["now"])
        self._good, self._bad, self._successes = state["good"], state["bad"], state["successes"]
        self._slow, self._before, self._was_answered = (
            state["slow"],
            state["before"],
            state["was answered"],
        )

    def _next(self) -> int:
        """Return the size to use after a full block that succeeded."""
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
