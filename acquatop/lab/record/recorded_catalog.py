"""Catalog of a recording: its files replace the stream's source and the remotes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from acquatop.catalog.catalog import Catalog, Stream
from acquatop.catalog.functions import DeclaredFunction
from acquatop.catalog.graphs import StaticGraph
from acquatop.catalog.services import AUTO
from acquatop.lab.record import remote_log as remote_tape
from acquatop.lab.record.recorded_patterns import ServiceTable
from acquatop.lab.record.table_column import TableColumn
from connectors.mapping import SUBJECT, TIME
from replica.remotes.values import XSD


def catalog_text(
    catalog: Catalog,
    streams: Mapping[str, Stream],
    tables: Mapping[str, ServiceTable],
    graphs: Iterable[StaticGraph] = (),
) -> str:
    """Return a catalog for a query whose streams, services and graphs are files.

    It has the prefixes and functions of the recorded ``catalog``, and nothing of where the data
    come from.
    """
    names = [f"{json.dumps(name)} = {_text(iri)}" for name, iri in catalog.prefixes.items()]
    sections = ["[prefixes]", *names]
    for file, stream in streams.items():
        sections += ["", *_stream(stream, file)]
    for file, table in tables.items():
        sections += ["", *_service(table, file)]
    for graph in graphs:
        sections += ["", f"[graphs.{_text(graph.iri)}]", f"path = {_text(graph.path)}"]
    for function in catalog.functions.values():
        sections += ["", *_function(function)]
    return "\n".join(sections) + "\n"


def _stream(stream: Stream, file: str) -> Iterator[str]:
    table = f"streams.{_text(stream.iri)}"
    yield f"[{table}]"
    yield 'connector = "lines"'
    yield f"options = {{ path = {_text(file)} }}"
    yield f"arrivals = {_text(stream.arrivals)}"
    if stream.lateness_ms:
        yield f'lateness = "{stream.lateness_ms}ms"'
    if stream.start_ms is not None:
        yield f"start_ms = {stream.start_ms}"
    yield from ("", f"[{table}.mapping]", f'subject = "{{{SUBJECT}}}"', f'time = "{TIME}"')
    yield from ("", f"[{table}.mapping.properties]")
    for iri, each in stream.mapping.properties.items():
        yield (
            f"{_text(iri)} = {{ field = {_text(stream.mapping.column(iri))}, datatype = "
            f"{_text(each.datatype)} }}"
        )


def _function(function: DeclaredFunction) -> Iterator[str]:
    yield f"[functions.{_text(function.name)}]"
    yield f"call = {_text(function.call)}"
    yield f"directions = {list(function.directions)}"
    if function.range is not None:
        yield f"range = {list(map(float, function.range))}"


def _service(recorded: ServiceTable, file: str) -> Iterator[str]:
    service = recorded.service
    table, refresh = f"services.{_text(service.iri)}", service.refresh
    yield f"[{table}]"
    yield 'remote = "table"'
    yield f"path = {_text(file)}"
    yield f'time = "{remote_tape.TIME}"'
    yield f"load = {_flag(service.load)}"
    if service.solutions == "many":
        yield 'solutions = "many"'
    yield f"block_size = {service.block_size}"
    if service.capacity is not None:
        yield f"capacity = {service.capacity}"
    if service.ask_absent_after:
        yield f'ask_absent_after = "{round(1000 * service.ask_absent_after)}ms"'
    if service.limits:
        yield f"limits = [{', '.join(_text(str(limit)) for limit in service.limits)}]"
    yield from ("", f"[{table}.mapping]", f'key = "{{{remote_tape.SUBJECT}}}"')
    yield from ("", f"[{table}.mapping.properties]")
    for column in recorded.of_stars:
        yield f"{_text(column.predicate)} = {_field(column)}"
    for number, pattern in recorded.texts.items():
        place = f"{table}.mapping.patterns.{_text(pattern)}"
        yield from ("", f"[{place}]", f"key = {_text(recorded.keys[number])}")
        yield from ("", f"[{place}.variables]")
        for column in recorded.parts[number]:
            yield f"{_text(column.variable or '')} = {_field(column)}"
    yield from ("", f"[{table}.refresh]", f"policy = {_text(refresh.policy)}")
    yield f"n = {_text(AUTO) if refresh.chooses_n else refresh.n}"
    yield f"refill = {_flag(refresh.refill)}"
    yield from (f"items = {refresh.budget.items}", f"requests = {refresh.budget.requests}")
    yield f'deadline = "{round(1000 * refresh.budget.seconds)}ms"'
    yield f"bank = {{ items = {refresh.bank.items}, requests = {refresh.bank.requests} }}"


def _field(column: TableColumn) -> str:
    datatype = column.datatype or XSD + "integer"
    return f"{{ field = {_text(column.field)}, datatype = {_text(datatype)} }}"


def _text(text: str) -> str:
    """Return a text in TOML's notation: JSON's, except for surrogates, which do not occur here."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _flag(value: bool) -> str:
    return str(value).lower()
