"""What may have become of candidates: merits that they may have by now."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from acquatop.ingest.scoring import ReplicaScoring
from acquatop.topk.contract import FloatArray, IntArray
from replica.freshness.change_model import ChangeModel

_DOUBT = 0.02
"""In which share of draws a changed value may be any: so what seems to be of no account is looked at, too."""


class Store(Protocol):
    """What is asked of a replica."""

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN where there is none."""


class ChangedMerits:
    """Draws the merits of candidates with values that the remote may have for them, given that these have changed.

    ``rows`` are theirs in the replica, ``parts`` the stream's numbers, NaN where they are not known: then so are the
    merits. O(draws · candidates), for those that it is asked for.
    """

    def __init__(
        self,
        scoring: ReplicaScoring,
        store: Store,
        model: ChangeModel,
        rows: IntArray,
        parts: tuple[FloatArray, ...],
        *,
        now: float,
        random: np.random.Generator,
    ) -> None:
        self._scoring = scoring
        self._store = store
        self._model = model
        self._rows = rows
        self._parts = parts
        self._now = now
        self._random = random

    def __call__(self, at: IntArray, count: int) -> FloatArray:
        """Return merits of the candidates at some positions, a row per draw."""
        rows = self._rows[at]
        remote = {}
        for name in self._scoring.remote_variables:
            values = self._store.numbers(name, rows)
            remote[name] = self._draw(name, rows, values, count).ravel()
        parts = tuple(np.tile(part[at], count) for part in self._parts)
        return self._scoring.merits_given(remote, parts, count * len(at)).reshape(count, len(at))

    def _draw(self, name: str, rows: IntArray, values: FloatArray, count: int) -> FloatArray:
        return self._model.draw(name, rows, values, count, self._random, now=self._now, doubt=_DOUBT)
