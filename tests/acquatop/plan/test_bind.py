"""Choice of a query's evaluation, and errors for names that the catalog lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery, BoundWindowed
from rspql.diagnostics import QueryError
from tests.support.worlds import catalog_text, query_text


def bind(query: str, catalog: str) -> BoundQuery | BoundWindowed:
    return bind_query(
        query, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}), name="q"
    )


def many(catalog: str) -> str:
    return catalog.replace("endpoint =", 'solutions = "many"\nendpoint =')


STAR = "?user :mentions ?mentions . ?user :mentions ?again"


@pytest.mark.parametrize(
    ("query", "catalog", "kind"),
    [
        (query_text(), catalog_text(), BoundQuery),
        (query_text(), many(catalog_text()), BoundQuery),
        (
            query_text().replace("?user :mentions ?mentions", STAR),
            catalog_text(arrivals="all"),
            BoundQuery,
        ),
        (
            query_text().replace("?user :mentions ?mentions", STAR),
            catalog_text(arrivals="latest"),
            BoundQuery,
        ),
        (
            "ASK " + query_text().split("AS ?score)")[1].split("ORDER")[0],
            catalog_text(),
            BoundWindowed,
        ),
    ],
)
def test_a_query_is_evaluated_incrementally_where_that_gives_the_same(
    query: str, catalog: str, kind: type
) -> None:
    prefixed = (
        query if query.lstrip().startswith("PREFIX") else "PREFIX : <http://example.org/> " + query
    )
    bound = bind(prefixed, catalog)
    assert type(bound) is kind
    assert bound.name == "q"
    assert [stream.iri for stream in bound.streams] == ["http://example.org/stream"]


@pytest.mark.parametrize("catalog", [catalog_text(), many(catalog_text())])
@pytest.mark.parametrize(
    ("written", "instead", "code"),
    [
        (":stream", ":streem", "unknown-stream"),
        (":people", ":peopel", "unknown-service"),
        ("?user :mentions", "?user :mentoins", "unknown-predicate"),
    ],
)
def test_a_name_that_the_catalog_lacks_is_said_with_the_nearest(
    catalog: str, written: str, instead: str, code: str
) -> None:
    with pytest.raises(QueryError) as caught:
        bind(query_text().replace(written, instead), catalog)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert "did you mean" in (found.hint or "")


def test_a_window_s_own_start_comes_before_the_stream_s() -> None:
    query = query_text().replace(
        "STEP 3ms]", 'STEP 3ms START "1970-01-01T00:00:00.007Z"^^xsd:dateTime]'
    )
    bound = bind(query, catalog_text(start="start_ms = 5"))
    assert isinstance(bound, BoundQuery)
    assert bound.windows.t0_ms == 7
