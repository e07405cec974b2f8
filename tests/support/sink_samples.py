"""Sample answers, and the sinks that store them in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row, Status
from acquatop.answer.sinks import NdjsonSink, Sink
from acquatop.answer.sinks.registry import PATHS
from replica.budget import NOTHING, Spending

XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = "http://example.org/out"

FILE_SINKS: Mapping[str, tuple[str, Callable[[Path], Sink]]] = {
    **{
        kind: ("construct" if kind in ("nt", "ttl") else "select", opened)
        for kind, (_, opened) in PATHS.items()
    },
    "one file": ("select", lambda folder: NdjsonSink(folder / "answers.ndjson")),
}
"""The form of answers that each sink takes, and a function that opens it on a folder."""


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=URIRef(XSD + datatype), normalize=False)


def row(rank: int, score: float | None = None, **bindings: Identifier) -> Row:
    return Row(rank, bindings, score, refreshed=True, age_seconds=0.25)


def answer(
    window: int = 0, query: str = QUERY, form: str = "select", rows: tuple[Row, ...] | None = None
) -> Answer:
    """Return a window's answer, which is longer for some windows than for others."""
    if rows is None:
        count = window % 3 if form == "select" else 0
        rows = tuple(
            row(at + 1, 9.5 - at, user=URIRef(f"urn:u{window}"), n=typed("03", "integer"))
            for at in range(count)
        )
    return Answer(
        query=query,
        window=window,
        opens_ms=1000 * window - 1000,
        closes_ms=1000 * window,
        rows=rows,
        status=Status.CERTIFIED,
        reason=None,
        spending=Spending(1, 1, 0.5, 0),
        budget=NOTHING,
        refreshed=(),
        failure=None,
        counts=Counts(events=window),
        latency_seconds=0.001 * window,
        emitted_ms=1000 * window + 5,
        variables=("user", "n") if form == "select" else (),
        form=form,
        boolean=window % 2 == 0 if form == "ask" else None,
        triples=(f'<urn:u{window}> <urn:p> "{window}" .', f"<urn:u{window}> <urn:q> _:b .")
        if form in ("construct", "describe")
        else (),
    )


def odd_terms() -> tuple[Identifier, ...]:
    return (
        URIRef("http://example.org/a,b"),
        URIRef("not an <IRI>\t"),
        BNode("r0"),
        Literal(""),
        Literal('tab\t, quote", line\nend\r, back\\slash, é \x00\x7f 𝄞 \ufeff'),
        Literal("colour", lang="en-GB"),
        Literal("text", datatype=URIRef(XSD + "string")),
        typed("03", "integer"),
        typed("no number", "double"),
        typed("-0.0E0", "double"),
        Literal("half \ud800", datatype=URIRef("urn:own")),
    )


def content_of(folder: Path) -> dict[str, bytes]:
    """Return all that is in a folder, but for what nobody should read."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
