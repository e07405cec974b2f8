"""Monotonicity of a score in each of its variables.

"Least recently maintained and most vibrating" falls with one variable and rises with the other. A
known direction turns a bound on a variable into a bound on the score. The analysis follows the
rules of calculus over intervals and never guesses: a direction that it cannot prove is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from rspql import ast
from rspql.scoring.bounds import interval_of
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry
from rspql.scoring.intervals import Interval, truth
from rspql.scoring.library import DEFAULT_FUNCTIONS


class Direction(Enum):
    """Direction of a score as one variable grows and the others stay."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    CONSTANT = "constant"
    UNKNOWN = "unknown"


def directions(
    expression: ast.Expression,
    ranges: Mapping[str, Interval],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> dict[str, Direction]:
    """Return the score's direction in each of its variables, in the order in which they occur.

    Increasing means that the score never falls as the variable grows within its range, wherever the
    score has a value, up to rounding. A variable without a range may be any number. Unknown means
    not monotone, or not provably so: a variable that occurs twice is treated as two.

    >>> age, vibration = ast.Variable("maintained"), ast.Variable("vibration")
    >>> year = ast.Literal("2024", ast.XSD + "integer")
    >>> score = ast.Binary("*", ast.Binary("-", year, age), vibration)
    >>> ranges = {"maintained": Interval(2000.0, 2024.0), "vibration": Interval(0.0, 100.0)}
    >>> for name, direction in directions(score, ranges).items():
    ...     print(name, direction.value)
    maintained decreasing
    vibration increasing
    """
    return dict(_analyse(expression, ranges, functions).directions)


def explain_direction(
    expression: ast.Expression,
    variable: str,
    ranges: Mapping[str, Interval],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> ast.Expression | None:
    """Return the first innermost part that makes a variable's direction unknown; None if known.

    >>> square = ast.Binary("*", ast.Variable("x"), ast.Variable("x"))
    >>> explain_direction(ast.Unary("-", square), "x", {}) == square
    True
    """
    analysis = _analyse(expression, ranges, functions)
    if analysis.directions.get(variable) is not Direction.UNKNOWN:
        return None
    while True:
        inner = [
            part for part in analysis.parts if part.directions.get(variable) is Direction.UNKNOWN
        ]
        if not inner:
            return analysis.node
        analysis = inner[0]


@dataclass(frozen=True, eq=False)
class _Analysis:
    """Facts about a part of an expression.

    ``safe`` is True if the existence of its value depends only on which variables are bound, not on
    their numbers. ``parts`` are the operands that decide its directions.
    """

    node: ast.Expression
    interval: Interval
    directions: Mapping[str, Direction]
    safe: bool
    parts: tuple[_Analysis, ...]


def _analyse(
    expression: ast.Expression, ranges: Mapping[str, Interval], functions: FunctionRegistry
) -> _Analysis:
    def step(node: ast.Expression, parts: tuple[_Analysis, ...]) -> _Analysis:
        interval = interval_of(node, tuple(part.interval for part in parts), ranges, functions)
        names = _names(node, parts)
        relevant = _relevant(node, parts)
        if interval.is_point:
            found = dict.fromkeys(names, Direction.CONSTANT)
        else:
            signs = _signs(node, tuple(part.interval for part in parts), functions)
            found = {name: _direction(node, name, parts, signs) for name in names}
        return _Analysis(node, interval, found, _is_safe(node, parts, functions), relevant)

    return fold(expression, step)


def _names(node: ast.Expression, parts: Iterable[_Analysis]) -> tuple[str, ...]:
    if isinstance(node, ast.Variable):
        return (node.name,)
    return tuple(dict.fromkeys(name for part in parts for name in part.directions))


# Directions -----------------------------------------------------------------------------------


def _direction(
    node: ast.Expression, name: str, parts: tuple[_Analysis, ...], signs: tuple[int, ...]
) -> Direction:
    match node:
        case ast.Variable():
            return Direction.INCREASING
        case ast.Call("if"):
            return _direction_of_if(name, parts)
        case ast.Call("coalesce"):
            return _direction_of_coalesce(name, parts)
        case ast.Call("bound"):
            return Direction.CONSTANT  # among the numbers that the variable can be bound to
    return _joined(
        _scaled(part.directions.get(name, Direction.CONSTANT), sign)
        for part, sign in zip(parts, signs, strict=True)
    )


def _direction_of_if(name: str, parts: tuple[_Analysis, ...]) -> Direction:
    relevant = _branches(parts)
    if (
        len(relevant) > 1
        and parts[0].directions.get(name, Direction.CONSTANT) is not Direction.CONSTANT
    ):
        return Direction.UNKNOWN
    return _joined(part.directions.get(name, Direction.CONSTANT) for part in relevant)


def _direction_of_coalesce(name: str, parts: tuple[_Analysis, ...]) -> Direction:
    # If the variable's value decides whether a choice fails, it also decides which choice is taken.
    if any(name in part.directions and not part.safe for part in parts[:-1]):
        return Direction.UNKNOWN
    return _joined(part.directions.get(name, Direction.CONSTANT) for part in parts)


def _branches(parts: tuple[_Analysis, ...]) -> tuple[_Analysis, ...]:
    """Return the branches of an IF that can be taken."""
    condition, then, otherwise = parts
    possible = truth(condition.interval)
    if possible.is_point:
        return (then,) if possible.low else (otherwise,)
    return then, otherwise


def _relevant(node: ast.Expression, parts: tuple[_Analysis, ...]) -> tuple[_Analysis, ...]:
    if not isinstance(node, ast.Call) or node.function != "if":
        return parts
    branches = _branches(parts)
    return parts if len(branches) > 1 else branches


def _signs(
    node: ast.Expression, intervals: tuple[Interval, ...], functions: FunctionRegistry
) -> tuple[int, ...]:
    """Return the sign of a node's change for each operand: 1 rises, -1 falls, 0 is unknown."""
    match node:
        case ast.Unary("+" | "-" as operator):
            return (1,) if operator == "+" else (-1,)
        case ast.Binary("+" | "-" as operator):
            return (1, 1) if operator == "+" else (1, -1)
        case ast.Binary("*"):
            return intervals[1].sign, intervals[0].sign
        case ast.Binary("/"):
            # There is no value if the divisor is zero, so a divisor that touches zero keeps its
            # sign.
            of_divisor = intervals[1].sign
            return of_divisor, -intervals[0].sign if of_divisor else 0
        case ast.Call(function) if function not in ("if", "coalesce", "bound"):
            known = functions.find(function)
            assert known is not None, "the interval has been computed with it"
            return known.directions(*intervals)
        case _:
            return (0,) * len(intervals)


def _scaled(direction: Direction, sign: int) -> Direction:
    if direction is Direction.CONSTANT or sign == 1:
        return direction
    return _OPPOSITE[direction] if sign == -1 else Direction.UNKNOWN


def _joined(several: Iterable[Direction]) -> Direction:
    moving = set(several) - {Direction.CONSTANT}
    if not moving:
        return Direction.CONSTANT
    return moving.pop() if len(moving) == 1 else Direction.UNKNOWN


_OPPOSITE = {
    Direction.INCREASING: Direction.DECREASING,
    Direction.DECREASING: Direction.INCREASING,
    Direction.UNKNOWN: Direction.UNKNOWN,
}


# Errors ---------------------------------------------------------------------------------------


def _is_safe(
    node: ast.Expression, parts: tuple[_Analysis, ...], functions: FunctionRegistry
) -> bool:
    """Return True if a node has no value if, and only if, a variable is unbound."""
    if not all(part.safe for part in parts):
        return False
    match node:
        case ast.Binary("&&" | "||"):
            # One operand's value decides whether the other's error counts.
            return not any(part.directions for part in parts)
        case ast.In():
            return not any(part.directions for part in parts[1:])
        case ast.Binary("+" | "-" | "*" | "/" as operator):
            return _is_safe_arithmetic(operator, *(part.interval for part in parts))
        case ast.Call("if"):
            return len(_branches(parts)) == 1
        case ast.Call(function) if function not in ("coalesce", "bound"):
            known = functions.find(function)
            return known is not None and known.total(*(part.interval for part in parts))
        case _:
            return True


def _is_safe_arithmetic(operator: str, left: Interval, right: Interval) -> bool:
    # Infinities can cancel each other out, and zero times infinity is not a number.
    match operator:
        case "*":
            return left.is_finite and right.is_finite
        case "/":
            return 0.0 not in right and (left.is_finite or right.is_finite)
        case _:
            return left.is_finite or right.is_finite
