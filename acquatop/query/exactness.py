"""Digits of scores: do doubles hold all that SPARQL's integers and decimals have?"""

from __future__ import annotations

import math
from collections.abc import Mapping

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from replica.number_size import NumberSize
from replica.view import KnownValues
from rspql.ast import XSD
from rspql.plan import Score
from rspql.scoring.capacity import DOUBLES, LIMIT, Digits, capacity, is_exact
from rspql.scoring.kinds import NumberKind

REASON = "scores have more digits than are computed: in SPARQL others could be among the best"
_ANY = Digits(math.inf, math.inf, False, NumberKind.WHOLE | NumberKind.DECIMAL)

NOT_EXACT = Certificate(Status.APPROXIMATE, REASON, math.inf)

Extents = Mapping[str, Digits]
"""Sizes of a window's numbers, by stream variable."""


def extents_of(greatest: Mapping[str, tuple[float, float]]) -> Extents:
    """Return the sizes of aggregates, given greatest magnitudes and denominators of exact ones."""
    return {
        name: Digits(
            size, scale, scale == 1.0, NumberKind.WHOLE if scale == 1.0 else NumberKind.DECIMAL
        )
        for name, (size, scale) in greatest.items()
    }


class Exactness:
    """Test of a query's scores, given the sizes of the numbers that they are made of."""

    def __init__(self, score: Score, store: KnownValues | None) -> None:
        self._score = score
        self._store = store
        self._expressions = [
            each for each in (score.expression, score.condition) if each is not None
        ]
        of_stream = {name: self.digits(name, math.inf) for name in score.stream_variables}
        of_remote = dict.fromkeys(score.remote_variables, _ANY)
        self.is_certain = self._are_exact({**of_stream, **of_remote})
        """True if the scores are exact whatever the numbers."""

    @property
    def capacity(self) -> float:
        """Magnitude up to which integers of the stream alone give exact scores."""
        datatypes = {name: self._score.datatypes[name] for name in self._score.stream_variables}
        return capacity(self._expressions, datatypes, self._score.functions)

    def digits(self, name: str, greatest: float) -> Digits:
        """Return the digits of a stream variable with values up to a magnitude."""
        datatype = self._score.datatypes.get(name)
        if datatype == XSD + "double":
            return DOUBLES
        return Digits(greatest, kind=NumberKind.WHOLE) if datatype == XSD + "integer" else _ANY

    def checked(self, certificate: Certificate, extents: Extents) -> Certificate:
        """Return a certificate, approximate if the scores may not be SPARQL's."""
        if certificate.status is Status.APPROXIMATE or self._holds(extents):
            return certificate
        return NOT_EXACT

    def _holds(self, extents: Extents) -> bool:
        if any(
            each.kind is not NumberKind.DOUBLE and each.greatest >= LIMIT
            for each in extents.values()
        ):
            return False
        if self.is_certain:
            return True
        names = self._score.remote_variables if self._store is not None else ()
        remote = {name: _digits_of(self._store.size(name)) for name in names if self._store}
        doubles = dict.fromkeys(self._score.stream_variables, DOUBLES)
        return self._are_exact({**doubles, **extents, **remote})

    def _are_exact(self, variables: Extents) -> bool:
        return all(is_exact(each, variables, self._score.functions) for each in self._expressions)


def _digits_of(size: NumberSize) -> Digits:
    kind = NumberKind.DECIMAL if size.places else NumberKind.WHOLE
    kind |= NumberKind.SINGLE if size.has_single else NumberKind(0)
    kind |= NumberKind.DOUBLE if size.has_double else NumberKind(0)
    scale = float(10**size.places)
    is_same = not (size.has_single or size.has_double) or not size.places
    return Digits(size.greatest * scale, scale, is_same, kind)
