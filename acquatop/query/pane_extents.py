"""Sizes of the numbers in the panes of the open windows."""

from __future__ import annotations

import json

import numpy as np

from acquatop.query.exactness import Exactness, Extents
from acquatop.topk.contract import FloatArray


class PaneExtents:
    """Greatest magnitude of each number in each pane; nothing if scores are certainly exact."""

    def __init__(self, names: tuple[str, ...], exactness: Exactness) -> None:
        self._names = names
        self._exactness = exactness
        self._panes: dict[tuple[int, int], list[float]] = {}

    def note(self, first: int, last: int, parts: tuple[FloatArray, ...]) -> None:
        """Note the numbers of a pane."""
        if self._exactness.is_certain or not parts:
            return
        self.note_ranges(
            first,
            last,
            # What is unbound is NaN, and must not hide the others.
            tuple(float(np.fmin.reduce(part, initial=0.0)) for part in parts),
            tuple(float(np.fmax.reduce(part, initial=0.0)) for part in parts),
        )

    def note_ranges(
        self, first: int, last: int, lows: tuple[float, ...], highs: tuple[float, ...]
    ) -> None:
        """Note the ranges of the numbers of a pane."""
        if self._exactness.is_certain:
            return
        greatest = [max(-low, high) for low, high in zip(lows, highs, strict=True)]
        known = self._panes.get((first, last), greatest)
        self._panes[first, last] = np.maximum(known, greatest).tolist()

    def of(self, window: int) -> Extents:
        """Return the sizes of the numbers of a window."""
        here = [each for (first, last), each in self._panes.items() if first <= window <= last]
        greatest = np.max(here, axis=0).tolist() if here else [0.0] * len(self._names)
        return {
            name: self._exactness.digits(name, each)
            for name, each in zip(self._names, greatest, strict=True)
        }

    def close_before(self, window: int) -> None:
        """Release what lies only in earlier windows."""
        self._panes = {span: each for span, each in self._panes.items() if span[1] >= window}

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return json.dumps([[*span, each] for span, each in self._panes.items()]).encode()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""
        self._panes = {(first, last): each for first, last, each in json.loads(snapshot)}
