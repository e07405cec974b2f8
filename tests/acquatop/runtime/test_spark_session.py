"""Sessions of Spark.

Whose they are, where they run, and what is left of them when an engine ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from acquatop.app.cli import main
from acquatop.catalog.spark_settings import SparkSettings, checked_master
from acquatop.errors import UserError
from acquatop.runtime import open_runtime
from acquatop.runtime.session import own_properties
from acquatop.runtime.spark import SparkRuntime
from examples.oxigraph import OxigraphServer
from tests.support import programs
from tests.support.guides import snippets_of
from tests.support.recorded_runs import Run, replayed, shown

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = { path = "events" }
[streams.":s".mapping]
subject = "http://example.org/user/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 4ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""

ENDING = "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"

SCRIPT = """
import json, threading
from pyspark import SparkContext
from pyspark.sql import SparkSession
from acquatop import Engine

def answers():
    with Engine.from_catalog("catalog.toml", until_end=True) as engine:
        found = list(engine.register(open("query.rspql").read()))
        return len(found), SparkContext.getOrCreate().master

said = {"alone": answers(), "left": SparkSession.getActiveSession() is not None}
spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "7").getOrCreate()
spark.range(1).count()
before = dict(spark.sparkContext.getConf().getAll())
# As in a notebook, whose cells may run in other threads than the one that has made the session.
thread = threading.Thread(target=lambda: said.update(beside=answers()))
thread.start()
thread.join()
after = dict(spark.sparkContext.getConf().getAll())
said["changed"] = {key: value for key, value in after.items() if before.get(key) != value}
said["partitions"] = spark.conf.get("spark.sql.shuffle.partitions")
said["zone"] = spark.conf.get("spark.sql.session.timeZone")
said["counted"] = spark.range(5).count()
print(json.dumps(said))
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "query.rspql").write_text(QUERY)
    events = [{"user": f"u{at}", "t": at, "n": at % 7} for at in range(1, 13)]
    (tmp_path / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    return programs.run(command, cwd=folder, env=surroundings)


@pytest.mark.slow
def test_a_session_of_spark_submit_is_used_and_left_as_it_was(world: Path) -> None:
    (world / "main.py").write_text(SCRIPT)
    conf = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.session.timeZone=Asia/Tokyo"]
    done = run([str(SUBMIT), "--master", "local[1]", *conf, "main.py"], world)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "alone": [3, "local[1]"],
        "left": False,
        "beside": [3, "local[1]"],
        "changed": {},
        "partitions": "7",
        "zone": "Asia/Tokyo",
        "counted": 5,
    }


LOGGED = ["spark.eventLog.enabled=true", "spark.eventLog.compress=false"]


def logged_properties(folder: Path) -> dict[str, str]:
    """Return the properties of the one session that has left its log in a folder."""
    events = [json.loads(line) for file in folder.rglob("events_*") for line in file.open()]
    (properties,) = (each["Spark Properties"] for each in events if "Spark Properties" in each)
    return dict(properties)


@pytest.mark.slow
def test_a_run_in_spark_submit_works_with_its_settings_alone(world: Path) -> None:
    (world / "log").mkdir()
    (world / "acquatop-run.py").write_text(command_of_the_page())
    with (world / "catalog.toml").open("a") as catalog:
        catalog.write('[spark]\nmaster = "local[2]"\nconf = { "spark.app.name" = "theirs" }\n')
    conf = [*LOGGED, f"spark.eventLog.dir={world}/log", "spark.app.name=submitted"]
    options = [f"--conf={each}" for each in conf]
    verb = ["acquatop-run.py", "run", "query.rspql", "--catalog", "catalog.toml"]
    done = run(
        [str(SUBMIT), "--master", "local[1]", *options, *verb, "--until-end", "--json"], world
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("{")]) == 3
    properties = logged_properties(world / "log")
    assert (properties["spark.master"], properties["spark.app.name"]) == ("local[1]", "submitted")
    assert "spark.sql.warehouse.dir" not in properties


def command_of_the_page() -> str:
    """Return the program that the page gives to ``spark-submit``."""
    page = snippets_of(ROOT / "docs" / "howto" / "cluster.md")
    return next(each.text for each in page if each.file == "acquatop-run.py")


@pytest.mark.slow
def test_a_run_is_where_and_as_its_options_say(world: Path) -> None:
    (world / "log").mkdir()
    command = [
        sys.executable,
        "-m",
        "acquatop",
        "run",
        "query.rspql",
        "--catalog",
        "catalog.toml",
        "--until-end",
    ]
    settings = [*LOGGED, "spark.sql.shuffle.partitions=3", f"spark.eventLog.dir={world}/log"]
    done = run(
        [*command, "--json", "--master", "local[1]", *(f"--conf={each}" for each in settings)],
        world,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 3
    properties = logged_properties(world / "log")
    assert (properties["spark.master"], properties["spark.sql.shuffle.partitions"]) == (
        "local[1]",
        "3",
    )


@pytest.mark.parametrize(
    "verb", [["run", "q"], ["serve"], ["record", "--query=q", "--out=o", "--runtime=spark"]]
)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--master", "loca"], "'loca' is no master of Spark's"),
        (["--master", "sc://host:15002"], "is no master of Spark's"),
        (["--master", "local[0]"], "use one like local, local[N]"),
        (["--master", "spark://host"], "spark://HOST:PORT"),
        (["--conf", "spark.driver.memory"], "has no value"),
        (["--conf", "driver.memory=4g"], "their names begin with spark."),
        (["--conf", "spark.master=here"], "is no master"),
        (["--conf", "spark.a=1", "--conf", "spark.a=2"], "two things of spark.a"),
        (["--master", "local[1]", "--conf", "spark.master=local[2]"], '--master says "local[1]"'),
        (["--runtime", "local", "--master", "local[1]"], "use --runtime spark"),
    ],
)
def test_a_wrong_option_is_said(
    verb: list[str], options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(main([*verb, "--catalog", "catalog.toml", *options]))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "master",
    [
        *(
            "local",
            "local[1]",
            "local[*]",
            "local[2,3]",
            "local[*,4]",
            "local-cluster[2,1,1024]",
            "yarn",
        ),
        *(
            "spark://a:7077",
            "spark://a:7077,b:7077",
            "k8s://https://10.0.0.1:6443",
            "k8s://h:1",
            "other://x",
        ),
    ],
)
def test_the_masters_that_spark_knows_are_taken(master: str) -> None:
    assert checked_master(master) == master


def test_settings_are_refused_where_there_is_a_session(spark: SparkSession) -> None:
    with pytest.raises(UserError, match=r"runs already(.|\n)*spark-submit"):
        open_runtime("spark", SparkSettings("local[1]"))
    with pytest.raises(UserError, match="Spark, which does not run here"):
        open_runtime("local", SparkSettings(conf={"spark.ui.enabled": "true"}))


def test_spark_connect_is_refused_in_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:15002")
    with pytest.raises(
        UserError, match=r"^Spark Connect has no driver[^\n]*\n  hint: use a classic"
    ):
        open_runtime("spark")
    open_runtime("spark", spark).close()


def test_a_session_is_found_from_any_thread(spark: SparkSession) -> None:
    found: list[SparkSession] = []

    def use() -> None:
        runtime = SparkRuntime()
        found.append(runtime.spark)
        runtime.close()

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [spark]
    assert spark.range(3).count() == 3


def test_what_is_given_comes_before_what_the_engine_sets() -> None:
    here = own_properties("file:/log4j", {})
    assert (here["spark.master"], here["spark.driver.host"]) == ("local[*]", "127.0.0.1")
    java = "spark.driver.extraJavaOptions"
    assert (here["spark.ui.enabled"], here["spark.ui.retainedJobs"]) == ("false", "20")
    hot = " ".join(each for each in here[java].split() if each.startswith("-XX:Tier4"))
    assert hot
    assert here[java] == f"-Dlog4j2.configurationFile=file:/log4j -XX:+UseSerialGC {hot} {ENDING}"
    there = own_properties(
        "l", {"spark.master": "spark://h:1", "spark.ui.enabled": "true", java: "-XX:+UseZGC -Da=b"}
    )
    assert there["spark.ui.enabled"] == "true"
    assert "spark.ui.retainedJobs" not in there
    assert "spark.driver.host" not in there
    assert there[java] == f"-Dlog4j2.configurationFile=l {hot} {ENDING} -XX:+UseZGC -Da=b"


@pytest.mark.server
def test_what_is_recorded_on_spark_is_replayed_in_process(
    spark: SparkSession, server: OxigraphServer, tmp_path: Path
) -> None:
    run = Run(tmp_path, server, seed=1, windows=3, runtime="spark")
    assert [shown(answer) for answer in replayed(run.out)[:3]] == [
        shown(answer) for answer in run.answers
    ]
