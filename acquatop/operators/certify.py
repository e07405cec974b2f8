"""Say how far an answer can be trusted, never more than is so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acquatop.answer import Status
from acquatop.operators.topkn import TopKN
from acquatop.topk.contract import Certainty, Top
from replica.store import ReplicaStore


@dataclass(frozen=True)
class Certificate:
    """An answer's status; where it is approximate, why, and the best merit that what is missing could have."""

    status: Status
    reason: str | None = None
    bound: float | None = None


def certify(operator: TopKN, store: ReplicaStore | None, window: int, top: Top, fetched: frozenset[str]) -> Certificate:
    """Return an answer's certificate.

    ``fetched`` are the keys fetched in this evaluation. The merit of the last result, or minus
    infinity where there are fewer than k, is the bar: what cannot reach it cannot matter. Without a
    store there is nothing to be fetched.
    """
    bar = float(top.merits[-1]) if len(top) == operator.list.k else -math.inf
    reaches = [] if store is None else _without_value(operator, store, window, bar)
    if reaches:
        reason = f"{len(reaches)} of the window's solutions have no value from the remote yet"
        return Certificate(Status.APPROXIMATE, reason, max(*reaches, -math.inf if top.bound is None else top.bound))
    if top.certainty is Certainty.APPROXIMATE:
        return Certificate(Status.APPROXIMATE, top.reason, top.bound)
    exact = store is None or _nothing_stale_can_matter(operator, window, bar, fetched)
    return Certificate(Status.EXACT if exact else Status.CERTIFIED)


def _without_value(operator: TopKN, store: ReplicaStore, window: int, bar: float) -> list[float]:
    """Return the merits that solutions without a value could have, of those that could reach the bar."""
    waiting = operator.waiting.of(window)
    known = store.rows([each.key for each in waiting]) >= 0
    unknown = [each.numbers for each, is_known in zip(waiting, known.tolist(), strict=True) if not is_known]
    reach = {numbers: operator.scoring.reach(numbers, numbers) for numbers in set(unknown)}
    return [reach[numbers] for numbers in unknown if reach[numbers] >= bar]


def _nothing_stale_can_matter(operator: TopKN, window: int, bar: float, fetched: frozenset[str]) -> bool:
    lost = operator.list.lost(window)
    if lost is not None and operator.scoring.reach(*lost[1:]) >= bar:
        return False
    held = operator.list.covering(window)
    stale = np.array([key not in fetched for key in held.keys.tolist()], dtype=bool)
    columns = [part[stale].tolist() for part in held.parts]
    numbers = set(zip(*columns, strict=True)) if columns else {()} if stale.any() else set()
    numbers |= {each.numbers for each in operator.waiting.of(window) if each.key not in fetched}
    return not any(operator.scoring.reach(each, each) >= bar for each in numbers)
