"""Why a top-k query has no incremental plan."""

from __future__ import annotations

from rspql import ast
from rspql.diagnostics import Diagnostic


class NotIncremental(Exception):  # noqa: N818 (a reason, not an error)
    """Why a top-k query is evaluated window by window; ``reason`` says it to people."""

    def __init__(self, message: str, node: ast.Node | None) -> None:
        super().__init__(message)
        self.reason = Diagnostic("by-window", message, node.span if node else None, severity="warning")
