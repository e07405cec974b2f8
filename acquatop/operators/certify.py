"""Say how far an answer can be trusted, never more than is so."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from acquatop.answer import Status
from acquatop.operators.topkn import TopKN
from acquatop.topk.candidate import Candidate
from replica.store import ReplicaStore


def certify(
    operator: TopKN, store: ReplicaStore, window: int, top: Sequence[Candidate], fetched: frozenset[str]
) -> tuple[Status, str | None]:
    """Return an answer's status and, when it is approximate, the reason.

    ``fetched`` are the keys fetched in this evaluation. The merit of the last result, or minus
    infinity where there are fewer than k, is the bar: what cannot reach it cannot matter.
    """
    full = len(top) == operator.list.k
    bar = top[-1].merit if full else -math.inf
    unknown = _without_value(operator, store, window, bar)
    if unknown:
        return Status.APPROXIMATE, f"{unknown} of the window's solutions have no value from the remote yet"
    dropped = operator.list.dropped(window)
    if dropped is not None and not (full and top[-1].rank < dropped.best):
        return Status.APPROXIMATE, "a solution that was let go, or came too late, could belong here"
    exact = _nothing_stale_can_matter(operator, window, bar, fetched)
    return (Status.EXACT if exact else Status.CERTIFIED), None


def _without_value(operator: TopKN, store: ReplicaStore, window: int, bar: float) -> int:
    waiting = [each for each in operator.waiting.values() if each.covers(window)]
    known = store.rows([each.key for each in waiting]) >= 0
    return sum(
        not is_known and operator.reach(each.numbers, each.numbers) >= bar
        for each, is_known in zip(waiting, np.asarray(known).tolist(), strict=True)
    )


def _nothing_stale_can_matter(operator: TopKN, window: int, bar: float, fetched: frozenset[str]) -> bool:
    dropped = operator.list.dropped(window)
    if dropped is not None and operator.reach(dropped.lows, dropped.highs) >= bar:
        return False
    others = [each for each in operator.list if each.covers(window)]
    others += [each for each in operator.waiting.values() if each.covers(window)]
    return not any(each.key not in fetched and operator.reach(each.numbers, each.numbers) >= bar for each in others)
