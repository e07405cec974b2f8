from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replica.store.number_forms import NONE, form_of, is_text, text_of
from replica.store.term_column import TermColumn
from replica.terms import NOT_A_NUMBER, number_of
from tests.support.stores import number, terms

numerals = st.one_of(
    st.integers().map(str),
    st.integers(-(10**18), 10**18).map(str),
    st.floats().map(repr),
    st.floats(allow_nan=False).map("{:.3e}".format),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.from_regex(r"[+-]?[0-9]{0,5}(\.[0-9]{0,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.text(max_size=4),
)
literals = st.builds(
    number, numerals, st.sampled_from(["integer", "long", "decimal", "double", "float", "string"])
)


@given(literals)
def test_number_and_form_give_the_very_same_text(term: str) -> None:
    value, code = form_of(term)
    assert value == number_of(term) or (np.isnan(value) and np.isnan(number_of(term)))
    assert is_text(np.uint8(code)) or text_of(value, code) == term


def test_what_is_usual_needs_no_text() -> None:
    usual = [
        (7, "integer"),
        (0, "integer"),
        (-7, "long"),
        ("7.0", "decimal"),
        ("1.50", "decimal"),
        ("1.5", "double"),
    ]
    for lexical, datatype in [
        *usual,
        ("1.5E0", "double"),
        ("1.5e-7", "float"),
        ("0", "double"),
        (2**53, "integer"),
    ]:
        assert not is_text(np.uint8(form_of(number(lexical, datatype))[1]))
    assert form_of(None)[1] == NONE


def test_the_number_nan_and_the_types_that_have_it_are_known() -> None:
    column = TermColumn()
    given = [
        number("NaN", "double"),
        number("-INF", "float"),
        number("0.0e+0", "double"),
        number("0.5", "float"),
        number("7", "double"),
        number("007", "integer"),
        number("7", "decimal"),
        number("NaN", "decimal"),
        '"many"',
        None,
    ]
    rows = np.arange(len(given))
    column.make_room(len(given))
    column.set(rows, given)
    again = TermColumn()
    again.make_room(len(given))
    again.resume(column.state(len(given)), len(given))
    for each in (column, again):
        assert each.floating(rows).tolist() == [True] * 5 + [False] * 5
        is_nan = each.numbers(rows).view(np.int64) == np.array(NOT_A_NUMBER).view(np.int64)
        assert is_nan.tolist() == [True] + [False] * 9
        assert each.terms(rows) == given


def test_a_float_has_the_precision_of_a_float() -> None:
    assert form_of(number("0.1", "float"))[0] == number_of(number("0.1", "float")) != 0.1
    assert number_of(number("0.1", "double")) == 0.1


@given(
    st.lists(
        st.dictionaries(st.integers(0, 9), st.one_of(st.none(), terms), max_size=10), max_size=10
    )
)
def test_it_holds_what_a_dict_holds(changes: list[dict[int, str | None]]) -> None:
    column, plain = TermColumn(), {}
    column.make_room(10)
    for change in changes:
        rows = np.array([*change], np.int64)
        expected = [plain.get(row) != term for row, term in change.items()]
        assert column.set(rows, [*change.values()]).tolist() == expected
        plain.update(change)
        assert column.terms(np.arange(-1, 10)) == [None, *map(plain.get, range(10))]
        again = TermColumn()
        again.make_room(12)
        again.resume(column.state(10), 10)
        assert again.terms(np.arange(10)) == column.terms(np.arange(10))
    column.clear(np.arange(0, 10, 2))
    column.keep(np.arange(1, 10, 2), 7)
    assert column.terms(np.arange(7)) == [*map(plain.get, range(1, 10, 2)), None, None]


def test_texts_that_nobody_holds_make_room() -> None:
    column = TermColumn()
    column.make_room(10)
    rows = np.arange(10)
    for turn in range(100):
        column.set(rows, [f'"{turn} {row // 2}"' for row in rows])
    assert column.nbytes < 4000
    assert len(column.state(10)["texts.texts"]) == sum(len(f'"99 {row}"') for row in range(5))
