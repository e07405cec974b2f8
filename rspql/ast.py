"""What the text says: the abstract syntax tree, every node with its place in the source.

Nodes are frozen and compare by meaning alone: a span never makes two nodes differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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


Term = Variable | Iri | Literal


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
class Call(Node):
    """A function call; ``function`` is an IRI, or a bare name in lower case for a built-in."""

    function: Iri | str
    arguments: tuple[Expression, ...]


Expression = Variable | Iri | Literal | Unary | Binary | Call


# Patterns ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TriplePattern(Node):
    """Subject, predicate and object, each a term."""

    subject: Term
    predicate: Term
    object: Term


@dataclass(frozen=True)
class WindowPattern(Node):
    """``WINDOW w { … }``: a pattern matched against a window's content."""

    window: Iri
    group: Group


@dataclass(frozen=True)
class ServicePattern(Node):
    """``SERVICE s { … }``: a pattern matched at a remote endpoint."""

    service: Iri
    group: Group


@dataclass(frozen=True)
class Filter(Node):
    """``FILTER (…)``: only the solutions for which the expression holds."""

    expression: Expression


@dataclass(frozen=True)
class Assignment(Node):
    """An expression given a name, by BIND or in the SELECT clause."""

    expression: Expression
    variable: Variable


Pattern = TriplePattern | WindowPattern | ServicePattern | Filter | Assignment


@dataclass(frozen=True)
class Group(Node):
    """A group graph pattern: its elements in the order written."""

    elements: tuple[Pattern, ...]


# The query -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Registration(Node):
    """``REGISTER STREAM name AS``: the name, and which operator makes the output stream."""

    name: Iri
    output: str


@dataclass(frozen=True)
class WindowClause(Node):
    """``FROM NAMED WINDOW w ON s [RANGE width STEP slide]``, times in milliseconds."""

    window: Iri
    stream: Iri
    width_ms: int
    slide_ms: int


@dataclass(frozen=True)
class OrderCondition(Node):
    """One ORDER BY key."""

    expression: Expression
    descending: bool


@dataclass(frozen=True)
class SelectQuery(Node):
    """A SELECT query; an empty ``projection`` is ``SELECT *``, ``limit`` None is no limit."""

    projection: tuple[Variable | Assignment, ...]
    windows: tuple[WindowClause, ...]
    where: Group
    order: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    registration: Registration | None = None
