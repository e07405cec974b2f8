"""Judgement of the relation-to-stream operators: answers that only give what is new, or gone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.support.simulation.scenario import QuerySpec

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """Answer of one window, its status, and what is wrong with it."""

    window: int
    status: str
    problem: str | None


def judge_changes(
    query: QuerySpec, told: Mapping[int, Document], whole: Mapping[int, Document]
) -> list[Change]:
    """Compare the answers of a query with the whole answers of its twin, by window.

    Each is the difference from the answer before it; the first follows upon nothing. Answers whose
    twins are unknown are left out. Windows that count elements may be left out if nothing changes.
    """
    windows = sorted(whole if query.counts else told)
    pairs = [(None, windows[0]), *pairwise(windows)] if windows else []
    return [
        Change(window, whole[window]["status"], _problem(query, told, whole, before, window))
        for before, window in pairs
        if window in whole and (before is None or before in whole)
    ]


def _problem(
    query: QuerySpec,
    told: Mapping[int, Document],
    whole: Mapping[int, Document],
    before: int | None,
    window: int,
) -> str | None:
    now = whole[window]["results"]
    earlier: Sequence[Document] = [] if before is None else whole[before]["results"]
    right = _without(now, earlier) if query.output == "ISTREAM" else _without(earlier, now)
    if window not in told:
        return f"is left out, but right is {right}" if right else None
    for key in ("status", "reason"):
        if told[window][key] != whole[window][key]:
            return f"{key} {told[window][key]}, but the whole answer has {whole[window][key]}"
    if told[window]["results"] != right:
        return f"shows {told[window]['results']}, but right is {right}"
    return None


def _without(these: Sequence[Document], those: Sequence[Document]) -> list[Document]:
    """Return the results of one answer that another has not, as often as it has more of them."""
    left = Counter(map(_identity, those))
    beyond = []
    for each in these:
        if left[_identity(each)]:
            left[_identity(each)] -= 1
        else:
            beyond.append(each)
    return beyond


def _identity(result: Document) -> str:
    return json.dumps(result["bindings"], sort_keys=True)
