"""Triples from solutions and a template, for CONSTRUCT."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import NamedNode

from acquatop.ingest.terms import from_ast
from acquatop.query.sparql.terms import Solution, Term, text_of
from replica.terms import blank_label
from rspql import ast
from rspql.ast import TriplePattern, Variable, walk


def variables_of(template: Sequence[TriplePattern]) -> tuple[str, ...]:
    """Return the names of a template's variables in the order of their occurrence."""
    nodes = (node for triple in template for node in walk(triple))
    return tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Variable)))


def construct(template: Sequence[TriplePattern], solutions: Iterable[Solution]) -> tuple[str, ...]:
    """Return the triples that a template makes of solutions, as sorted, distinct N-Triples lines.

    Triples with an unbound variable are left out, and so are invalid ones. A blank node of the
    template is another one for each solution. Its label follows from the solution's bindings, so
    that an equal solution makes equal triples at another time.

    >>> from pyoxigraph import Literal
    >>> x, p = Variable("x"), NamedNode("urn:p")
    >>> triple = TriplePattern(x, Variable("p"), x)
    >>> solution, literal = {"x": NamedNode("urn:a"), "p": p}, {"x": Literal("a"), "p": p}
    >>> construct([triple], [solution, literal, {"x": p}])
    ('<urn:a> <urn:p> <urn:a> .',)
    """
    names = variables_of(template)
    made: set[str] = set()
    again: Counter[str] = Counter()
    for solution in solutions:
        said = " ".join(f"?{name} {text_of(solution[name])}" for name in names if name in solution)
        again[said] += 1
        made.update(_instance(template, solution, f"{again[said]} {said}"))
    return tuple(sorted(made))


def _instance(template: Iterable[TriplePattern], solution: Solution, seed: str) -> Iterator[str]:
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


def _text(part: object, solution: Solution, seed: str) -> str | None:
    match part:
        case Variable(name):
            return _shown(solution[name]) if name in solution else None
        case ast.BlankNode(label):
            return f"_:b{hashlib.sha256(f'{label} {seed}'.encode()).hexdigest()[:16]}"
        case _:
            return from_ast(part)  # type: ignore[arg-type]  # a template's predicate is an IRI, never another path


def _shown(term: Term) -> str:
    """Return a term's text; an IRI that stands for a remote's blank node becomes that node."""
    label = blank_label(term.value) if isinstance(term, NamedNode) else None
    return text_of(term) if label is None else f"_:{label}"
