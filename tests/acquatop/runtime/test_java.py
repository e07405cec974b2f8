"""Finding a Java: real launchers, real environment variables."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from acquatop.errors import EnvironmentProblem
from acquatop.runtime import java, open_runtime


def pretend_java(folder: Path, version: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return folder


def test_the_first_suitable_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = pretend_java(tmp_path / "old", "1.8.0_392"), pretend_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin") + ":/bin")
    found = java.find_java()
    assert found is not None
    assert (found.version, found.origin, found.command) == (21, "the PATH", new / "bin" / "java")
    assert [candidate.version for candidate in java.candidates()][:2] == [8, 21]


def test_a_java_too_old_is_said_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = pretend_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "_packaged", lambda: None)
    # A session that other tests have left running would do without any Java to start.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert java.find_java() is None
    with pytest.raises(EnvironmentProblem) as caught:
        open_runtime("spark")
    assert "needs Java 17 or newer" in str(caught.value)
    assert "(JAVA_HOME) is version 11" in str(caught.value)
    assert "hint: pip install" in str(caught.value)


def test_no_java_at_all_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "_packaged", lambda: None)
    assert "there is none here" in java.explain_missing()


@pytest.mark.parametrize(
    ("version", "opens"),
    [(17, ["[--add-opens=java.base/sun.security.action=ALL-UNNAMED]"]), (25, [])],
)
def test_the_launcher_leaves_out_only_what_that_java_lacks(
    tmp_path: Path, version: int, opens: list[str]
) -> None:
    command = tmp_path / "it's java"
    command.write_text('#!/bin/sh\nfor each do echo "[$each]"; done\n')
    command.chmod(0o755)
    with java.java_home(java.Java(command, version, "here")) as home:
        shown = subprocess.run(
            [
                *(
                    f"{home}/bin/java",
                    "-cp",
                    "a b",
                    "--add-modules=jdk.incubator.vector",
                    "--add-modules=x",
                    "",
                    "*",
                ),
                "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    assert shown.stdout.splitlines() == ["[-cp]", "[a b]", "[--add-modules=x]", "[]", "[*]", *opens]


@pytest.mark.parametrize(
    ("main", "said"), [("org.apache.spark.launcher.Main", "here"), ("SparkSubmit", "")]
)
def test_only_the_java_that_works_is_not_told_where_spark_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: str, said: str
) -> None:
    command = tmp_path / "java"
    command.write_text('#!/bin/sh\necho "$SPARK_HOME"\n')
    command.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", "here")
    shown = []
    for knows_spark in (False, True):
        with java.java_home(java.Java(command, 17, "here"), knows_spark=knows_spark) as home:
            started = [f"{home}/bin/java", "-cp", "x", main, "pyspark-shell"]
            shown += [subprocess.run(started, capture_output=True, text=True, check=True).stdout]
    assert shown == [f"{said}\n", "here\n"]


def test_pythons_of_spark_import_what_is_compiled_already(spark: SparkSession) -> None:
    def place(_: int) -> str:
        import pyspark

        return str(pyspark.__path__[0])

    (found,) = spark.sparkContext.parallelize([1], 1).map(place).collect()
    assert Path(found).is_dir()
