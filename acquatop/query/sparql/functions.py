"""Functions that a SPARQL engine lacks, under the IRIs by which queries call them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from pyoxigraph import Literal, NamedNode, Triple

from acquatop.query.sparql.template import Term, text_of
from replica.terms import number_of
from rspql.passes.plan_windowed import OWN_FUNCTIONS
from rspql.scoring import FunctionRegistry
from rspql.scoring.functions import ScoringFunction

EngineFunction = Callable[..., Term | Triple | None]
"""Function that the engine calls with terms; None is an error."""


def engine_functions(functions: FunctionRegistry) -> dict[NamedNode, EngineFunction]:
    """Return a registry's functions under all IRIs by which a plan may call them.

    They take numbers of any datatype and return doubles; other arguments are an error.

    >>> from rspql.scoring import DEFAULT_FUNCTIONS
    >>> sqrt = engine_functions(DEFAULT_FUNCTIONS)[NamedNode("http://www.w3.org/2005/xpath-functions/math#sqrt")]
    >>> sqrt(Literal(9)).value, sqrt(Literal("nine"))
    ('3', None)
    """
    found: dict[NamedNode, EngineFunction] = {}
    for name in functions:
        function = functions[name]
        called = [name if ":" in name else OWN_FUNCTIONS + name.lower(), function.sparql or ""]
        found.update({NamedNode(iri): _engine_function(function) for iri in called if ":" in iri})
    return found


def _engine_function(function: ScoringFunction) -> EngineFunction:
    def call(*terms: Term) -> Term | None:
        if not function.takes(len(terms)):
            return None
        arguments = (np.array([number_of(text_of(term))]) for term in terms)
        with np.errstate(all="ignore"):
            value = float(function.apply(*arguments)[0])
        return None if math.isnan(value) else Literal(value)

    return call
