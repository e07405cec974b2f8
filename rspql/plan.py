"""How a query will be answered, as data: what the passes produce and the engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rspql.ast import Expression, Group, Iri, Query, ServicePattern, TriplePattern
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry, Interval


@dataclass(frozen=True)
class Window:
    """A time-based window over a stream: window *i* holds what happened in ``(t0 + i·slide, t0 + i·slide + width]``.

    ``start_ms`` is t0 where the query says it.
    """

    name: Iri
    stream: Iri
    width_ms: int
    slide_ms: int
    start_ms: int | None = None


@dataclass(frozen=True)
class CountWindow:
    """A window that counts a stream's elements: with every ``step`` of them one that holds the last ``count``.

    Elements are counted from 1: window *i* holds those after ``(i+1)·step - count`` up to ``(i+1)·step``, the first
    windows what there is. Where ``triples`` is set, what is counted is triples.
    """

    name: Iri
    stream: Iri
    count: int
    step: int
    triples: bool = False


AnyWindow = Window | CountWindow


@dataclass(frozen=True)
class Service:
    """What is asked of a remote: the inside of a group graph pattern, and the variables it binds."""

    iri: Iri
    group: Group
    variables: tuple[str, ...]


@dataclass(frozen=True)
class AggregateColumn:
    """One aggregate: its result's variable, the function in lower case, and the stream variable that it is of.

    ``count`` is of the solutions themselves: ``of`` is None. What ``sum``, ``avg``, ``min`` and
    ``max`` are of has to be a number in every record; that is for the stream's mapping to say.
    """

    variable: str
    function: str
    of: str | None


@dataclass(frozen=True)
class Aggregate:
    """What is aggregated of a window's solutions for each value of a ``key``.

    A window is an RDF graph: a solution is one set of values for the variables of ``identity``, and
    counts once in a window, however many records of the window make it. (Where the latest arrival
    of a subject counts, the window holds one record of each, and so one solution.) A key without
    solutions in a window has no row there: no count is zero.

    A count is an xsd:integer. A sum, ``min`` and ``max`` have their variable's datatype; ``avg`` is
    an xsd:double of doubles, and of integers an xsd:decimal.
    """

    key: str
    columns: tuple[AggregateColumn, ...]
    identity: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """What orders the solutions. ``variable`` is None when ORDER BY holds a bare expression.

    ``stream_variables`` are those of the pattern or, where the plan aggregates, its columns.
    Where ``condition`` is given, a solution for which it does not hold is none. ``ranges`` are what
    the query's filters say of the variables.
    """

    expression: Expression
    descending: bool
    variable: str | None
    stream_variables: tuple[str, ...]
    remote_variables: tuple[str, ...]
    condition: Expression | None = None
    ranges: Mapping[str, Interval] = field(default_factory=dict, hash=False)
    functions: FunctionRegistry = field(default=DEFAULT_FUNCTIONS, compare=False, repr=False)


@dataclass(frozen=True)
class RemotePart:
    """A SERVICE pattern that is answered from a replica.

    ``key`` is the variable by which the remote is asked: ``key_source`` binds it to every value
    that can matter. Without a key the pattern is fetched whole.
    """

    pattern: ServicePattern
    iri: Iri
    variables: tuple[str, ...]
    key: str | None
    key_source: Group | None


@dataclass(frozen=True)
class WindowedPlan:
    """A query that is evaluated anew at every window close, by a SPARQL engine over the windows' content.

    In ``query`` each WINDOW pattern has become a GRAPH pattern on the window's name; the SERVICE
    patterns still stand in it, and those equal to a part's ``pattern`` are answered by that part.
    """

    name: str | None
    output: str
    windows: tuple[AnyWindow, ...]
    query: Query
    remotes: tuple[RemotePart, ...]
    score_variable: str | None = None
    functions: FunctionRegistry = field(default=DEFAULT_FUNCTIONS, compare=False, repr=False)


@dataclass(frozen=True)
class TopKPlan:
    """A continuous top-k query: WINDOW ⋈ SERVICE, EXTEND with the score, ORDER, LIMIT.

    ``k`` is the LIMIT; the first ``offset`` results are left out. ``stream_filters`` need only the
    window's variables; what the remote's filters need is in the service's group already. Without a
    ``service`` nothing is joined: there are no ``join_variables``, and the score needs the stream
    alone. With an ``aggregate`` what is joined and scored is not the pattern's solutions but a row
    for each key, with the key, by which it is joined, and the columns. ``windowed`` gives the same
    answers the slow way.
    """

    name: str | None
    output: str
    window: AnyWindow
    stream_pattern: tuple[TriplePattern, ...]
    stream_variables: tuple[str, ...]
    stream_filters: tuple[Expression, ...]
    aggregate: Aggregate | None
    service: Service | None
    join_variables: tuple[str, ...]
    score: Score
    k: int
    offset: int
    projection: tuple[str, ...]
    windowed: WindowedPlan


Plan = TopKPlan | WindowedPlan
