"""Triples from solutions and a template, for CONSTRUCT."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from acquatop.ingest.terms import from_ast
from replica.terms import blank_label
from rspql import ast
from rspql.ast import TriplePattern, Variable
from rspql.forms import variables_of

Texts = Mapping[str, str]
"""Terms of a solution as N-Triples text, by variable."""


def construct(template: Sequence[TriplePattern], solutions: Iterable[Texts]) -> tuple[str, ...]:
    """Return the triples that a template makes of solutions, as sorted, distinct N-Triples lines.

    Triples with an unbound variable are left out, and so are invalid ones. A blank node of the
    template is another one for each solution. Its label follows from the solution's bindings, so
    that an equal solution makes equal triples at another time.

    >>> x = Variable("x")
    >>> triple = TriplePattern(x, Variable("p"), x)
    >>> solution, literal = {"x": "<urn:a>", "p": "<urn:p>"}, {"x": '"a"', "p": "<urn:p>"}
    >>> construct([triple], [solution, literal, {"x": "<urn:p>"}])
    ('<urn:a> <urn:p> <urn:a> .',)
    """
    names = variables_of(template)
    made: set[str] = set()
    again: Counter[str] = Counter()
    for solution in solutions:
        said = " ".join(f"?{name} {solution[name]}" for name in names if name in solution)
        again[said] += 1
        made.update(_instance(template, solution, f"{again[said]} {said}"))
    return tuple(sorted(made))


def _instance(template: Iterable[TriplePattern], solution: Texts, seed: str) -> Iterator[str]:
    for triple in template:
        subject, predicate, object_ = (
            _text(each, solution, seed)
            for each in (triple.subject, triple.predicate, triple.object)
        )
        is_triple = (
            subject
            and predicate
            and object_
            and not subject.startswith('"')
            and predicate.startswith("<")
        )
        if is_triple:
            yield f"{subject} {predicate} {object_} ."


def _text(part: object, solution: Texts, seed: str) -> str | None:
    match part:
        case Variable(name):
            return _shown(solution[name]) if name in solution else None
        case ast.BlankNode(label):
            return f"_:b{hashlib.sha256(f'{label} {seed}'.encode()).hexdigest()[:16]}"
        case _:
            return from_ast(part)  # type: ignore[arg-type]  # a template's predicate is an IRI, never another path


def _shown(text: str) -> str:
    """Return a term's text; an IRI that stands for a remote's blank node becomes that node."""
    label = blank_label(text[1:-1]) if text.startswith("<") else None
    return text if label is None else f"_:{label}"
