"""Histories of real runs as lines of JSON, and their judgement by the simulation's checker.

A line has a ``kind``: ``stream``, ``service`` and ``query`` say what ran, ``sent`` is one record,
``killed`` the end of a life, ``asked`` one request and its reply, ``holds`` a sink's file in the
end, ``right`` the same file after a run without kills.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from rdflib import Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row, Shown, Status
from acquatop.answer.sinks.naming import safe_name
from replica.budget import NOTHING, Spending
from tests.support.simulation.checker import Verdict, judge
from tests.support.simulation.remote import Call, Said, ServiceSpec, SimulatedService
from tests.support.simulation.scenario import QuerySpec, Record, Scenario, StreamSpec
from tests.support.simulation.schedule import Schedule
from tests.support.simulation.world import History, Told


@dataclass
class Run:
    """What is known of a real run, for its history.

    ``values`` are those of each service's keys, which never change. ``names`` maps the variables
    of a query to those of its specification, and ``prefix`` stands before the values of some.
    """

    recording: bool
    streams: Sequence[StreamSpec]
    queries: Sequence[QuerySpec]
    services: Sequence[ServiceSpec] = ()
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    prefix: Mapping[str, str] = field(default_factory=dict)
    killed: Sequence[str] = ()
    asked: Sequence[tuple[int, str, Sequence[str]]] = ()
    """Requests in their order: life, service, keys."""
    holds: Mapping[str, bytes] = field(default_factory=dict)
    right: Mapping[str, bytes] = field(default_factory=dict)


def write_history(path: Path, run: Run) -> None:
    """Write the history of a run."""
    lines = (json.dumps(line) + "\n" for line in _lines(run))
    path.write_text("".join(lines))


def _lines(run: Run) -> Iterator[Mapping[str, Any]]:
    yield {"kind": "run", "recording": run.recording}
    for stream in run.streams:
        yield {
            "kind": "stream",
            "name": stream.name,
            "arrivals": stream.arrivals,
            "lateness_ms": stream.lateness_ms,
        }
        for each in stream.records:
            said = {"t": each.t, "id": each.id, "user": each.user, "p": each.p}
            yield {"kind": "sent", "stream": stream.name, **said}
    for service in run.services:
        values = {key: changes[-1][1] for key, changes in service.timeline.items()}
        yield {
            "kind": "service",
            "name": service.name,
            "values": values,
            "items": service.items,
            "requests": service.requests,
            "strict": service.strict,
        }
    for query in run.queries:
        names = run.names.get(query.name, {})
        prefix = {name: run.prefix[name] for name in names if name in run.prefix}
        yield {"kind": "query", "names": names, "prefix": prefix, "spec": asdict(query)}
    for number, how in enumerate(run.killed):
        yield {"kind": "killed", "life": number, "how": how}
    known = {each.name: each.timeline for each in run.services}
    for life, name, keys in run.asked:
        replies = {key: known[name][key][-1][1] for key in keys if key in known[name]}
        yield {"kind": "asked", "life": life, "service": name, "keys": keys, "replies": replies}
    for kind, files in (("holds", run.holds), ("right", run.right)):
        for file, content in files.items():
            yield {"kind": kind, "file": file, "text": content.decode()}


def judge_recorded(path: Path) -> Verdict:
    """Return the verdict on the history in a file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    history = _history(lines, "holds")
    right = _history(lines, "right")
    return judge(history, right if right.files else None)


def _of(lines: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def _history(lines: Sequence[Mapping[str, Any]], files: str) -> History:
    streams = tuple(
        StreamSpec(
            each["name"],
            each["arrivals"],
            each["lateness_ms"],
            None,
            tuple(_record(line) for line in _of(lines, "sent") if line["stream"] == each["name"]),
        )
        for each in _of(lines, "stream")
    )
    services = tuple(
        ServiceSpec(
            each["name"],
            {key: ((0.0, value),) for key, value in each["values"].items()},
            items=each["items"],
            requests=each["requests"],
            strict=each["strict"],
        )
        for each in _of(lines, "service")
    )
    said = _of(lines, "query")
    queries = tuple(_query(each["spec"]) for each in said)
    recording = all(each["recording"] for each in _of(lines, "run"))
    killed = [each["how"] for each in _of(lines, "killed")]
    scenario = Scenario(
        0, recording, True, True, streams, services, queries, (), False, moves_cuts=False
    )
    history = History(scenario, ends=[*killed, "end"])
    history.files = {each["file"]: each["text"].encode() for each in _of(lines, files)}
    schedule = Schedule(Random(0))
    history.services = {
        each.name: SimulatedService(each, schedule, Random(0), life=len(killed))
        for each in services
    }
    for number, each in enumerate(_of(lines, "asked")):
        service = history.services[each["service"]]
        service.calls.append(Call(0.0, tuple(each["keys"]), each["life"], number))
        for key in each["keys"]:
            reply = Said(0.0, 0.0, each["replies"].get(key))
            service.said.setdefault(key, []).append(reply)
    faults = frozenset(how.partition(" #")[0] for how in killed)
    history.read = {stream.iri: len(stream.records) for stream in streams}
    for each, query in zip(said, queries, strict=True):
        content = history.files.get(f"lines/{safe_name(query.name)}.ndjson", b"")
        for line in content.splitlines():
            document = json.loads(line)
            history.told.append(
                Told(
                    _answer(document, each["names"], each["prefix"]),
                    json.dumps(document, sort_keys=True),
                    len(killed),
                    len(history.told),
                    0.0,
                    0.0,
                    history.read,
                    {},
                    repeated=False,
                    faults=faults,
                )
            )
    return history


def _record(line: Mapping[str, Any]) -> Record:
    return Record(b"", 0.0, line["t"], line["id"], line["user"], line["p"])


def _query(said: Mapping[str, Any]) -> QuerySpec:
    shown = said["projection"]
    query = QuerySpec(**{**said, "streams": tuple(said["streams"])})
    return replace(query, projection=None if shown is None else tuple(shown))


def _answer(
    document: Mapping[str, Any], names: Mapping[str, str], prefix: Mapping[str, str]
) -> Answer:
    """Return an answer as a file has it, with the variables of its specification."""
    window = document["window"]
    rows = tuple(
        Row(
            each["rank"],
            {
                names.get(name, name): _term(term, prefix.get(name, ""))
                for name, term in each["bindings"].items()
            },
            each["score"],
            None,
            None,
        )
        for each in document["results"]
    )
    return Answer(
        query=document["query"],
        window=window["index"],
        opens_ms=_instant(window["opens"]),
        closes_ms=_instant(window["closes"]),
        rows=rows,
        status=Status(document["status"]),
        reason=document["reason"],
        spending=Spending(),
        budget=NOTHING,
        refreshed=(),
        failure=None,
        counts=Counts(),
        latency_seconds=0.0,
        emitted_ms=0,
        windows=tuple(
            Shown(each["name"], each["index"], _instant(each["opens"]), _instant(each["closes"]))
            for each in document.get("windows", ())
        ),
        bound=document.get("bound"),
    )


def _term(said: Mapping[str, str], prefix: str) -> Identifier:
    if prefix:
        return URIRef(prefix + said["value"])
    if said["type"] == "uri":
        return URIRef(said["value"])
    datatype = said.get("datatype")
    return Literal(said["value"], datatype=None if datatype is None else URIRef(datatype))


def _instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
