"""Functions that scores may call, as a catalog declares them: ``[functions.decay]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acquatop.catalog.objects import iri_of
from acquatop.catalog.section import Document, Section
from acquatop.errors import UserError
from acquatop.plugins import FUNCTIONS
from replica.remotes.function import resolve
from rspql.ast import Call, Iri, walk
from rspql.diagnostics import Diagnostic
from rspql.passes.plan_windowed import OWN_FUNCTIONS
from rspql.plan import Plan, TopKPlan
from rspql.scoring import FunctionRegistry, ScoringFunction, scoring_function

FloatArray = npt.NDArray[np.float64]

_TRIED = np.array([-1e6, -1e3, -10, -1, -0.5, 0, 0.5, 1, 2, 10, 1e3, 1e6])
"""Values of an argument at which a declared direction is tried."""
_ELSEWHERE = (0.5, 10.0)
"""Values of the other arguments meanwhile."""


class NamedFunction:
    """Function of arrays that is imported at its first call, in whichever process that is.

    An exception is an error of the rows that raise it.

    >>> NamedFunction("numpy:asarray_chkfinite")(np.array([4.0, np.inf]))
    array([ 4., nan])
    """

    def __init__(self, call: str) -> None:
        self.call = call
        self._function: Callable[..., Any] | None = None

    def __reduce__(self) -> tuple[type[NamedFunction], tuple[str]]:
        return NamedFunction, (self.call,)

    def __call__(self, *columns: FloatArray) -> FloatArray:
        """Return the values of the rows of some columns."""
        function = self.resolved()
        try:
            return np.broadcast_to(np.asarray(function(*columns), np.float64), columns[0].shape)
        except Exception:
            return np.array([_one(function, row) for row in zip(*columns, strict=True)], np.float64)

    def resolved(self) -> Callable[..., Any]:
        """Return the function; raise ValueError if there is none of this name."""
        if self._function is None:
            self._function = resolve(self.call)
        return self._function


def _one(function: Callable[..., Any], row: tuple[float, ...]) -> float:
    try:
        return float(np.asarray(function(*(np.array([each]) for each in row))).reshape(()))
    except Exception:
        return np.nan


@dataclass(frozen=True)
class DeclaredFunction:
    """Function of a catalog: its name or IRI in queries, and what is known of its values."""

    name: str
    call: str
    directions: tuple[int, ...]
    range: tuple[float, float] | None

    def scoring(self) -> ScoringFunction:
        """Return the function for scores; nothing is imported yet."""
        arguments = ", ".join(f"value{at}" for at in range(1, len(self.directions) + 1))
        return scoring_function(
            NamedFunction(self.call), self.directions, self.range, f"<{self.name}>({arguments})"
        )

    def problem(self) -> str | None:
        """Return the reason if there is no such function, or it is not as declared."""
        try:
            NamedFunction(self.call).resolved()
        except ValueError as error:
            return f"the catalog's function {self.name}: {error}"
        tried = ((at, sign, elsewhere) for at, sign in self._signs() for elsewhere in _ELSEWHERE)
        return next(filter(None, (self._against(*each) for each in tried)), None)

    def _signs(self) -> list[tuple[int, int]]:
        return [(at, sign) for at, sign in enumerate(self.directions) if sign]

    def _against(self, at: int, sign: int, elsewhere: float) -> str | None:
        """Return the reason if some values contradict the direction in an argument."""
        columns = [np.full(len(_TRIED), elsewhere) for _ in self.directions]
        columns[at] = _TRIED
        with np.errstate(all="ignore"):
            values = self.scoring().apply(*columns)
        there = np.flatnonzero(~np.isnan(values))
        wrong = np.flatnonzero(np.sign(np.diff(values[there])) == -sign)
        if not len(wrong):
            return None
        low, high = there[wrong[0]], there[wrong[0] + 1]
        return (
            f"the catalog's function {self.name} {'falls' if sign > 0 else 'rises'} in its "
            f"argument {at + 1}, from {values[low]:g} at {_TRIED[low]:g} to {values[high]:g} at "
            f"{_TRIED[high]:g}, though its direction is declared as {sign}"
        )


def read_functions(section: Section, prefixes: Mapping[str, str]) -> dict[str, DeclaredFunction]:
    """Return the functions that a catalog declares, by name or IRI."""
    found = [_function(name, each, prefixes) for name, each in section.tables()]
    return {each.name: each for each in found if each is not None}


def with_declared(
    functions: FunctionRegistry, declared: Mapping[str, DeclaredFunction]
) -> FunctionRegistry:
    """Return a registry with a catalog's functions, too; they replace others of their names."""
    for name, each in declared.items():
        functions = functions.with_function(name, each.scoring())
    return functions


def function_problems(plan: Plan, declared: Mapping[str, DeclaredFunction]) -> Iterator[Diagnostic]:
    """Yield the problems of those of a catalog's functions that a plan calls; imports them."""
    query = plan.windowed.query if isinstance(plan, TopKPlan) else plan.query
    calls = [node for node in walk(query) if isinstance(node, Call)]
    spans = {each.function.value: each.span for each in calls if isinstance(each.function, Iri)}
    for name, each in declared.items():
        iri = name if ":" in name else OWN_FUNCTIONS + name.lower()
        problem = each.problem() if iri in spans else None
        if problem is not None:
            yield Diagnostic("function", problem, spans[iri])


def _function(name: str, section: Section, prefixes: Mapping[str, str]) -> DeclaredFunction | None:
    if "call" not in section and name in FUNCTIONS:
        return _installed(name, section)
    section.allow("call", "directions", "range")
    call = section.text("call")
    if "call" in section and not re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", call):
        hint = 'write "package.module:function"'
        section.problem(f'"{call}" does not name a function', "call", hint)
    function = DeclaredFunction(
        iri_of(name, section, prefixes) if ":" in name else name,
        call,
        _directions(section),
        _range(section),
    )
    try:
        FunctionRegistry({}).with_function(function.name, function.scoring())
    except ValueError as error:
        section.problem(str(error))
        return None
    return function


def _installed(name: str, section: Section) -> DeclaredFunction | None:
    """Return a function that another distribution declares; the table says only that it counts."""
    section.allow()
    document = Document(Path(name), "", {})
    try:
        found = _function(name, Section(document, dict(FUNCTIONS[name]), (name,)), {})
        document.raise_problems()
    except UserError as error:
        section.problem(str(error))
        return None
    return found


def _directions(section: Section) -> tuple[int, ...]:
    signs = section.numbers("directions")
    if any(sign not in (-1, 0, 1) for sign in signs):
        hint = "one number for each argument: 1 never falls, -1 never rises, 0 may do both"
        section.problem("directions are 1, -1 or 0", "directions", hint)
        return (0,)
    return tuple(int(sign) for sign in signs)


def _range(section: Section) -> tuple[float, float] | None:
    if "range" not in section:
        return None
    limits = section.numbers("range")
    if len(limits) != 2 or not limits[0] <= limits[1]:
        section.problem("a range is the least value and the greatest", "range")
        return None
    return limits[0], limits[1]
