"""Shapes of the events of the latency test: their triples, and the question that all answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.spark_bench.data import NS

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


class Event(NamedTuple):
    """Event: its time, its key, its value, and its number."""

    time: int
    key: int
    value: int
    number: int


Triple = tuple[str, str, str | tuple[str, str]]
"""Subject and predicate, and an IRI or the text and datatype of a literal."""


@dataclass(frozen=True)
class Shape:
    """Shape of events: the pattern they match, and the scores of a window's events.

    ``name`` is that of an argument, ``title`` that in tables. ``who`` is the variable of the ranked
    things. ``greatest`` bounds the values. ``catalog`` has the subject and the properties of a
    record.
    """

    name: str
    title: str
    pattern: str
    who: str
    greatest: int
    catalog: str
    triples: Callable[[Event], tuple[Triple, ...]]
    scores: Callable[[Iterable[Event]], dict[int, int]]

    @property
    def is_summed(self) -> bool:
        """True if values are summed per key."""
        return self.who == "key"


def _value(subject: str, event: Event) -> Triple:
    return subject, f"{NS}value", (str(event.value), INTEGER)


def _of_key(event: Event) -> tuple[Triple, ...]:
    return (_value(f"{NS}key/{event.key}", event),)


def _of_reading(event: Event) -> tuple[Triple, ...]:
    return (_value(f"{NS}event/{event.number}", event),)


def _of_both(event: Event) -> tuple[Triple, ...]:
    subject = f"{NS}event/{event.number}"
    return (subject, f"{NS}of", f"{NS}key/{event.key}"), _value(subject, event)


def _sums(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    totals: dict[int, int] = {}
    for key, value in pairs:
        totals[key] = totals.get(key, 0) + value
    return totals


def _of_each_triple(events: Iterable[Event]) -> dict[int, int]:
    return _sums({(event.key, event.value) for event in events})


def _of_each_event(events: Iterable[Event]) -> dict[int, int]:
    return _sums((event.key, event.value) for event in events)


_VALUE = '":value" = { field = "value", datatype = "xsd:integer" }'
_OF = f'":of" = {{ field = "key", datatype = "{NS}key/{{}}" }}'

KEYED = Shape(
    "keyed",
    "SUM per key, one triple an event",
    "?key :value ?value",
    "key",
    100_000,
    f'subject = "{NS}key/{{key}}"\nproperties = {{ {_VALUE} }}',
    _of_key,
    _of_each_triple,
)
"""Triples about keys. Equal pairs of key and value in a window are one, as in any RDF graph."""

READINGS = Shape(
    "readings",
    "greatest value, one triple an event",
    "?event :value ?value",
    "event",
    1_000_000_000,
    f'subject = "{NS}event/{{event}}"\nproperties = {{ {_VALUE} }}',
    _of_reading,
    lambda events: {event.number: event.value for event in events},
)
"""Events with a value each."""

PAIRS = Shape(
    "pairs",
    "SUM per key, two triples an event",
    "?event :of ?key ; :value ?value",
    "key",
    100_000,
    f'subject = "{NS}event/{{event}}"\nproperties = {{ {_OF}, {_VALUE} }}',
    _of_both,
    _of_each_event,
)
"""Events with a key and a value each."""

BY_NAME = {shape.name: shape for shape in (KEYED, READINGS, PAIRS)}
"""Shapes by their names."""
