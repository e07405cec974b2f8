"""What the text says: the abstract syntax tree, every node with its place in the source.

Nodes are frozen and compare by meaning alone: a span never makes two nodes differ. Prefixes and
bases are resolved, and only calls of IRI keep the base of their query; collections and ``[ … ]`` are
written out as the triples that they stand for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@dataclass(frozen=True)
class Span:
    """A stretch of source text: offsets from 0, the end excluded; line and column from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, kw_only=True)
class Node:
    """What all nodes share: where in the text they stand."""

    span: Span | None = field(default=None, compare=False, repr=False)


_AnyNode = TypeVar("_AnyNode", bound=Node)


# Terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable(Node):
    """A variable, its name without the question mark."""

    name: str


@dataclass(frozen=True)
class Iri(Node):
    """An absolute IRI, prefixes and base resolved."""

    value: str


@dataclass(frozen=True)
class Literal(Node):
    """An RDF literal; ``datatype`` is always given, ``language`` only with rdf:langString."""

    lexical: str
    datatype: str = XSD + "string"
    language: str | None = None


@dataclass(frozen=True)
class BlankNode(Node):
    """A blank node: in a pattern a variable that nothing else can name."""

    label: str


Term = Variable | Iri | Literal | BlankNode


# Expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unary(Node):
    """A prefix operator (``-``, ``+``, ``!``) and its operand."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Node):
    """An infix operator and its two operands."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class In(Node):
    """``x IN (…)`` or, negated, ``x NOT IN (…)``."""

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class Exists(Node):
    """``EXISTS { … }`` or, negated, ``NOT EXISTS { … }``."""

    group: Group
    negated: bool = False


@dataclass(frozen=True)
class Call(Node):
    """A function call; ``function`` is an IRI, or a name: in lower case for a built-in, as written for a bare one.

    ``base`` is what IRI and URI resolve a text against that is known only when they are called.
    """

    function: Iri | str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    base: str | None = None


@dataclass(frozen=True)
class Aggregate(Node):
    """``COUNT``, ``SUM``, … in lower case; no ``argument`` is ``COUNT(*)``, ``separator`` is GROUP_CONCAT's."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None


Expression = Variable | Iri | Literal | Unary | Binary | In | Exists | Call | Aggregate


# Paths ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InversePath(Node):
    """``^path``."""

    path: Path


@dataclass(frozen=True)
class SequencePath(Node):
    """``path/path/…``."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class AlternativePath(Node):
    """``path|path|…``."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class RepeatedPath(Node):
    """``path?``, ``path*`` or ``path+``."""

    path: Path
    modifier: str


@dataclass(frozen=True)
class NegatedPath(Node):
    """``!(iri|^iri|…)``: any property but these."""

    choices: tuple[Iri | InversePath, ...]


Path = Iri | InversePath | SequencePath | AlternativePath | RepeatedPath | NegatedPath


# Patterns ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TriplePattern(Node):
    """Subject, predicate and object; the predicate may be a property path."""

    subject: Term
    predicate: Variable | Path
    object: Term


@dataclass(frozen=True)
class WindowPattern(Node):
    """``WINDOW w { … }``: a pattern matched against a window's content."""

    window: Iri | Variable
    group: Group


@dataclass(frozen=True)
class GraphPattern(Node):
    """``GRAPH g { … }``: a pattern matched against a named graph."""

    graph: Iri | Variable
    group: Group


@dataclass(frozen=True)
class ServicePattern(Node):
    """``SERVICE s { … }``: a pattern matched at a remote endpoint."""

    service: Iri | Variable
    group: Group
    silent: bool = False


@dataclass(frozen=True)
class OptionalPattern(Node):
    """``OPTIONAL { … }``."""

    group: Group


@dataclass(frozen=True)
class UnionPattern(Node):
    """``{ … } UNION { … }``, two branches or more."""

    groups: tuple[Group, ...]


@dataclass(frozen=True)
class MinusPattern(Node):
    """``MINUS { … }``."""

    group: Group


@dataclass(frozen=True)
class Values(Node):
    """``VALUES (?x …) { (…) … }``: solutions written out; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]


@dataclass(frozen=True)
class Filter(Node):
    """``FILTER (…)``: only the solutions for which the expression holds."""

    expression: Expression


@dataclass(frozen=True)
class Assignment(Node):
    """An expression given a name, by BIND, in the SELECT clause or by GROUP BY."""

    expression: Expression
    variable: Variable


@dataclass(frozen=True)
class SubSelect(Node):
    """A SELECT query within braces of its own."""

    query: Query


@dataclass(frozen=True)
class Group(Node):
    """A group graph pattern: its elements in the order written."""

    elements: tuple[Pattern, ...]


Pattern = (
    TriplePattern
    | WindowPattern
    | GraphPattern
    | ServicePattern
    | OptionalPattern
    | UnionPattern
    | MinusPattern
    | Values
    | Filter
    | Assignment
    | SubSelect
    | Group
)


# The query -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Registration(Node):
    """``REGISTER STREAM name [COMPUTED EVERY d] AS``: the name, and which operator makes the output stream."""

    name: Iri
    output: str
    every_ms: int | None = None


@dataclass(frozen=True)
class WindowClause(Node):
    """``FROM NAMED WINDOW w ON s [RANGE width STEP slide]``, in milliseconds; in elements where ``counts`` is set.

    ``start_ms`` is when the first window opens, in milliseconds since the epoch. Where ``triples`` is set, too, what is
    counted is triples.
    """

    window: Iri | Variable
    stream: Iri
    width: int
    slide: int
    counts: bool = False
    start_ms: int | None = None
    triples: bool = False


@dataclass(frozen=True)
class OrderCondition(Node):
    """One ORDER BY key."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Select(Node):
    """``SELECT``: what is asked for, nothing for ``*``; ``duplicates`` is DISTINCT, REDUCED or None."""

    projection: tuple[Variable | Assignment, ...] = ()
    duplicates: str | None = None


@dataclass(frozen=True)
class Construct(Node):
    """``CONSTRUCT { … }``: the triples that each solution makes."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True)
class Describe(Node):
    """``DESCRIBE``: what is described, nothing for ``*``."""

    targets: tuple[Variable | Iri, ...] = ()


@dataclass(frozen=True)
class Ask(Node):
    """``ASK``."""


@dataclass(frozen=True)
class Query(Node):
    """A query, or the inside of a sub-select; of its clauses those that were not written are empty or None.

    ``output`` is the operator behind SELECT or CONSTRUCT (``SELECT ISTREAM …``).
    """

    form: Select | Construct | Describe | Ask
    where: Group | None
    windows: tuple[WindowClause, ...] = ()
    default_graphs: tuple[Iri, ...] = ()
    named_graphs: tuple[Iri, ...] = ()
    group_by: tuple[Expression | Assignment, ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    registration: Registration | None = None
    output: str | None = None


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes that a node directly holds, in the order of its fields.

    >>> [child.name for child in children(Binary("+", Variable("x"), Variable("y")))]
    ['x', 'y']
    """
    kind: Any = type(node)
    for name in _field_names(kind):
        yield from _nodes(getattr(node, name))


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes under it, depth first, in source order; no recursion, so any depth will do."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


def base_of(node: Node) -> str | None:
    """Return the base that the calls under a node need, None if none does: a query has one base for all of them."""
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.base is not None:
            return node.base
        # There may be very many values, and there are no calls among them.
        pending.extend(() if isinstance(node, Values) else children(node))
    return None


def rewritten(
    node: _AnyNode, change: Callable[[Node], Node], *, opaque: Callable[[Node], bool] = lambda _: False
) -> _AnyNode:
    """Return a tree in which every node is what ``change`` made of it, from the leaves up.

    What is under a node that is ``opaque`` stays as it is.
    """
    changes: dict[str, Any] = {}
    kind: Any = type(node)
    for name in () if opaque(node) else _field_names(kind):
        value = getattr(node, name)
        new = _rewritten_value(value, change, opaque)
        if new is not value:
            changes[name] = new
    result: Any = change(replace(node, **changes) if changes else node)
    return result  # type: ignore[no-any-return]


def _rewritten_value(value: Any, change: Callable[[Node], Node], opaque: Callable[[Node], bool]) -> Any:
    if isinstance(value, Node):
        return rewritten(value, change, opaque=opaque)
    if isinstance(value, tuple):
        new = tuple(_rewritten_value(each, change, opaque) for each in value)
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


@functools.cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name != "span")


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _nodes(each)
