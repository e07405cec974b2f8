"""Anything that could be a result is proposed, be it a candidate or not."""

from __future__ import annotations

from acquatop.refresh.proposers.super_mtkn import SuperMTKN


class Anything(SuperMTKN):
    """Proposes the candidates, and of queries that keep all their keys also others of the window's best. O(1).

    Those are as many as are considered one by one for an answer: at most 256, or 25 for each result, but 2 000. Where
    what is no candidate has been dropped it can be no result either, and these are the candidates.
    """

    looks_beyond_candidates = True
    kind = "proposer of anything"
