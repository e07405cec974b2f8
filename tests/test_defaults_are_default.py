"""Shared helpers of tests leave out what has a default, and the documentation has these defaults.

A default that no test runs with may be unusable without anybody noticing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rdflib.namespace import XSD

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.remotes import RestSource, SparqlSource, SqlSource, TableSource
from connectors.mapping import JsonMapping
from connectors.properties import Property
from connectors.registry import CONNECTORS
from tests.support.minimal_worlds import (
    ITEMS,
    MAPPING,
    NS,
    catalog_of,
    service_table,
    stream_table,
)

ROOT = Path(__file__).parents[1]
KEYS = (
    *("arrivals", "lateness", "idle", "ahead", "keys", "buckets", "strategy", "block_size"),
    "small_batches",
    *("concurrency", "timeout", "solutions", "load", "capacity", "ask_absent_after", "method"),
    *("max_reply_bytes", "policy", "n", "refill", "requests", "deadline", "strict"),
    *("memory_bytes", "result_bytes", "failures"),
)
"""Catalog keys that have defaults."""
_SET = re.compile(rf"^[ \"'f]*({'|'.join(KEYS)}) = [\"{{\dtf]", re.MULTILINE)
FEW = "answers in doubt need few candidates"
REPLACED = "the events are messages of users, of which a newer one replaces the older"
MIXED = "they are drawn at random, from the defaults, too"
EXCEPTIONS = {
    ("crash/world.py", "arrivals"): "its streams have all three kinds",
    ("crash/world.py", "concurrency"): "the order of requests is compared between lives",
    ("crash/world.py", "lateness"): "events come late by less than it, and by more",
    ("crash/world.py", "small_batches"): "on Spark kills must strike jobs, too",
    ("crash/world.py", "timeout"): "no answer may depend on how busy the machine is",
    ("queries/aggregated.py", "arrivals"): "both meanings of arrivals are compared",
    ("queries/aggregated.py", "n"): FEW,
    ("simulation/scenario.py", "block_size"): MIXED,
    ("simulation/scenario.py", "deadline"): MIXED,
    ("queries/documents.py", "arrivals"): "all kinds of arrivals are compared",
    ("queries/record_patterns.py", "arrivals"): "all kinds of arrivals are compared",
    ("queries/remote_shapes.py", "arrivals"): "all kinds of arrivals are compared",
    ("queries/remote_shapes.py", "load"): "both ways are compared",
    ("queries/remote_shapes.py", "n"): "with room for all, every answer has to be exact",
    ("joined_recordings.py", "arrivals"): "each event has a subject of its own",
    ("joined_recordings.py", "lateness"): "events come late by less than it, and by more",
    ("joined_recordings.py", "solutions"): "tables have one for each key, unless they say so",
    ("recorded_shapes.py", "solutions"): "tables have one for each key, unless they say so",
    ("recordings.py", "arrivals"): REPLACED,
    ("scale_out.py", "arrivals"): "its streams have all three kinds",
    ("scale_out.py", "lateness"): "events come up to 290 ms late",
    ("scale_out.py", "load"): "both ways are compared",
    ("scale_out.py", "small_batches"): "it is about executors",
    ("standing.py", "ahead"): "tests count how far ahead records are",
    ("standing.py", "arrivals"): "rows in columns come once",
    ("windowed.py", "arrivals"): "both meanings of arrivals are compared with brute force",
    ("windowed.py", "solutions"): "queries that join with many are what the world is about",
    ("worlds.py", "arrivals"): REPLACED,
    ("worlds.py", "deadline"): "a real server may be slow on a busy machine",
    ("worlds.py", "n"): "the texts of plans that tests compare have it",
}
"""Settings that shared helpers make, and the reasons: ``test_defaults.py`` runs without them."""


ENDPOINT = 'endpoint = "http://127.0.0.1:9/query"'
SQL = 'remote = "sql"\ndriver = "sqlite3"\ntable = "people"'
Row = tuple[str, object, object]
"""Text in the document, present value, and the value that the text means."""


def minimal(service: str = ENDPOINT, mapping: str = "") -> Catalog:
    text = catalog_of(
        stream_table("stream", "lines", path="events"), service_table(service, mapping=mapping)
    )
    return Catalog.parse(text, file=ROOT / "catalog.toml", variables={})


def source_of(service: str, mapping: str) -> object:
    return minimal(service, mapping).services[NS + "people"].source


def documented(heading: str) -> dict[str, str]:
    """Return the defaults in a section's tables of ``docs/catalog.md``, by key."""
    text = (ROOT / "docs" / "catalog.md").read_text("utf-8")
    pattern = rf"^##+ {heading}\n(.+?)(?=^##|\Z)"
    (section,) = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"^\| key \| meaning \| default \|\n((?:\|.+\n)+)", section, re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \|.+\| ([^|]*)\|$", "".join(tables), re.MULTILINE)
    found = {key: said.strip() for key, said in rows}
    return {key: said for key, said in found.items() if said and not said.startswith("required")}


def test_shared_helpers_set_nothing_that_has_a_default_without_a_reason() -> None:
    files = sorted((ROOT / "tests" / "support").rglob("*.py"))
    found = {
        (str(file.relative_to(ROOT / "tests" / "support")), key)
        for file in files
        for key in _SET.findall(file.read_text("utf-8"))
    }
    assert found == set(EXCEPTIONS)


def test_the_minimal_world_sets_no_such_key() -> None:
    text = (ROOT / "tests" / "support" / "minimal_worlds.py").read_text("utf-8")
    assert _SET.findall(text) == []
    assert _SET.findall('n = 2\nrequests = {requests}\narrivals = "all"') == [
        "n",
        "requests",
        "arrivals",
    ]


def of_streams() -> dict[str, Row]:
    stream = minimal().streams[NS + "stream"]
    return {
        "arrivals": ("`all`", stream.arrivals, "all"),
        "lateness": ("none", stream.lateness_ms, 0),
        "idle": ("never", stream.idle_ms, None),
        "late": ("none", stream.late_path, None),
        "dead_letters": ("none", stream.dead_letters_path, None),
        "dead_letters_bytes": ("64 MiB", stream.dead_letters_bytes, 64 << 20),
        "ahead": ("`1h`", stream.ahead_ms, 3_600_000),
        "keys": ("`auto`", stream.keys, "auto"),
        "buckets": ("16", stream.buckets, 16),
        "small_batches": ("`driver`", stream.small_batches, "driver"),
        "strategy": ("the cheaper one", stream.strategy, None),
        "approximate": ("none", stream.approximate, None),
        "start_ms": ("aligned to the epoch", stream.start_ms, None),
    }


def of_mappings() -> dict[str, Row]:
    mapping = minimal().streams[NS + "stream"].mapping
    assert isinstance(mapping, JsonMapping)
    lang = mapping.properties[NS + "lang"]
    return {
        "format": (
            "the [connector's](connectors.md) first",
            CONNECTORS["lines"].formats[0],
            "json",
        ),
        "time_as": ("`milliseconds`", mapping.time_as, "milliseconds"),
        "datatype": ("`xsd:string`", lang.datatype, str(XSD.string)),
        "language": ("none", type(lang), Property),
    }


def of_services() -> dict[str, Row]:
    service = minimal().services[NS + "people"]
    sql = minimal(SQL, MAPPING).services[NS + "people"]
    return {
        "remote": ("`sparql`", service.remote, "sparql"),
        "block_size": ("100", service.block_size, 100),
        "concurrency": ("4", service.concurrency, 4),
        "timeout": ("`10s`", service.timeout_seconds, 10.0),
        "solutions": ("`many`; of records `one`", service.solutions, "many"),
        "load": ("`true`, of `sql` `false`", (service.load, sql.load), (True, False)),
        "capacity": ("no limit", service.capacity, None),
        "limits": ("none", service.limits, ()),
        "ask_absent_after": ("`0s`", service.ask_absent_after, 0.0),
        "feed": ("none", service.feed, None),
        "strategy": ("with a feed the view", service.strategy, None),
    }


def of_remotes() -> dict[str, Row]:
    source = source_of(ENDPOINT, "")
    assert isinstance(source, SparqlSource)
    rest = source_of('remote = "rest"\nendpoint = "http://127.0.0.1:9/{keys}"', MAPPING)
    table = source_of('remote = "table"\npath = "people.jsonl"', MAPPING)
    sql = source_of(SQL, MAPPING)
    assert isinstance(rest, RestSource)
    assert isinstance(sql, SqlSource)
    assert isinstance(table, TableSource)
    return {
        "method": ("`post`", source.method, "post"),
        "auth": ("none", source.address.auth, None),
        "headers": ("none", dict(source.address.headers), {}),
        "user_agent": ("none", source.address.user_agent, ""),
        "max_reply_bytes": ("16 MiB", source.address.longest_reply, 16 << 20),
        "items": ("the reply is the record, or their list", rest.items, ""),
        "time": ("always valid", table.time, None),
        "connection": ("none", sql.target.reveal(), ""),
        "arguments": ("none", dict(sql.arguments), {}),
        "ids": ("`text`", sql.integers, False),
    }


def of_refresh() -> dict[str, Row]:
    refresh = minimal().services[NS + "people"].refresh
    bank = (refresh.bank.items, refresh.bank.requests)
    return {
        "policy": ("`ANY-IMP`", refresh.policy, "ANY-IMP"),
        "n": ("10", refresh.n, 10),
        "refill": ('`false`, with `n = "auto"` `true`', refresh.refill, False),
        "requests": ("as many as `items`", refresh.budget.requests, ITEMS),
        "target": ("spend all", refresh.target, None),
        "deadline": ("`1s`", refresh.budget.seconds, 1.0),
        "bank": ("nothing", bank, (0, 0)),
        "shared": ("`true`", refresh.shared, True),
        "strict": ("`false`", refresh.ledger, None),
        "ledger": ("`acquatop-spending.sqlite` beside the catalog", refresh.ledger, None),
    }


def of_evaluation() -> dict[str, Row]:
    limits = minimal().evaluation
    return {
        "memory_bytes": ("2147483648", limits.memory_bytes, 2147483648),
        "timeout": ("`60s`", limits.seconds, 60.0),
        "result_bytes": ("268435456", limits.result_bytes, 268435456),
        "failures": ("3", limits.failures, 3),
    }


SECTIONS = {
    "`streams`": of_streams,
    "`mapping`": of_mappings,
    "`services`": of_services,
    "Kinds of remotes": of_remotes,
    "`refresh`": of_refresh,
    "`evaluation`": of_evaluation,
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_documented_defaults_are_those_of_a_minimal_catalog(heading: str) -> None:
    rows = SECTIONS[heading]()
    assert {key: said for key, (said, _, _) in rows.items()} == documented(heading)
    assert {key: there for key, (_, there, _) in rows.items()} == {
        key: meant for key, (_, _, meant) in rows.items()
    }
