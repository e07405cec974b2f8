"""Measure AcquaTop's time from the event that closes a window to its answer, on a live stream.

Run as a process of its own by ``benchmarks/spark.py``. The time runs from before the event is
written to its file until the calling program has the answer. It includes the wait until the stream
is read again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from acquatop import Engine
from benchmarks.spark_bench.child import hand_back, told
from benchmarks.spark_bench.data import TOP
from benchmarks.spark_bench.feed import NS, SLIDE_MS, WIDTH_MS, Event, Feed
from benchmarks.spark_bench.floor import Answers
from benchmarks.spark_bench.ours import parse

_CATALOG = f"""\
[prefixes]
"" = "{NS}"

[streams.":stream"]
connector = "lines"
options = {{ path = "events" }}

[streams.":stream".mapping]
subject = "{NS}key/{{key}}"
time = "time_ms"
properties = {{ ":value" = {{ field = "value", datatype = "xsd:integer" }} }}

[services.":weights"]
remote = "table"
path = "weights.jsonl"

[services.":weights".mapping]
key = "{NS}key/{{key}}"
properties = {{ ":weight" = {{ field = "weight", datatype = "xsd:integer" }} }}

[services.":weights".refresh]
policy = "AT-WST"
items = 1
"""
_QUERY = f"""\
SELECT ?key (%s AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {WIDTH_MS}ms STEP {SLIDE_MS}ms]
WHERE {{
  WINDOW :w {{ SELECT ?key (SUM(?value) AS ?total) WHERE {{ ?key :value ?value }} GROUP BY ?key }}
  %s
}}
ORDER BY DESC(?score)
LIMIT {TOP}
"""
_PAUSES = {"local": (0.1, 0.2), "spark": (0.5, 0.8)}
"""Seconds until earlier events have surely been read.

Random, so that the last event does not come at a fixed phase of the reading rounds.
"""


def query(*, joined: bool) -> str:
    """Return the query, with the weights or without them."""
    joins = ("?total * ?weight", "SERVICE :weights { ?key :weight ?weight }")
    return _QUERY % (joins if joined else ("0 + ?total", ""))


def prepare(feed: Feed, folder: Path) -> Path:
    """Write the catalog and the weights, and return the empty folder for events."""
    (folder / "catalog.toml").write_text(_CATALOG)
    records = (
        json.dumps({"key": key, "weight": weight}) for key, weight in enumerate(feed.weights)
    )
    (folder / "weights.jsonl").write_text("\n".join(records) + "\n")
    events = folder / "events"
    events.mkdir()
    return events


def write(file: Path, events: Iterable[Event]) -> None:
    """Append events as lines."""
    lines = (
        f'{{"time_ms": {moment}, "key": {key}, "value": {value}}}\n'
        for moment, key, value in events
    )
    with file.open("a") as stream:
        stream.write("".join(lines))


def latencies(feed: Feed, runtime: str, warm: int) -> tuple[list[float], Answers]:
    """Return the milliseconds of each window except the first ones, and the answers."""
    chance = random.Random(1)
    found: list[float] = []
    answers: Answers = {}
    with tempfile.TemporaryDirectory() as place:
        file = prepare(feed, Path(place)) / "events.ndjson"
        file.touch()
        with Engine.from_catalog(Path(place) / "catalog.toml", runtime=runtime) as engine:
            registered = engine.register(query(joined=feed.joined))
            for slide in feed:
                write(file, slide.events)
                time.sleep(chance.uniform(*_PAUSES[runtime]))
                began = time.perf_counter()
                write(file, [slide.closing])
                answer = next(registered.answers(limit=1))
                found.append(1000 * (time.perf_counter() - began))
                answers |= parse([answer], "key")
                told(f"{len(found)} of {feed.slides} windows")
    return found[warm:], answers


def replay(feed: Feed, runtime: str) -> float:
    """Return the seconds that the same events take as a recording."""
    with tempfile.TemporaryDirectory() as place:
        file = prepare(feed, Path(place)) / "events.ndjson"
        for slide in feed:
            write(file, [*slide.events, slide.closing])
        with Engine.from_catalog(
            Path(place) / "catalog.toml", runtime=runtime, until_end=True
        ) as engine:
            started = time.perf_counter()
            for _ in engine.register(query(joined=feed.joined)):
                pass
            return time.perf_counter() - started


def main() -> None:
    """Measure one runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", choices=tuple(_PAUSES), default="local")
    parser.add_argument("--slides", type=int, default=200)
    parser.add_argument("--events", type=int, default=1_000, help="in a slide (%(default)s)")
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--plain", action="store_true", help="without the weights")
    parser.add_argument(
        "--warm",
        type=int,
        default=5,
        help="how many windows at the start do not count (%(default)s)",
    )
    options = parser.parse_args()
    feed = Feed(options.slides, options.events, options.keys, joined=not options.plain)
    measured, answers = latencies(feed, options.runtime, options.warm)
    seconds = replay(feed, options.runtime) if options.runtime == "local" else None
    hand_back({"latencies": measured, "answers": list(answers.items()), "seconds": seconds})


if __name__ == "__main__":
    main()
