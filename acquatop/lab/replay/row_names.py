"""Names and contents of an answer's rows, to find a right row in an answer, however old it is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from rdflib import BNode
from rdflib.term import Identifier

from acquatop.answer.answer import Answer
from acquatop.ingest.terms import from_rdflib
from acquatop.lab.replay.result_names import result_names
from replica.terms import number_of

Bindings = Mapping[str, Identifier]


@dataclass(frozen=True)
class NamedRow:
    """Row of an answer: its name, and its values."""

    name: str
    content: Hashable


def named_rows(
    answer: Answer, shown: Sequence[str], rows: Sequence[Bindings] | None = None
) -> list[NamedRow]:
    """Return the rows of an answer, or some rows, as named by what they show.

    A row is named by its terms that are no numbers; by its numbers if all are. The triples of a
    graph and the answer of ASK are rows, too.
    """
    if answer.boolean is not None:
        return [NamedRow(str(answer.boolean), answer.boolean)]
    if answer.form in ("construct", "describe"):
        return [NamedRow(each, each) for each in map(str, answer.triples)]
    rows = [row.bindings for row in answer.rows] if rows is None else rows
    texts = [{name: _text(row[name]) for name in shown if name in row} for row in rows]
    terms = [
        {name: text for name, text in row.items() if math.isnan(number_of(text))} or row
        for row in texts
    ]
    own = ["".join(f"\n{name} {text}" for name, text in row.items()) for row in terms]
    names = result_names(own, [{}] * len(own), ())
    contents = [tuple((name, value_of(row[name])) for name in shown if name in row) for row in rows]
    return [NamedRow(name, content) for name, content in zip(names, contents, strict=True)]


def value_of(term: Identifier | None) -> Hashable:
    """Return a number by its value, any other term by its text."""
    if term is None:
        return None
    text = _text(term)
    number = number_of(text)
    return text if math.isnan(number) else float(f"{number:.12g}")


def _text(term: Identifier) -> str:
    return "_:" if isinstance(term, BNode) else from_rdflib(term)
