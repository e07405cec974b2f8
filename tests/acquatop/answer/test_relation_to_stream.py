from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Literal

from acquatop.answer.answer import Answer, Row
from acquatop.answer.relation_to_stream import RelationToStream
from tests.support.empty_answer import NOTHING


def select(values: str) -> Answer:
    rows = (
        Row(at, {"x": Literal(value)}, float(at), None, None)
        for at, value in enumerate(values, start=1)
    )
    return replace(NOTHING, rows=tuple(rows))


def bag(answer: Answer) -> Counter[str]:
    return Counter(str(row.bindings["x"]) for row in answer.rows)


@given(st.lists(st.text("abc", max_size=5), max_size=8))
def test_what_is_new_and_what_has_gone_lead_from_each_answer_to_the_next(
    relations: list[str],
) -> None:
    all_, new, gone = (RelationToStream(each) for each in ("RSTREAM", "ISTREAM", "DSTREAM"))
    held: Counter[str] = Counter()
    for relation in relations:
        answer = select(relation)
        assert all_(answer) is answer
        inserted, deleted = bag(new(answer)), bag(gone(answer))
        assert not inserted & deleted
        held = held + inserted - deleted
        assert held == bag(answer)


def test_rows_keep_the_rank_of_the_answer_that_they_are_from() -> None:
    new, gone = RelationToStream("ISTREAM"), RelationToStream("DSTREAM")
    for answer in map(select, ("ab", "cb")):
        inserted, deleted = new(answer), gone(answer)
    assert [(row.rank, str(row.bindings["x"])) for row in inserted.rows] == [(1, "c")]
    assert [(row.rank, str(row.bindings["x"])) for row in deleted.rows] == [(1, "a")]


def test_triples_are_compared_line_by_line() -> None:
    new, gone = RelationToStream("ISTREAM"), RelationToStream("DSTREAM")
    answers = [
        replace(NOTHING, form="construct", triples=triples) for triples in (("a", "b"), ("b", "c"))
    ]
    assert [new(each).triples for each in answers] == [("a", "b"), ("c",)]
    assert [gone(each).triples for each in answers] == [(), ("a",)]


def test_an_ask_is_a_relation_with_one_element_or_none() -> None:
    truths = [True, True, False, True, False, False]
    answers = [replace(NOTHING, form="ask", boolean=truth) for truth in truths]
    shown = {}
    for output in ("RSTREAM", "ISTREAM", "DSTREAM"):
        operator = RelationToStream(output)
        shown[output] = [operator(each).boolean for each in answers]
    assert shown["RSTREAM"] == truths
    assert shown["ISTREAM"] == [True, False, False, True, False, False]
    assert shown["DSTREAM"] == [False, False, True, False, True, False]


def test_there_is_no_other_output() -> None:
    with pytest.raises(ValueError, match="XSTREAM is none of RSTREAM"):
        RelationToStream("XSTREAM")
