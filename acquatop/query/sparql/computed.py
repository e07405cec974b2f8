"""Functions that compute parts of a query in exact digits, as a SPARQL engine calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from pyoxigraph import Literal, NamedNode

from acquatop.query.sparql.engine import EngineFunction
from acquatop.query.sparql.terms import Term
from rspql import ast
from rspql.plan import Computed, ComputedKind
from rspql.scoring import FunctionRegistry
from rspql.scoring.exact import Evaluate, Number, Value, compiled, number_of, text_of, truth
from rspql.scoring.order_keys import nearest_double, rest_of

_REMEMBERED = 1 << 14
"""Number of results after which those are forgotten that have not been asked for again."""

T = TypeVar("T")


def computed_functions(
    computed: Mapping[str, Computed], functions: FunctionRegistry
) -> dict[str, EngineFunction]:
    """Return the functions for what a query lets be computed, by IRI."""
    values: dict[ast.Expression, _Values] = {}
    found: dict[str, EngineFunction] = {}
    for iri, each in computed.items():
        values.setdefault(each.expression, _Values(each.names, each.expression, functions))
        found[iri] = _Function(each.kind, values[each.expression])
    return found


class _Remembered(Generic[T]):
    """Results by terms: a solution is in several windows, and is asked for several keys."""

    def __init__(self) -> None:
        self._new: dict[tuple[Term, ...], T] = {}
        self._old: dict[tuple[Term, ...], T] = {}

    def __reduce__(self) -> tuple[type[_Remembered[T]], tuple[()]]:
        return type(self), ()

    def of(self, terms: tuple[Term, ...], compute: Callable[[tuple[Term, ...]], T]) -> T:
        """Return the result for terms, computed unless it is remembered."""
        if terms in self._new:
            return self._new[terms]
        result = self._old[terms] if terms in self._old else compute(terms)
        if len(self._new) >= _REMEMBERED:
            self._old, self._new = self._new, {}
        self._new[terms] = result
        return result


class _Values:
    """Values of an expression for terms."""

    def __init__(
        self, names: tuple[str, ...], expression: ast.Expression, functions: FunctionRegistry
    ) -> None:
        self._names = names
        self._expression = expression
        self._functions = functions
        self._run: Evaluate | None = None
        self._known = _Remembered[Value]()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_run": None}

    def of(self, terms: tuple[Term, ...]) -> Value:
        """Return the value for the variables' terms."""
        return self._known.of(terms, self._computed)

    def _computed(self, terms: tuple[Term, ...]) -> Value:
        if self._run is None:
            self._run = compiled(self._expression, self._functions)
        return self._run(dict(zip(self._names, map(_number, terms), strict=True)))


class _Function:
    """Function that returns a value as some kind of term; None for an error."""

    def __init__(self, kind: ComputedKind, values: _Values) -> None:
        self._kind = kind
        self._values = values
        self._known = _Remembered[Term | None]()

    def __call__(self, *terms: Term) -> Term | None:
        return self._known.of(terms, self._result)

    def _result(self, terms: tuple[Term, ...]) -> Term | None:
        value = self._values.of(terms)
        if self._kind == "holds":
            holds = truth(value)
            return None if holds is None else Literal(holds)
        if not isinstance(value, Number):
            return None
        return _TERMS[self._kind](value)


def _number(term: Term) -> Number | None:
    if not isinstance(term, Literal):
        return None
    return number_of(ast.Literal(term.value, term.datatype.value))


def _rank(number: Number) -> Term | None:
    return None if number.is_nan else Literal(nearest_double(number))


def _value(number: Number) -> Term:
    if isinstance(number.value, Fraction):
        text = text_of(number.value)
    elif number.datatype == ast.XSD + "float":
        text = str(np.float32(number.value)).replace("inf", "INF").replace("nan", "NaN")
    else:
        return Literal(number.value)
    return Literal(text, datatype=NamedNode(number.datatype))


_TERMS: Mapping[ComputedKind, Callable[[Number], Term | None]] = {
    "rank": _rank,
    "rest": lambda number: Literal(rest_of(number)),
    "value": _value,
}
