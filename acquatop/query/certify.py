"""Certification of answers, with or without a remote."""

from __future__ import annotations

import math

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.query.ranking import TopKOperator
from acquatop.refresh.joined_view import JoinedView
from acquatop.refresh.remote_past import PAST_SEEN
from acquatop.topk.contract import Certainty, Top


def certify(
    operator: TopKOperator, window: int, top: Top, fetched: frozenset[str], ambiguous: int = 0
) -> Certificate:
    """Return the certificate of an answer that a remote has a part in.

    ``fetched`` are the keys fetched just now. The bar is the merit of the last result, or minus
    infinity if there are fewer than k. Solutions that cannot reach it cannot matter. ``ambiguous``
    counts the solutions that the remote had besides those used. If there are any, another answer
    was possible, so none is exact.
    """
    bar = _bar(operator, top)
    reaches = operator.without_value(window, bar).tolist()
    if reaches:
        reason = f"{len(reaches)} of the window's solutions have no value from the remote yet"
        return Certificate(
            Status.APPROXIMATE, reason, max(*reaches, -math.inf if top.bound is None else top.bound)
        )
    certificate = certify_alone(top)
    if certificate.status is Status.EXACT and (
        ambiguous or operator.stale_can_reach(window, bar, fetched)
    ):
        return Certificate(Status.CERTIFIED)
    return certificate


def certify_past(
    certificate: Certificate, operator: TopKOperator, window: int, top: Top, view: JoinedView
) -> Certificate:
    """Return the certificate of an answer that past values of the remote have a part in.

    It is approximate if a solution that joins a key with an unknown past could reach the bar, and
    never exact: the remote may have had other values between two looks.
    """
    if certificate.status is Status.APPROXIMATE:
        return certificate
    lacking = view.without_past()
    if lacking:
        seen = frozenset(view.keys(view.all_rows())) - lacking
        if operator.stale_can_reach(window, _bar(operator, top), seen):
            what = "have not been seen for as long as a change looks back"
            reason = f"{len(lacking)} of the keys {what}"
            return Certificate(Status.APPROXIMATE, reason, math.inf)
    return Certificate(Status.CERTIFIED, PAST_SEEN)


def _bar(operator: TopKOperator, top: Top) -> float:
    bar = float(top.merits[-1]) if len(top) == operator.k else -math.inf
    return bar if top.bar is None else top.bar


def certify_alone(top: Top) -> Certificate:
    """Return the certificate of an answer that the stream alone decides."""
    if top.certainty is Certainty.APPROXIMATE:
        return Certificate(Status.APPROXIMATE, top.reason, top.bound)
    return Certificate(Status.EXACT)
