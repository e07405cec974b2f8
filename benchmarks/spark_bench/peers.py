"""Peers: other engines for RSP-QL, given the events of the latency test as triples in memory.

Their input is favourable: ready-made triples, in order of time. Their limits: they cannot ask a
SERVICE while they run, so the weights are static data; they take no events out of order; they
cannot continue after a crash.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.spark_bench.data import NS, TOP
from benchmarks.spark_bench.feed import SLIDE_MS, START_MS, WIDTH_MS, Feed
from benchmarks.spark_bench.shapes import INTEGER, Event

FOLDER = Path(__file__).parents[1] / "peers"
_QUERY = f"""\
PREFIX : <{NS}>
REGISTER RStream <output> AS
SELECT %s
FROM NAMED WINDOW :w ON STREAM :stream [RANGE {WIDTH_MS} STEP {SLIDE_MS}]
WHERE {{
WINDOW :w {{ %s }}
%s
}}
%s
ORDER BY DESC(?score)
LIMIT {TOP}
"""


def query(feed: Feed) -> str:
    """Return the query over a feed, with the weights or without them."""
    if not feed.shape.is_summed:
        return _QUERY % ("?event (?value AS ?score)", feed.shape.pattern, "", "")
    if feed.joined:
        select, weights = "?key (SUM(?value) * ?weight AS ?score)", "?key :weight ?weight ."
        return _QUERY % (select, feed.shape.pattern, weights, "GROUP BY ?key ?weight")
    return _QUERY % ("?key (SUM(?value) AS ?score)", feed.shape.pattern, "", "GROUP BY ?key")


@contextmanager
def job_file(feed: Feed) -> Iterator[str]:
    """Write the query, the events and the weights to a file, and return its path."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_job(feed), file)
        file.flush()
        yield file.name


def _job(feed: Feed) -> dict[str, Any]:
    slides = [
        {
            "close": slide.close,
            "events": [_said(feed, each) for each in slide.events],
            "closing": _said(feed, slide.closing),
        }
        for slide in feed
    ]
    weights = enumerate(feed.weights if feed.joined else ())
    statics = [(f"{NS}key/{key}", f"{NS}weight", (str(weight), INTEGER)) for key, weight in weights]
    return {
        "query": query(feed),
        "stream": f"{NS}stream",
        "window": f"{NS}w",
        "start": START_MS,
        "statics": statics,
        "slides": slides,
        "rows": TOP,
    }


def _said(feed: Feed, event: Event) -> tuple[Any, ...]:
    return event.time, feed.shape.triples(event)


def place(name: str, lock: Path) -> Path:
    """Return the folder, outside the project, of what a peer's lock file installs."""
    made = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"acquatop-bench-{name}-{made}"
    folder.mkdir(exist_ok=True)
    return folder
