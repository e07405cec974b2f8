"""Join services: gather the remotes' side of a top-k query into one pattern, computed here.

What stands beside the WINDOW, such as several SERVICEs, OPTIONALs, static graphs and filters on
texts, depends on a solution of the stream only through a few of its terms. For each distinct tuple
of these, a SPARQL engine joins what the replicas know and the graphs have. The rest of the plan
sees one service with these results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rspql import ast
from rspql.passes.beside_windows import is_constant, matches_graphs, names_graphs, nodes_here
from rspql.passes.check_growth import OF_RECORDS, check_growth, computed_in
from rspql.passes.check_names import calls_own
from rspql.passes.find_keys import find_keys
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, expander
from rspql.passes.push_filters import conjuncts
from rspql.passes.recognise_topk import Ranking, last_binds, written_out
from rspql.plan import Join, PastValue
from rspql.scope import Names, selected, used_in, visible
from rspql.scoring import FunctionRegistry, with_ordered_nan

JOINED = ast.Iri("urn:acquatop:joined")
"""Service that stands for all that is joined here."""

IsNumeric = Callable[[ast.Expression, bool], bool]
"""Function that tells if an expression is computed on numbers alone.

The second argument says that it is a condition.
"""

_ONE = ast.Literal("1", ast.XSD + "integer")
_ZERO = ast.Literal("0", ast.XSD + "integer")
_FALSE = ast.Literal("false", ast.XSD + "boolean")
_GREATEST = ast.Literal("INF", ast.XSD + "double")
_LEAST = ast.Literal("-INF", ast.XSD + "double")


@dataclass(frozen=True)
class JoinedServices:
    """Equivalent query with one service, its ranking, and the join behind that service."""

    query: ast.Query
    ranking: Ranking
    join: Join


def join_services(
    query: ast.Query,
    ranking: Ranking,
    windows: Sequence[ast.Pattern],
    stream: Names,
    functions: FunctionRegistry,
    is_numeric: IsNumeric,
    past: Mapping[ast.ServicePattern, tuple[PastValue, ...]],
    records: Collection[str],
    *,
    keys: tuple[str, ...] | None = None,
    needed: tuple[str, ...] = (),
    on_terms: bool = False,
) -> JoinedServices:
    """Return a query with the remotes' side in one SERVICE pattern.

    ``windows`` are the stream's parts of the query, ``stream`` the variables that they bind.
    ``past`` are the past values that replicas bind, by the SERVICE pattern; ``records`` are
    services without SPARQL. If the one part groups by ``keys``, the join is of these. What binds a
    ``needed`` variable is joined here, too. With ``on_terms``, what a score needs of the stream is
    computed here as well: it need not be a number, nor bound. Raises :class:`NotIncremental` if the
    rest has patterns that no remote answers by keys.
    """
    assert query.where is not None
    _check_order(query.where.elements, windows)
    ranking = _in_order_of_terms(ranking, stream)
    own = stream if on_terms else {}
    splitter = _Splitter(query, ranking, stream, is_numeric, needed, own)
    for each in query.where.elements:
        if each not in windows:
            splitter.take(each)
    expression, pulled = (
        (ranking.expression, [])
        if ranking.only_place
        else _without_terms(ranking.expression, query, is_numeric, own)
    )
    inside = ast.Group((*splitter.inside, *pulled))
    _check_inside(inside, query, functions)
    inputs = tuple(name for name in stream if name in used_in(inside))
    if keys is not None:
        if any(name not in keys for name in inputs):
            raise NotIncremental("what it joins depends on more than what it groups by", windows[0])
        inputs = keys
    if not inputs:
        raise NotIncremental("nothing beside the WINDOW shares a variable with it", windows[0])
    services = find_keys(inside, inputs, records)
    group = ast.rewritten(inside, expander(functions))
    group = ast.rewritten(group, _ordered, opaque=lambda each: isinstance(each, ast.ServicePattern))
    plain = {each.pattern: ast.rewritten(each.pattern, expander(functions)) for each in services}
    before = {each.name: None for service in services for each in past.get(service.pattern, ())}
    join = Join(
        inputs,
        group,
        tuple(
            replace(each, pattern=plain[each.pattern], past=past.get(each.pattern, ()))
            for each in services
        ),
        tuple(name for name in {**visible(inside), **before} if name not in inputs),
        query.default_graphs if matches_graphs(inside) else (),
        query.named_graphs if matches_graphs(inside) else (),
    )
    service = ast.ServicePattern(JOINED, inside, span=inside.elements[0].span)
    where = replace(query.where, elements=(*windows, service, *splitter.outside))
    return JoinedServices(
        replace(query, where=where), replace(ranking, expression=expression), join
    )


def _in_order_of_terms(ranking: Ranking, stream: Names) -> Ranking:
    """Return a ranking by a number, if it is one by the terms of a variable of the remotes.

    Numbers are their own score. SPARQL puts what is unbound and IRIs before all literals; among
    these, and among other literals, the term is a further key.
    """
    term = ranking.expression
    if ranking.only_place or not isinstance(term, ast.Variable) or term.name in stream:
        return ranking
    score = _choice("isnumeric", term, term, _choice("isliteral", term, _GREATEST, _LEAST))
    key = ast.OrderCondition(term, ranking.descending, span=term.span)
    # A name for the term in SELECT is no name of the score.
    return replace(
        ranking,
        expression=score,
        variable=None,
        more_keys=(key, *ranking.more_keys),
        orders_terms=True,
    )


def _choice(
    test: str, term: ast.Variable, then: ast.Expression, otherwise: ast.Expression
) -> ast.Expression:
    """Return an IF by a test of a term, which is false if the term is unbound."""
    tested = ast.Call(test, (term,), span=term.span)
    condition = ast.Call("coalesce", (tested, _FALSE), span=term.span)
    return ast.Call("if", (condition, then, otherwise), span=term.span)


def _check_order(elements: Sequence[ast.Pattern], windows: Sequence[ast.Pattern]) -> None:
    """Raise if something before a WINDOW means something else behind it."""
    last = max(at for at, each in enumerate(elements) if each in windows)
    for each in elements[:last]:
        if isinstance(each, ast.OptionalPattern | ast.MinusPattern | ast.Assignment):
            raise NotIncremental("it stands before the WINDOW pattern that it is joined with", each)


class _Splitter:
    """Splitter of what stands beside the WINDOW: joined here per tuple, or computed on columns."""

    def __init__(
        self,
        query: ast.Query,
        ranking: Ranking,
        stream: Names,
        is_numeric: IsNumeric,
        needed: Sequence[str],
        own: Names,
    ) -> None:
        self.inside: list[ast.Pattern] = []
        self.outside: list[ast.Pattern] = []
        self._query = query
        self._stream = stream
        self._own = own
        self._is_numeric = is_numeric
        self._last = last_binds(query)
        self._shown = {*needed, *(name for name in selected(query) if name != ranking.variable)}

    def take(self, element: ast.Pattern) -> None:
        """Put an element to its side."""
        match element:
            case ast.Filter(expression):
                self._take_filter(element, expression)
            case ast.Assignment(_, variable):
                is_score = element in self._last and variable.name not in self._shown
                (self.outside if is_score else self.inside).append(element)
            case (
                ast.ServicePattern()
                | ast.OptionalPattern()
                | ast.UnionPattern()
                | ast.MinusPattern()
                | ast.Group()
                | ast.Values()
                | ast.TriplePattern()
                | ast.GraphPattern()
                | ast.SubSelect()
            ):
                self.inside.append(element)
            case _:
                raise NotIncremental(
                    "there is more beside the WINDOW and SERVICE patterns", element
                )

    def _take_filter(self, element: ast.Filter, expression: ast.Expression) -> None:
        written = written_out(expression, self._query, selected=False)
        if written is None:
            raise NotIncremental("an expression is too large with all names written out", element)
        for part in conjuncts(written):
            on_stream = all(name in self._stream for name in used_in(part))
            is_of_terms = any(name in self._own for name in used_in(part))
            is_numeric = not is_of_terms and self._is_numeric(part, True)
            is_outside = not _has_exists(part) and (on_stream or is_numeric)
            (self.outside if is_outside else self.inside).append(
                ast.Filter(part, span=element.span)
            )


def _without_terms(
    expression: ast.Expression | None, query: ast.Query, is_numeric: IsNumeric, own: Names
) -> tuple[ast.Expression | None, list[ast.Assignment]]:
    """Return a score of numbers alone, and BINDs for what it needs of other terms."""
    if expression is None:
        return None, []
    puller = _Puller(query, is_numeric, own)
    return puller.without_terms(expression), list(puller.binds.values())


class _Puller:
    """Finder of the parts of a score that are computed on terms: each gets a name.

    The variables ``own`` are terms themselves.
    """

    def __init__(self, query: ast.Query, is_numeric: IsNumeric, own: Names) -> None:
        taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
        names = (f"value{number}" for number in itertools.count(1))
        self.binds: dict[ast.Expression, ast.Assignment] = {}
        self._fresh = (name for name in names if name not in taken)
        self._is_numeric = is_numeric
        self._own = own

    def without_terms(self, node: ast.Expression) -> ast.Expression:
        """Return an expression with a variable in place of each part that is no arithmetic."""
        if isinstance(node, ast.Variable):
            return self._named(node) if node.name in self._own else node
        is_of_terms = any(name in self._own for name in used_in(node))
        if isinstance(node, ast.Literal) or (not is_of_terms and self._is_numeric(node, False)):
            return node
        match node:
            case ast.Binary("+" | "-" | "*" | "/", left, right):
                return replace(node, left=self.without_terms(left), right=self.without_terms(right))
            case ast.Unary("+" | "-", operand):
                return replace(node, operand=self.without_terms(operand))
            case ast.Call("if", (condition, then, otherwise)):
                flag = self._named(ast.Call("if", (condition, _ONE, _ZERO), span=node.span))
                decided = ast.Binary(">", flag, _ZERO, span=node.span)
                others = (self.without_terms(then), self.without_terms(otherwise))
                return replace(node, arguments=(decided, *others))
            case ast.Call(_, arguments) if _is_of_numbers(node, self._is_numeric):
                return replace(node, arguments=tuple(map(self.without_terms, arguments)))
        return self._named(node)

    def _named(self, node: ast.Expression) -> ast.Variable:
        if node not in self.binds:
            variable = ast.Variable(next(self._fresh), span=node.span)
            self.binds[node] = ast.Assignment(node, variable, span=node.span)
        return self.binds[node].variable


def _is_of_numbers(call: ast.Call, is_numeric: IsNumeric) -> bool:
    """Return True if a call is computed on numbers whenever its arguments are numbers."""
    if call.function in ("coalesce", "bound", "if"):
        return False
    return is_numeric(replace(call, arguments=(_ONE,) * len(call.arguments)), False)


def _has_exists(expression: ast.Expression) -> bool:
    return any(isinstance(node, ast.Exists) for node in ast.walk(expression))


def _check_inside(group: ast.Group, query: ast.Query, functions: FunctionRegistry) -> None:
    """Raise if a pattern needs more than static graphs, the remotes, and the stream's solution."""
    _check_sub_queries(group)
    for node in nodes_here(group):
        match node:
            case ast.WindowPattern():
                raise NotIncremental("there is more beside the WINDOW and SERVICE patterns", node)
            case ast.GraphPattern(ast.Variable()):
                raise NotIncremental("GRAPH with a variable is also of the windows", node)
            case ast.TriplePattern() | ast.GraphPattern() if not names_graphs(query):
                raise NotIncremental("a pattern matches neither a WINDOW nor a graph", node)
            case ast.Exists() if not matches_graphs(node.group):
                raise NotIncremental("an expression needs the whole window", node)
            case ast.Call(function) if function in VOLATILE:
                raise NotIncremental("it is decided at the window's close", node)
            case ast.Binary("/"):
                # The engine's decimals fail on some quotients.
                raise NotIncremental("a quotient among terms needs all its digits", node)
    computed = computed_in(nodes_here(ast.rewritten(group, expander(functions))))
    check_growth(computed, OF_RECORDS)
    if any(calls_own(each.expression) for each in computed):
        raise NotIncremental("a function of your own is applied to terms of the remote", group)


def _check_sub_queries(group: ast.Group) -> None:
    """Raise for sub-queries on more than static graphs, and for aggregates outside of them."""
    grouped: set[ast.Node] = set()
    for node in nodes_here(group):
        match node:
            case ast.SubSelect() if not is_constant(node):
                raise NotIncremental("there is more beside the WINDOW and SERVICE patterns", node)
            case ast.SubSelect() if calls_own(node):
                raise NotIncremental("a sub-query beside it calls a function of its own", node)
            case ast.SubSelect():
                grouped.update(ast.walk(node))
            case ast.Aggregate("avg"):
                raise NotIncremental("an average among terms needs all its digits", node)
            case ast.Aggregate() if node not in grouped:
                raise NotIncremental("an expression needs the whole window", node)


def _ordered(node: ast.Node) -> ast.Node:
    """Return a filter or BIND in a shape that an engine evaluates as SPARQL does."""
    match node:
        case ast.Filter(expression):
            return replace(node, expression=with_ordered_nan(expression, keeps_only_true=True))
        case ast.Assignment(expression):
            return replace(node, expression=with_ordered_nan(expression))
    return node
