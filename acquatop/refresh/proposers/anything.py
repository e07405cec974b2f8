"""Proposer of every key that could be a result, whether it is a candidate or not."""

from __future__ import annotations

from acquatop.refresh.proposers.super_mtkn import SuperMTKNProposer


class Anything(SuperMTKNProposer):
    """Proposer of candidates and, if a query keeps all its keys, others of a window's best. O(1).

    Their number is that of solutions considered one by one for an answer: 256, or 25 for each
    result if that is more, but at most 2 000. If solutions that are no candidates have been
    dropped, they can be no results either, and only the candidates are proposed.
    """

    includes_dropped = True
    kind = "proposer of anything"
