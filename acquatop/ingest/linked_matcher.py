"""Matching of patterns about several subjects, over all that linked records say together.

Records are linked by a subject of one that the other has, too, or by an object that the pattern
joins on: those of a document of several subjects, above all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher, plain_column
from acquatop.ingest.linked_groups import linked_groups
from acquatop.ingest.record_pattern import may_differ
from acquatop.ingest.solution_count import SolutionCount, UnknownCount
from acquatop.ingest.solution_identities import identities_of
from acquatop.topk.contract import IntArray
from connectors.coded import distinct
from connectors.contract import RecordDecoder
from connectors.graphs import GraphMapping
from connectors.mapping import IRI, SUBJECT, TERM
from rspql import ast
from rspql.paths import ANY, linking_predicates
from rspql.plan import TopKPlan


class LinkedGraphMatcher(CombiningGraphMatcher):
    """Matcher of a plan's group against groups of linked records.

    A record that comes may link others, so what they said may belong to another group then. A
    solution is known by all that the pattern binds, blank nodes included.
    """

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        super().__init__(plan, mapping, arrivals="all" if arrivals == "distinct" else arrivals)
        self.retracts = True
        linking = linking_predicates(self._group)
        self._linking = [
            each
            for each in self._predicates
            if each in linking or (ANY in linking and self._may_be_iri(each))
        ]
        blanks = {each: None for each in ast.walk(self._group) if isinstance(each, ast.BlankNode)}
        names = {blank: _unused(f"blank{at}", self._bound) for at, blank in enumerate(blanks)}
        self._bound = (*self._bound, *names.values())

        def named(node: ast.Node) -> ast.Node:
            return ast.Variable(names[node]) if isinstance(node, ast.BlankNode) else node

        self._group = ast.rewritten(self._group, named)

    @property
    def links(self) -> Sequence[str]:
        """Names of the columns of the terms that link records: that of the subject first."""
        said = dict(zip(self._predicates, self.said, strict=True))
        return [SUBJECT, *(said[each] for each in self._linking)]

    def groups(self, said: pa.Table) -> IntArray:
        """Return a number for each record; those that make solutions together have the same."""
        columns = [plain_column(said.column(name)) for name in self.links]
        codes = distinct(pa.chunked_array(columns).combine_chunks()).indices
        terms = np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        return linked_groups(terms.reshape(len(columns), len(said)).T)

    def keys_in(self, records: pa.RecordBatch) -> pa.Array:
        """Return the terms that the keys of solutions can be, whatever other records say."""
        (said,) = pa.table(self.table(self.find(records))).combine_chunks().to_batches() or [None]
        if said is None:
            return pa.array([], pa.string())
        columns = [said.column(name) for name in (SUBJECT, *self.said)]
        return pa.chunked_array(columns).combine_chunks().drop_null().unique()

    def _may_be_iri(self, predicate: str) -> bool:
        return self._mapping.properties[predicate].datatype in (IRI, TERM)

    def _refused(self) -> Iterator[str]:
        """Yield what keeps the pattern from being matched, whatever the score."""
        if not isinstance(self._mapping, GraphMapping):
            yield "the pattern joins several records of a window: each is about one subject"
            return
        if self._arrivals == "latest":
            yield "linked records make solutions together, and a newer one would replace one"
            return
        yield from super()._refused()
        found = [self._mapping.properties[each] for each in self._linking]
        if any(map(may_differ, found)) or len({_kind(each.datatype) for each in found}) > 1:
            yield "the pattern joins on values that may be equal and differ as terms"

    @cached_property
    def _count(self) -> SolutionCount:
        return UnknownCount(self._group, self._predicates)

    def _names(self, subjects: pa.Array, terms: Sequence[pa.Array]) -> pa.Array:
        return identities_of(terms)


def _kind(datatype: str) -> str:
    return datatype if datatype.startswith(ast.XSD) else IRI


def _unused(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name
