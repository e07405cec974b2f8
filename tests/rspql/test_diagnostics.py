"""Queries with mistakes, and what is said of them: pairs of files in ``fixtures/diagnostics``.

Write the expected texts anew with ``UPDATE_FIXTURES=1 ./run test tests/rspql/test_diagnostics.py``,
then read them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acquatop.binding import bind_query
from acquatop.catalog import Catalog
from rspql.diagnostics import QueryError
from tests.worlds import catalog_text

FOLDER = Path(__file__).parent.parent / "fixtures" / "diagnostics"
QUERIES = sorted(FOLDER.glob("*.rspql"))
CATALOG = Catalog.parse(catalog_text(arrivals="all"), file=Path("catalog.toml"), variables={})


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_mistakes_are_named_where_they_stand(file: Path) -> None:
    with pytest.raises(QueryError) as caught:
        bind_query(file.read_text("utf-8"), CATALOG, file=file.name)
    expected = file.with_suffix(".expected")
    if os.environ.get("UPDATE_FIXTURES"):
        expected.write_text(str(caught.value) + "\n", "utf-8")
    assert str(caught.value) + "\n" == expected.read_text("utf-8")
    assert all(found.code and found.message for found in caught.value.diagnostics)


def test_there_are_fixtures() -> None:
    assert len(QUERIES) > 15
