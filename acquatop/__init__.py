"""AcquaTop: continuous top-k queries over an RDF stream joined with changing remote data.

>>> from acquatop import Engine
>>> Engine.__name__
'Engine'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer, Row, Status
    from acquatop.catalog.catalog import Catalog
    from acquatop.engine.engine import Engine, RegisteredQuery
    from acquatop.errors import AcquaTopError, EnvironmentProblem, UserError
    from rspql.diagnostics import QueryError
    from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry, scoring_function

__version__ = "0.1.0"
__all__ = [
    "DEFAULT_FUNCTIONS",
    "AcquaTopError",
    "Answer",
    "Catalog",
    "Engine",
    "EnvironmentProblem",
    "FunctionRegistry",
    "QueryError",
    "RegisteredQuery",
    "Row",
    "Status",
    "UserError",
    "scoring_function",
]

_HOMES = {
    "AcquaTopError": "acquatop.errors",
    "EnvironmentProblem": "acquatop.errors",
    "QueryError": "rspql.diagnostics",
    "UserError": "acquatop.errors",
    "Answer": "acquatop.answer.answer",
    "Catalog": "acquatop.catalog.catalog",
    "Engine": "acquatop.engine.engine",
    "RegisteredQuery": "acquatop.engine.engine",
    "Row": "acquatop.answer.answer",
    "Status": "acquatop.answer.answer",
    "DEFAULT_FUNCTIONS": "rspql.scoring",
    "FunctionRegistry": "rspql.scoring",
    "scoring_function": "rspql.scoring",
}


def __getattr__(name: str) -> Any:
    # Import on first use, so that light commands do not load modules that they do not need.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
