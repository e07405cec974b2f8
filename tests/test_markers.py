"""Tests have the markers for what they use, though nobody has written them down."""

from __future__ import annotations

import subprocess

import pytest
from pyspark.sql import SparkSession

from examples.oxigraph import OxigraphServer


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
