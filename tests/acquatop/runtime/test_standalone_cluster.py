"""The command line on a real standalone cluster: a master and workers, processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acquatop.runtime.java import find_java, java_home
from tests.support import programs
from tests.support.cluster_runs import (
    ALL,
    CODE,
    HERE,
    ONE,
    QUICKLY,
    answers_in,
    confs,
    on,
    python_without_us,
    spark_table,
    surroundings,
)
from tests.support.markers import THOROUGH
from tests.support.namespaces import machines, reason_without
from tests.support.scale_out import QUERIES, ROOT, write_world
from tests.support.standalone import SPARK_HOME, Standalone, standalone

pytestmark = [pytest.mark.spark, THOROUGH]
NAMES = ("top of lines", "sums of lines")
PACKAGES = ("acquatop", "connectors", "replica", "rspql")

MAIN = """
import sys
from pyspark.sql import SparkSession
from acquatop import Engine
from acquatop.answer.sinks import open_sink

def executors_code(_):
    import acquatop
    yield acquatop.__file__

spark = SparkSession.builder.appName("given").getOrCreate()
# With its first work Spark itself sets what it had left open.
spark.range(1).count()
before = dict(spark.sparkContext.getConf().getAll())
with Engine.from_catalog("catalog.toml", until_end=True, autostart=False) as engine:
    for name in sys.argv[1:]:
        text, sink = open(name + ".rspql").read(), open_sink("canonical:given")
        engine.register(text, name=name, sinks=[sink])
    engine.start()
    for answer in engine.answers():
        pass
assert dict(spark.sparkContext.getConf().getAll()) == before
assert spark.range(5).count() == 5
places = spark.sparkContext.parallelize([1], 1).mapPartitions(executors_code).collect()
print(spark.sparkContext.master, *places)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    catalog = write_world(folder)
    # Enough batches for something to happen between them.
    catalog.write_text(catalog.read_text().replace("60000", "40000"))
    for name in NAMES:
        (folder / f"{name}.rspql").write_text(QUERIES[name])
    return folder


@pytest.fixture(scope="module")
def right(world: Path) -> dict[str, bytes]:
    done = run(world, "--runtime", "local", "--until-end", "--to", f"canonical:{world}/right")
    assert done.returncode == 0, done.stderr
    answers = answers_in(world / "right")
    assert [len(each.splitlines()) > 8 for each in answers.values()] == [True, True]
    return answers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_us(tmp_path_factory.mktemp("other"))


def command(folder: Path, *more: str) -> list[str]:
    queries = [str(folder / f"{name}.rspql") for name in NAMES]
    start = [sys.executable, "-m", "acquatop", "run", *queries]
    return [*start, "--catalog", str(folder / "catalog.toml"), *more]


@contextmanager
def running(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the command at work, and see to it that it has an end."""
    child = subprocess.Popen(
        command(folder, *more),
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return programs.run(command(folder, *more), cwd=folder, env=surroundings())


def events_in(folder: Path) -> list[dict[str, Any]]:
    (log,) = folder.iterdir()
    return [json.loads(line) for line in log.open()]


def with_spark(world: Path, cluster: Standalone, log: Path) -> Path:
    """Return a catalog that names the cluster and all that is usual there, and keeps a log."""
    logging = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file://{log}",
    }
    table = spark_table(cluster.url, CODE, QUICKLY, HERE, ALL, logging, {"spark.app.name": "table"})
    catalog = log.parent / "with spark.toml"
    catalog.write_text((world / "catalog.toml").read_text() + table)
    return catalog


def test_a_restart_and_a_killed_worker_change_no_byte(
    world: Path, right: dict[str, bytes], cluster: Standalone, tmp_path: Path
) -> None:
    victim, _ = cluster.want()
    kept = ["--state", str(tmp_path / "state"), "--to", f"canonical:{tmp_path}/out", "--until-end"]
    first = run(world, *kept, *on(cluster, CODE, ONE), "--windows", "4")
    assert first.returncode == 0, first.stderr
    some = answers_in(tmp_path / "out")
    assert all(right[name].startswith(answers) for name, answers in some.items())
    assert some != right
    log = tmp_path / "log"
    log.mkdir()
    catalog = with_spark(world, cluster, log)
    named = confs({"spark.app.name": "line"})
    with running(world, "--catalog", str(catalog), *kept, "--json", *named) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("{")
        # As a machine goes: with its executor.
        os.killpg(victim.process.pid, signal.SIGKILL)
        _, said = programs.end_of(child)
        assert child.returncode == 0, said
    assert answers_in(tmp_path / "out") == right
    assert_one_was_lost(events_in(log))


def assert_one_was_lost(events: Sequence[dict[str, Any]]) -> None:
    """Assert that two executors did the work until one was lost, and others what came then."""
    assert {each["App Name"] for each in events if "App Name" in each} == {"line"}
    kinds = [each["Event"].removeprefix("SparkListener") for each in events]
    lost = kinds.index("ExecutorRemoved")
    before, after = (
        {each["Task Info"]["Executor ID"] for each in some if "Task Info" in each}
        for some in (events[:lost], events[lost:])
    )
    assert before == {"0", "1"}
    assert after - {events[lost]["Executor ID"]}


def test_work_that_waits_for_executors_is_said(world: Path, cluster: Standalone) -> None:
    cluster.want()
    with running(world, *on(cluster, CODE, {"spark.executor.memory": "64g"})) as child:
        assert child.stderr is not None
        said = iter(child.stderr.readline, "")
        # Among lines that say what is waited for.
        assert f"work waits: no executor of 64g and all cores has come from {cluster.url}\n" in (
            line.removeprefix("acquatop: ") for line in said
        )
        assert "can it reach 127.0.0.1?" in next(said)
        child.terminate()
        _, rest = programs.end_of(child)
        assert child.returncode == 0, rest


def test_code_that_executors_have_not_is_said(
    world: Path, cluster: Standalone, other_python: Path
) -> None:
    cluster.want()
    done = run(world, *on(cluster, ONE, {"spark.pyspark.python": str(other_python)}))
    assert done.returncode == 1
    assert (
        "acquatop: Spark has failed: ModuleNotFoundError: No module named 'acquatop'\n"
        "  hint: spark.pyspark.python names the executors' Python"
    ) in done.stderr


def test_a_file_that_executors_have_not_is_said(
    world: Path, cluster: Standalone, tmp_path: Path
) -> None:
    cluster.want()
    for name in NAMES:
        (tmp_path / f"{name}.rspql").write_text(QUERIES[name])
    (tmp_path / "lines").symlink_to(world / "lines")
    text = (world / "catalog.toml").read_text()
    # An absolute path that means something else in each working directory.
    mine = text.replace(f'"{world}/lines"', '"/proc/self/cwd/lines/0.jsonl"')
    (tmp_path / "catalog.toml").write_text(mine)
    done = run(tmp_path, "--until-end", *on(cluster, CODE, ONE))
    assert done.returncode == 1
    *_, said, hint = done.stderr.splitlines()
    assert said == (
        "acquatop: the stream <http://example.org/lines> has failed on Spark: "
        "/proc/self/cwd/lines/0.jsonl cannot be read: No such file or directory"
    )
    assert "each machine needs them at that path" in hint


def submit(cluster: Standalone, more: Sequence[str], folder: Path) -> str:
    (folder / "main.py").write_text(MAIN)
    python = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    start = [str(SPARK_HOME / "bin" / "spark-submit"), *on(cluster, ONE), *more, "main.py", *NAMES]
    done = programs.run(start, cwd=folder, env={**surroundings(), **python})
    assert done.returncode == 0, done.stdout[-2000:]  # Java has put its errors there
    return done.stdout


def test_a_session_of_spark_submit_is_used_there_and_its_files_are_the_code(
    world: Path, right: dict[str, bytes], cluster: Standalone, other_python: Path
) -> None:
    cluster.want()
    code = world / "acquatop.zip"
    with zipfile.ZipFile(code, "w") as archive:
        for package in PACKAGES:
            for file in (ROOT / package).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(ROOT))
    there = {"spark.pyspark.python": str(other_python), "spark.log.level": "ERROR"}
    more = ["--py-files", str(code), *confs(there)]
    master, *places = submit(cluster, more, world).split()
    assert master == cluster.url
    assert all("acquatop.zip/acquatop" in place for place in places)
    assert answers_in(world / "given") == right


WITHOUT = reason_without()


@pytest.mark.skipif(WITHOUT is not None, reason=str(WITHOUT))
def test_machines_with_addresses_of_their_own_give_the_same_bytes(
    world: Path, right: dict[str, bytes], tmp_path: Path
) -> None:
    java = find_java()
    assert java is not None
    with machines(3) as found, java_home(java) as home:
        (first, driver), *others = found.items()
        (tmp_path / "cluster").mkdir()
        cluster = Standalone(tmp_path / "cluster", home, host=first, inside=driver)
        try:
            cluster.want(1, hosts=dict(others))
            conf = {
                **QUICKLY,
                **CODE,
                "spark.driver.host": first,
                "spark.driver.bindAddress": first,
            }
            more = ["--until-end", "--master", cluster.url, *confs(conf)]
            start = [*driver, *command(world, *more, "--to", f"canonical:{tmp_path}/out")]
            done = programs.run(start, env=surroundings())
        finally:
            cluster.end()
    assert done.returncode == 0, done.stderr
    assert answers_in(tmp_path / "out") == right
