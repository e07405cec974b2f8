"""Queries for any runtime; ``scale_out.py FOLDER MASTER`` runs them on a new Spark session.

It makes its session in the way of a cluster's user. It prints the answers, and the processes that
did the work.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.query.aggregates import moving
from acquatop.runtime import publications, stream_carrier
from acquatop.runtime.executor_work import InExecutors
from acquatop.runtime.java import find_java, java_home
from tests.support import quick_java
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
NS = "http://example.org/"
KEYS, FILES = 40, 3
EVENTS = 1_500
"""Lines of JSON, and the same number of N-Triples."""
ROWS = 280_000
"""Rows of Parquet, enough for two batches to be split in two."""

_STREAM = """
[streams.":{name}"]
connector = "{connector}"
arrivals = "{arrivals}"
lateness = "300ms"
small_batches = "executors"
options = {{ path = "{folder}/{name}", {limit} }}
[streams.":{name}".mapping]
{mapping}
properties = {{ {properties} }}
"""
_OF = '":of" = { field = "key", datatype = "iri" }, '
_STREAMS = {
    # Of each subject several records, all of which count.
    "lines": {
        "connector": "lines",
        "arrivals": "all",
        "limit": "maxBytesPerBatch = 60000",
        "mapping": f'subject = "{NS}place/{{place}}"\ntime = "time"',
        "properties": _OF + '":topic" = { field = "topic" }, ":value" = '
        '{ field = "value", datatype = "xsd:integer" }',
    },
    # Of each subject several records, the newest of which counts.
    "triples": {
        "connector": "lines",
        "arrivals": "latest",
        "limit": "maxBytesPerBatch = 100000",
        "mapping": 'format = "ntriples"\ntime = ":time"',
        "properties": '":of" = { datatype = "iri" }, ":value" = { datatype = "xsd:integer" }',
    },
    # Of each subject one record.
    "columns": {
        "connector": "parquet",
        "arrivals": "distinct",
        "limit": f"maxRowsPerBatch = {ROWS // 2}",
        "mapping": f'subject = "{NS}event/{{event}}"\ntime = "time"',
        "properties": _OF + '":value" = { field = "value", datatype = "xsd:double" }',
    },
}
_SERVICE = """
[services.":{name}"]
remote = "table"
path = "{folder}/weights.csv"
load = {load}
mapping = {{ key = "{ns}key/{{id}}", properties = {{ \
":weight" = {{ field = "weight", datatype = "xsd:integer" }} }} }}
refresh = {{ n = 2, items = 6, requests = 2, deadline = "60s", shared = false }}
"""
_SERVICES = {"known": "true", "asked": "false"}

_QUERY = """PREFIX : <http://example.org/>
SELECT {shown} ({score} AS ?score) FROM NAMED WINDOW :w ON :{stream} [RANGE 9s STEP 3s]
WHERE {{ WINDOW :w {{ {window} }} SERVICE :{service} {{ ?key :weight ?weight }} }}
ORDER BY DESC(?score) LIMIT 4"""
_PATTERN = "?event :of ?key ; :value ?value"


def _top(stream: str, service: str) -> str:
    shown = "?event ?key ?value"
    return _QUERY.format(
        stream=stream, shown=shown, score="?value * ?weight", window=_PATTERN, service=service
    )


def _sums(stream: str, service: str) -> str:
    window = f"SELECT ?key (COUNT(*) AS ?n) (SUM(?value) AS ?sum) {{ {_PATTERN} }} GROUP BY ?key"
    return _QUERY.format(
        stream=stream, shown="?key ?n ?sum", score="?sum * ?weight", window=window, service=service
    )


QUERIES = {
    "top of lines": _top("lines", "known"),
    "top of triples": _top("triples", "asked"),
    "top of columns": _top("columns", "known"),
    "sums of lines": _sums("lines", "asked"),
    "sums of triples": _sums("triples", "known"),
    "sums of columns": _sums("columns", "asked"),
    "whole windows": """PREFIX : <http://example.org/>
SELECT ?key ?weight (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :lines [RANGE 9s STEP 3s]
WHERE { WINDOW :w { ?event :of ?key ; :topic "t3" } SERVICE :known { ?key :weight ?weight } }
GROUP BY ?key ?weight""",
}


# The world ----------------------------------------------------------------------------------------


def write_world(folder: Path) -> Path:
    """Write streams of every kind, in several files each, and a catalog;
    return the catalog's path.
    """
    chance = random.Random(7)
    weights = "".join(f"{key},{chance.randrange(1, 30)}\n" for key in range(KEYS))
    (folder / "weights.csv").write_text("id,weight\n" + weights)
    events = [_event(number, chance) for number in range(EVENTS)]
    for name in ("lines", "triples", "columns"):
        (folder / name).mkdir()
    for number in range(FILES):
        own = events[number::FILES]
        (folder / "lines" / f"{number}.jsonl").write_text(
            "".join(json.dumps(event) + "\n" for event in own)
        )
        (folder / "triples" / f"{number}.nt").write_text("".join(map(_statements, own)))
        _write_columns(folder / "columns" / f"{number}.parquet", number)
    catalog = folder / "catalog.toml"
    catalog.write_text(_catalog(folder))
    return catalog


def _event(number: int, chance: random.Random) -> dict[str, Any]:
    late = chance.choice([0, 0, 0, 150, 290, 2_000 if number % 50 == 49 else 0])
    key = chance.randrange(KEYS)
    return {
        "time": max(1, 1_000 + 20 * number - late),
        "id": number,
        "place": chance.randrange(300),
        "key": f"{NS}key/{key}",
        "topic": f"t{chance.randrange(6)}",
        "value": chance.randrange(90),
    }


def _statements(event: dict[str, Any]) -> str:
    subject, integer = f"<{NS}place/{event['place']}>", "<http://www.w3.org/2001/XMLSchema#integer>"
    return (
        f"{subject} <{NS}of> <{event['key']}> .\n"
        f'{subject} <{NS}value> "{event["value"]}"^^{integer} .\n'
        f'{subject} <{NS}time> "{event["time"]}"^^{integer} .\n'
    )


def _write_columns(file: Path, number: int) -> None:
    chance = random.Random(number)
    first, last = number * ROWS // FILES, (number + 1) * ROWS // FILES
    rows = range(first, last)
    table = {
        "event": list(rows),
        "time": [1_000 + row // 10 for row in rows],
        "key": [f"{NS}key/{chance.randrange(KEYS)}" for _ in rows],
        # Their sums depend on the order in which they are made, unless that is seen to.
        "value": [chance.random() * 10 ** chance.randrange(-3, 4) for _ in rows],
    }
    pq.write_table(pa.table(table), file)


def _catalog(folder: Path) -> str:
    streams = (
        _STREAM.format(name=name, folder=folder, **stream) for name, stream in _STREAMS.items()
    )
    services = (
        _SERVICE.format(name=name, load=load, folder=folder, ns=NS)
        for name, load in _SERVICES.items()
    )
    return "".join([f'[prefixes]\n"" = "{NS}"\n', *streams, *services])


def battery(
    catalog: Path, *, runtime: str = "spark", spark: SparkSession | None = None
) -> dict[str, list[str]]:
    """Return every query's answers, as the bytes that depend on the data alone.

    Where there are executors, sums of distinct arrivals move to them after the first batch.
    """
    with (
        patch.object(moving, "MOST_KEYS", KEYS // 4),
        Engine.from_catalog(
            catalog, runtime=runtime, until_end=True, spark=spark, autostart=False
        ) as engine,
    ):
        queries = {name: engine.register(text, name=name) for name, text in QUERIES.items()}
        engine.start()
        return {
            name: [json.dumps(answer.canonical()) for answer in query]
            for name, query in queries.items()
        }


_JAVA = f"-XX:+UseSerialGC {quick_java.options()}"


# The program --------------------------------------------------------------------------------------


@contextmanager
def session(
    master: str, folder: Path, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a session on a master, with an executor's surroundings,
    and nothing that an engine would add to its own.
    """
    java = find_java()
    assert java is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")
    home = java_home(java)
    # For as long as executors may be started: each has a Java of its own.
    os.environ["JAVA_HOME"] = home.name
    settings = {
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        # Work begins when all are there.
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.ui.enabled": "false",
        # A task that takes a little longer than half of them is copied.
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # They live for seconds.
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.executor.extraJavaOptions": _JAVA,
        # As on a cluster with a file system of its own:
        # what is in the driver's must be asked for by name.
        "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:9",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        **(conf or {}),
    }
    builder = SparkSession.builder.master(master).appName("scale-out")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
        home.cleanup()


class Noted(InExecutors):
    """Work that notes its executors in a folder, and kills executors at work ``victims`` times.

    One task of a ``slow`` run does nothing until a copy of it has begun elsewhere.
    """

    notes: Path
    victims = 0
    slow = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._notes, self._victims = type(self).notes, type(self).victims
        self._slow = type(self).slow

    def __call__(self, partitions: Any) -> Iterator[list[bytes]]:
        """Do the job."""
        executor = grandparent()
        (self._notes / str(executor)).touch()
        if self._slow:
            self._wait_for_a_copy()
        for done in super().__call__(partitions):
            for victim in range(self._victims):
                if self._is_mine(f"victim {victim}"):
                    os.kill(executor, signal.SIGKILL)
            yield done

    def _wait_for_a_copy(self) -> None:
        context = TaskContext.get()
        assert context is not None
        name = f"{context.stageId()} {context.partitionId()}"
        copy, waits = self._notes / f"copy {name}", self._notes / f"waits {name}"
        if context.attemptNumber():
            # Not what is done again because it has waited in vain.
            if waits.exists():
                copy.touch()
        elif context.partitionId() == 1 and self._is_mine("slow"):
            waits.touch()
            try:
                until(copy.exists)
            finally:
                waits.unlink()

    def _is_mine(self, what: str) -> bool:
        try:
            (self._notes / what).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def grandparent() -> int:
    """Return who started who started this process: a worker's executor."""
    found = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(os.getppid())], capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def once(
    spark: SparkSession, folder: Path, name: str, *, victims: int = 0, slow: bool = False
) -> dict[str, Any]:
    """Run the battery; return its answers, who worked on it, how many were killed,
    how many tasks had copies, and how many files are left.
    """
    Noted.notes, Noted.victims, Noted.slow = folder / name, victims, slow
    Noted.notes.mkdir()
    answers = battery(folder / "catalog.toml", spark=spark)
    notes = [note.name for note in Noted.notes.iterdir()]
    return {
        "answers": answers,
        "executors": sorted(int(note) for note in notes if note.isdigit()),
        "copied": sum(note.startswith("copy") for note in notes),
        "killed": sum(note.startswith("victim") for note in notes),
        "left": len(list(Path(spark.sparkContext._temp_dir).iterdir())),
    }


def main(arguments: Sequence[str]) -> None:
    """Run the battery and, if there are other executors, with a task that is slow,
    and with an executor lost in the middle of it.
    """
    folder, master = Path(arguments[0]), arguments[1]
    with session(master, folder) as spark:
        stream_carrier.InExecutors = Noted  # type: ignore[misc]
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        # As with a large replica, of which each executor gets one.
        publications.LARGE = 0
        others = not master.startswith("local[")
        runs = {"whole": once(spark, folder, "whole", slow=others)}
        if others:
            runs["lost"] = once(spark, folder, "lost", victims=1)
        print(json.dumps({"driver": [os.getpid(), gateway.proc.pid], "runs": runs}))


if __name__ == "__main__":
    main(sys.argv[1:])
