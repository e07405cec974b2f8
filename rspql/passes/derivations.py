"""Derive variables: name the expressions that are computed of each solution of a pattern."""

from __future__ import annotations

from rspql import ast
from rspql.passes.check_growth import OF_RECORDS, check_growth
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE
from rspql.printer import expression_text
from rspql.scope import Names, used_in


class Derivations:
    """Expressions of a pattern's variables, each computed once of a solution."""

    def __init__(self, pattern: Names) -> None:
        self._pattern = pattern
        self._made: dict[str, ast.Assignment] = {}

    @property
    def all(self) -> tuple[ast.Assignment, ...]:
        """The expressions with their variables, in order."""
        return tuple(self._made.values())

    def of(self, expression: ast.Expression) -> str:
        """Return the name of an expression that has none: its text."""
        name = expression_text(expression)
        if name not in self._made:
            variable = ast.Variable(name, span=expression.span)
            self._add(ast.Assignment(expression, variable, span=expression.span))
        return name

    def named(self, assignment: ast.Assignment) -> ast.Variable:
        """Return the variable of an expression that has a name."""
        self._add(assignment)
        return assignment.variable

    def _add(self, assignment: ast.Assignment) -> None:
        for node in ast.walk(assignment.expression):
            if isinstance(node, ast.Exists) or (
                isinstance(node, ast.Call) and node.function in VOLATILE
            ):
                raise NotIncremental("it is computed at the window's close", node)
        names = used_in(assignment.expression)
        for name in names:
            if name not in self._pattern:
                raise NotIncremental(
                    f"nothing in the WINDOW binds ?{name}, which an expression needs", assignment
                )
        if not names:
            raise NotIncremental("an expression has no variable of the WINDOW", assignment)
        check_growth([assignment], OF_RECORDS)
        self._made[assignment.variable.name] = assignment
