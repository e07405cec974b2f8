"""AcquaTop on the same files, through its public interface.

Run as a process of its own by ``benchmarks/spark.py``. The measurement begins with the first batch,
when Spark runs and the replica is filled with the weights (the peers also have theirs in memory),
and ends with the last answer. A small run on the same session comes first, as with the peers.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from acquatop import Engine
from acquatop.answer.answer import Answer
from acquatop.engine.observer import BatchSeen, Observer, Silent
from acquatop.runtime.spark import SparkRuntime
from benchmarks.spark_bench.child import hand_back, told
from benchmarks.spark_bench.cpu import spent
from benchmarks.spark_bench.data import NS, TOP, World, prepare
from benchmarks.spark_bench.floor import Answers

_HEAD = f"""\
[prefixes]
"" = "{NS}"

[services.":weights"]
remote = "table"
path = "{{weights}}"

[services.":weights".mapping]
key = "{NS}key/{{{{key_id}}}}"
properties = {{{{ ":weight" = {{{{ field = "weight", datatype = "xsd:double" }}}} }}}}

# Nothing that has a value is refreshed.
[services.":weights".refresh]
policy = "AT-WST"
items = 1

[streams.":readings"]
arrivals = "distinct"
"""
_COLUMNS = f"""\
connector = "parquet"
options = {{{{ path = "{{path}}", maxRowsPerBatch = {{rows}} }}}}

[streams.":readings".mapping]
format = "columns"
subject = "{NS}event/{{{{event}}}}"
time = "time_ms"

[streams.":readings".mapping.properties]
":of" = {{{{ field = "key", datatype = "iri" }}}}
":value" = {{{{ field = "value", datatype = "xsd:double" }}}}
"""
_TRIPLES = """\
connector = "lines"
options = {{ path = "{path}" }}

[streams.":readings".mapping]
format = "ntriples"
time = ":time"

[streams.":readings".mapping.properties]
":of" = {{ datatype = "iri" }}
":value" = {{ datatype = "xsd:double" }}
"""
_SUMS = """\
SELECT ?key ({score} AS ?score)
FROM NAMED WINDOW :w ON :readings [RANGE 9m STEP 3m]
WHERE {{
  WINDOW :w {{
    SELECT ?key (SUM(?value) AS ?amount)
    WHERE {{ ?event :of ?key ; :value ?value {condition}}}
    GROUP BY ?key
  }}
  SERVICE :weights {{ ?key :weight ?weight }}
}}
ORDER BY DESC(?score)
LIMIT {limit}
"""
_EVENTS = """\
SELECT ?event ({score} AS ?score)
FROM NAMED WINDOW :w ON :readings [RANGE 9m STEP 3m]
WHERE {{
  WINDOW :w {{ ?event :of ?key ; :value ?amount {condition}}}
  SERVICE :weights {{ ?key :weight ?weight }}
}}
ORDER BY DESC(?score)
LIMIT {limit}
"""


def query(job: str, number: int = 0, *, filtered: bool = False) -> str:
    """Return the query of a job; other numbers have other scores and limits, or other filters."""
    amount = "?amount" if job == "events" else "?value"
    return (_EVENTS if job == "events" else _SUMS).format(
        score="?amount * ?weight"
        if not number or filtered
        else f"?amount * ?weight + {number} * ?amount",
        limit=TOP + (0 if filtered else number % TOP),
        condition=f"FILTER({amount} > {number}) " if filtered else "",
    )


def catalog_text(folder: Path, job: str, rows: int) -> str:
    """Return a catalog for the data of a folder."""
    source = (_TRIPLES if job == "triples" else _COLUMNS).format(
        path=folder / ("triples" if job == "triples" else "readings"), rows=rows
    )
    return _HEAD.format(weights=folder / "weights.parquet") + source


@contextmanager
def engine(
    folder: Path,
    job: str,
    runtime: str,
    rows: int,
    *,
    keeps_state: bool = False,
    observer: Observer | None = None,
    carried: SparkRuntime | None = None,
) -> Iterator[Engine]:
    """Run an engine on the data of a folder.

    Spark is running when the engine is yielded; queries run once it is started. If it keeps its
    state, it could continue after any crash, as Spark's own queries could.
    """
    own = SparkRuntime() if runtime == "spark" and carried is None else None
    carried = carried or own
    try:
        with tempfile.TemporaryDirectory() as place:
            catalog = Path(place) / "catalog.toml"
            catalog.write_text(catalog_text(folder, job, rows))
            spark = carried.spark if carried else None
            with Engine.from_catalog(
                catalog,
                runtime=runtime,
                until_end=True,
                spark=spark,
                observer=observer,
                state=Path(place) / "state" if keeps_state else None,
                autostart=False,
            ) as engine:
                yield engine
    finally:
        if own:
            own.close()


class Seen(Silent):
    """Observer of the beginning of the first batch, and of the bytes that all have sent."""

    def __init__(self) -> None:
        self.at: float | None = None
        self.sent = 0

    def batch(self, seen: BatchSeen) -> None:
        """Take note of a batch."""
        self.sent += seen.sent_bytes
        self.at = time.perf_counter() - seen.seconds if self.at is None else self.at


def warm_up(job: str, carried: SparkRuntime) -> None:
    """Let Spark and its workers do the job once on a little data."""
    small = World(20_000, 200, 5_000)
    prepare(small)
    with engine(small.folder, job, "spark", 10_000, carried=carried) as running:
        registered = running.register(query(job))
        running.start()
        list(registered)


def parse(answers: Iterable[Answer], who: str) -> Answers:
    """Return answers in the common form."""
    found: Answers = {}
    for answer in answers:
        rows = ((int(str(row.bindings[who]).rpartition("/")[2]), row.score) for row in answer.rows)
        found[answer.closes_ms] = [(number, score) for number, score in rows if score is not None]
        told(f"{len(found)} windows")
    return found


def main() -> None:
    """Do one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--job", choices=("sums", "events", "triples"), default="sums")
    parser.add_argument("--runtime", choices=("spark", "local"), default="spark")
    parser.add_argument("--rows", type=int, default=500_000, help="in a batch (%(default)s)")
    parser.add_argument(
        "--queries",
        type=int,
        default=1,
        help="how many (%(default)s); the first one's answers count",
    )
    parser.add_argument(
        "--filtered", type=int, default=0, help="they differ in their filters, not in their scores"
    )
    parser.add_argument(
        "--state", type=int, default=0, help="1: what would be needed after a crash is kept"
    )
    options = parser.parse_args()
    told("the engine starts")
    keeps, seen = bool(options.state), Seen()
    carried = SparkRuntime() if options.runtime == "spark" else None
    if carried is not None:
        warm_up(options.job, carried)
    place = options.folder, options.job, options.runtime, options.rows
    with engine(*place, keeps_state=keeps, observer=seen, carried=carried) as running:
        texts = [
            query(options.job, number, filtered=options.filtered)
            for number in range(options.queries)
        ]
        started = time.perf_counter()
        queries = [running.register(text, name=f"q{number}") for number, text in enumerate(texts)]
        cpu = spent()
        running.start()
        answers = parse(queries[0], "event" if options.job == "events" else "key")
        others = sum(1 for _ in itertools.chain.from_iterable(queries[1:]))
        ended, cpu = time.perf_counter(), spent() - cpu
    if carried is not None:
        carried.close()
    began = started if seen.at is None else seen.at
    result = {"seconds": ended - began, "cpu": cpu, "registered": began - started, "others": others}
    hand_back({**result, "sent": seen.sent, "answers": list(answers.items())})


if __name__ == "__main__":
    main()
