"""Drivers of Spark that run out of memory, or are gone.

A run ends with one message, and never stands still.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from acquatop.runtime.lost_results import lost_tasks
from tests.support import programs
from tests.support.scale_out import ROOT
from tests.support.waiting import without_waits

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RUN = [sys.executable, "-m", "acquatop", "run"]
STREAM = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
arrivals = "latest"
options = {{ {options} }}
[streams.":s".mapping]
format = "{format}"
subject = ":key/{subject}"
time = "{time}"
properties = {{ ":n" = {{ field = "{number}", datatype = "{datatype}" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10s]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""
LITTLE = "spark.driver.memory=512m"


def command(folder: Path, *more: str, **stream: str) -> list[str]:
    (folder / "catalog.toml").write_text(STREAM.format(**{"format": "columns", **stream}))
    (folder / "query.rspql").write_text(QUERY)
    return [*RUN, str(folder / "query.rspql"), "--catalog", str(folder / "catalog.toml"), *more]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    return programs.run(arguments, cwd=ROOT, env=surroundings)


def test_what_is_planned_at_once_need_not_be_sent_at_once(tmp_path: Path) -> None:
    rows = 700_000
    numbers = np.random.default_rng(1).integers(0, rows, rows)
    pq.write_table(
        pa.table({"k": numbers, "n": numbers[::-1], "t": np.arange(rows) // 10}),
        tmp_path / "rows.parquet",
    )
    stream = {"connector": "parquet", "options": f'path = "{tmp_path}/rows.parquet"'}
    # Some 35 MB, of which a driver with so little memory is sent 16 at a time.
    given = command(
        *(tmp_path, "--until-end"),
        **stream,
        subject="{k}",
        time="t",
        number="n",
        datatype="xsd:integer",
    )
    done = run([*given, "--conf", LITTLE, "--to", f"canonical:{tmp_path}/spark"])
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    assert (
        run([*given, "--runtime", "local", "--to", f"canonical:{tmp_path}/local"]).returncode == 0
    )
    here, there = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("spark", "local")
    )
    assert here == there != {}


def test_what_a_source_of_sparks_own_brings_at_once_need_not_be_sent_at_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(3):
        # Nothing makes random text much smaller.
        random = base64.urlsafe_b64encode(np.random.default_rng(number).bytes(600 * 30_000))
        lines = [b'{"t": 1, "v": "%b"}' % text for text in np.frombuffer(random, "S800").tolist()]
        (tmp_path / "texts" / f"{number}.txt").write_bytes(b"\n".join(lines))
    options = f'format = "text", path = "{tmp_path}/texts"'
    stream = {"connector": "spark", "options": options, "time": "t", "number": "v"}
    # Some 50 MB, of which Spark passes on 16 at a time, and no more.
    given = command(
        *(tmp_path, "--until-end", "--json", "--conf", LITTLE),
        *("--conf", "spark.driver.maxResultSize=32m"),
        **stream,
        format="json",
        subject="{v}",
        datatype=":key/{}",
    )
    done = run(given)
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    (answer,) = map(json.loads, done.stdout.splitlines())
    assert len(answer["results"]) == 2


def test_a_source_whose_items_are_too_large_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "0.txt").write_bytes(b'{"t": 1, "v": "%b"}' % (b"x" * (400 << 20)))
    options = f'format = "text", path = "{tmp_path}/texts"'
    stream = {"connector": "spark", "options": options, "time": "t", "number": "v"}
    given = command(
        *(tmp_path, "--conf", LITTLE), **stream, format="json", subject="{v}", datatype=":key/{}"
    )
    done = run(given)
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        "acquatop: the stream <http://example.org/s> has failed on Spark: Spark's Java has "
        "run out of" in done.stderr
    )
    assert "hint: give it more (--conf spark.driver.memory=4g" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_java_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    options = 'format = "rate-micro-batch", rowsPerBatch = 10, advanceMillisPerBatch = 20000'
    stream = {"connector": "spark", "options": options, "time": "timestamp", "number": "value"}
    arguments = command(tmp_path, "--json", **stream, subject="{value}", datatype=":key/{}")
    child = subprocess.Popen(
        [*arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline().startswith("{")
    found = subprocess.run(
        ["pgrep", "-P", str(child.pid), "java"], capture_output=True, text=True, check=True
    )
    os.kill(int(found.stdout), signal.SIGKILL)
    # It would go on for ever.
    _, said = programs.end_of(child)
    assert child.returncode == 1
    assert (
        without_waits(said) == "acquatop: the stream <http://example.org/s> has failed on Spark: "
        "Spark's Java has ended (signal 9)\n"
    )


def test_a_result_that_is_lost_in_the_driver_ends_its_job(tmp_path: Path) -> None:
    done = run([sys.executable, "-m", "tests.support.lost_result", str(tmp_path)])
    assert done.returncode == 0, done.stderr[-3000:]
    assert (
        json.loads(done.stdout.splitlines()[-1])
        == "results have been lost in the driver, whose Java was out of memory"
    )
    assert "TaskResultGetter" in done.stderr


def test_what_is_under_way_is_not_lost(spark: SparkSession) -> None:
    context, ended, found = spark.sparkContext, threading.Event(), list[frozenset[int]]()

    def look() -> None:
        while not ended.is_set():
            found.append(lost_tasks(spark, "under way"))

    context.setJobGroup("under way", "")
    looking = threading.Thread(target=look)
    looking.start()
    try:
        assert sum(
            map(len, context.parallelize(range(4), 4).map(lambda at: bytes(3 << 20)).collect())
        ) == 4 * (3 << 20)
    finally:
        ended.set()
        looking.join()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    # For a moment one may be seen between two states, never for two looks in succession.
    assert len(found) > 1
    assert not any(one & other for one, other in pairwise(found))
