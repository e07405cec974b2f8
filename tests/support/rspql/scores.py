"""Scoring expressions for tests."""

from __future__ import annotations

from hypothesis import strategies as st

from rspql import ast

X, Y = ast.Variable("x"), ast.Variable("y")


DEEP = 250


def number(value: float | str) -> ast.Literal:
    """Return a literal: an integer, a decimal or, if it has an exponent, a double."""
    text = str(value)
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return ast.Literal(text, ast.XSD + kind)


def call(name: str, *arguments: ast.Expression) -> ast.Call:
    return ast.Call(name, arguments)


def binary(operator: str, left: ast.Expression, right: ast.Expression) -> ast.Binary:
    return ast.Binary(operator, left, right)


CONSTANTS = st.integers(-5, 5).map(number)


LEAVES = CONSTANTS | st.sampled_from([X, Y])


EXACT_FUNCTIONS = ("abs", "ceil", "floor", "round", "norm", "least", "greatest")


ALL_FUNCTIONS = (*EXACT_FUNCTIONS, "sqrt", "log", "exp", "pow")


@st.composite
def scores(
    draw: st.DrawFn, functions: tuple[str, ...] = ALL_FUNCTIONS, depth: int = 3
) -> ast.Expression:
    """Return a score that is at most so deep."""
    inner = scores(functions, depth - 1)
    kind = (
        draw(st.sampled_from(["leaf", "unary", "binary", "call", "if", "coalesce"]))
        if depth
        else "leaf"
    )
    match kind:
        case "unary":
            return ast.Unary(draw(st.sampled_from("+-")), draw(inner))
        case "binary":
            return ast.Binary(draw(st.sampled_from("+-*/")), draw(inner), draw(inner))
        case "call":
            name = draw(st.sampled_from(functions))
            return ast.Call(name, draw(arguments_of(name, inner)))
        case "if":
            return call("if", draw(conditions(functions, depth - 1)), draw(inner), draw(inner))
        case "coalesce":
            return ast.Call("coalesce", tuple(draw(st.lists(inner, min_size=1, max_size=3))))
        case _:
            return draw(LEAVES)


def arguments_of(
    name: str, inner: st.SearchStrategy[ast.Expression]
) -> st.SearchStrategy[tuple[ast.Expression, ...]]:
    match name:
        case "norm":
            return st.tuples(inner, CONSTANTS, CONSTANTS | inner)
        case "pow":
            return st.tuples(inner, CONSTANTS | inner)
        case "least" | "greatest":
            return st.lists(inner, min_size=1, max_size=3).map(tuple)
        case _:
            return st.tuples(inner)


@st.composite
def conditions(
    draw: st.DrawFn, functions: tuple[str, ...] = ALL_FUNCTIONS, depth: int = 2
) -> ast.Expression:
    """Return a condition about scores; scores themselves are conditions, too."""
    score = scores(functions, depth - 1) if depth else LEAVES
    inner = conditions(functions, depth - 1)
    simple, compound = (
        ["=", "!=", "<", "<=", ">", ">=", "in", "bound", "constant", "score"],
        ["&&", "||", "!", "if"],
    )
    kind = draw(st.sampled_from(simple + compound if depth else simple))
    match kind:
        case "in":
            return ast.In(
                draw(score), tuple(draw(st.lists(score, max_size=3))), draw(st.booleans())
            )
        case "bound":
            return call("bound", draw(st.sampled_from([X, Y])))
        case "constant":
            return ast.Literal(
                draw(st.sampled_from(["true", "false", "1", "0"])), ast.XSD + "boolean"
            )
        case "score":
            return draw(score)
        case "!":
            return ast.Unary("!", draw(inner))
        case "if":
            return call("if", draw(inner), draw(inner), draw(inner))
        case "&&" | "||":
            return ast.Binary(kind, draw(inner), draw(inner))
        case _:
            return ast.Binary(kind, draw(score), draw(score))


def nested(depth: int) -> ast.Expression:
    """Return an expression so deep that a recursive walk over it would be at risk."""
    expression: ast.Expression = X
    for _ in range(depth):
        expression = call("abs", binary("+", ast.Unary("-", expression), number(1)))
    return expression


def weighted(first: ast.Expression, second: ast.Expression) -> ast.Expression:
    return binary("+", binary("*", number("0.7"), first), binary("*", number("0.3"), second))


NORM_X, NORM_Y = (call("norm", each, number(0), number(10)) for each in (X, Y))
