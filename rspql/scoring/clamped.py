"""Scores of doubles in which only ``norm`` gives decimals: in the rows where it clamps, 0 or 1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rspql import ast
from rspql.scoring.fold import fold
from rspql.scoring.functions import BoolArray, FloatArray, FunctionRegistry
from rspql.scoring.kinds import NumberKind, computes_decimals, is_share_of_doubles, kind_of


class Clamped:
    """Rows in which at least so many shares are clamped."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._found: list[BoolArray] = []

    def note(self, shares: FloatArray) -> None:
        """Note shares. The clamped ones are 0 or 1; few others are."""
        if not (shares.min(initial=1.0) > 0.0 and shares.max(initial=0.0) < 1.0):
            self._found.append((shares <= 0.0) | (shares >= 1.0))

    @property
    def rows(self) -> BoolArray | None:
        """Mask of the rows; None if there are none."""
        if len(self._found) < self._count:
            return None
        *rest, last = self._found
        found = last if self._count == 1 else np.zeros_like(last)
        seen = last
        for mask in rest:
            found = found | (mask if self._count == 1 else mask & seen)
            seen = seen | mask
        return found if found.any() else None


def clamped_for_decimals(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Mapping[str, str]
) -> int | None:
    """Return the number of shares that must be clamped for a row to compute with decimals: 1 or 2.

    None if rows without a clamped share can compute with decimals, too.

    >>> from rspql.scoring import DEFAULT_FUNCTIONS
    >>> ends = ast.Literal("0", ast.XSD + "integer"), ast.Literal("9", ast.XSD + "integer")
    >>> x, y = (ast.Call("norm", (ast.Variable(name), *ends)) for name in "xy")
    >>> weight = ast.Literal("0.3", ast.XSD + "decimal")
    >>> score = ast.Binary("+", ast.Binary("*", weight, x), y)
    >>> clamped_for_decimals(score, DEFAULT_FUNCTIONS, dict.fromkeys("xy", ast.XSD + "double"))
    2
    """
    least = 2

    def step(
        node: ast.Expression, parts: tuple[tuple[NumberKind, NumberKind], ...]
    ) -> tuple[NumberKind, NumberKind]:
        # Kinds if no share is clamped, and if at most one is.
        nonlocal least
        of_none, of_one = tuple(none for none, _one in parts), tuple(one for _none, one in parts)
        plain = kind_of(node, of_none, functions, datatypes)
        if is_share_of_doubles(node, of_one):
            return NumberKind.DOUBLE, plain
        if computes_decimals(node, of_none, plain):
            least = 0
        clamped = plain
        for at, one in enumerate(of_one):
            operands = (*of_none[:at], one, *of_none[at + 1 :])
            kind = kind_of(node, operands, functions, datatypes)
            if computes_decimals(node, operands, kind):
                least = min(least, 1)
            clamped |= kind
        return plain, clamped

    fold(expression, step)
    return least or None
