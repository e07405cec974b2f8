"""Functions that a SPARQL engine lacks, under the IRIs by which queries call them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from pyoxigraph import Literal

from acquatop.ingest.instant_terms import milliseconds
from acquatop.query.sparql.engine import EngineFunction
from acquatop.query.sparql.terms import Term, text_of
from replica.terms import number_of
from rspql.ast import XSD, Call, Iri, Node, walk
from rspql.passes.at_close import decayed
from rspql.passes.look_back import AGE_DECAY
from rspql.passes.plan_windowed import OWN_FUNCTIONS
from rspql.scoring import FunctionRegistry
from rspql.scoring.functions import FloatArray

_LONG_AGO_MS = -(10**18)
"""Instant before which nothing decays any more."""


def called_functions(query: Node, functions: FunctionRegistry) -> dict[str, EngineFunction]:
    """Return those of a registry's functions that a query calls, under their IRIs.

    They take numbers of any datatype and return doubles; other arguments are an error.

    >>> from rspql.parser import parse
    >>> from rspql.scoring import DEFAULT_FUNCTIONS, MATH
    >>> query = parse(f"SELECT (<{MATH}sqrt>(?x) AS ?y) {{ ?s ?p ?x }}")
    >>> ((_, sqrt),) = called_functions(query, DEFAULT_FUNCTIONS).items()
    >>> sqrt(Literal(9)).value, sqrt(Literal("nine"))
    ('3', None)
    """
    calls = (node.function for node in walk(query) if isinstance(node, Call))
    called = {each.value for each in calls if isinstance(each, Iri)}
    found: dict[str, EngineFunction] = {}
    for name in functions:
        function = functions[name]
        iris = {name if ":" in name else OWN_FUNCTIONS + name.lower(), function.sparql or ""}
        found |= {
            iri: engine_function(function.takes, function.apply) for iri in sorted(iris & called)
        }
    return found | ({AGE_DECAY: age_decay} if AGE_DECAY in called else {})


def age_decay(now: Term, instant: Term, half_life: Term) -> Term | None:
    """Return 1 for an instant of now or later, and half as much after each half-life before it.

    The instant is an xsd:dateTime, or a whole number of milliseconds since the epoch.

    >>> age_decay(Literal("1970-01-01T00:00:20Z"), Literal(10_000), Literal(10.0)).value
    '0.5'
    >>> age_decay(Literal("1970-01-01T00:00:01Z"), Literal(-(10**400)), Literal(1.0)).value
    '0'
    """
    terms = (now, instant)
    found = [_milliseconds(each) for each in terms if isinstance(each, Literal)]
    if len(found) < len(terms) or None in found:
        return None
    half_ms = number_of(text_of(half_life)) * 1000
    numbers = (np.array([float(each)]) for each in (*found, half_ms))  # type: ignore[arg-type]
    return Literal(float(decayed(*numbers)[0]))


def _milliseconds(instant: Literal) -> int | None:
    """Return an instant since the epoch; finer parts are cut off."""
    try:
        if instant.datatype.value == XSD + "integer":
            return max(_LONG_AGO_MS, int(instant.value))
        return milliseconds(instant.value)
    except ValueError:
        return None


def engine_function(
    takes: Callable[[int], bool], apply: Callable[..., FloatArray]
) -> EngineFunction:
    """Return a function of terms that calls a function of arrays of doubles."""

    def call(*terms: Term) -> Term | None:
        if not takes(len(terms)):
            return None
        arguments = (np.array([number_of(text_of(term))]) for term in terms)
        with np.errstate(all="ignore"):
            value = float(apply(*arguments)[0])
        return None if math.isnan(value) else Literal(value)

    return call
