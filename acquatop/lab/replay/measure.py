"""Measures of every answer, and their serialised form."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from acquatop.lab.replay.metrics import (
    ndcg_at,
    ndcg_positional_at,
    precision_at,
    rank_correlation,
    relevancies,
)
from acquatop.lab.replay.oracle import Right
from acquatop.lab.replay.replay import Given
from acquatop.lab.replay.replayed_rows import GivenRows
from acquatop.lab.replay.right_rows import RightRows
from acquatop.query.cut import LimitCut

METRICS = ("ndcg", "ndcg_positional", "precision")
"""Metrics: higher is better, 1 is best; the error is 1 minus the metric."""

EXPECTED = {"precision": "expected_precision", "ndcg": "expected_ndcg"}
"""Metrics that the engine itself expects of an answer, and the measures of these expectations."""

NUMBERS = (
    *(*METRICS, "rank_correlation", "stale", "age_seconds", "fetches", "requests"),
    *EXPECTED.values(),
)
"""All numeric measures."""


@dataclass(frozen=True)
class Measured:
    """Measures of one answer against the right one.

    ``rank_correlation`` is Kendall's tau of the results' order. ``stale`` is the share of results
    whose score is wrong. ``age_seconds`` is the mean age of their fetched values (NaN if there are
    none). ``answer`` are the results in order, as JSON.
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
    expected_precision: float
    expected_ndcg: float
    answer: str

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
    merits = dict(zip(right.identities, right.merits.tolist(), strict=True))
    pairs = zip(given.identities, given.merits.tolist(), strict=True)
    stale = sum(merits.get(identity) != merit for identity, merit in pairs)
    return _measured(given, given.identities, shown, right.identities, stale, k)


def measure_rows(given: GivenRows, right: RightRows, cut: LimitCut | None) -> Measured:
    """Return the measures of an answer's rows against those that a cut leaves of the right ones.

    Rows that the query's order lets tie are taken in the order of the answer.
    """
    rows = right.in_favour_of(given.names)
    at = range(len(rows)) if cut is None else cut.kept(*right.groups_and_classes(rows))
    shown = [right.names[rows[place]] for place in at]
    contents = dict(zip(right.names, right.contents, strict=True))
    pairs = zip(given.names, given.contents, strict=True)
    stale = sum(contents.get(name) != content for name, content in pairs)
    most = max(1, len(shown), len(given.names))
    k = most if cut is None or cut.with_ties or right.is_grouped else cut.count
    return _measured(given, given.names, shown, [right.names[each] for each in rows], stale, k)


def _measured(
    given: Given | GivenRows,
    names: Sequence[str],
    shown: Sequence[str],
    ranked: Sequence[str],
    stale: int,
    k: int,
) -> Measured:
    relevance, expected = relevancies(shown), given.expected
    return Measured(
        given.window,
        given.closes_ms,
        ndcg_at(k, names, relevance),
        ndcg_positional_at(k, names, shown),
        precision_at(k, names, relevance),
        rank_correlation(names, ranked),
        stale / len(names) if names else 0.0,
        given.age_seconds,
        given.fetches,
        given.requests,
        given.status,
        math.nan if expected is None else expected.precision,
        math.nan if expected is None else expected.ndcg,
        json.dumps(list(names), ensure_ascii=False),
    )
