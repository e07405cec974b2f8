"""RetryPauses between two requests of a feed."""

from __future__ import annotations

from random import Random


class RetryPauses:
    """Random pauses, which double with each request that brought nothing.

    The first is ``first`` seconds long, or as long as the server says, and none is longer than
    ``longest`` seconds. A random share of that between half and all is waited.
    """

    def __init__(self, first: float, longest: float, random: Random) -> None:
        self._first, self._longest = first, longest
        self._random = random

    def after(self, in_vain: int, asked: float | None = None) -> float:
        """Return the pause after so many requests in vain; ``asked`` replaces the first pause."""
        first = self._first if asked is None else asked
        # The exponent is limited to the range of floats; a server must not set the pause to 0.
        longest = max(first, self._first / 10) * 2.0 ** min(max(in_vain - 1, 0), 60)
        return min(longest, self._longest) * (0.5 + self._random.random() / 2)
