"""Brute force for the cases of ``fixtures/answers``: each window built anew from the files,
queried by pyoxigraph.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Stream
from acquatop.catalog.remotes import TableSource
from acquatop.catalog.services import Service
from acquatop.instants import instant_text
from connectors.mapping import JsonMapping, Property, Template
from replica.remotes.values import IriTemplate
from rspql import ast
from rspql.ast import rewritten
from rspql.compiler import compile_query
from rspql.plan import TopKPlan, WindowedPlan
from rspql.printer import query_text
from tests.support.answer_cases import Run

XSD = "http://www.w3.org/2001/XMLSchema#"
REMOTE = "urn:remote:"
_LATEST_MS = 253_402_300_799_999
_NUMBERS = {f"{XSD}{name}" for name in ("integer", "decimal", "double")}


def contradictions(run: Run) -> list[str]:
    """Return which answers are wrong, of those that brute force can judge.

    These are exact answers, and certified ones if the remote never changes, of RSTREAM, over lines
    of JSON that are read at once (what is cut into batches may be late), but for DESCRIBE and
    static graphs.
    """
    return [
        f"{query.name}: the {answer.status} answer of window {answer.window} is wrong"
        for query in run.queries
        if (world := _World.of(run, query.text)).is_known
        for answer in run.answers[query.name]
        if world.is_sure_of(answer) and not world.confirms(answer)
    ]


@dataclass(frozen=True)
class Record:
    """Statement of a line about a subject, with its time."""

    time_ms: int
    subject: str
    triples: tuple[ox.Triple, ...]


@dataclass(frozen=True)
class _World:
    plan: WindowedPlan
    streams: Mapping[str, Stream]
    services: Mapping[str, Service]

    @staticmethod
    def of(run: Run, text: str) -> _World:
        plan = compile_query(text, prefixes=run.catalog.prefixes)
        return _World(
            plan.windowed if isinstance(plan, TopKPlan) else plan,
            run.catalog.streams,
            run.catalog.services,
        )

    @property
    def is_known(self) -> bool:
        query = self.plan.query
        streams = [self.streams[window.stream.value] for window in self.plan.windows]
        return (
            self.plan.output == "RSTREAM"
            and not (
                query.default_graphs or query.named_graphs or isinstance(query.form, ast.Describe)
            )
            and all(isinstance(stream.mapping, JsonMapping) for stream in streams)
            and not any("maxBytesPerBatch" in stream.options for stream in streams)
        )

    def is_sure_of(self, answer: Answer) -> bool:
        changes = any(
            _source(self.services[part.iri.value]).time is not None for part in self.plan.remotes
        )
        return answer.status is Status.EXACT or (answer.status is Status.CERTIFIED and not changes)

    def confirms(self, answer: Answer) -> bool:
        query = replace(self.plan.query, limit=None, offset=None)
        text = query_text(rewritten(_at_time(answer.closes_ms, query), _without_services))
        results: Any = self._store(answer).query(text)
        if answer.form == "ask":
            return bool(results) == answer.boolean
        if answer.form == "construct":
            return {str(triple) for triple in results} == {
                line.removesuffix(" .") for line in answer.triples
            }
        names = [variable.value for variable in results.variables]
        rows = [
            {name: _term(row[name]) for name in names if row[name] is not None} for row in results
        ]
        first = self.plan.query.offset or 0
        some = slice(first, first + (self.plan.query.limit or len(rows)))
        return _are_the_first(answer, rows, some, self._score(answer))

    def _score(self, answer: Answer) -> str | None:
        """Return the variable by which results are ordered first of all, if it is shown."""
        ordered = [condition.expression for condition in self.plan.query.order[:1]]
        names = [
            answer.score_variable,
            *(each.name for each in ordered if isinstance(each, ast.Variable)),
        ]
        return next((name for name in names if name in answer.variables), None)

    def _store(self, answer: Answer) -> ox.Store:
        store = ox.Store()
        shown = {each.window: (each.opens_ms, each.closes_ms) for each in answer.windows}
        for window in self.plan.windows:
            name, only = window.name.value, (answer.opens_ms, answer.closes_ms)
            opens, closes = shown.get(name, (0, 0)) if shown else only
            graph = ox.NamedNode(name)
            content = _content(self.streams[window.stream.value], opens, closes)
            store.extend(ox.Quad(*triple, graph) for triple in content)
        for part in self.plan.remotes:
            service = self.services[part.iri.value]
            graph = ox.NamedNode(REMOTE + service.iri)
            store.extend(
                ox.Quad(*triple, graph) for triple in _remote(_source(service), answer.closes_ms)
            )
        return store


def _are_the_first(
    answer: Answer, rows: list[dict[str, object]], first: slice, score: str | None
) -> bool:
    """Say whether results are solutions, as many as there should be, with the right scores;
    of equals any will do.
    """
    if score is not None:
        rows = [row for row in rows if score in row]
    shown = [{name: _term(term) for name, term in row.bindings.items()} for row in answer.rows]
    right = rows[first]
    same_scores = score is None or [row.get(score) for row in shown] == [
        row.get(score) for row in right
    ]
    return len(shown) == len(right) and same_scores and _counted(shown) <= _counted(rows)


def _counted(rows: list[dict[str, object]]) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(frozenset(row.items()) for row in rows)


def _term(term: Any) -> object:
    """Return a term of rdflib or of pyoxigraph as what can be compared:
    numbers by their first twelve digits.
    """
    if isinstance(term, URIRef | ox.NamedNode):
        return "iri", str(term).strip("<>")
    if isinstance(term, BNode | ox.BlankNode):
        return "blank"
    language = term.language
    datatype = str(term.datatype or "").strip("<>")
    value = str(term) if isinstance(term, Literal) else term.value
    return (float(f"{float(value):.12g}"), datatype) if datatype in _NUMBERS else (value, language)


def _at_time(closes_ms: int, query: ast.Query) -> ast.Query:
    """Return a query with a time in place of NOW()."""
    now = ast.Literal(instant_text(closes_ms), f"{XSD}dateTime")

    def change(node: ast.Node) -> ast.Node:
        return now if isinstance(node, ast.Call) and node.function == "now" else node

    return rewritten(query, change)


def _without_services(node: ast.Node) -> ast.Node:
    if not isinstance(node, ast.ServicePattern):
        return node
    assert isinstance(node.service, ast.Iri)
    return ast.GraphPattern(ast.Iri(REMOTE + node.service.value), node.group)


# What there is ------------------------------------------------------------------------------------


def _content(stream: Stream, opens: int, closes: int) -> list[ox.Triple]:
    """Return what the records of a window say:
    of each subject only the newest, where that counts.
    """
    inside = [record for record in _records(stream) if opens < record.time_ms <= closes]
    if stream.arrivals == "latest":
        inside = list(
            {each.subject: each for each in sorted(inside, key=lambda each: each.time_ms)}.values()
        )
    return [triple for record in inside for triple in record.triples]


def _records(stream: Stream) -> Iterator[Record]:
    path = Path(stream.options["path"])
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    for number, line in enumerate(lines):
        try:
            yield _record(json.loads(line), stream.mapping, number)
        except (ValueError, TypeError, KeyError):
            continue  # the record is bad


def _record(fields: Any, mapping: Any, number: int) -> Record:
    time_ms = round({"milliseconds": 1, "seconds": 1000}[mapping.time_as] * fields[mapping.time])
    if time_ms > _LATEST_MS:
        raise ValueError("the year is beyond 9999")
    template: Template = mapping.subject
    named = _at(fields, template.field) if template.field else number
    if named is None:
        raise KeyError(template.field)
    subject = ox.NamedNode(f"{template.prefix}{named}{template.suffix}")
    objects = {
        predicate: _object(_at(fields, each.field), each)
        for predicate, each in mapping.properties.items()
    }
    triples = (
        ox.Triple(subject, ox.NamedNode(predicate), found)
        for predicate, found in objects.items()
        if found
    )
    return Record(time_ms, subject.value, tuple(triples))


def _object(value: Any, kind: Property) -> ox.NamedNode | ox.Literal | None:
    if value is None:
        return None
    if kind.template is not None:
        return ox.NamedNode(f"{kind.template.prefix}{value}{kind.template.suffix}")
    expected = {f"{XSD}integer": int, f"{XSD}double": int | float, f"{XSD}string": str}[
        kind.datatype
    ]
    if not isinstance(value, expected):
        raise TypeError(f"{value!r} is no {kind.datatype}")
    return ox.Literal(float(value)) if kind.datatype == f"{XSD}double" else ox.Literal(value)


def _at(fields: Any, path: str) -> Any:
    for name in path.split("."):
        fields = None if fields is None else fields.get(name)
    return fields


def _source(service: Service) -> TableSource:
    assert isinstance(service.source, TableSource)
    return service.source


def _remote(source: TableSource, now_ms: int) -> Iterator[ox.Triple]:
    """Yield what a table's records say at a time: of each key the newest, all of one time."""
    path, key = Path(source.path), source.mapping.key
    lines = path.read_text("utf-8").splitlines()
    rows = (
        [json.loads(line) for line in lines]
        if path.suffix == ".jsonl"
        else list(csv.DictReader(lines))
    )
    dated = [(0 if source.time is None else int(row[source.time]), row) for row in rows]
    newest = {
        row[key.path]: since
        for since, row in sorted(dated, key=lambda each: each[0])
        if since <= now_ms
    }
    for since, row in dated:
        if newest.get(row[key.path]) == since:
            subject = ox.NamedNode(f"{key.prefix}{row[key.path]}{key.suffix}")
            for predicate, field in source.mapping.properties.items():
                yield ox.Triple(
                    subject, ox.NamedNode(predicate), _value(row[field.path], field.datatype)
                )


def _value(value: Any, datatype: str) -> ox.NamedNode | ox.Literal:
    if "{" in datatype:
        template = IriTemplate.parse(datatype)
        return ox.NamedNode(f"{template.prefix}{value}{template.suffix}")
    return ox.Literal(str(value), datatype=ox.NamedNode(datatype))
