"""Say how far an answer can be trusted, never more than is so."""

from __future__ import annotations

import math
from dataclasses import dataclass

from acquatop.answer.answer import Status
from acquatop.query.ranking import TopKOperator
from acquatop.topk.contract import Certainty, Top


@dataclass(frozen=True)
class Certificate:
    """An answer's status; where it is approximate, why, and the best merit that what is missing could have."""

    status: Status
    reason: str | None = None
    bound: float | None = None


def certify(operator: TopKOperator, window: int, top: Top, fetched: frozenset[str], ambiguous: int = 0) -> Certificate:
    """Return the certificate of an answer that a remote has a part in; ``fetched`` are the keys fetched just now.

    ``ambiguous`` is how many solutions the remote had for these besides those that are used. One was chosen where
    another might have been, so another answer is possible: none is exact then. The merit of the last result, or
    minus infinity where there are fewer than k, is the bar: what cannot reach it cannot matter.
    """
    bar = float(top.merits[-1]) if len(top) == operator.k else -math.inf
    reaches = operator.without_value(window, bar).tolist()
    if reaches:
        reason = f"{len(reaches)} of the window's solutions have no value from the remote yet"
        return Certificate(Status.APPROXIMATE, reason, max(*reaches, -math.inf if top.bound is None else top.bound))
    certificate = certify_alone(top)
    if certificate.status is Status.EXACT and (ambiguous or operator.stale_can_reach(window, bar, fetched)):
        return Certificate(Status.CERTIFIED)
    return certificate


def certify_alone(top: Top) -> Certificate:
    """Return the certificate of an answer that the stream alone decides."""
    if top.certainty is Certainty.APPROXIMATE:
        return Certificate(Status.APPROXIMATE, top.reason, top.bound)
    return Certificate(Status.EXACT)
