"""Plan of a query, as data: made by the passes, run by the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rspql.ast import (
    Ask,
    Assignment,
    Construct,
    Expression,
    Group,
    Iri,
    OrderCondition,
    Pattern,
    Query,
    ServicePattern,
    Span,
    TriplePattern,
)
from rspql.scope import visible
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry, Interval


@dataclass(frozen=True)
class Window:
    """A time-based window over a stream.

    Window *i* holds the events in ``(t0 + i·slide, t0 + i·slide + width]``. ``start_ms`` is t0 if
    the query sets it.
    """

    name: Iri
    stream: Iri
    width_ms: int
    slide_ms: int
    start_ms: int | None = None


@dataclass(frozen=True)
class CountWindow:
    """A window that counts a stream's elements: after every ``step``, one with the last ``count``.

    Elements are counted from 1: window *i* holds those after ``(i+1)·step - count`` up to
    ``(i+1)·step``. The first windows hold fewer if there are not yet enough. With ``triples`` the
    elements counted are triples.
    """

    name: Iri
    stream: Iri
    count: int
    step: int
    triples: bool = False


AnyWindow = Window | CountWindow


@dataclass(frozen=True)
class PlannedService:
    """A request to a remote: the inside of a group graph pattern, and the variables it binds."""

    iri: Iri
    group: Group
    variables: tuple[str, ...]


@dataclass(frozen=True)
class AggregateColumn:
    """One aggregate: the variable of its result, the function in lower case, its stream variable.

    ``of`` is None for a ``count`` of solutions; another ``count`` is of those with a value. The
    variable of ``sum``, ``avg``, ``min`` and ``max`` must be a number wherever it is bound; the
    stream's mapping ensures that.
    """

    variable: str
    function: str
    of: str | None


def gap_of(variable: str) -> str:
    """Return the name of the column that marks the solutions without a value of a variable."""
    return f"no {variable}"


@dataclass(frozen=True)
class Aggregation:
    """Aggregation of a window's solutions for each value of a ``key``, and of ``more_keys``.

    A window is an RDF graph: a solution is one set of values for the variables of ``identity``. It
    counts once in a window, however many records of the window make it. (If the latest arrival of a
    subject counts, the window holds one record of each subject, and so one solution.) A key without
    solutions in a window has no row there: no count is zero.

    If it ``is_distinct``, ``identity`` has the keys and one variable alone, whose distinct values
    are aggregated: solutions that differ only in others are one.

    Without a key all solutions are one group, which is there in an empty window, too. ``derived``
    are computed of each solution: expressions that are aggregated or grouped by. The ``uncertain``
    of what is aggregated may lack a value: a count passes over that, and any other aggregate is an
    error then.

    A count is an xsd:integer. A sum, ``min`` and ``max`` have their variable's datatype. ``avg`` is
    an xsd:double for doubles and an xsd:decimal for integers.
    """

    key: str
    columns: tuple[AggregateColumn, ...]
    identity: tuple[str, ...]
    more_keys: tuple[str, ...] = ()
    is_distinct: bool = False
    derived: tuple[Assignment, ...] = ()
    uncertain: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Variables by which solutions are grouped."""
        return (self.key, *self.more_keys) if self.key else ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers that are aggregated, each once: values, and marks of their gaps."""
        of_values = (
            each.of for each in self.columns if each.of is not None and each.function != "count"
        )
        return (*dict.fromkeys(of_values), *map(gap_of, self.uncertain))

    def __repr__(self) -> str:
        """Return the text that keys of state directories contain: it must not change."""
        more = f", more_keys={self.more_keys!r}" if self.more_keys else ""
        more += ", is_distinct=True" if self.is_distinct else ""
        more += f", derived={self.derived!r}" if self.derived else ""
        more += f", uncertain={self.uncertain!r}" if self.uncertain else ""
        return (
            f"Aggregate(key={self.key!r}, columns={self.columns!r}, "
            f"identity={self.identity!r}{more})"
        )


@dataclass(frozen=True)
class Score:
    """Score by which solutions are ordered.

    ``variable`` is None if ORDER BY holds a bare expression. ``stream_variables`` are those of the
    pattern or, if the plan aggregates, its columns. With a ``condition``, only solutions for which
    it holds count. ``ranges`` are the ranges of variables known from the query's filters.
    ``datatypes`` are those of stream variables, as far as a catalog says them. If it
    ``orders_terms``, infinite scores stand for terms that are no numbers. If it is ``only_place``,
    it is no number at all, but the place of a term in SPARQL's order: of the ``term``, if that is
    known on arrival, as the stream variable :data:`PLACE`; else it is the same for all solutions.
    """

    expression: Expression
    descending: bool
    variable: str | None
    stream_variables: tuple[str, ...]
    remote_variables: tuple[str, ...]
    condition: Expression | None = None
    ranges: Mapping[str, Interval] = field(default_factory=dict, hash=False)
    functions: FunctionRegistry = field(default=DEFAULT_FUNCTIONS, compare=False, repr=False)
    datatypes: Mapping[str, str] = field(default_factory=dict, hash=False)
    orders_terms: bool = False
    only_place: bool = False
    term: Expression | None = None


PLACE = "place in order"
"""Variable with the place of a score's term."""


@dataclass(frozen=True)
class PastValue:
    """Variable with the value that a remote's ``variable`` had some time ago."""

    name: str
    variable: str
    back_ms: int
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class RemotePart:
    """A SERVICE pattern that is answered from a replica.

    ``key`` is the variable by which the remote is queried; ``key_source`` binds it to every value
    that can matter. Without a key the pattern is fetched as a whole.
    """

    pattern: ServicePattern
    iri: Iri
    variables: tuple[str, ...]
    key: str | None
    key_source: Group | None
    past: tuple[PastValue, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that the replica binds: the remote's, and their past values."""
        return (*self.variables, *(each.name for each in self.past))


@dataclass(frozen=True)
class StreamPast:
    """Past values of what a window's part of a query says, by key.

    ``source`` binds the keys and the values. ``pattern`` stands where they are joined.
    """

    pattern: ServicePattern
    keys: tuple[str, ...]
    source: Group
    past: tuple[PastValue, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that are joined."""
        return (*self.keys, *(each.name for each in self.past))


@dataclass(frozen=True)
class AtClose:
    """Values of a score that are made at a window's close, by variables that no pattern binds.

    ``now`` is the close, and ``instants`` are those of the terms of other variables, each by its
    name: all in milliseconds since the epoch. The values of ``past`` are those of earlier closes.
    """

    now: str | None = None
    instants: tuple[tuple[str, str], ...] = ()
    past: tuple[StreamPast, ...] = ()

    @property
    def past_values(self) -> tuple[PastValue, ...]:
        """The values of earlier closes."""
        return tuple(each for of_key in self.past for each in of_key.past)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        instants = (name for name, _ in self.instants)
        now = (self.now,) if self.now else ()
        return (*now, *instants, *(each.name for each in self.past_values))


@dataclass(frozen=True)
class JoinedService:
    """One of several services: its pattern, and the variables ``keys`` by which it is asked.

    ``giver`` is the position of the service whose answers give the keys; None for the stream, which
    alone gives those of several variables.
    """

    pattern: ServicePattern
    iri: Iri
    variables: tuple[str, ...]
    keys: tuple[str, ...]
    giver: int | None
    past: tuple[PastValue, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that its replica binds: the remote's, and their past values."""
        return (*self.variables, *(each.name for each in self.past))


@dataclass(frozen=True)
class Join:
    """Remotes' side of a query that is joined here, for each distinct tuple of ``inputs``.

    These are variables of the stream. ``group`` has the ``services``' patterns, and binds
    ``outputs`` besides. Its other patterns are matched against static graphs: the union of the
    ``default_graphs``, and each of the ``named_graphs``.
    """

    inputs: tuple[str, ...]
    group: Group
    services: tuple[JoinedService, ...]
    outputs: tuple[str, ...]
    default_graphs: tuple[Iri, ...] = ()
    named_graphs: tuple[Iri, ...] = ()

    @property
    def matched_inputs(self) -> tuple[str, ...]:
        """Inputs that patterns match, so that each must be bound, and equal as a term.

        The others are only computed with.
        """
        bound = visible(self.group)
        return tuple(name for name in self.inputs if name in bound)

    @property
    def is_constant(self) -> bool:
        """True if a tuple's results never change: no service is asked."""
        return not self.services

    @property
    def graphs(self) -> tuple[str, ...]:
        """IRIs of the static graphs, each once."""
        named = (*self.default_graphs, *self.named_graphs)
        return tuple(dict.fromkeys(each.value for each in named))

    @property
    def looks_back(self) -> bool:
        """True if past values of a remote are among the outputs."""
        return any(each.past for each in self.services)


ComputedKind = Literal["rank", "rest", "value", "holds"]
"""Result of a computation in exact digits.

That is the nearest double, a text for the digits that it lacks, a literal, or a truth value.
"""


@dataclass(frozen=True)
class Computed:
    """Computation of an expression in exact digits, with the values of variables as arguments."""

    kind: ComputedKind
    names: tuple[str, ...]
    expression: Expression


@dataclass(frozen=True)
class TableRanking:
    """Ranking of what one SERVICE says, for a query without a window: the top k of a table.

    ``ranked`` selects the variables of the ``pattern`` and the number ``rank`` by which its
    solutions are ordered; what has none is no result. ``key`` is the subject, whose order decides
    between equal ranks. ``score`` is the rank's expression of these variables, and what ``beside``
    the pattern decides is its other elements. ``k`` counts the results before the offset as well.
    With ``on_change`` an answer is due whenever it changes.
    """

    pattern: ServicePattern
    iri: Iri
    key: str
    variables: tuple[str, ...]
    ranked: Query
    rank: str
    score: Expression
    beside: tuple[Pattern, ...]
    descending: bool
    k: int
    on_change: bool


@dataclass(frozen=True)
class WindowedPlan:
    """Plan of a query that a SPARQL engine evaluates anew at every window close.

    In ``query`` each WINDOW pattern is a GRAPH pattern on the window's name. The SERVICE patterns
    are still in it; those equal to a part's ``pattern`` are answered by that part. It may call
    functions of the engine for what is ``computed`` in exact digits, by IRI. If the query is plain
    SPARQL, ``exact`` is the plan of the same query with such calls, if it needs any. ``before`` are
    past values of its windows, joined at patterns of their own. A ``table`` is ranked without a
    window: the only one is the clock's.
    """

    name: str | None
    output: str
    windows: tuple[AnyWindow, ...]
    query: Query
    remotes: tuple[RemotePart, ...]
    score_variable: str | None = None
    functions: FunctionRegistry = field(default=DEFAULT_FUNCTIONS, compare=False, repr=False)
    computed: Mapping[str, Computed] = field(default_factory=dict, hash=False)
    exact: WindowedPlan | None = field(default=None, repr=False)
    before: tuple[StreamPast, ...] = ()
    table: TableRanking | None = None

    @property
    def evaluated(self) -> WindowedPlan:
        """Plan that an engine evaluates: the one with all digits."""
        return self.exact or self


@dataclass(frozen=True)
class Finish:
    """Way from the best solutions by a score to an answer: what more they are ordered by.

    Of solutions with equal scores those come first that the ``keys`` put first; equal ones follow
    the usual order. With ``is_distinct``, rows that are equal in what is selected are one. The best
    k are those of each of the values of ``per``; ``with_ties``, so are all that tie with the last.
    Solutions for which ``holds`` does not hold are no results.
    """

    keys: tuple[OrderCondition, ...] = ()
    is_distinct: bool = False
    per: tuple[str, ...] = ()
    with_ties: bool = False
    holds: Expression | None = None


@dataclass(frozen=True)
class WindowPart:
    """Part of a query that one of several windows answers by itself.

    ``variables`` are those of the pattern's solutions, which are aggregated if there is an
    ``aggregate``. If the pattern is more than a star, ``group`` is all of it, which may be linked.
    """

    window: AnyWindow
    pattern: tuple[TriplePattern, ...]
    variables: tuple[str, ...]
    filters: tuple[Expression, ...]
    aggregate: Aggregation | None = None
    group: Group | None = None
    is_linked: bool = False

    @property
    def bound(self) -> tuple[str, ...]:
        """The variables that are joined: the pattern's, or keys and aggregates."""
        if self.aggregate is None:
            return self.variables
        return (*self.aggregate.keys, *(each.variable for each in self.aggregate.columns))


@dataclass(frozen=True)
class RollUp:
    """Groups of a join: what is aggregated per key of the stream is added up by these ``keys``.

    They are keys of the stream or variables of the remotes. Without any, all is one group.
    """

    keys: tuple[str, ...]


@dataclass(frozen=True)
class TopKPlan:
    """Plan of a continuous top-k query: WINDOW ⋈ SERVICE, EXTEND with the score, ORDER, LIMIT.

    ``k`` is the LIMIT; the first ``offset`` results are left out. ``stream_filters`` need only the
    window's variables; filters on the remote's variables are already in the service's group.
    Without a ``service`` nothing is joined: there are no ``join_variables``, and the score needs
    the stream alone. With an ``aggregate``, the rows to join and score are not the pattern's
    solutions but one row per key, with the key (the join variable) and the columns. ``windowed`` is
    the slower plan, valid for values of any kind. ``in_digits`` is the slower plan with the same
    arithmetic, valid if the stream's values in the score and the filters are numbers. ``computed``
    are the columns besides the score that an engine computes for the rows of an answer. With a
    ``finish``, more than the best k by the score may be needed. If the window's pattern is more
    than a star, ``stream_group`` is all of it, and ``stream_pattern`` has the triple patterns in
    it. It is about one subject, unless it ``is_linked``: then each solution comes from records that
    are linked. With a ``join`` the ``service`` stands for several, or for what is computed beside
    one. With a ``roll_up`` the rows of the ``aggregate`` are added up, once joined, and the score
    is of what they add up to. A ``form`` is what an answer makes of the rows. If several windows
    are joined, each has one of the ``parts``; then the ``window`` is the first of theirs, and
    filters and aggregates are the parts'. So is one window alone if the score needs values that are
    made ``at_close``. ``gathered`` are aggregates that are computed at a close, of the solutions of
    an answer's groups. ``otherwise`` has the plans, in order, for streams whose values this one
    cannot compute with. If it is ``on_terms``, the stream's values in the score are computed with
    per distinct tuple of terms.
    """

    name: str | None
    output: str
    window: AnyWindow
    stream_pattern: tuple[TriplePattern, ...]
    stream_variables: tuple[str, ...]
    stream_filters: tuple[Expression, ...]
    aggregate: Aggregation | None
    service: PlannedService | None
    join_variables: tuple[str, ...]
    score: Score
    k: int
    offset: int
    projection: tuple[str, ...]
    windowed: WindowedPlan
    in_digits: WindowedPlan
    computed: tuple[Assignment, ...] = ()
    finish: Finish | None = None
    stream_group: Group | None = None
    join: Join | None = None
    form: Construct | Ask | None = None
    parts: tuple[WindowPart, ...] = ()
    is_linked: bool = False
    roll_up: RollUp | None = None
    gathered: tuple[Assignment, ...] = ()
    otherwise: tuple[TopKPlan, ...] = field(default=(), repr=False)
    at_close: AtClose | None = None
    on_terms: bool = field(default=False, repr=False)


Plan = TopKPlan | WindowedPlan
