"""PA while it is certain, else the exact algorithm: the paper's open hybrid (Section 4.1.3).

The paper asks for a detector of streams whose order and merits are related. There is a cheap one:
the certificate of :mod:`acquatop.topk.papers.sliding.certified`. It does not guess the stream's
nature, but tells for each answer if a dropped event could belong to it. At the first uncertain
answer, and before it is given, the array block skyline takes over, from the merits of the last n
events, which are kept for this. So no answer is ever wrong, on any stream.

Who accepts an error gets it as a share of the answers: an uncertain one is given, and noted, as
long as no more than that share of all so far are. Beyond, the block skyline takes over. So the
share holds on any stream; in random order, with the paper's limit for it, a switch is rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import best
from acquatop.topk.papers.sliding.certified import CertifiedSkyband
from acquatop.topk.papers.sliding.limit import safe_limit
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.contract import Best, ChangeLog, Changes, Event, best_of, check_sizes
from acquatop.topk.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "hybrid", 1
SIGMA = 1e-3
"""The paper's error: results missed by a window on average, in random order."""
_LONGEST = 64
"""Largest number of windows for which the exact algorithm stays."""


class Hybrid:
    """Exact; probabilistic while that is certain, or while the share of uncertain ones is small.

    With an ``error`` up to that share of the answers may be uncertain: :meth:`take_doubts` tells
    which. There is an answer after every ``step`` events.

    A doubt costs O(n), and so does the return. After a doubt the exact algorithm stays for a
    window, or for twice as long as the last time if the doubt came sooner than that after the
    return. So a stream made to raise doubts costs O(1) per event more than the exact algorithm
    alone.

    >>> falling = Hybrid(k=1, n=4, limit=1)
    >>> changes = falling.add(np.arange(9.0)[::-1])
    >>> changes.entered.tolist(), falling.switches, falling.is_exact
    ([0, 1, 2, 3, 4, 5], 1, True)
    """

    def __init__(self, k: int, n: int, limit: int, *, error: float = 0.0, step: int = 1) -> None:
        check_sizes(k, n)
        if not 0 <= error < 1 or step < 1:
            raise ValueError("error must be from 0 to less than 1, and step at least 1")
        self.k = k
        self.n = n
        self.position = 0
        self.rejected = 0
        self.switches = 0
        """Number of times the exact algorithm has taken over."""
        self.uncertain = 0
        """Number of uncertain answers."""
        self._error = error
        self._step = step
        self._doubts: list[tuple[int, float]] = []
        self._limit = limit
        self._recent = np.full(n, np.nan)
        self._band = CertifiedSkyband(k, limit)
        self._exact: BlockSkyline | None = None
        self._base = 0
        """Position in the stream of the exact algorithm's position 0."""
        self._patience = n
        self._turn = 0
        """Position of the last switch between the algorithms."""

    @property
    def is_exact(self) -> bool:
        """True while the exact algorithm is used."""
        return self._exact is not None

    def add(self, merits: FloatArray) -> Changes:
        """Add the next events of the stream, and return how the best changed with them."""
        log = ChangeLog()
        start = 0
        while start < len(merits):
            if self._exact is not None and self.position >= self._turn + self._patience:
                self._return()
            rest = merits[start:]
            start += (
                self._certainly(rest, log)
                if self._exact is None
                else self._exactly(rest, self._exact, log)
            )
        return log.changes()

    def top(self) -> Best:
        """Return the best of the last n events."""
        if self._exact is None:
            return best_of(list(self._band.trees.best), self.k)
        found = self._exact.top()
        return Best(found.positions + self._base, found.merits)

    def take_doubts(self) -> list[tuple[int, float]]:
        """Return the uncertain answers since the last call, in their order.

        Each is the position of the last event, and the best merit of what may be missing.
        """
        doubts, self._doubts = self._doubts, []
        return doubts

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer: the window."""
        return np.arange(max(0, self.position - self.n), self.position)

    def __len__(self) -> int:
        return min(self.n, self.position)

    def _certainly(self, merits: FloatArray, log: ChangeLog) -> int:
        """Add events one by one until an answer is not certain, and return their number."""
        band = self._band
        for count, merit in enumerate(merits.tolist(), start=1):
            self._recent[self.position % self.n] = merit
            band.leave(self.position - self.n)
            if merit == merit:
                band.insert((merit, self.position))
            else:
                self.rejected += 1
            band.settle()
            self.position += 1
            if not band.certain and self.position % self._step == 0 and not self._may_doubt():
                self._take_over(log)
                return count
            entered, left = band.trees.changed()
            if entered or left:
                log.note(self.position - 1, entered, left)
        return len(merits)

    def _may_doubt(self) -> bool:
        """Return True, and note the present answer as uncertain, if that is not one too many."""
        if self.uncertain + 1 > self._error * (self.position // self._step):
            return False
        dropped = self._band.best_dropped
        assert dropped is not None, "without a dropped event all is certain"
        self.uncertain += 1
        self._doubts.append((self.position - 1, dropped[0]))
        return True

    def _exactly(self, merits: FloatArray, exact: BlockSkyline, log: ChangeLog) -> int:
        """Add events while the exact algorithm is to stay, and return their number."""
        taken = merits[: self._turn + self._patience - self.position]
        newest = taken[-self.n :]
        places = (
            np.arange(self.position + len(taken) - len(newest), self.position + len(taken)) % self.n
        )
        self._recent[places] = newest
        before = exact.rejected
        changes = exact.add(taken)
        self.rejected += exact.rejected - before
        log.extend(changes, self._base)
        self.position += len(taken)
        return len(taken)

    def _take_over(self, log: ChangeLog) -> None:
        """Switch to the exact algorithm, which gives the uncertain answer and goes on."""
        entered, left = self._band.trees.changed()
        reported = {*self._band.trees.best} - {entered} | ({left} if left else set())
        window = self._window()
        self._base = self.position - len(window)
        self._exact = BlockSkyline(self.k, self.n)
        self._exact.add(window)
        found = self.top()
        right: set[Event] = set(zip(found.merits.tolist(), found.positions.tolist(), strict=True))
        # Several at once if uncertain answers came before.
        for entered, left in zip_longest(sorted(right - reported), sorted(reported - right)):
            log.note(self.position - 1, entered, left)
        was_soon = self.position < self._turn + self._patience
        self._patience = (
            min(2 * self._patience, _LONGEST * self.n) if was_soon and self.switches else self.n
        )
        self._turn = self.position
        self.switches += 1

    def _return(self) -> None:
        """Start again with the best of the window, and record the others as dropped."""
        window = self._window()
        self._band = CertifiedSkyband(self.k, self._limit)
        start = self.position - len(window)
        numbers = np.flatnonzero(~np.isnan(window))
        held = numbers[best(self.k + self._limit, window[numbers], numbers, numbers)]
        for at in held.tolist():
            self._band.insert((float(window[at]), start + at))
        self._band.settle()
        self._band.trees.forget_changes()
        window[held] = np.nan
        for at in _descents(window).tolist():
            self._band.remember((float(window[at]), start + at))
        self._exact = None
        self._turn = self.position

    def _window(self) -> FloatArray:
        """Return the merits of the window, oldest first."""
        at = self.position % self.n
        window = np.concatenate((self._recent[at:], self._recent[:at]))
        return window[-min(self.n, self.position) :]

    def window(self) -> FloatArray:
        """Return the merits of the last n events, oldest first; NaN before the first."""
        return np.roll(self._recent, -(self.position % self.n))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes. O(n)."""
        band, exact = self._band, self._exact
        names = ("position", "rejected", "switches", "uncertain", "_base", "_patience", "_turn")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        settings |= {"threshold": band.threshold, "is_exact": exact is not None}
        held = sorted((*band.trees.best, *band.trees.candidates))
        tables = {
            "recent": {"merits": self._recent},
            "held": _columns(held),
            "dropped": _columns(band.dropped),
            "doubts": _columns([(merit, position) for position, merit in self._doubts]),
        }
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added; ``SnapshotError`` for other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            settings = dict(state.settings)
            threshold, is_exact = settings.pop("threshold"), settings.pop("is_exact")
            for name, value in settings.items():
                setattr(self, name, value)
            self._recent = state.tables["recent"]["merits"].copy()
            held, dropped = (_events(state.tables[name]) for name in ("held", "dropped"))
            self._band = CertifiedSkyband.of(self.k, self._limit, held, dropped, threshold)
            self._doubts = [(at, merit) for merit, at in _events(state.tables["doubts"])]
            if is_exact:
                # Its window is the whole one, so its position 0 is that of the window's first.
                self._exact = BlockSkyline(self.k, self.n)
                self._exact.add(self._window())
                self._base = self.position - min(self.n, self.position)

    def _check(self) -> None:
        """Assert every invariant."""
        if self._exact is None:
            self._band._check()
            assert self._band.certain or self._error or self._step > 1
            assert self.uncertain <= self._error * (self.position // self._step)
        else:
            self._exact._check()
            assert self._base + self._exact.position == self.position


def guarded(k: int, n: int, error: float = 0.0, step: int = 1) -> Hybrid:
    """Return PA with the paper's limit for an error, by default for its own, and the guard."""
    return Hybrid(k, n, safe_limit(n, k, error or SIGMA), error=error, step=step)


def _columns(events: Sequence[Event]) -> dict[str, AnyArray]:
    """Return events as columns."""
    return {
        "merits": np.array([merit for merit, _ in events], dtype=np.float64),
        "positions": np.array([position for _, position in events], dtype=np.int64),
    }


def _events(columns: Mapping[str, AnyArray]) -> list[Event]:
    return list(zip(columns["merits"].tolist(), columns["positions"].tolist(), strict=True))


def _descents(merits: FloatArray) -> IntArray:
    """Return the positions of merits greater than all after them; NaN is skipped.

    >>> _descents(np.array([1.0, 5.0, np.nan, 2.0, 3.0])).tolist()
    [1, 4]
    """
    after = np.fmax.accumulate(np.append(merits, np.nan)[::-1])[::-1][1:]
    return np.flatnonzero((merits > after) | (np.isnan(after) & ~np.isnan(merits)))
