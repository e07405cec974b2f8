"""Terms of a stream that RDF forbids, but that were taken when they came: no filter fails."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from acquatop.ingest.record_graphs import PatternOverGraphs, RecordRows
from acquatop.ingest.term_filter import TermFilter
from rspql import ast
from rspql.parser import parse

INVALID = ["<http://host:port>", "<http://[::1>", "<urn:%zz>", '"a"@abcdefghi', '"a"@x']


@pytest.mark.parametrize("term", INVALID)
def test_filters_and_patterns_take_it(term: str) -> None:
    query = parse("PREFIX : <urn:> SELECT * { ?s ?p ?x FILTER(STRLEN(STR(?x)) < 99) }")
    assert query.where is not None
    (condition,) = (each for each in query.where.elements if isinstance(each, ast.Filter))
    values = {"x": pa.array([term, '"b"'])}
    assert TermFilter(condition.expression).holds(values).tolist() == [True, True]
    rows = RecordRows(pa.array(["<urn:s>"]), ["urn:p"], [pa.array([term])])
    found = PatternOverGraphs("?s <urn:p> ?x", "", ["x"]).solutions(np.array([0]), rows)
    assert [each.to_pylist() for each in found.terms] == [[term]]
