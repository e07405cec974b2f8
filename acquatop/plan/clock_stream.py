"""Streams of the clock's ticks, which say when queries without a window are answered."""

from __future__ import annotations

from acquatop.catalog.catalog import Stream
from connectors.mapping import JsonMapping, Property, Template
from connectors.registry import CLOCK as CONNECTOR
from rspql.passes.read_table import CLOCK

_TICK = "time_ms"


def clock_stream(iri: str) -> Stream | None:
    """Return the stream of a clock's ticks; None for other names.

    >>> clock_stream("urn:acquatop:clock:3000").options
    {'everyMs': '3000'}
    """
    prefix, _, every_ms = iri.rpartition(":")
    if prefix != CLOCK or not every_ms.isdecimal():
        return None
    mapping = JsonMapping(
        Template.parse(f"{CLOCK}:tick:{{{_TICK}}}"),
        _TICK,
        {f"{CLOCK}:time": Property(_TICK, "http://www.w3.org/2001/XMLSchema#integer")},
    )
    return Stream(
        iri=iri,
        connector=CONNECTOR.name,
        options={"everyMs": every_ms},
        mapping=mapping,
        arrivals="distinct",
        lateness_ms=0,
        start_ms=None,
        keys="driver",
    )
