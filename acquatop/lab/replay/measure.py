"""Measures of every answer, and their serialised form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acquatop.lab.replay.clairvoyant import Clairvoyant
from acquatop.lab.replay.data import Data
from acquatop.lab.replay.metrics import (
    ndcg_at,
    ndcg_positional_at,
    precision_at,
    rank_correlation,
    relevancies,
)
from acquatop.lab.replay.oracle import Oracle, Right
from acquatop.lab.replay.replay import Given, Replay
from acquatop.lab.replay.setting import CLAIRVOYANT, Setting
from acquatop.lab.replay.trace import open_trace

METRICS = ("ndcg", "ndcg_positional", "precision")
"""Metrics: higher is better, 1 is best; the error is 1 minus the metric."""

NUMBERS = (*METRICS, "rank_correlation", "stale", "age_seconds", "fetches", "requests")
"""All numeric measures."""


@dataclass(frozen=True)
class Measured:
    """Measures of one answer against the right one.

    ``rank_correlation`` is Kendall's tau of the results' order. ``stale`` is the share of results
    whose score is wrong. ``age_seconds`` is the mean age of their fetched values (NaN if there are
    none).
    """

    window: int
    close_ms: int
    ndcg: float
    ndcg_positional: float
    precision: float
    rank_correlation: float
    stale: float
    age_seconds: float
    fetches: int
    requests: int
    status: str

    def to_list(self) -> list[Any]:
        """Return the values for JSON. Numbers have six decimals, as in all that is written."""
        return [_rounded(getattr(self, name)) for name in self.__dataclass_fields__]

    @classmethod
    def from_list(cls, values: list[Any]) -> Measured:
        """Return the inverse of :meth:`to_list`."""
        known: list[Any] = [math.nan if each is None else each for each in values]
        return cls(*known)


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, 6)


def measure(given: Given, right: Right, k: int, offset: int = 0) -> Measured:
    """Return the measures of an answer against the first k right results after the offset."""
    shown = right.identities[offset : offset + k]
    relevance = relevancies(shown)
    merits = dict(zip(right.identities, right.merits.tolist(), strict=True))
    pairs = zip(given.identities, given.merits.tolist(), strict=True)
    stale = sum(merits.get(identity) != merit for identity, merit in pairs)
    return Measured(
        given.window,
        given.closes_ms,
        ndcg_at(k, given.identities, relevance),
        ndcg_positional_at(k, given.identities, shown),
        precision_at(k, given.identities, relevance),
        rank_correlation(given.identities, right.identities),
        stale / len(given.identities) if given.identities else 0.0,
        given.age_seconds,
        given.fetches,
        given.requests,
        given.status,
    )


class Bench:
    """A recording with its right answers, to measure settings one after the other."""

    def __init__(
        self, data: Data, seed: int, folder: Path, items_per_request: int | None = None
    ) -> None:
        trace = open_trace(*data.write(seed, folder), items_per_request=items_per_request)
        self.notes = trace.notes
        self._offset = trace.bound.plan.offset
        self._replay = Replay(trace)
        self._trace, self._oracle = trace, Oracle(trace)
        self._right = {right.window: right for right in self._oracle}

    def measured(self, setting: Setting) -> Iterator[Measured]:
        """Yield the measures of each window's answer in a setting."""
        for given in self._answers(setting):
            yield measure(given, self._right[given.window], setting.k, self._offset)

    def _answers(self, setting: Setting) -> Iterator[Given]:
        if setting.policy == CLAIRVOYANT:
            return Clairvoyant(self._trace, self._oracle).answers(setting)
        return self._replay.answers(setting)
