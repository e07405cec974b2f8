"""Catalog of the sources, remotes and files that the IRIs of queries stand for.

A catalog is a TOML file; ``docs/catalog.md`` lists every key. Only what it names is ever read or
contacted. ``${NAME}`` in a value stands for an environment variable.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.catalog.connector_options import implied_options, read_options
from acquatop.catalog.evaluation_limits import DEFAULT_LIMITS, EvaluationLimits, read_limits
from acquatop.catalog.functions import DeclaredFunction, read_functions
from acquatop.catalog.graphs import StaticGraph, format_of
from acquatop.catalog.mappings import read_mapping
from acquatop.catalog.objects import WELL_KNOWN, iri_of
from acquatop.catalog.remotes import KINDS, SparqlSource
from acquatop.catalog.section import CatalogError, Document, Section
from acquatop.catalog.services import SOLUTIONS, Refresh, Service, read_service
from acquatop.catalog.spark_settings import SparkSettings, read_spark
from acquatop.plugins import CONNECTORS, RANKERS, STRATEGIES
from connectors.contract import RecordDecoder
from connectors.instants import EARLIEST_MS, LATEST_MS
from replica.rankers import RankerRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "KINDS",
    "SOLUTIONS",
    "Catalog",
    "CatalogError",
    "Refresh",
    "Service",
    "Stream",
]

ARRIVALS = ("all", "latest", "distinct")
KEPT_IN = ("driver", "executors")
KEYS_IN = ("auto", *KEPT_IN)
BUCKETS = 16
AHEAD_MS = 3_600_000
"""Default limit: one record with a time far in the future would make all that follow late."""
OFF = "off"
DEAD_LETTERS_BYTES = 64 << 20


@dataclass(frozen=True)
class Stream:
    """RDF stream: the source of its records, and their mapping to RDF.

    ``idle_ms`` is the time without records after which time advances by itself. ``late_path`` is
    the file that keeps late records. ``ahead_ms`` is how far a live record may be ahead of the
    clock. Each of them is None if unused. ``keys`` says where the aggregates of queries' keys are
    kept, ``buckets`` into how many parts they are cut in the executors. ``small_batches`` says
    where they are read on Spark. ``strategy`` keeps the candidates of queries without a remote;
    None if it is chosen by cost. ``approximate`` is the share of answers over windows that count
    that may miss a result; None if none may. ``dead_letters_path`` is the file that keeps unusable
    records, up to ``dead_letters_bytes``. ``frame`` has the rows if the program gives them.
    ``query`` is the name of the query whose answers the stream is made of; None for a stream of the
    catalog's.
    """

    iri: str
    connector: str
    options: Mapping[str, str] = field(repr=False)
    mapping: RecordDecoder
    arrivals: str
    lateness_ms: int
    start_ms: int | None
    idle_ms: int | None = None
    late_path: str | None = None
    ahead_ms: int | None = None
    keys: str = "auto"
    buckets: int = BUCKETS
    small_batches: str = "driver"
    strategy: str | None = None
    approximate: float | None = None
    dead_letters_path: str | None = None
    dead_letters_bytes: int = DEAD_LETTERS_BYTES
    frame: DataFrame | None = field(default=None, repr=False, compare=False)
    query: str | None = None


@dataclass(frozen=True)
class Catalog:
    """Prefixes, streams, services, graphs and functions that queries may name, limits of
    evaluations, and settings for a Spark that an engine starts.

    ``unreadable`` are names of queries whose answers are no stream, with the reason. If it
    ``asks_for_records``, SPARQL endpoints are asked for triple patterns alone, as others are.
    """

    prefixes: Mapping[str, str]
    streams: Mapping[str, Stream]
    services: Mapping[str, Service]
    graphs: Mapping[str, StaticGraph] = field(default_factory=dict)
    evaluation: EvaluationLimits = DEFAULT_LIMITS
    spark: SparkSettings = field(default_factory=SparkSettings)
    functions: Mapping[str, DeclaredFunction] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    asks_for_records: bool = False

    @property
    def records(self) -> frozenset[str]:
        """IRIs of the services that have records instead of SPARQL, or are asked as if so.

        What a feed says are records, too.
        """
        return frozenset(
            iri
            for iri, service in self.services.items()
            if self.asks_for_records
            or service.feed is not None
            or not isinstance(service.source, SparqlSource)
        )

    @staticmethod
    def load(
        path: str | Path,
        *,
        variables: Mapping[str, str] | None = None,
        rankers: RankerRegistry = RANKERS,
    ) -> Catalog:
        """Read a catalog; :class:`CatalogError` names file, line and key of each problem.

        ``variables`` are the values of ``${NAME}``, by default the environment; ``rankers`` are
        those that policies may name.
        """
        file = Path(path)
        try:
            text = file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogError(f"{file}: the catalog cannot be read: {_reason(error)}") from None
        return Catalog.parse(text, file=file, variables=variables, rankers=rankers)

    @staticmethod
    def parse(
        text: str,
        *,
        file: Path,
        variables: Mapping[str, str] | None = None,
        rankers: RankerRegistry = RANKERS,
    ) -> Catalog:
        """Parse a catalog's text; relative paths in it start from the folder of ``file``."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CatalogError(f"{file}: this is not TOML: {error}") from None
        document = Document(file, text, os.environ if variables is None else variables)
        catalog = read_catalog(Section(document, data, ()), rankers)
        document.raise_problems()
        return catalog


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"


def read_catalog(root: Section, rankers: RankerRegistry) -> Catalog:
    """Return what a catalog's tables describe; problems are noted there."""
    root.allow("prefixes", "streams", "services", "graphs", "functions", "evaluation", "spark")
    declared = {name: root.section("prefixes").text(name) for name in root.section("prefixes")}
    prefixes = {**WELL_KNOWN, **declared}
    streams = [
        _stream(name, section, prefixes) for name, section in root.section("streams").tables()
    ]
    services = [
        read_service(iri_of(name, section, prefixes), section, prefixes, tuple(rankers))
        for name, section in root.section("services").tables()
    ]
    graphs = [_graph(name, section, prefixes) for name, section in root.section("graphs").tables()]
    _check_aside(root, streams)
    return Catalog(
        prefixes=prefixes,
        streams={stream.iri: stream for stream in streams},
        services={service.iri: service for service in services},
        graphs={graph.iri: graph for graph in graphs},
        evaluation=read_limits(root.section("evaluation")),
        spark=read_spark(root.section("spark")),
        functions=read_functions(root.section("functions"), prefixes),
    )


def _check_aside(root: Section, streams: Sequence[Stream]) -> None:
    """Note files with two purposes: after a crash, each purpose must truncate only its own data."""
    uses: dict[str, str] = {}
    for stream in streams:
        for path, what in ((stream.late_path, "late"), (stream.dead_letters_path, "bad")):
            use = f"what is {what} on <{stream.iri}>"
            if path is not None and uses.setdefault(path, use) != use:
                root.problem(f"{use} and {uses[path]} have the same file")


def _stream(name: str, section: Section, prefixes: Mapping[str, str]) -> Stream:
    section.allow(
        "connector",
        "options",
        "mapping",
        "arrivals",
        "lateness",
        "start_ms",
        "idle",
        "late",
        "ahead",
        "keys",
        "buckets",
        "small_batches",
        "strategy",
        "approximate",
        "dead_letters",
        "dead_letters_bytes",
    )
    connector = section.choice("connector", tuple(CONNECTORS))
    arrivals = section.choice("arrivals", ARRIVALS, default="all")
    mapping = read_mapping(section.section("mapping", required=True), prefixes, connector, arrivals)
    return Stream(
        iri=iri_of(name, section, prefixes),
        connector=connector,
        options={**read_options(connector, section.section("options")), **implied_options(mapping)},
        mapping=mapping,
        arrivals=arrivals,
        lateness_ms=section.duration_ms("lateness", default=0),
        start_ms=section.whole("start_ms", default=None, least=EARLIEST_MS, most=LATEST_MS),
        idle_ms=section.duration_ms("idle", default=0, zero=False) or None,
        late_path=section.path("late") if "late" in section else None,
        ahead_ms=_ahead_ms(section),
        keys=_kept_in(section, arrivals),
        buckets=section.whole("buckets", default=BUCKETS, least=1),
        small_batches=section.choice("small_batches", KEPT_IN, default="driver"),
        strategy=_strategy(section, arrivals),
        approximate=_accepted_error(section, arrivals),
        dead_letters_path=section.path("dead_letters") if "dead_letters" in section else None,
        dead_letters_bytes=section.whole("dead_letters_bytes", default=DEAD_LETTERS_BYTES, least=1),
    )


def _ahead_ms(section: Section) -> int | None:
    """Return how far a live record may be ahead of the clock; None if there is no limit."""
    if "ahead" in section and section.written("ahead") == OFF:
        return None
    return section.duration_ms("ahead", default=AHEAD_MS, zero=False)


def _kept_in(section: Section, arrivals: str) -> str:
    """Return the place of keys; executors cannot withdraw data that newer records replace."""
    keys = section.choice("keys", KEYS_IN, default="auto")
    if keys == "executors" and arrivals != "distinct":
        hint = (
            'set arrivals = "distinct" if every record has a subject of its own, or leave keys out'
        )
        section.problem(
            f'keys = "executors" needs a stream whose arrivals are distinct, not "{arrivals}"',
            "keys",
            hint,
        )
    return keys


def _strategy(section: Section, arrivals: str) -> str | None:
    """Return the strategy asked for; not all can withdraw data that is replaced."""
    if "strategy" not in section:
        return None
    strategy = section.choice("strategy", tuple(STRATEGIES))
    if strategy in STRATEGIES and arrivals != "distinct":
        hint = (
            'set arrivals = "distinct" if every record has a subject of its own, or leave '
            "strategy out"
        )
        section.problem(
            f'a strategy needs a stream whose arrivals are distinct, not "{arrivals}"',
            "strategy",
            hint,
        )
    return strategy


def _accepted_error(section: Section, arrivals: str) -> float | None:
    """Return the share of answers that may miss a result; None if none may."""
    if "approximate" not in section:
        return None
    table = section.section("approximate")
    table.allow("error")
    error = float(table.numbers("error")[0])
    if not 0 < error < 1:
        table.problem('"error" must be between 0 and 1', "error")
    if arrivals != "distinct":
        section.problem(
            f'approximate needs a stream whose arrivals are distinct, not "{arrivals}"',
            "approximate",
        )
    return error


def _graph(name: str, section: Section, prefixes: Mapping[str, str]) -> StaticGraph:
    section.allow("path")
    graph = StaticGraph(iri=iri_of(name, section, prefixes), path=section.path("path"))
    if "path" in section and format_of(graph.path) is None:
        hint = "known are .ttl, .nt, .rdf and .n3"
        section.problem(
            f'"{Path(graph.path).name}" does not end as files with one graph do', "path", hint
        )
    return graph
