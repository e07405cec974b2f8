"""Order in which queries are registered that read each other's streams."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from rspql import ast
from rspql.diagnostics import Diagnostic


class ReadInACircle(Exception):  # noqa: N818 (the finding is said to the user as a diagnostic)
    """Circle of queries; ``query`` is the position of the one whose stream is the finding."""

    def __init__(self, query: int, finding: Diagnostic) -> None:
        super().__init__(finding.message)
        self.query = query
        self.finding = finding


def reading_order(queries: Sequence[ast.Query | None], known: Container[str]) -> list[int]:
    """Return the positions of queries, each after those whose streams it reads, else as given.

    ``known`` are the streams of the catalog, which no query makes. A text that is no query is None.
    Raises :class:`ReadInACircle`. O(queries + windows).
    """
    makes = {
        query.registration.name.value: at
        for at, query in enumerate(queries)
        if query is not None
        and query.registration is not None
        and query.registration.name.value not in known
    }
    order: dict[int, None] = {}
    for start in range(len(queries)):
        _visit(start, queries, makes, order)
    return list(order)


def _visit(
    start: int, queries: Sequence[ast.Query | None], makes: dict[str, int], order: dict[int, None]
) -> None:
    """Put a query into the order, behind all that it reads from."""
    way: list[tuple[int, Iterator[ast.Iri]]] = []
    if start not in order:
        way.append((start, _read(queries[start])))
    while way:
        at, left = way[-1]
        stream = next(left, None)
        if stream is None:
            order[at] = None
            way.pop()
            continue
        source = makes.get(stream.value)
        if source is None or source in order:
            continue
        if any(source == each for each, _ in way):
            raise ReadInACircle(at, circle(stream))
        way.append((source, _read(queries[source])))


def _read(query: ast.Query | None) -> Iterator[ast.Iri]:
    return iter(() if query is None else [window.stream for window in query.windows])


def circle(stream: ast.Iri) -> Diagnostic:
    """Return the finding that a query reads a stream that depends on the query's own answers."""
    message = f"<{stream.value}> is made of what this query answers: queries read in a circle"
    return Diagnostic("circle", message, stream.span, "let one of them read another stream")
