"""Abstract syntax tree of a query. Every node knows its place in the source.

Nodes are frozen and compare by meaning alone: a span never makes two nodes differ. Prefixes and
bases are resolved; only calls of IRI keep the base of their query. Collections and ``[ … ]`` are
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
    """Base of all nodes: holds the node's place in the text."""

    span: Span | None = field(default=None, compare=False, repr=False)


_AnyNode = TypeVar("_AnyNode", bound=Node)


# Terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable(Node):
    """A variable; its name has no question mark."""

    name: str


@dataclass(frozen=True)
class Iri(Node):
    """An absolute IRI; prefixes and base are resolved."""

    value: str


@dataclass(frozen=True)
class Literal(Node):
    """An RDF literal. ``datatype`` is always set, ``language`` only with rdf:langString."""

    lexical: str
    datatype: str = XSD + "string"
    language: str | None = None


@dataclass(frozen=True)
class BlankNode(Node):
    """A blank node. In a pattern it is a variable that cannot be named elsewhere."""

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
    """A function call. ``function`` is an IRI or a name.

    A built-in function's name is in lower case; a bare name is as written.

    ``base`` is the base of IRI and URI, whose text is known only when they are called.
    """

    function: Iri | str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    base: str | None = None


@dataclass(frozen=True)
class Aggregate(Node):
    """An aggregate: ``COUNT``, ``SUM``, … with ``function`` in lower case.

    ``argument`` is None for ``COUNT(*)``. ``separator`` is that of GROUP_CONCAT.
    """

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
    """A triple pattern: subject, predicate and object. The predicate may be a property path."""

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
    """``{ … } UNION { … }`` with two or more branches."""

    groups: tuple[Group, ...]


@dataclass(frozen=True)
class MinusPattern(Node):
    """``MINUS { … }``."""

    group: Group


@dataclass(frozen=True)
class Values(Node):
    """``VALUES (?x …) { (…) … }``: inline solutions; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]


@dataclass(frozen=True)
class Filter(Node):
    """``FILTER (…)``: keeps only the solutions for which the expression holds."""

    expression: Expression


@dataclass(frozen=True)
class Assignment(Node):
    """An expression with a name: from BIND, the SELECT clause or GROUP BY."""

    expression: Expression
    variable: Variable


@dataclass(frozen=True)
class SubSelect(Node):
    """A SELECT query in its own braces."""

    query: Query


@dataclass(frozen=True)
class Group(Node):
    """A group graph pattern: its elements in source order."""

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
    """``REGISTER STREAM name [COMPUTED EVERY d] AS``.

    ``name`` is the output stream's name, ``output`` the operator that produces it.
    """

    name: Iri
    output: str
    every_ms: int | None = None


@dataclass(frozen=True)
class WindowClause(Node):
    """``FROM NAMED WINDOW w ON s [RANGE width STEP slide]``.

    Sizes are in milliseconds; with ``counts`` they are in elements, with ``triples`` as well they
    are in triples. ``start_ms`` is the time at which the first window opens, in milliseconds since
    the epoch.
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
    """``SELECT``: the projection, empty for ``*``. ``duplicates`` is DISTINCT, REDUCED or None."""

    projection: tuple[Variable | Assignment, ...] = ()
    duplicates: str | None = None


@dataclass(frozen=True)
class Construct(Node):
    """``CONSTRUCT { … }``: the template of triples made for each solution."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True)
class Describe(Node):
    """``DESCRIBE``: the resources to describe, empty for ``*``."""

    targets: tuple[Variable | Iri, ...] = ()


@dataclass(frozen=True)
class Ask(Node):
    """``ASK``."""


@dataclass(frozen=True)
class LimitScope(Node):
    """``PER ?x`` and ``WITH TIES`` behind a LIMIT.

    With variables, the LIMIT and the OFFSET hold for the solutions of each of their values.
    ``with_ties`` adds the solutions that ORDER BY puts beside the last one.
    """

    per: tuple[Variable, ...] = ()
    with_ties: bool = False


@dataclass(frozen=True)
class Query(Node):
    """A query, or the inside of a sub-select. Absent clauses are empty or None.

    ``output`` is the operator behind SELECT or CONSTRUCT (``SELECT ISTREAM …``). No sub-select has
    a ``cut``: it is not in the text that keys of state directories contain.
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
    cut: LimitScope | None = field(default=None, repr=False)


def children(node: Node) -> Iterator[Node]:
    """Yield the direct children of a node, in the order of its fields.

    >>> [child.name for child in children(Binary("+", Variable("x"), Variable("y")))]
    ['x', 'y']
    """
    kind: Any = type(node)
    for name in _field_names(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes(value)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all its descendants, depth first, in source order.

    Does not recurse, so the tree may be arbitrarily deep.
    """
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


def base_of(node: Node) -> str | None:
    """Return the base that the calls under a node need, None if none does.

    A query has one base for all of them.
    """
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.base is not None:
            return node.base
        # There may be very many values, and there are no calls among them.
        pending.extend(() if isinstance(node, Values) else children(node))
    return None


def rewritten(
    node: _AnyNode,
    change: Callable[[Node], Node],
    *,
    opaque: Callable[[Node], bool] = lambda _: False,
) -> _AnyNode:
    """Return a copy of the tree with ``change`` applied to every node, from the leaves up.

    The nodes below an ``opaque`` node stay as they are.
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


def _rewritten_value(
    value: Any, change: Callable[[Node], Node], opaque: Callable[[Node], bool]
) -> Any:
    if isinstance(value, Node):
        return rewritten(value, change, opaque=opaque)
    if isinstance(value, tuple):
        new = tuple(_rewritten_value(each, change, opaque) for each in value)
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


_PLAIN = ("str", "int", "bool", "str | None", "int | None")
"""Annotations of fields that hold no nodes."""


@functools.cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields that may hold nodes; terms have none, so they are cheap."""
    return tuple(
        each.name for each in fields(kind) if each.name != "span" and each.type not in _PLAIN
    )


def _nodes(values: tuple[object, ...]) -> Iterator[Node]:
    for each in values:
        if isinstance(each, Node):
            yield each
        elif isinstance(each, tuple):
            yield from _nodes(each)
