"""Shared helpers of tests leave out what has a default, and the documentation has these defaults.

A default that no test runs with may be unusable without anybody noticing.
"""

from __future__ import annotations

import re
from pathlib import Path

from acquatop.catalog.catalog import Catalog
from tests.support.minimal_worlds import ITEMS, NS, catalog_of, service_table, stream_table

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
BUSY = "no answer may depend on how busy the machine is"
FEW = "answers in doubt need few candidates"
REPLACED = "the events are messages of users, of which a newer one replaces the older"
EXCEPTIONS = {
    ("recordings.py", "arrivals"): REPLACED,
    ("recordings.py", "n"): FEW,
    ("scale_out.py", "arrivals"): "its streams have all three kinds",
    ("scale_out.py", "lateness"): "events come up to 290 ms late",
    ("scale_out.py", "load"): "both ways are compared",
    ("scale_out.py", "small_batches"): "it is about executors",
    ("standing.py", "ahead"): "tests count how far ahead records are",
    ("standing.py", "arrivals"): "rows in columns come once",
    ("windowed.py", "arrivals"): "both meanings of arrivals are compared with brute force",
    ("windowed.py", "deadline"): BUSY,
    ("windowed.py", "requests"): "the remote takes two keys per request",
    ("windowed.py", "solutions"): "queries that join with many are what the world is about",
    ("worlds.py", "arrivals"): REPLACED,
    ("worlds.py", "deadline"): BUSY,
    ("worlds.py", "n"): FEW,
    ("worlds.py", "refill"): "tests set it both ways",
    ("worlds.py", "requests"): "the remote takes two keys per request",
}
"""Settings that shared helpers make, and the reasons: ``test_defaults.py`` runs without them."""


def minimal() -> Catalog:
    text = catalog_of(
        stream_table("stream", "lines", path="events"),
        service_table('endpoint = "http://127.0.0.1:9/query"', mapping=""),
    )
    return Catalog.parse(text, file=ROOT / "catalog.toml", variables={})


def documented(heading: str) -> dict[str, str]:
    """Return the defaults in a section's table of ``docs/catalog.md``, by key."""
    text = (ROOT / "docs" / "catalog.md").read_text("utf-8")
    (section,) = re.findall(rf"^## `{heading}`\n(.+?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| .+ \| ([^|]+) \|$", section, re.MULTILINE)
    # Further tables of a section are about parts of it, whose keys may have the same names.
    return {key: default.removeprefix("`").removesuffix("`") for key, default in reversed(rows)}


def test_shared_helpers_set_nothing_that_has_a_default_without_a_reason() -> None:
    files = sorted((ROOT / "tests" / "support").glob("*.py"))
    found = {(file.name, key) for file in files for key in _SET.findall(file.read_text("utf-8"))}
    assert found == set(EXCEPTIONS)


def test_the_minimal_world_sets_no_such_key() -> None:
    text = (ROOT / "tests" / "support" / "minimal_worlds.py").read_text("utf-8")
    assert _SET.findall(text) == []
    assert _SET.findall('n = 2\nrequests = {requests}\narrivals = "all"') == [
        "n",
        "requests",
        "arrivals",
    ]


def test_the_documented_defaults_are_those_of_a_minimal_catalog() -> None:
    catalog = minimal()
    stream, service = catalog.streams[NS + "stream"], catalog.services[NS + "people"]
    refresh, limits = service.refresh, catalog.evaluation
    of_streams, of_services = documented("streams"), documented("services")
    of_refresh, of_evaluation = documented("refresh"), documented("evaluation")
    assert (stream.arrivals, stream.keys, stream.buckets) == (
        of_streams["arrivals"],
        of_streams["keys"],
        int(of_streams["buckets"]),
    )
    assert (of_streams["lateness"], stream.lateness_ms) == ("none", 0)
    assert (of_streams["idle"], stream.idle_ms) == ("never", None)
    assert (of_streams["ahead"], stream.ahead_ms) == ("1h", 3_600_000)
    assert (service.remote, service.block_size, service.concurrency, service.solutions) == (
        of_services["remote"],
        int(of_services["block_size"]),
        int(of_services["concurrency"]),
        of_services["solutions"],
    )
    assert (of_services["timeout"], service.timeout_seconds) == ("10s", 10.0)
    assert (of_services["capacity"], service.capacity) == ("no limit", None)
    assert (of_services["load"], service.load) == ("true", True)
    assert (refresh.policy, refresh.n) == (of_refresh["policy"], int(of_refresh["n"]))
    assert (of_refresh["deadline"], refresh.budget.seconds) == ("1s", 1.0)
    assert (of_refresh["requests"], refresh.budget.requests) == ("as many as `items`", ITEMS)
    assert (of_refresh["strict"], refresh.ledger) == ("false", None)
    assert of_evaluation == {
        "memory_bytes": str(limits.memory_bytes),
        "timeout": f"{limits.seconds:.0f}s",
        "result_bytes": str(limits.result_bytes),
        "failures": str(limits.failures),
    }
