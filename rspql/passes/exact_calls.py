"""Calls of functions that compute parts of a query in exact digits, where the engine cannot."""

from __future__ import annotations

from functools import reduce

from rspql import ast
from rspql.plan import Computed, ComputedKind
from rspql.scoring import FunctionRegistry, to_sparql, variables_in
from rspql.scoring.exact import literal_of, number_of
from rspql.scoring.kinds import needs_ratios
from rspql.scoring.order_keys import NO_REST

_NAMESPACE = "urn:acquatop:exactly:"
_UNBOUND = ast.Iri("urn:acquatop:unbound")
_FALSE = ast.Literal("false", ast.XSD + "boolean")
_ONE = ast.Literal("1.0E0", ast.XSD + "double")
_ZERO = ast.Literal("0", ast.XSD + "integer")
_ARITHMETIC = ("+", "-", "*")


class ExactCalls:
    """Calls in place of a query's expressions, and that which they compute, by IRI.

    An engine adds, subtracts and multiplies integers and decimals in exact digits, or fails. So
    it is left what it can, and doubles; a function computes the rest.
    """

    def __init__(self, functions: FunctionRegistry) -> None:
        self._functions = functions
        self.computed: dict[str, Computed] = {}

    def rank(self, expression: ast.Expression) -> tuple[ast.Expression, ast.Expression]:
        """Return two keys that order by a score; the second decides where the first is equal.

        The first is an error if the score is one or no number.
        """
        rank, rest = (self._call(kind, expression) for kind in ("rank", "rest"))
        no_rest = ast.Literal(NO_REST, ast.XSD + "string")
        if is_native(expression):
            # Adding zero is an error for all but numbers.
            number = ast.Binary("+", expression, _ZERO)
            is_number = ast.Binary("=", number, number)
            return (
                ast.Call("coalesce", (number, rank)),
                ast.Call("coalesce", (ast.Call("if", (is_number, no_rest, no_rest)), rest)),
            )
        doubles = self._in_doubles(expression)
        if doubles is None:
            return rank, rest
        condition, value = doubles
        return ast.Call("if", (condition, value, rank)), ast.Call("if", (condition, no_rest, rest))

    def value(self, expression: ast.Expression, engine: ast.Expression) -> ast.Expression:
        """Return a score with its own type; ``engine`` is the engine's, right for doubles."""
        value = self._call("value", expression)
        if is_native(expression):
            return ast.Call("coalesce", (expression, value))
        doubles = self._in_doubles(expression)
        return value if doubles is None else ast.Call("if", (doubles[0], engine, value))

    def holds(self, condition: ast.Expression) -> ast.Expression:
        """Return a condition on numbers, decided in exact digits."""
        nodes = list(ast.walk(condition))
        if all(_is_compared(node) for node in nodes):
            return condition
        holds = self._call("holds", condition)
        doubles = self._in_doubles(condition)
        return holds if doubles is None else ast.Call("if", (*doubles, holds))

    def _call(self, kind: ComputedKind, expression: ast.Expression) -> ast.Call:
        names = tuple(variables_in(expression))
        iri = f"{_NAMESPACE}{kind}:{len(self.computed)}"
        self.computed[iri] = Computed(kind, names, expression)
        # An argument that is unbound would be an error of the call.
        arguments = (ast.Call("coalesce", (ast.Variable(name), _UNBOUND)) for name in names)
        return ast.Call(ast.Iri(iri), tuple(arguments))

    def _in_doubles(
        self, expression: ast.Expression
    ) -> tuple[ast.Expression, ast.Expression] | None:
        """Return the condition that all variables are doubles, and the value that holds then.

        None if it could have other digits, or if there are no variables.
        """
        names = tuple(variables_in(expression))
        datatypes = dict.fromkeys(names, ast.XSD + "double")
        if not names or needs_ratios(expression, self._functions, datatypes):
            return None
        value = to_sparql(expression, self._functions, doubles=True)
        if value is None:
            return None
        double = (ast.Iri(ast.XSD + "double"),)
        are_double: list[ast.Expression] = [
            ast.In(ast.Call("datatype", (ast.Variable(name),)), double) for name in names
        ]
        all_are = reduce(lambda a, b: ast.Binary("&&", a, b), are_double)
        return ast.Call("coalesce", (all_are, _FALSE)), value


def is_native(expression: ast.Expression) -> bool:
    """Return True if an engine computes an expression of numbers in exact digits, or fails.

    >>> is_native(ast.Binary("*", ast.Variable("x"), ast.Literal("0.1", ast.XSD + "decimal")))
    True
    """
    return all(map(_is_native, ast.walk(expression)))


def _is_native(node: ast.Node) -> bool:
    match node:
        case ast.Variable() | ast.Unary("+" | "-"):
            return True
        case ast.Binary(operator):
            return operator in _ARITHMETIC
        case _:
            return _is_ordinary(node)


def _is_compared(node: ast.Node) -> bool:
    """Return True for the parts of conditions that compare values as they are."""
    match node:
        case ast.Variable() | ast.Unary("!") | ast.In():
            return True
        case ast.Binary(operator):
            return operator not in (*_ARITHMETIC, "/")
        case _:
            return _is_ordinary(node)


def _is_ordinary(node: ast.Node) -> bool:
    """Return True for a number that an engine can hold."""
    number = number_of(node) if isinstance(node, ast.Literal) else None
    if number is None:
        return False
    return isinstance(number.value, float) or (
        abs(number.value) < 2**63 and literal_of(number) is not None
    )
