"""Small recordings for tests: rows as in users' files, a catalog, a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from acquatop.lab.replay.trace import Trace, open_trace

NS = "http://example.org/"
PREFIX = f"PREFIX : <{NS}>\n"

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "{arrivals}"
{start}
options = {{ path = "stream.csv" }}
[streams.":stream".mapping]
subject = "{subject}"
time = "time_ms"
properties = {{ {properties} }}
[services.":people"]
remote = "table"
path = "remote.csv"
time = "time_ms"
{service}
[services.":people".mapping]
key = "http://example.org/user/{{subject}}"
properties = {{ ":followers" = {{ field = "value", datatype = "xsd:integer" }} }}
[services.":people".refresh]
items = 2
"""

BY_SUBJECT = {
    "subject": "http://example.org/user/{subject}",
    "properties": '":mentions" = { field = "value", datatype = "xsd:integer" }',
}
"""Mapping of rows that describe their subjects."""

BY_EVENT = {
    "subject": "http://example.org/event/{row}",
    "properties": '":of" = { field = "subject", datatype = "iri" }, '
    '":count" = { field = "value", datatype = "xsd:integer" }',
}
"""Mapping of rows that are events of their own."""

JOINED = PREFIX + (
    "SELECT ?user ?mentions ?followers (2 * ?mentions + ?followers AS ?score)"
    " FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]"
    " WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} SERVICE :people "
    "{{ ?user :followers ?followers }} }}"
    " ORDER BY {direction}(?score) LIMIT {k}"
)
COUNTED = PREFIX + (
    "SELECT ?user ?total ?followers (2 * ?total + ?followers AS ?score)"
    " FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]"
    " WHERE {{ WINDOW :w {{ SELECT ?user ({function} AS ?total)"
    " WHERE {{ ?event :of ?user ; :count ?count }} GROUP BY ?user }}"
    " SERVICE :people {{ ?user :followers ?followers }} }}"
    " ORDER BY {direction}(?score) LIMIT {k}"
)

Row = tuple[object, object, object]


def query(text: str = JOINED, **changes: object) -> str:
    """Return a query's text, with some of its values set."""
    usual: dict[str, object] = {
        "width": 9,
        "slide": 3,
        "direction": "DESC",
        "k": 2,
        "function": "SUM(?count)",
    }
    return text.format(**{**usual, **changes})


def catalog(
    *, arrivals: str = "latest", start: str = "start_ms = 0", service: str = "", **mapping: str
) -> str:
    """Return a catalog's text."""
    return CATALOG.format(
        arrivals=arrivals, start=start, service=service, **{**BY_SUBJECT, **mapping}
    )


def rows_text(rows: Iterable[Sequence[object]], header: str = "time_ms,subject,value") -> str:
    """Return rows as CSV."""
    return "".join(f"{line}\n" for line in [header, *(",".join(map(str, row)) for row in rows)])


def write(
    folder: Path, stream: Iterable[Row], remote: Iterable[Row], text: str | None = None
) -> Path:
    """Write a recording in the plain form."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stream.csv").write_text(rows_text(stream), "utf-8")
    (folder / "remote.csv").write_text(rows_text(remote), "utf-8")
    (folder / "catalog.toml").write_text(text or catalog(), "utf-8")
    return folder


STREAM: Sequence[Row] = (
    (1, "ann", 3),
    (2, "bob", 5),
    (5, "ann", 1),
    (8, "cyd", 4),
    (10, "bob", 2),
    (15, "ann", 9),
)
REMOTE: Sequence[Row] = ((0, "ann", 1), (0, "bob", 2), (0, "cyd", 3), (7, "bob", 9), (11, "cyd", 8))


def opened(
    folder: Path, *, stream: Iterable[Row] = STREAM, remote: Iterable[Row] = REMOTE, **said: str
) -> Trace:
    """Write a recording, and open it for a query."""
    text = said.pop("query", query())
    return open_trace(write(folder, stream, remote, catalog(**said)), text)


def lines(rows: Iterable[Row]) -> str:
    """Return rows as JSON lines, as a recorder would write them."""
    return "".join(
        json.dumps(dict(zip(("t", "user", "n"), row, strict=True))) + "\n" for row in rows
    )
