"""Answers come back from storage exactly as they were."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef, Variable

from acquatop.answer.answer import Answer, Counts, Row, Shown, Status
from acquatop.answer.codec import answer_from_document, answer_to_document
from acquatop.answer.estimate import Estimate
from acquatop.catalog.quality_target import METRICS, QualityTarget
from replica.budget import Budget, Spending

XSD = "http://www.w3.org/2001/XMLSchema#"
texts = st.text(st.characters(exclude_categories=[]), max_size=8)
names = st.text("abc_", min_size=1, max_size=3)
numbers = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 5e-324])
whole = st.integers(-(2**63), 2**63)
counts = st.integers(0, 2**60)
terms = st.one_of(
    texts.map(URIRef),
    texts.map(BNode),
    texts.map(Literal),
    st.builds(Literal, texts, lang=st.sampled_from(["en", "EN-gb", "x-private"])),
    st.builds(
        lambda text, kind: Literal(text, datatype=URIRef(kind), normalize=False),
        texts | st.sampled_from(["03", "1e400", "true", "2020-13-01"]),
        st.sampled_from(
            [XSD + "integer", XSD + "double", XSD + "string", XSD + "date", "urn:own", ""]
        ),
    ),
)


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(of, max_size=2).map(tuple)


def maybe(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | of


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "query": texts,
    "window": whole,
    "opens_ms": whole,
    "closes_ms": whole,
    "rows": tuples(
        st.builds(
            Row,
            counts,
            st.dictionaries(names, terms, max_size=2),
            maybe(numbers),
            maybe(st.booleans()),
            maybe(numbers),
        )
    ),
    "status": st.sampled_from(Status),
    "reason": maybe(texts),
    "spending": st.builds(Spending, counts, counts, numbers, counts),
    "budget": st.builds(Budget, counts, counts, numbers),
    "refreshed": tuples(terms),
    "failure": maybe(texts),
    "counts": st.builds(
        Counts,
        counts,
        counts,
        st.dictionaries(texts, counts, max_size=2),
        rejected=st.dictionaries(texts, counts, max_size=2),
    ),
    "latency_seconds": numbers,
    "emitted_ms": whole,
    "score_variable": maybe(names),
    "variables": tuples(names),
    "form": st.sampled_from(["select", "ask", "construct", "describe"]),
    "boolean": maybe(st.booleans()),
    "triples": tuples(texts),
    "windows": tuples(st.builds(Shown, texts, whole, whole, whole)),
    "bound": maybe(numbers),
    "expected": maybe(st.builds(Estimate, numbers, numbers)),
    "target": maybe(st.builds(QualityTarget, st.sampled_from(METRICS), numbers)),
    "counts_elements": st.booleans(),
}
answers = st.fixed_dictionaries(FIELDS).map(lambda fields: Answer(**fields))


def test_every_field_is_drawn() -> None:
    stored = (each for each in dataclasses.fields(Answer) if each.metadata.get("is_stored", True))
    assert [each.name for each in stored] == list(FIELDS)


@given(answers)
def test_an_answer_comes_back_from_strict_json_as_it_was(answer: Answer) -> None:
    text = json.dumps(answer_to_document(answer), allow_nan=False)
    again = answer_from_document(json.loads(text))
    # Representations tell what equality does not: types, NaN, -0.0, a literal's text, the order of
    # bindings.
    assert repr(again) == repr(answer)
    assert list(map(type, again.refreshed)) == list(map(type, answer.refreshed))
    assert json.dumps(answer_to_document(again)) == text
    assert hash(again.rows[:0]) == hash(())


def test_fields_that_an_older_version_did_not_write_have_their_defaults() -> None:
    document = answer_to_document(sample())
    for name in ("expected", "bound", "windows", "variables"):
        del document[name]
    assert answer_from_document(document) == dataclasses.replace(sample(), bound=None)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "sure"},
        {"rows": [7]},
        {"refreshed": [{}]},
        {"nonsense": 1},
        {"rows": None},
        {"counts": []},
    ],
)
def test_documents_of_something_else_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not an answer's document|is not a valid Status"):
        answer_from_document({**answer_to_document(sample()), **change})


def test_what_has_no_form_to_be_stored_in_is_refused() -> None:
    for term in (Variable("x"), object()):
        with pytest.raises(TypeError, match="an answer holds a "):
            answer_to_document(dataclasses.replace(sample(), refreshed=(term,)))  # type: ignore[arg-type]


def sample() -> Answer:
    return Answer(
        "q",
        1,
        0,
        1,
        (),
        Status.EXACT,
        None,
        Spending(),
        Budget(1, 1, math.inf),
        (),
        None,
        Counts(),
        0.0,
        2,
        bound=1.0,
    )
