"""Recovery from syntax errors: several are found, in their places, and what follows is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedInput

from rspql.compiler import analyse
from rspql.draft import Draft, Edit
from rspql.grammar import grammar
from rspql.mistakes import recognised
from rspql.syntax_errors import Stop

FOLDER = Path(__file__).parent.parent / "fixtures" / "diagnostics"
HABITS = sorted(FOLDER.glob("habit_*.rspql"))
WELL_FORMED = ("misspelt_var", "outside_window")


def mended(text: str) -> str:
    """Apply the edits of all mistakes that are recognised."""
    draft = Draft(text)
    for _ in range(20):
        parser = grammar().parse_interactive(draft.text)
        try:
            parser.exhaust_lexer()
            parser.feed_eof()  # type: ignore[no-untyped-call]
        except UnexpectedInput as error:
            error.interactive_parser = parser
            stop = Stop.of(error, draft.text)
        else:
            return draft.text
        finding = recognised(stop)
        assert finding is not None, draft.text[stop.at :][:60]
        draft.apply(finding.fix)
    raise AssertionError("still wrong after 20 edits")


@pytest.mark.parametrize("file", HABITS, ids=lambda file: file.stem)
def test_edits_mend_mistakes(file: Path) -> None:
    text = file.read_text("utf-8")
    assert (mended(text) == text) == file.stem.endswith(WELL_FORMED)


@given(st.data())
def test_places_are_those_of_the_text_as_written(data: st.DataObject) -> None:
    text = "".join(chr(0x4E00 + at) for at in range(40))  # each character once
    draft = Draft(text)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(draft.text)))
        end = data.draw(st.integers(start, len(draft.text)))
        draft.apply([Edit(start, end, data.draw(st.text("ab", max_size=5)))])
    for at, each in enumerate(draft.text):
        if each in text:
            assert text[draft.origin(at)] == each
        assert 0 <= draft.origin(at) <= len(text)


def test_unrelated_errors_are_all_told() -> None:
    text = "SELECT ?x {\n ?x ~ ?y .\n ?x <urn:p> ?z . ?z <urn:q> ?y .\n ?y ~ ?x\n}"
    assert [found.line for found in analyse(text).diagnostics] == [2, 4]


def test_nothing_is_told_that_may_follow_from_an_error() -> None:
    assert len(analyse("SELECT ?x { ?x ~ ~ ~ ~ ?y }").diagnostics) == 1
    assert len(analyse("SELECT ?x { ?x <urn:p> 'no end AND == TOP 3 }").diagnostics) == 1


def test_long_texts_are_not_read_again_and_again() -> None:
    wrong = "FILTER(?y > 3 AND ?y < 4) "
    few = analyse("SELECT * { ?x <urn:p> ?y . " + wrong * 10 + "}").diagnostics
    many = analyse("SELECT * { ?x <urn:p> ?y . " + wrong * 15_000 + "}").diagnostics
    assert (len(few), len(many)) == (10, 1)
