"""Refusal of an incremental plan, with its reason."""

from __future__ import annotations

from rspql import ast
from rspql.diagnostics import Diagnostic


class NotIncremental(Exception):  # noqa: N818 (a reason, not an error)
    """Raised if a top-k query must be evaluated window by window; ``reason`` tells users why."""

    joins_more = False
    """True if the query joins more than one SERVICE and the WINDOW."""

    def __init__(self, message: str, node: ast.Node | None) -> None:
        super().__init__(message)
        self.reason = Diagnostic(
            "by-window", message, node.span if node else None, severity="warning"
        )


class JoinsMore(NotIncremental):
    """Refusal of a query that joins more than one SERVICE and the WINDOW."""

    joins_more = True
