"""Tests have the markers for what they use, though nobody has written them down."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.oxigraph import OxigraphServer
from tests.support.heavy import is_heavy


def test_who_uses_the_session_has_its_marker(
    spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    assert request.node.get_closest_marker("spark")
    assert not request.node.get_closest_marker("server")


def test_who_uses_the_server_has_its_marker(
    server: OxigraphServer, request: pytest.FixtureRequest
) -> None:
    assert request.node.get_closest_marker("server")
    assert not request.node.get_closest_marker("spark")


@pytest.mark.parametrize(
    ("command", "marker"),
    [
        (["/opt/bin/spark-submit", "pyspark-shell"], "spark"),
        (["/opt/bin/oxigraph", "serve"], "server"),
    ],
)
def test_without_a_marker_nothing_of_it_starts(command: list[str], marker: str) -> None:
    with pytest.raises(AssertionError, match=f"mark it {marker}"):
        subprocess.run(command, check=True)


@pytest.mark.server
def test_with_its_marker_it_may_start() -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.run(["/nowhere/oxigraph", "serve"], check=True)


HEAVY = """
@pytest.fixture
def session(spark: SparkSession) -> None: ...
@pytest.fixture
def opened(session: None) -> None: ...
def test_session(spark: SparkSession) -> None: ...
def test_by_fixtures(opened: None) -> None: ...
@pytest.mark.slow
@pytest.mark.parametrize("n", [1])
def test_program(n: int) -> None: ...
@THOROUGH
def test_thorough() -> None: ...
def test_light() -> None:
    assert "@pytest.mark.slow"
"""


NAMES = {
    *("session", "opened", "test_session", "test_by_fixtures", "test_program"),
    *("test_thorough", "test_light"),
}


@pytest.mark.parametrize(
    ("mark", "light"),
    [
        ("", {"test_thorough", "test_light"}),
        ("pytestmark = [pytest.mark.server, pytest.mark.spark]\n", set()),
    ],
)
def test_heavy_tests_are_told_by_the_text_of_their_file(
    tmp_path: Path, mark: str, light: set[str]
) -> None:
    (tmp_path / "test.py").write_text(mark + HEAVY)
    assert {name for name in NAMES if not is_heavy(tmp_path / "test.py", name)} == light
