"""AcquaTop: continuous top-k queries over an RDF stream joined with changing remote data.

>>> from acquatop import Engine
>>> Engine.__name__
'Engine'
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acquatop.answer.answer import Answer, Row, Status
    from acquatop.answer.notebook import to_arrow, to_pandas, to_polars
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
    "to_arrow",
    "to_pandas",
    "to_polars",
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
    "to_arrow": "acquatop.answer.notebook",
    "to_pandas": "acquatop.answer.notebook",
    "to_polars": "acquatop.answer.notebook",
}


_PARTS = ("rspql", "replica", "connectors")
"""Packages that are installed beside this one. Modules of other people may have their names."""
_PLACE = str(Path(__path__[0]).parent)


class _PartsFinder:
    """Finder of the packages beside this one, whatever else of their names is on the path."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        """Return where one of the packages is; None for all other modules."""
        return PathFinder.find_spec(name, [_PLACE]) if name in _PARTS else None


def _look_for(name: str) -> None:
    """Raise ImportError if a part is missing or replaced; warn if the path has another first."""
    ours = _PartsFinder.find_spec(name)
    source = getattr(ours.loader, "get_source", None) if ours else None
    if ours is None or source is None or "AcquaTop" not in source(name):
        raise ImportError(
            f"{_PLACE}/{name} is not the package {name} that AcquaTop consists of: another "
            "distribution has replaced or removed it\n"
            "  hint: install AcquaTop again (pip install --force-reinstall --no-deps …), "
            "in an environment without the other one"
        )
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if name in sys.modules and getattr(loaded, "origin", None) != ours.origin:
        raise ImportError(
            f"{_file_of(sys.modules[name])} was imported as {name}, which is the name of a "
            f"package of AcquaTop ({ours.origin})\n"
            "  hint: rename it, or import acquatop before it if nothing needs it"
        )
    other = PathFinder.find_spec(name)
    if other is not None and other.loader is not None and other.origin != ours.origin:
        warnings.warn(
            f'{other.origin} has the name of a package of AcquaTop: "import {name}" gives '
            f"AcquaTop's from now on, {ours.origin}. Rename yours to import both",
            RuntimeWarning,
            stacklevel=3,
        )


def _file_of(module: object) -> str:
    return str(getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ["?"]))))


for _name in _PARTS:
    _look_for(_name)
sys.meta_path.insert(0, _PartsFinder)


def __getattr__(name: str) -> Any:
    # Import on first use, so that light commands do not load modules that they do not need.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
