"""Possible present merits of candidates whose remote values have changed."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.scoring import ReplicaScoring
from acquatop.topk.contract import FloatArray, IntArray
from replica.freshness.change_model import ChangeModel
from replica.view import KnownValues

_DOUBT = 0.02
"""Share of draws in which a changed value may be any, so that unlikely candidates count, too."""


class ChangedMerits:
    """Sampler of candidates' merits, given that the remote's values for them have changed.

    ``rows`` are the candidates' rows in the replica. ``parts`` are the stream's numbers; NaN if
    unknown, and then the merits are NaN too. O(draws · candidates), for the candidates asked for.
    """

    def __init__(
        self,
        scoring: ReplicaScoring,
        store: KnownValues,
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
        runs = self._store.runs(rows, least=1)
        places, owners = (rows, slice(None)) if runs is None else (runs.places, runs.owners)
        remote = {}
        for name in self._scoring.remote_variables:
            values = self._store.numbers(name, places)
            remote[name] = self._draw(name, rows[owners], values, count).ravel()
        parts = tuple(np.tile(part[at][owners], count) for part in self._parts)
        size = len(places)
        merits = self._scoring.merits_given(remote, parts, count * size).reshape(count, size)
        return merits if runs is None else runs.best(merits)

    def _draw(self, name: str, rows: IntArray, values: FloatArray, count: int) -> FloatArray:
        return self._model.draw(
            name, rows, values, count, self._random, now=self._now, doubt=_DOUBT
        )
