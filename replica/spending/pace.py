"""Pace of spending: leave what is worth little now, to spend more where much is worth it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from replica.spending.allowance import ItemAllowance

_KIND, _VERSION = "pace", 1

_SWING = 2.0**0.5
"""An item must be worth so many times what the last usual one is worth if nothing is saved, and the
inverse if no more can be saved.
"""

_SHARE_IF_LOST = 0.1
"""The same for items that would be lost."""

_FLOOR = 0.25
"""Share of the usual spending that is spent on average, whatever it is worth."""

_MEMORY = 30
"""Number of evaluations after which one counts 1/e."""

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class SpendingPace:
    """Chooser of the items that are worth asking for now, if others may be asked for later.

    The yardstick is the running mean of the worth of the last item that the usual spending pays
    for. What is worth more is asked for, even beyond the usual, what is worth less is left: the
    fuller the bank, the less is enough. Worth is a guess that only looks can correct, so a part of
    the usual spending is spent in any case.

    >>> pace, saving = SpendingPace(), ItemAllowance(usual=2, now=5, keeps=6, saved=0.5)
    >>> pace.worth_asking(np.array([5.0, 4.0, 3.9, 1.0]), saving).tolist()
    [True, True, False, False]
    >>> pace.worth_asking(np.array([9.0, 8.0, 7.0, 1.0]), saving).tolist()
    [True, True, True, False]
    >>> pace.worth_asking(np.array([1.0, 1.0, 1.0, 1.0]), saving).tolist()
    [False, False, False, False]
    """

    def __init__(self) -> None:
        self._known = 0
        """Number of evaluations seen, of those that still count."""
        self._last_usual = 0.0
        self._owed = 0.0
        """Items of the floor that have not been spent."""

    def worth_asking(self, worths: FloatArray, allowance: ItemAllowance) -> BoolArray:
        """Return marks of the items to ask for; ``worths`` are in the order of asking."""
        if not allowance.keeps:
            return np.ones(len(worths), dtype=np.bool_)
        self._note(worths, allowance.usual)
        asked = worths >= self._bar(_SWING ** (1 - 2 * allowance.saved))
        lost = max(0, allowance.now - allowance.keeps)
        asked[:lost] |= worths[:lost] >= self._bar(_SHARE_IF_LOST)
        self._owed += _FLOOR * allowance.usual
        asked[: int(self._owed)] = True
        spent = min(int(asked.sum()), allowance.now)
        self._owed = max(0.0, self._owed - spent)
        return asked

    def _bar(self, share: float) -> float:
        """Return the least worth that suffices: some at all."""
        return max(share * self._last_usual, float(np.finfo(np.float64).tiny))

    def _note(self, worths: FloatArray, usual: float) -> None:
        place = max(1, math.ceil(usual))
        last = float(np.sort(worths)[-place]) if len(worths) >= place else 0.0
        self._known = min(self._known + 1, _MEMORY)
        self._last_usual += (last - self._last_usual) / self._known

    def snapshot(self) -> bytes:
        """Return the whole state."""
        from replica.snapshot import State, pack  # loads pyarrow, which naming rankers must not

        settings = {"known": self._known, "last usual": self._last_usual, "owed": self._owed}
        return pack(_KIND, _VERSION, State(settings, {}))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        from replica.snapshot import reading, unpack

        with reading():
            settings = unpack(_KIND, _VERSION, snapshot).settings
            known, last = int(settings["known"]), float(settings["last usual"])
            self._known, self._last_usual, self._owed = known, last, float(settings["owed"])
