"""Elements of a query's stream: what its answers say, as statements of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdflib.term import Identifier

from acquatop.answer.answer import Answer
from acquatop.ingest.terms import from_rdflib
from acquatop.plan.answers_stream import property_of
from connectors.timed_statements import TimedStatement
from replica.terms import blank_iri, iri_of_label


def statements_of(stream: str, answers: Iterable[Answer]) -> Iterator[TimedStatement]:
    """Yield the statements of answers as elements of a stream, at the windows' closes.

    Each row has a subject of its own, and a statement for each variable that it binds. A graph's
    triples are grouped by their subjects. A blank node belongs to its answer, unless it is a
    remote's. Names depend on the answers alone. O(n log n).
    """
    count = 0
    for answer in answers:
        owner = f"{stream} {answer.closes_ms} {answer.window}"
        said = _of_rows(stream, answer, owner) if answer.rows else _of_triples(answer, owner)
        subject: str | None = None
        for each in said:
            count += subject is not None and each[0] != subject
            subject = each[0]
            yield TimedStatement(answer.closes_ms, count, *each)
        count += subject is not None


def _of_rows(stream: str, answer: Answer, owner: str) -> Iterator[tuple[str, str, str]]:
    for at, row in enumerate(answer.rows):
        subject = f"<{blank_iri(owner, str(at))}>"
        for name, term in row.bindings.items():
            yield subject, f"<{property_of(stream, name)}>", _text(term, owner)


def _of_triples(answer: Answer, owner: str) -> Iterator[tuple[str, str, str]]:
    """Yield the terms of a graph's triples; sorted, they are together by their subjects."""
    for line in answer.triples:
        subject, predicate, rest = line.split(" ", 2)
        yield _named(subject, owner), predicate, _named(rest.removesuffix(" ."), owner)


def _text(term: Identifier, owner: str) -> str:
    return _named(from_rdflib(term), owner)


def _named(text: str, owner: str) -> str:
    return f"<{_blank(text[2:], owner)}>" if text.startswith("_:") else text


def _blank(label: str, owner: str) -> str:
    return iri_of_label(label) or blank_iri(owner, f"_:{label}")
