"""Random queries as syntax trees: every node type, and only trees that some text has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from rspql import ast
from rspql.built_ins import ARITIES

T = TypeVar("T")

VARIABLES = tuple(map(ast.Variable, ("x", "y", "z", "été", "_1", "9a")))
IRIS = tuple(
    map(
        ast.Iri,
        (
            "urn:p",
            "http://example.org/a#b",
            "http://é.example/ü?q=1&x='y'",
            "urn:a(b),c;d.",
            ast.RDF + "type",
            ast.RDF + "nil",
        ),
    )
)
OPERATORS = ("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/")
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
AGGREGATES = ("count", "sum", "min", "max", "avg", "sample", "group_concat")
BARE_NAMES = ("norm", "F", "score_2", "a", "selector")

strings = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        [
            "\\u0041",
            "\\",
            "a\"b'",
            '"""',
            "two\nlines\r\n",
            "\t\b\f",
            "# no comment",
            "\u2028\x85\x0b",
        ]
    ),
)


def _typed(name: str, *lexicals: str) -> list[ast.Literal]:
    return [ast.Literal(each, ast.XSD + name) for each in lexicals]


literals = st.one_of(
    strings.map(ast.Literal),
    st.builds(
        ast.Literal,
        strings,
        st.just(ast.RDF + "langString"),
        st.sampled_from(["en", "en-gb", "zh-hant-tw"]),
    ),
    st.builds(ast.Literal, strings, st.just("urn:type")),
    st.sampled_from(
        [
            *_typed("integer", "0", "5", "-5", "+5", "007", "", " 5", "five"),
            *_typed("decimal", "1.5", "-.5", "+0.0", "5.", "5"),
            *_typed("double", "1e6", "-1.5E-3", ".5e1", "1.e+1", "+0e0", "INF"),
            *_typed("boolean", "true", "false", "TRUE", "1"),
            *_typed("dateTime", "2026-01-01T00:00:00Z"),
        ]
    ),
)
durations = st.one_of(
    st.integers(1, 10**9),
    st.builds(int.__mul__, st.integers(1, 99), st.sampled_from([1000, 60_000, 3_600_000])),
)
# Years 1653 to 2096.
instants = st.integers(-(10**13), 4 * 10**12)


def queries(*, plain: bool = False) -> st.SearchStrategy[ast.Query]:
    """Return the queries; ``plain`` ones are SPARQL 1.1 and nothing else,
    as far as other processors have got.
    """
    return _queries(plain)


@st.composite
def _queries(draw: st.DrawFn, plain: bool) -> ast.Query:
    return _Maker(draw, plain).query()


class _Maker:
    """Maker of one query, with fresh names if they must be new."""

    def __init__(self, draw: st.DrawFn, plain: bool) -> None:
        self._draw = draw
        self._plain = plain
        self._count = itertools.count()
        self._windows: tuple[ast.WindowClause, ...] = ()

    def _pick(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))

    def _either(self, *makers: Callable[[], T]) -> T:
        return self._pick(makers)()

    def _some(self, make: Callable[[], T], least: int = 0, most: int = 2) -> tuple[T, ...]:
        return tuple(make() for _ in range(self._draw(st.integers(least, most))))

    def _maybe(self, make: Callable[[], T]) -> T | None:
        return make() if self._flag() else None

    def _flag(self) -> bool:
        return self._draw(st.booleans())

    def _new_variable(self) -> ast.Variable:
        return ast.Variable(f"new{next(self._count)}")

    def _new_labels(self) -> list[ast.BlankNode]:
        """Return blank nodes for one basic graph pattern; no other may have them."""
        number = next(self._count)
        return [ast.BlankNode(f"{number}{end}") for end in ("", "a.b-c")] + [
            ast.BlankNode(f"anon{number}")
        ]

    def _variable(self) -> ast.Variable:
        return self._pick(VARIABLES)

    def _iri(self) -> ast.Iri:
        return self._pick(IRIS)

    def _name(self) -> ast.Iri | ast.Variable:
        return self._either(self._iri, self._variable)

    def _literal(self) -> ast.Literal:
        return self._draw(literals)

    # Expressions

    def expression(
        self, depth: int = 2, leaf: Callable[[], ast.Expression] | None = None
    ) -> ast.Expression:
        """Return an expression over leaves, which are terms unless something else makes them."""
        make = leaf or self._leaf
        if depth == 0 or not self._flag():
            return make()

        def inner() -> ast.Expression:
            return self.expression(depth - 1, leaf)

        return self._pick(
            [self._unary, self._binary, self._in, self._built_in, self._call, self._exists]
        )(inner)

    def _leaf(self) -> ast.Expression:
        return self._either(self._variable, self._iri, self._literal)

    def _unary(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        return ast.Unary(self._pick("-+!"), inner())

    def _binary(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        return ast.Binary(self._pick(OPERATORS), inner(), inner())

    def _in(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        return ast.In(inner(), self._some(inner), self._flag())

    def _exists(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        return ast.Exists(self.group(0), self._flag())

    def _built_in(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        name = self._pick(sorted(ARITIES))
        if name == "bound":
            # Of groups only some variables are known: one that a leaf gives.
            known = inner()
            return (
                ast.Call(name, (known,)) if isinstance(known, ast.Variable) else ast.Call("now", ())
            )
        least, most = ARITIES[name]
        return ast.Call(name, self._some(inner, int(least), int(min(most, 3))))

    def _call(self, inner: Callable[[], ast.Expression]) -> ast.Expression:
        arguments = self._some(inner)
        if self._plain:
            return ast.Call(self._iri(), arguments)
        name = self._either(self._iri, lambda: self._pick(BARE_NAMES))
        return ast.Call(name, arguments, bool(arguments) and self._flag())

    def _aggregate(self) -> ast.Expression:
        name = self._pick(AGGREGATES)
        if name == "count" and self._flag():
            return ast.Aggregate(name, None, self._flag())
        separator = self._draw(st.none() | strings) if name == "group_concat" else None
        return ast.Aggregate(name, self.expression(1), self._flag(), separator)

    # Triples

    def path(self, depth: int = 2) -> ast.Path:
        if depth == 0 or not self._flag():
            return self._iri()

        def inner() -> ast.Path:
            return self.path(depth - 1)

        make: list[Callable[[], ast.Path]] = [
            lambda: ast.InversePath(inner()),
            lambda: ast.SequencePath(self._some(inner, 2, 3)),
            lambda: ast.AlternativePath(self._some(inner, 2, 3)),
            lambda: ast.RepeatedPath(inner(), self._pick("?*+")),
            lambda: ast.NegatedPath(self._some(self._one_step, 1 if self._plain else 0, 2)),
        ]
        return self._pick(make)()

    def _one_step(self) -> ast.Iri | ast.InversePath:
        return ast.InversePath(self._iri()) if self._flag() else self._iri()

    def _triple(self, labels: Sequence[ast.BlankNode], *, paths: bool = True) -> ast.TriplePattern:
        predicate = self.path() if paths and self._flag() else self._name()
        return ast.TriplePattern(self._node(labels), predicate, self._node(labels))

    def _node(self, labels: Sequence[ast.BlankNode]) -> ast.Term:
        return self._either(self._variable, self._iri, self._literal, lambda: self._pick(labels))

    # Patterns

    def group(self, depth: int = 2) -> ast.Group:
        if depth and self._draw(st.integers(0, 9)) == 0:
            return ast.Group((ast.SubSelect(self._select(depth - 1)),))
        elements: list[ast.Pattern] = []
        labels = self._new_labels()
        for _ in range(self._draw(st.integers(0, 3))):
            element = self._element(depth, labels)
            if not isinstance(element, ast.TriplePattern | ast.Filter):
                labels = self._new_labels()
            elements.append(element)
        return ast.Group(tuple(elements))

    def _element(self, depth: int, labels: Sequence[ast.BlankNode]) -> ast.Pattern:
        flat: list[Callable[[], ast.Pattern]] = [
            lambda: self._triple(labels),
            lambda: self._triple(labels),
            lambda: ast.Filter(self.expression(min(depth, 1))),
            lambda: self._assignment(self.expression(min(depth, 1))),
            self._values,
        ]
        return self._pick(flat + self._nested(depth - 1) if depth else flat)()

    def _nested(self, depth: int) -> list[Callable[[], ast.Pattern]]:
        def inner() -> ast.Group:
            return self.group(depth)

        made: list[Callable[[], ast.Pattern]] = [
            inner,
            lambda: ast.UnionPattern(self._some(inner, 2, 3)),
            lambda: ast.OptionalPattern(inner()),
            lambda: ast.MinusPattern(inner()),
            lambda: ast.GraphPattern(self._name(), inner()),
            lambda: ast.ServicePattern(self._name(), inner(), self._flag()),
        ]
        if self._windows:
            made.append(lambda: ast.WindowPattern(self._pick(self._windows).window, inner()))
        return made

    def _assignment(self, expression: ast.Expression) -> ast.Assignment:
        return ast.Assignment(expression, self._new_variable())

    def _values(self) -> ast.Values:
        variables = tuple(self._draw(st.lists(st.sampled_from(VARIABLES), max_size=3, unique=True)))
        return ast.Values(variables, self._some(lambda: tuple(self._cell() for _ in variables)))

    def _cell(self) -> ast.Iri | ast.Literal | None:
        return self._either(lambda: None, self._iri, self._literal)

    # Queries

    def query(self) -> ast.Query:
        if not self._plain:
            self._windows = self._some(self._window)
        made = self._pick([self._select, self._select, self._construct, self._describe, self._ask])(
            2
        )
        return ast.Query(
            made.form,
            made.where,
            self._windows,
            self._some(self._iri, most=1),
            self._some(self._iri, most=1),
            made.group_by,
            made.having,
            made.order,
            made.limit,
            made.offset,
            made.values,
            None if self._plain else self._maybe(self._registration),
            self._output(made.form),
        )

    def _output(self, form: ast.Select | ast.Construct | ast.Describe | ast.Ask) -> str | None:
        if self._plain or not isinstance(form, ast.Select | ast.Construct):
            return None
        return self._pick((None, *OUTPUTS))

    def _registration(self) -> ast.Registration:
        every = self._draw(st.none() | durations)
        return ast.Registration(self._iri(), self._pick(OUTPUTS), every)

    def _window(self) -> ast.WindowClause:
        name, stream = self._name(), self._iri()
        if self._flag():
            return ast.WindowClause(
                name, stream, *self._draw(st.tuples(st.integers(1, 99), st.integers(1, 99))), True
            )
        start = self._draw(st.none() | instants)
        return ast.WindowClause(
            name, stream, self._draw(durations), self._draw(durations), start_ms=start
        )

    def _construct(self, depth: int) -> ast.Query:
        labels = self._new_labels()
        template = self._some(lambda: self._triple(labels, paths=False))
        return self._modified(ast.Construct(template), self.group(depth))

    def _describe(self, depth: int) -> ast.Query:
        targets = tuple(dict.fromkeys(self._some(self._name)))
        where = (
            self.group(depth)
            if self._plain and not targets
            else self._maybe(lambda: self.group(depth))
        )
        return self._modified(ast.Describe(targets), where)

    def _ask(self, depth: int) -> ast.Query:
        return self._modified(ast.Ask(), self.group(depth))

    def _select(self, depth: int) -> ast.Query:
        where = self.group(depth)
        duplicates = self._pick((None, "DISTINCT", "REDUCED"))
        if self._flag():
            return self._grouped(where, duplicates)
        chosen = self._draw(st.lists(st.sampled_from(VARIABLES), max_size=2, unique=True))
        computed = self._some(lambda: self._assignment(self.expression()), most=1)
        return self._modified(ast.Select((*chosen, *computed), duplicates), where)

    def _grouped(self, where: ast.Group, duplicates: str | None) -> ast.Query:
        keys = self._some(self._key)
        known = tuple(_known(keys))

        def leaf() -> ast.Expression:
            return (
                self._either(self._aggregate, lambda: self._pick(known))
                if known
                else self._aggregate()
            )

        chosen = (
            self._draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
        )
        computed = self._assignment(ast.Binary("+", self._aggregate(), self.expression(1, leaf)))
        having = self._some(lambda: self.expression(1, leaf), most=1)
        form = ast.Select((*chosen, computed), duplicates)
        return self._modified(form, where, keys, having, leaf)

    def _key(self) -> ast.Expression | ast.Assignment:
        key = self.expression(1)
        # pyoxigraph takes GROUP BY (?x AS ?y) for GROUP BY ?x.
        renamed = self._plain and isinstance(key, ast.Variable)
        return self._assignment(key) if self._flag() and not renamed else key

    def _modified(
        self,
        form: ast.Select | ast.Construct | ast.Describe | ast.Ask,
        where: ast.Group | None,
        keys: tuple[ast.Expression | ast.Assignment, ...] = (),
        having: tuple[ast.Expression, ...] = (),
        leaf: Callable[[], ast.Expression] | None = None,
    ) -> ast.Query:
        def condition() -> ast.OrderCondition:
            return ast.OrderCondition(self.expression(1, leaf), self._flag())

        return ast.Query(
            form,
            where,
            group_by=keys,
            having=having,
            order=self._some(condition),
            limit=self._draw(st.none() | st.integers(0, 99)),
            offset=self._draw(st.none() | st.integers(0, 99)),
            values=self._maybe(self._values),
        )


def _known(keys: Iterable[ast.Expression | ast.Assignment]) -> Iterable[ast.Variable]:
    """Yield the variables that grouping leaves."""
    for key in keys:
        if isinstance(key, ast.Variable):
            yield key
        elif isinstance(key, ast.Assignment):
            yield key.variable
