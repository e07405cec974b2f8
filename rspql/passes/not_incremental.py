"""Refusal of an incremental plan, with its reason."""

from __future__ import annotations

from rspql import ast
from rspql.diagnostics import Diagnostic


class NotIncremental(Exception):  # noqa: N818 (a reason, not an error)
    """Raised if a top-k query must be evaluated window by window; ``reason`` tells users why."""

    def __init__(self, message: str, node: ast.Node | None) -> None:
        super().__init__(message)
        self.reason = Diagnostic(
            "by-window", message, node.span if node else None, severity="warning"
        )
