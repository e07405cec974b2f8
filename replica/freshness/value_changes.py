"""Steps of one variable's values: eight bytes per row, and the latest changes of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from replica.freshness.arrays import FloatArray, IntArray, grown
from replica.freshness.change_fit import SPREADS, ChangeFit, fit_changes, log_sizes
from replica.freshness.ring_buffer import RingBuffer

_ROOM = 1024
_MOST_COUNTED = 32
_MOST_AVERAGED = 8
_SHRINKAGE = 4.0


class ValueChanges:
    """Observed changes of one variable's numbers.

    By row: ``offsets``, the mean of its values less the present one; ``spreads``, its scale
    compared with other rows (the geometric mean of its steps, with four steps of the common size
    added); ``counts`` of changes. The first mean forgets changes more than 8 back, the second those
    more than 32 back. The last 1024 changes of all rows are kept, and the last 1024 numbers
    fetched. O(1) per number.
    """

    def __init__(self) -> None:
        self.offsets: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self.spreads: npt.NDArray[np.float16] = np.empty(0, np.float16)
        self.counts: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
        self.fit = ChangeFit()
        self.changes = RingBuffer(_ROOM, width=5)
        self.known = RingBuffer(_ROOM, width=1)
        self._fitted_at = 0

    def grow(self, capacity: int) -> None:
        """Make room for unknown rows."""
        self.offsets = grown(self.offsets, capacity, 0)
        self.spreads = grown(self.spreads, capacity, 1)
        self.counts = grown(self.counts, capacity, 0)

    def clear(self, rows: IntArray) -> None:
        """Forget some rows; statistics over all rows remain."""
        self.offsets[rows], self.spreads[rows], self.counts[rows] = 0, 1, 0

    def of(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return offsets and spreads of rows: 0 and 1 for unknown rows."""
        if not len(self.counts):
            return np.zeros(len(rows)), np.ones(len(rows))
        known = (rows >= 0) & (self.counts[rows] > 0)
        offsets = np.where(known, self.offsets[rows], 0.0).astype(np.float64)
        return offsets, np.where(known, self.spreads[rows] / self.fit.centre, 1.0).astype(
            np.float64
        )

    def see(self, numbers: FloatArray) -> None:
        """Take in numbers that were fetched, new or not."""
        self.known.add(numbers[np.isfinite(numbers)][:, None])

    def observe(
        self, rows: IntArray, before: FloatArray, after: FloatArray, changes: FloatArray
    ) -> None:
        """Take in the steps of rows, each at most once, with a known number before and after.

        ``changes`` is the expected number of changes behind each step.
        """
        if not len(rows):
            return
        offsets, spreads = self.of(rows)
        steps = after - before
        self.changes.add(
            np.column_stack([before, offsets, steps, spreads * self.fit.centre, changes])
        )
        moved = steps != 0
        self._remember(
            rows[moved], offsets[moved], spreads[moved], before[moved], steps[moved], changes[moved]
        )
        if self.changes.seen >= min(1.25 * self._fitted_at, self._fitted_at + _ROOM // 2):
            self._fit()

    def state(self, used: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return all state, of the first ``used`` rows or of all."""
        return {
            "offsets": self.offsets[:used],
            "spreads": self.spreads[:used],
            "counts": self.counts[:used],
            "changes": self.changes.state(),
            "known": self.known.state(),
            "fit": np.concatenate([[self._fitted_at], self.fit.figures()]),
        }

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state."""
        self.offsets = np.array(state["offsets"], np.float32)
        self.spreads = np.array(state["spreads"], np.float16)
        self.counts = np.array(state["counts"], np.uint16)
        self.changes.resume(state["changes"])
        self.known.resume(state["known"])
        fitted_at, *figures = np.asarray(state["fit"], np.float64).tolist()
        self._fitted_at, self.fit = int(fitted_at), ChangeFit.of_figures(figures)

    def _fit(self) -> None:
        before, offsets, steps, spreads, changes = self.changes.figures.T
        self.fit = fit_changes(before, offsets, steps, spreads, changes)
        self._fitted_at = self.changes.seen
        if not 0.5 < self.fit.centre < 2:
            # Rare, and O(rows): done before the small floats underflow or overflow.
            spreads /= self.fit.centre
            self.spreads[self.counts > 0] /= np.float16(self.fit.centre)
            self.fit = replace(self.fit, centre=1.0)

    def _remember(
        self,
        rows: IntArray,
        offsets: FloatArray,
        spreads: FloatArray,
        before: FloatArray,
        steps: FloatArray,
        changes: FloatArray,
    ) -> None:
        counts = np.minimum(self.counts[rows] + 1.0, _MOST_COUNTED)
        self.counts[rows] = counts
        # The mean moves towards the new value by 1/(number of values so far).
        lately = np.minimum(counts, _MOST_AVERAGED)
        self.offsets[rows] = (offsets - steps) * lately / (lately + 1)
        if self.fit.residuals:
            seen = (
                log_sizes(
                    (steps - self.fit.middle(before, offsets)) / self.fit.size(before, changes)
                )
                - self.fit.usual
            )
            logs = np.log(spreads)
            logs += (seen - logs) / (_SHRINKAGE + counts)
            self.spreads[rows] = self.fit.centre * np.clip(np.exp(logs), *SPREADS)
        else:
            self.spreads[rows] = self.fit.centre * spreads
