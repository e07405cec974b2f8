"""Tests' queries in engines, many in one, each over a window with one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyoxigraph as ox

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from rspql.diagnostics import QueryError
from tests.support.w3c.manifests import Case, why_not_mapped
from tests.support.w3c.mapping import STREAM, TICK, Mapped, iri_of, mapped
from tests.support.w3c.results import differs

TOGETHER = 20
"""Queries in one engine: each has a process of its own."""

_CATALOG = f"""
[streams."{STREAM.value}"]
connector = "lines"
options = {{ path = "records.ndjson" }}
[streams."{STREAM.value}".mapping]
subject = "urn:w3c:record:{{id}}"
time = "at"
properties = {{ "{TICK.value}" = {{ field = "tick", datatype = "xsd:integer" }} }}
"""


def outcomes(cases: Sequence[Case], folder: Path) -> dict[str, str]:
    """Return what becomes of tests, by their names: ``passes``, or how it does not."""
    found = {case.name: f"not mapped: {why_not_mapped(case)}" for case in cases}
    queries: dict[str, Mapped] = {}
    for case in cases:
        if not why_not_mapped(case):
            try:
                queries[case.name] = mapped(case)
            except QueryError as error:
                found[case.name] = f"refused: {error.diagnostics[0].message}"
    by_name = {case.name: case for case in cases}
    for name, answer in _answers(queries, folder).items():
        found[name] = (
            answer if isinstance(answer, str) else _outcome(answer, by_name[name], queries)
        )
    return found


def _outcome(answer: Answer, case: Case, queries: Mapping[str, Mapped]) -> str:
    assert case.result is not None
    difference = differs(answer, case, queries[case.name].query, iri_of(case.result))
    return "passes" if difference is None else f"differs: {difference}"


def _answers(queries: Mapping[str, Mapped], folder: Path) -> dict[str, Answer | str]:
    """Return the answers of any number of queries."""
    found: dict[str, Answer | str] = {}
    names = list(queries)
    for start in range(0, len(names), TOGETHER):
        together = folder / str(start)
        together.mkdir()
        found |= _together({n: queries[n] for n in names[start : start + TOGETHER]}, together)
    return found


def _together(queries: Mapping[str, Mapped], folder: Path) -> dict[str, Answer | str]:
    """Return the only answer of each query, or why it has none, in a few words."""
    found: dict[str, Answer | str] = {}
    graphs = {iri: file for each in queries.values() for iri, file in each.graphs.items()}
    with Engine(
        _catalog(folder, graphs),
        runtime="local",
        until_end=True,
        autostart=False,
        clock=lambda: 0.0,
    ) as engine:
        handles = {}
        for name, each in queries.items():
            try:
                handles[name] = engine.register(each.text)
            except QueryError as error:
                found[name] = f"refused: {error.diagnostics[0].message}"
        engine.start()
        for name, handle in handles.items():
            got = list(handle)
            found[name] = got[0] if len(got) == 1 else f"{len(got)} answers"
    return found


def _catalog(folder: Path, graphs: Mapping[str, Path]) -> Catalog:
    """Return a catalog of the stream and of static graphs."""
    (folder / "records.ndjson").write_text('{"id": "a", "at": 1000, "tick": 1}\n', "utf-8")
    parts = [_CATALOG]
    for number, (iri, file) in enumerate(graphs.items()):
        # The graphs' relative IRIs are those of the tests.
        triples = ox.parse(path=file, base_iri=iri)
        ox.serialize(triples, folder / f"{number}.nt", ox.RdfFormat.N_TRIPLES)
        parts.append(f'[graphs."{iri}"]\npath = "{number}.nt"')
    (folder / "catalog.toml").write_text("\n".join(parts), "utf-8")
    return Catalog.load(folder / "catalog.toml")
