"""Ways in which code comes to a cluster's executors, and verbs that work there."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acquatop import Engine
from tests.support import programs
from tests.support.cluster_runs import (
    CODE,
    HERE,
    ONE,
    QUICKLY,
    name_others_packages,
    on,
    python_without_us,
    spark_table,
    surroundings,
)
from tests.support.guides import snippets_of
from tests.support.markers import THOROUGH
from tests.support.scale_out import EVENTS, QUERIES, ROOT, write_world
from tests.support.serving import World, serving
from tests.support.standalone import Standalone, standalone

pytestmark = [pytest.mark.spark, THOROUGH]
PAGE = ROOT / "docs" / "howto" / "cluster.md"
NAME = "top of lines"
RECORDED = ("catalog.toml", "query.rspql", "stream.ndjson", "remote.jsonl")
PACKAGES = ("acquatop", "connectors", "examples", "replica", "rspql")
PARTS_OF_WHEEL = (*PACKAGES, "setup.py", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        found.want()
        yield found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, cluster: Standalone) -> Path:
    """A folder with a query, and a catalog with all that is usual on the cluster."""
    folder = tmp_path_factory.mktemp("world")
    catalog = write_world(folder)
    shutil.copy(catalog, folder / "bare.toml")
    with catalog.open("a") as file:
        file.write(spark_table(None, QUICKLY, HERE, ONE))
    (folder / "query.rspql").write_text(QUERIES[NAME])
    return folder


@pytest.fixture(scope="module")
def right(world: Path) -> list[str]:
    with Engine.from_catalog(world / "bare.toml", runtime="local", until_end=True) as engine:
        return [json.dumps(each.canonical()) for each in engine.register(QUERIES[NAME], name=NAME)]


def commands(text: str) -> list[str]:
    """Return the commands of the page's snippet that has a text."""
    (snippet,) = (each.text for each in snippets_of(PAGE) if text in each.text)
    return snippet.replace("\\\n", " ").splitlines()


@dataclass
class Shell:
    """A shell in a folder, which reaches no package index."""

    folder: Path
    path: str = sysconfig.get_path("scripts")

    def run(self, command: str) -> None:
        """Run a command, with no other code of this project in reach than it finds itself."""
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        path = f"{self.path}{os.pathsep}{os.environ['PATH']}"
        environment = {**inherited, **offline, "PATH": path}
        done = programs.run(["sh", "-c", command], cwd=self.folder, env=environment)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project's wheel, made as the page says."""
    source = tmp_path_factory.mktemp("source")
    for name in PARTS_OF_WHEEL:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    for command in commands("pip wheel"):
        Shell(source).run(command)
    (made,) = source.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A folder where an environment was made and packed as the page says.

    The packages that are not this project's are named in it instead of installed.
    """
    folder = tmp_path_factory.mktemp("packed")
    shutil.copy(wheel, folder)
    shell = Shell(folder)
    *make, pack, _ = commands("tar -C")
    for command in make:
        shell.run(command)
    name_others_packages(folder / "environment")
    shell.run(pack)
    return folder


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_us(tmp_path_factory.mktemp("other"))


def run_by_the_page(
    command: str, cluster: Standalone, world: Path, shell: Shell, **named: str
) -> list[str]:
    """Run the page's command on the cluster; return the answers."""
    changed = command.replace("spark://HOST:7077", cluster.url)
    for name in ("query.rspql", "catalog.toml"):
        shutil.copy(world / name, shell.folder / name)
    for word, meaning in named.items():
        changed = changed.replace(f"/opt/{word}/bin/python", meaning)
    shell.run(f"{changed} --until-end --to canonical:answers")
    (file,) = (shell.folder / "answers").iterdir()
    return [
        json.dumps({**json.loads(line), "query": NAME}) for line in file.read_text().splitlines()
    ]


def test_executors_get_the_wheel_as_the_page_says(
    cluster: Standalone,
    world: Path,
    right: list[str],
    packed: Path,
    wheel: Path,
    other_python: Path,
    tmp_path: Path,
) -> None:
    shutil.copy(wheel, tmp_path)
    shell = Shell(tmp_path)
    *make, command = commands("acquatop.zip")
    for each in make:
        shell.run(each)
    shell.path = str(packed / "environment" / "bin")
    found = run_by_the_page(command, cluster, world, shell, others=str(other_python))
    assert found == right
    assert cluster.files("acquatop.zip")


def test_executors_get_an_environment_as_the_page_says(
    cluster: Standalone, world: Path, right: list[str], packed: Path, tmp_path: Path
) -> None:
    # Nothing but the archive is in the folder that the driver runs in.
    shutil.copy(packed / "environment.tar.gz", tmp_path)
    shell = Shell(tmp_path, str(packed / "environment" / "bin"))
    *_, command = commands("tar -C")
    assert run_by_the_page(command, cluster, world, shell) == right
    assert cluster.files("environment/bin/python")


def subset(document: Any, like: Any) -> Any:
    """Return as much of a JSON document as another one has."""
    if isinstance(document, dict):
        return {key: subset(document[key], each) for key, each in like.items()}
    if isinstance(document, list):
        return [subset(*pair) for pair in zip(document, like, strict=True)]
    return document


def test_a_service_works_on_the_cluster_of_its_catalog(
    cluster: Standalone, world: Path, right: list[str], tmp_path: Path
) -> None:
    service = World(tmp_path)
    table = spark_table(cluster.url, CODE, QUICKLY, HERE, ONE)
    (tmp_path / "catalog.toml").write_text((world / "bare.toml").read_text() + table)
    before = cluster.files("stderr")
    with serving(service.folder, runtime="spark") as (child, client):
        query = client.register(QUERIES[NAME], NAME)
        stream = client.stream(query["id"])
        for expected in right[:3]:
            answer = next(stream)
            assert subset(answer, json.loads(expected)) == json.loads(expected)
        assert cluster.files("stderr") - before
        child.terminate()
        _, said = programs.end_of(child)
        assert child.returncode == 0, said


def recorded(world: Path, out: Path, *options: str) -> dict[str, bytes]:
    """Record the stream to its end; return the recording's files for a replay."""
    verb = [sys.executable, "-m", "acquatop", "record", "--query", "query.rspql"]
    catalog = ["--catalog", "latest.toml", "--out", str(out), "--events", str(EVENTS)]
    done = programs.run([*verb, *catalog, *options], cwd=world, env=surroundings())
    assert done.returncode == 0, done.stderr
    return {name: (out / name).read_bytes() for name in RECORDED}


def test_a_recording_is_made_on_the_cluster_that_options_name(
    cluster: Standalone, world: Path, tmp_path: Path
) -> None:
    text = (world / "bare.toml").read_text()
    (world / "latest.toml").write_text(text.replace('arrivals = "all"', 'arrivals = "latest"'))
    before = cluster.files("stderr")
    there = ["--runtime", "spark", *on(cluster, CODE, ONE)]
    found = recorded(world, tmp_path / "there", *there)
    assert cluster.files("stderr") - before
    assert found == recorded(world, tmp_path / "here")
    assert found["stream.ndjson"].count(b"\n") == EVENTS
