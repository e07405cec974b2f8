from __future__ import annotations

import pytest
from hypothesis import given

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.scoring import DEFAULT_FUNCTIONS, check_condition, check_expression, scoring_function
from tests.support.rspql.scores import (
    DEEP,
    NORM_X,
    X,
    binary,
    call,
    conditions,
    nested,
    number,
    scores,
)

TEXT = ast.Literal("abc")
TRUE = ast.Literal("true", ast.XSD + "boolean")
MORE = binary(">", X, number(0))
PATTERN = ast.Group((ast.TriplePattern(X, ast.Iri("http://example.org/p"), TEXT),))
AS_CONDITION = "use it as the condition of IF(condition, then, otherwise)"


def problems(expression: ast.Expression) -> list[tuple[str, str | None]]:
    found: list[Diagnostic] = []
    check_expression(expression, found)
    assert {each.code for each in found} <= {"score"}
    return [(each.message, each.hint) for each in found]


def condition_problems(expression: ast.Expression) -> list[str]:
    found: list[Diagnostic] = []
    check_condition(expression, found)
    return [each.message for each in found]


@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        (TEXT, '"abc" is not a number, so it cannot be part of a score', None),
        (
            ast.Literal("1.5", ast.XSD + "integer"),
            '"1.5" is not a number, so it cannot be part of a score',
            None,
        ),
        (TRUE, '"true" is not a number, so it cannot be part of a score', None),
        (
            ast.Iri("http://e.org/"),
            "<http://e.org/> is not a number, so it cannot be part of a score",
            None,
        ),
        (MORE, "> does not give a number, so it cannot be part of a score", AS_CONDITION),
        (
            ast.Unary("!", X),
            "! does not give a number, so it cannot be part of a score",
            AS_CONDITION,
        ),
        (
            ast.In(X, (), True),
            "NOT IN does not give a number, so it cannot be part of a score",
            AS_CONDITION,
        ),
        (
            call("bound", X),
            "BOUND does not give a number, so it cannot be part of a score",
            AS_CONDITION,
        ),
        (
            call("if", MORE, X),
            "IF takes 3 arguments, not 2",
            "write IF(condition, then, otherwise)",
        ),
        (call("coalesce"), "COALESCE takes at least 1 argument, not 0", "write COALESCE(value, …)"),
        (call("least"), "least takes at least 1 argument, not 0", "write least(value, …)"),
        (
            call("norm", X, number(1)),
            "norm takes 3 arguments, not 2",
            "write norm(value, low, high)",
        ),
        (call("sqrt", X, X), "sqrt takes 1 argument, not 2", "write sqrt(value)"),
        (call("sqt", X), "there is no scoring function sqt", "did you mean sqrt(value)?"),
        (
            call("coalese", X),
            "there is no scoring function coalese",
            "did you mean COALESCE(value, …)?",
        ),
        (
            ast.Call(ast.Iri("http://www.w3.org/2005/xpath-functions/math#sqt"), (X,)),
            "there is no scoring function <http://www.w3.org/2005/xpath-functions/math#sqt>",
            "did you mean <http://www.w3.org/2005/xpath-functions/math#sqrt>?",
        ),
        (
            ast.Call("abs", (X,), distinct=True),
            "DISTINCT has no meaning in abs",
            "leave DISTINCT out",
        ),
        (
            ast.Aggregate("sum", X),
            "SUM is an aggregate, so it cannot be part of a score",
            "compute it in a sub-select, and use its variable here",
        ),
        (ast.Exists(PATTERN), "EXISTS asks for a pattern, so it cannot be part of a score", None),
        (
            call("norm", X, number(5), ast.Unary("-", number(5))),
            "the range of norm from 5 to -5 is empty",
            "write norm(value, low, high)",
        ),
        (
            call("if", call("bound", number(1)), X, X),
            "BOUND takes a variable",
            "write BOUND(?variable)",
        ),
    ],
)
def test_a_mistake_is_named_with_a_remedy(
    expression: ast.Expression, message: str, hint: str | None
) -> None:
    assert problems(expression) == [(message, hint)]
    assert problems(binary("+", NORM_X, expression)) == [(message, hint)]


def test_an_unknown_function_unlike_any_other_gets_the_whole_list() -> None:
    ((message, hint),) = problems(call("zzzzzz", X))
    assert message == "there is no scoring function zzzzzz"
    assert hint is not None
    assert hint.startswith(
        "known are ABS(value), BOUND(?variable), CEIL(value), COALESCE(value, …), exp(value), "
    )


def test_every_mistake_is_named_where_it_stands() -> None:
    first, second = ast.Span(1, 4, 1, 2), ast.Span(7, 10, 1, 8)
    found: list[Diagnostic] = []
    wrong = ast.Literal("a", span=second)
    check_expression(binary("+", ast.Call("nrom", (X,), span=first), wrong), found)
    assert [each.span for each in found] == [first, second]


@given(scores())
def test_a_score_without_mistakes_passes(expression: ast.Expression) -> None:
    ranges = (f"{message}" for message, _ in problems(expression))
    assert all("the range of norm" in message for message in ranges)


@given(conditions())
def test_a_condition_without_mistakes_passes(expression: ast.Expression) -> None:
    assert all("the range of norm" in message for message in condition_problems(expression))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (binary("=", X, TEXT), '"abc" is not a number, so it cannot be part of a condition'),
        (
            ast.Unary("!", ast.Exists(PATTERN)),
            "EXISTS asks for a pattern, so it cannot be part of a condition",
        ),
        (
            binary("<", MORE, number(1)),
            "> does not give a number, so it cannot be part of a condition",
        ),
        (
            binary("&&", TRUE, binary("=", X, TRUE)),
            '"true" is not a number, so it cannot be part of a condition',
        ),
        (call("regex", X, TEXT), "there is no scoring function regex"),
    ],
)
def test_what_is_no_condition_over_numbers_is_named(
    expression: ast.Expression, message: str
) -> None:
    assert message in condition_problems(expression)


def test_functions_of_ones_own_are_known_once_they_are_given() -> None:
    functions = DEFAULT_FUNCTIONS.with_function("decay", scoring_function(lambda age: -age, (-1,)))
    found: list[Diagnostic] = []
    check_expression(call("decay", X), found, functions=functions)
    assert found == []
    check_expression(call("decai", X), found, functions=functions)
    assert [each.hint for each in found] == ["did you mean decay(value)?"]


def test_depth_is_no_limit() -> None:
    assert problems(nested(4 * DEEP)) == []
