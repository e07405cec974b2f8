"""Shapes of queries, and the table of the road that each takes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery

FOLDER = Path(__file__).parent.parent / "fixtures" / "shapes"
SHORT = {
    "$w": "FROM NAMED WINDOW :w ON :posts [RANGE 9m STEP 3m]",
    "$people": "SERVICE :people { ?user :followers ?followers }",
}
PARTS = {
    "stream": "The stream",
    "remote": "The remotes",
    "order": "Order",
    "shape": "Shape",
    "counted": "Windows that count",
}
"""Headings of the parts, in their order."""


@dataclass(frozen=True)
class QueryShape:
    """A query, named for what is special in it."""

    part: str
    name: str
    query: str
    catalog: str = "catalog.toml"

    def text(self) -> str:
        """Return the query with all that is left out in the file."""
        text = self.query
        for short, written in SHORT.items():
            text = text.replace(short, written)
        return text

    def bind(self) -> Bound:
        """Return the query bound as the planner decides."""
        return bind_query(self.text(), _catalog(self.catalog))

    @property
    def is_incremental(self) -> bool:
        """True if the query takes the incremental road."""
        bound = self.bind()
        return isinstance(bound.query if isinstance(bound, BoundCounted) else bound, BoundQuery)


@cache
def _catalog(name: str) -> Catalog:
    file = FOLDER / name
    return Catalog.parse(file.read_text("utf-8"), file=file, variables={})


def shapes() -> list[QueryShape]:
    """Return all shapes, in the order of the file."""
    document = tomllib.loads((FOLDER / "shapes.toml").read_text("utf-8"))
    return [QueryShape(**each) for each in document["shapes"]]


def table() -> str:
    """Return the table of all shapes and the road that each takes, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| shape | incremental |"
    yield "|---|---|"
    for part, heading in PARTS.items():
        yield f"| **{heading}** | |"
        for shape in shapes():
            if shape.part == part:
                yield f"| {shape.name} | {'yes' if shape.is_incremental else 'no'} |"
