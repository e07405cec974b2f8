"""The same battery in this process, on threads, and on executors that are processes.

The same bytes from all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import programs
from tests.support.scale_out import QUERIES, ROOT, battery, write_world
from tests.support.standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HOSTS = {"127.0.0.1": (), "127.0.0.2": ()}
"""Addresses of two workers of one core each: a task is copied to another host alone."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("scale out"))


@pytest.fixture(scope="module")
def right(catalog: Path) -> dict[str, list[str]]:
    answers = battery(catalog, runtime="local")
    assert answers.keys() == QUERIES.keys()
    assert all(len(each) > 10 for each in answers.values())
    return answers


@pytest.fixture(scope="module")
def cluster(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with standalone(tmp_path_factory.mktemp("cluster")) as there:
        there.want(1, hosts=HOSTS)
        command = [sys.executable, "-m", "tests.support.scale_out", str(catalog.parent), there.url]
        child = programs.run(command, cwd=ROOT)
    assert child.returncode == 0, child.stderr[-3000:]
    found: dict[str, Any] = json.loads(child.stdout)
    return found


def test_a_session_of_threads_gives_the_same_bytes(
    catalog: Path, right: dict[str, list[str]], spark: SparkSession
) -> None:
    assert battery(catalog, spark=spark) == right


def test_executors_that_are_processes_give_the_same_bytes(
    right: dict[str, list[str]], cluster: dict[str, Any]
) -> None:
    whole = cluster["runs"]["whole"]
    assert whole["answers"] == right
    assert len(whole["executors"]) == 2
    assert not set(whole["executors"]) & set(cluster["driver"])


def test_a_slow_task_that_is_copied_counts_once(
    right: dict[str, list[str]], cluster: dict[str, Any]
) -> None:
    assert cluster["runs"]["whole"]["copied"] >= 1
    assert cluster["runs"]["whole"]["answers"] == right


def test_a_lost_executor_changes_nothing(
    right: dict[str, list[str]], cluster: dict[str, Any]
) -> None:
    lost = cluster["runs"]["lost"]
    assert lost["killed"] == 1
    assert lost["answers"] == right


def test_what_was_sent_to_executors_is_not_left_behind(cluster: dict[str, Any]) -> None:
    assert [run["left"] for run in cluster["runs"].values()] == [0, 0]
