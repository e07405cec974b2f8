"""Results of a join: the best solutions of the stream, with each of the remote's that they join."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acquatop.query.ranking import TopKOperator
from acquatop.topk.contract import FloatArray, IntArray, Top
from replica.store.lookup_cache import LookupCache
from replica.store.runs import Runs


@dataclass(frozen=True)
class JoinedTop(Top):
    """Best results of a window; ``terms`` are the remote's by variable, for each of them.

    Of equal merits and times, the smaller identity comes first; of one solution's, the smaller
    terms.
    """

    terms: Sequence[Mapping[str, str]] = ()

    def take(self, at: IntArray) -> JoinedTop:
        """Return the results at some positions."""
        terms = [self.terms[each] for each in at.tolist()]
        return replace(self, rows=self.rows.take(at), merits=self.merits[at], terms=terms)


def with_terms(top: Top, terms: Sequence[Mapping[str, str]]) -> JoinedTop:
    """Return solutions that are one result each, with the remote's terms."""
    return JoinedTop(
        top.window,
        top.rows,
        top.merits,
        top.certainty,
        top.reason,
        top.bound,
        top.bar,
        terms,
    )


def joined_top(
    operator: TopKOperator, top: Top, store: LookupCache, most: int | None, least: float
) -> JoinedTop:
    """Return the best results that join a window's best solutions: ``most``, or those ``least``.

    Each solution has the merit of the best that it joins. So no solution beyond the best k has one
    of the best k results, nor one beyond a merit a result above it.
    """
    rows = store.rows(top.rows.keys.tolist())
    runs = store.runs(rows)
    if runs is None or runs.is_plain:
        return with_terms(top, terms_of(store, rows if runs is None else runs.places))
    return _several(operator.merits_in(top.rows, runs), top, store, runs, most, least)


def _several(
    merits: FloatArray, top: Top, store: LookupCache, runs: Runs, most: int | None, least: float
) -> JoinedTop:
    # NaN is no merit, and compares as false.
    scored = np.flatnonzero(merits >= least)
    if most is not None and len(scored) > most:
        bar = -np.partition(-merits[scored], most - 1)[most - 1]
        scored = scored[merits[scored] >= bar]
    terms = terms_of(store, runs.places[scored])
    owners = runs.owners[scored]

    def order(at: int) -> tuple[object, ...]:
        owner = int(owners[at])
        said = tuple(terms[at].get(name, "") for name in store.variables)
        time, identity = int(top.rows.times[owner]), top.rows.identities[owner]
        return -merits[scored[at]], -time, identity, said

    chosen = np.array(sorted(range(len(scored)), key=order)[:most], dtype=np.int64)
    expanded = replace(top, rows=top.rows.take(owners[chosen]), merits=merits[scored[chosen]])
    return with_terms(expanded, [terms[at] for at in chosen.tolist()])


def solutions_of(top: Top) -> Top:
    """Return each solution of some results once, in their order."""
    identities = top.rows.identities.tolist()
    firsts = {identity: at for at, identity in reversed(list(enumerate(identities)))}
    if len(firsts) == len(identities):
        return top
    at = np.sort(np.fromiter(firsts.values(), dtype=np.int64, count=len(firsts)))
    return Top.take(top, at)


def terms_of(store: LookupCache, places: IntArray) -> list[dict[str, str]]:
    """Return the replica's terms at some places, by variable."""
    columns = [store.terms(name, places) for name in store.variables]
    return [
        {name: term for name, term in zip(store.variables, terms, strict=True) if term is not None}
        for terms in (zip(*columns, strict=True) if columns else [()] * len(places))
    ]


ALL = -math.inf
"""Least merit of every result."""
