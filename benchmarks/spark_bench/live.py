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
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from acquatop import Engine
from acquatop.engine.observer import BatchSeen, Silent
from benchmarks.spark_bench import cpu, shapes
from benchmarks.spark_bench.child import hand_back, told
from benchmarks.spark_bench.data import NS, TOP
from benchmarks.spark_bench.feed import SLIDE_MS, WIDTH_MS, Feed
from benchmarks.spark_bench.floor import Answers
from benchmarks.spark_bench.ours import parse
from benchmarks.spark_bench.shapes import Event

_CATALOG = f"""\
[prefixes]
"" = "{NS}"

[streams.":stream"]
connector = "lines"
options = {{{{ path = "events" }}}}
arrivals = "{{arrivals}}"

[streams.":stream".mapping]
time = "time_ms"
{{mapping}}

[services.":weights"]
remote = "table"
path = "weights.jsonl"

[services.":weights".mapping]
key = "{NS}key/{{{{key}}}}"
properties = {{{{ ":weight" = {{{{ field = "weight", datatype = "xsd:integer" }}}} }}}}

[services.":weights".refresh]
policy = "AT-WST"
items = 1
"""
_QUERY = f"""\
SELECT ?%s (%s AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {WIDTH_MS}ms STEP {SLIDE_MS}ms]
WHERE {{
  WINDOW :w {{ %s }}
  %s
}}
ORDER BY DESC(?score)
LIMIT {TOP}
"""
_SUM = "SELECT ?key (SUM(?value) AS ?total) WHERE {{ {} }} GROUP BY ?key"
_PAUSES = {"local": 0.1, "spark": 0.3}
"""Longest pause in seconds before the event that closes a window, once earlier ones are read.

Random, so that this event does not come at a fixed phase of the reading rounds.
"""


class Reading(Silent):
    """Observer of how many events have been read."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def batch(self, seen: BatchSeen) -> None:
        """Count a batch's events."""
        with self._changed:
            self._count += seen.events
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until so many events have been read."""
        with self._changed:
            self._changed.wait_for(lambda: self._count >= count)


def query(feed: Feed) -> str:
    """Return the query, with the weights or without them."""
    shape = feed.shape
    if not shape.is_summed:
        return _QUERY % (shape.who, "0 + ?value", shape.pattern, "")
    score, service = (
        ("?total * ?weight", "SERVICE :weights { ?key :weight ?weight }")
        if feed.joined
        else ("0 + ?total", "")
    )
    return _QUERY % (shape.who, score, _SUM.format(shape.pattern), service)


def prepare(feed: Feed, arrivals: str, folder: Path) -> Path:
    """Write the catalog and the weights, and return the file for events, still empty."""
    text = _CATALOG.format(arrivals=arrivals, mapping=feed.shape.catalog)
    (folder / "catalog.toml").write_text(text)
    records = (
        json.dumps({"key": key, "weight": weight}) for key, weight in enumerate(feed.weights)
    )
    (folder / "weights.jsonl").write_text("\n".join(records) + "\n")
    (folder / "events").mkdir()
    file = folder / "events" / "events.ndjson"
    file.touch()
    return file


def write(file: Path, events: Iterable[Event]) -> None:
    """Append events as lines."""
    lines = (
        f'{{"time_ms": {each.time}, "event": {each.number}, "key": {each.key}, '
        f'"value": {each.value}}}\n'
        for each in events
    )
    with file.open("a") as stream:
        stream.write("".join(lines))


def live(feed: Feed, runtime: str, arrivals: str) -> dict[str, Any]:
    """Return the milliseconds of each window, by the wall clock and of CPU, and the answers."""
    chance = random.Random(1)
    latencies, spent_ms = [], []
    answers: Answers = {}
    reading = Reading()
    with tempfile.TemporaryDirectory() as place:
        file = prepare(feed, arrivals, Path(place))
        catalog = Path(place) / "catalog.toml"
        with Engine.from_catalog(catalog, runtime=runtime, observer=reading) as engine:
            registered = engine.register(query(feed))
            for count, slide in enumerate(feed, 1):
                write(file, slide.events)
                reading.wait_for(count * feed.events - 1)
                time.sleep(chance.uniform(0, _PAUSES[runtime]))
                spent, began = cpu.spent(), time.perf_counter()
                write(file, [slide.closing])
                answer = next(registered.answers(limit=1))
                latencies.append(1000 * (time.perf_counter() - began))
                spent_ms.append(1000 * (cpu.spent() - spent))
                answers |= parse([answer], feed.shape.who)
                told(f"{count} of {feed.slides} windows")
    return {"latencies": latencies, "cpu": spent_ms, "answers": list(answers.items())}


def replay(feed: Feed, arrivals: str) -> dict[str, float]:
    """Return the seconds that the same events take as a recording."""
    with tempfile.TemporaryDirectory() as place:
        file = prepare(feed, arrivals, Path(place))
        for slide in feed:
            write(file, [*slide.events, slide.closing])
        catalog = Path(place) / "catalog.toml"
        with Engine.from_catalog(catalog, runtime="local", until_end=True) as engine:
            spent, started = cpu.spent(), time.perf_counter()
            for _ in engine.register(query(feed)):
                pass
            seconds = time.perf_counter() - started
            return {"seconds": seconds, "cpu_seconds": cpu.spent() - spent}


def main() -> None:
    """Measure one runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", choices=tuple(_PAUSES), default="local")
    parser.add_argument("--slides", type=int, default=200)
    parser.add_argument("--events", type=int, default=1_000, help="in a slide (%(default)s)")
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--plain", action="store_true", help="without the weights")
    parser.add_argument("--shape", choices=tuple(shapes.BY_NAME), default="keyed")
    parser.add_argument("--arrivals", choices=("all", "distinct"), default="all")
    options = parser.parse_args()
    size = options.slides, options.events, options.keys
    feed = Feed(*size, joined=not options.plain, shape=shapes.BY_NAME[options.shape])
    measured = live(feed, options.runtime, options.arrivals)
    replayed = replay(feed, options.arrivals) if options.runtime == "local" else {}
    hand_back({**measured, **replayed})


if __name__ == "__main__":
    main()
