"""Check that an expression is computed on numbers alone, as incremental operators do."""

from __future__ import annotations

from rspql import ast
from rspql.built_ins import ARITIES
from rspql.diagnostics import Diagnostic
from rspql.passes.not_incremental import NotIncremental
from rspql.scope import Names
from rspql.scoring import FunctionRegistry, check_condition


def check_arithmetic(expression: ast.Expression, functions: FunctionRegistry) -> None:
    """Raise if an expression has parts that are computed on terms instead of numbers."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Exists | ast.Aggregate):
            raise NotIncremental("an expression needs the whole window", node)
        if (
            isinstance(node, ast.Call)
            and functions.find(node.function) is None
            and not _is_form(node)
        ):
            name = (
                node.function.value if isinstance(node.function, ast.Iri) else node.function.upper()
            )
            raise NotIncremental(f"{name} is not computed on numbers alone", node)


def check_conditions(conditions: tuple[ast.Expression, ...], functions: FunctionRegistry) -> None:
    """Raise unless conditions are decided on numbers alone."""
    for condition in conditions:
        check_arithmetic(condition, functions)
        problems: list[Diagnostic] = []
        check_condition(condition, problems, functions=functions)
        if problems:
            raise NotIncremental("a filter is not decided on numbers alone", condition)


def check_remote_values(expression: ast.Expression, stream: Names, *, is_condition: bool) -> None:
    """Raise if an expression differs from SPARQL for remote values that are not numbers.

    Here such a value is an error everywhere. In SPARQL it is bound, may be true or false, is
    unequal to others, and is ordered among values of its kind.
    """
    values = _RemoteValues(stream)
    if values.matter_in(expression, is_condition) or (is_condition and values.may_be(expression)):
        raise NotIncremental(
            "the remote's value need not be a number, and this would tell the difference",
            expression,
        )


def _is_form(call: ast.Call) -> bool:
    """Return True if a call is a SPARQL form supported in scores, or an unknown name."""
    return isinstance(call.function, str) and (
        call.function in ("if", "coalesce", "bound") or call.function not in ARITIES
    )


class _RemoteValues:
    """Finder of the parts of an expression that tell a non-numeric value from an error."""

    def __init__(self, stream: Names) -> None:
        self._stream = stream

    def may_be(self, expression: ast.Node) -> bool:
        """Return True if an expression can have a non-numeric value: an unchanged remote value."""
        match expression:
            case ast.Variable(name):
                return name not in self._stream
            case ast.Call("if" | "coalesce", choices):
                return any(map(self.may_be, choices))
            case _:
                return False

    def matter_in(self, expression: ast.Node, keeps_only_true: bool) -> bool:
        """Return True if non-numeric values matter.

        If only true solutions are kept, an error is equivalent to false.
        """
        sides = [child for child in ast.children(expression) if isinstance(child, ast.Node)]
        loose = sum(map(self.may_be, sides))
        match expression:
            case ast.Binary("&&" | "||"):
                return loose > 0 or any(self.matter_in(side, keeps_only_true) for side in sides)
            case ast.Call("bound") | ast.Unary("!") | ast.Binary("!="):
                matters = loose > 0
            case ast.Binary("="):
                matters = loose > 1 or (loose == 1 and not keeps_only_true)
            case ast.Binary("<" | "<=" | ">" | ">="):
                matters = loose > 1
            case ast.In(operand, choices, negated):
                both = self.may_be(operand) and any(map(self.may_be, choices))
                matters = both or (loose > 0 and (negated or not keeps_only_true))
            case ast.Call("if", (condition, *_)):
                matters = self.may_be(condition)
            case ast.Call("coalesce", choices):
                matters = any(map(self.may_be, choices[:-1]))
            case _:
                matters = False
        return matters or any(self.matter_in(side, False) for side in sides)
