"""First terms in SPARQL's order, compared with an engine's ORDER BY."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.query.tie_breaking import within_first

XSD = "http://www.w3.org/2001/XMLSchema#"
TEXTS = st.text(st.sampled_from('aZ\u00e9\U0001f600"\\\n/-.'), max_size=4)
KINDS = (
    st.text("ab/-.:1", max_size=4).map("<urn:{}>".format),
    TEXTS.map(lambda text: str(ox.Literal(text))),
    st.integers(-12, 12).map(lambda number: f'"{number}"^^<{XSD}integer>'),
)


@given(
    st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, min_size=1, max_size=8)),
    st.integers(1, 8),
    st.booleans(),
)
def test_terms_of_one_kind_have_the_order_of_an_engine(
    texts: list[str], count: int, descending: bool
) -> None:
    count = min(count, len(texts))
    rows = " ".join(f"({at} {text})" for at, text in enumerate(texts))
    order = "DESC(?x)" if descending else "?x"
    found: Any = ox.Store().query(
        f"SELECT ?at ?x {{ VALUES (?at ?x) {{ {rows} }} }} ORDER BY {order}"
    )
    ordered = [(int(row["at"].value), row["x"]) for row in found]
    last = ordered[count - 1][1]
    expected = {at for place, (at, term) in enumerate(ordered) if place < count or term == last}
    chosen = within_first(texts, count, descending=descending)
    assert chosen is not None
    assert set(chosen.tolist()) == expected


@pytest.mark.parametrize(
    "texts",
    [["<urn:a>", '"a"'], ['"a"@en'], [f'"1.0"^^<{XSD}decimal>'], ["_:b"], [None, "<urn:a>"]],
)
def test_other_terms_are_left_to_an_engine(texts: list[str]) -> None:
    assert within_first(texts, 1, descending=False) is None
