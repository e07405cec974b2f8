"""Terms in SPARQL's order as Python values, where all are of one kind: cheaper than an engine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from acquatop.ingest.terms import to_ast
from acquatop.topk.contract import FloatArray, IntArray
from rspql.ast import XSD, Literal

_INTEGER = f'"^^<{XSD}integer>'

Comparable = str | int


def within_first(texts: Sequence[str], count: int, *, descending: bool) -> IntArray | None:
    """Return the positions of the first terms in SPARQL's order, and of those equal to the last.

    None if their order is not known here: terms of other kinds, or of several. O(n log count).

    >>> within_first(["<urn:c>", "<urn:a>", "<urn:a/b>", "<urn:a>"], 1, descending=False).tolist()
    [1, 3]
    >>> within_first(["<urn:c>", '"a"'], 1, descending=False) is None
    True
    """
    values = _comparable(texts)
    if values is None or not 0 < count <= len(values):
        return None
    first = heapq.nlargest if descending else heapq.nsmallest
    last = first(count, values)[-1]
    if descending:
        return np.array([at for at, value in enumerate(values) if value >= last])  # type: ignore[operator]
    return np.array([at for at, value in enumerate(values) if value <= last])  # type: ignore[operator]


def ranks_of(texts: Sequence[str], *, descending: bool) -> FloatArray | None:
    """Return a number for each term, greater for those that come first; None as above.

    >>> ranks_of(["<urn:c>", "<urn:a>", "<urn:a/b>", "<urn:a>"], descending=False).tolist()
    [0.0, 2.0, 1.0, 2.0]
    """
    values = _comparable(texts)
    if values is None:
        return None
    ordered = sorted(set(values), reverse=not descending)
    rank = {value: float(at) for at, value in enumerate(ordered)}
    return np.array([rank[value] for value in values])


def _comparable(texts: Sequence[str]) -> list[Comparable] | None:
    if not all(texts):
        return None  # some are unbound
    for is_kind, value in _KINDS:
        if all(map(is_kind, texts)):
            return list(map(value, texts))
    return None


def _text(term: str) -> str:
    if "\\" not in term:
        return term[1:-1]
    literal = to_ast(term)
    assert isinstance(literal, Literal)
    return literal.lexical


_KINDS: Sequence[tuple[Callable[[str], bool], Callable[[str], Comparable]]] = (
    (lambda term: term.startswith("<"), lambda term: term[1:-1]),
    (lambda term: term.startswith('"') and term.endswith('"'), _text),
    (lambda term: term.endswith(_INTEGER), lambda term: int(term[1 : -len(_INTEGER)])),
)
