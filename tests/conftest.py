"""Fixtures shared by all tests: one Spark session and one SPARQL server for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import SparkSession

from examples.oxigraph import OxigraphServer

settings.register_profile(
    "acquatop",
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("acquatop")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from acquatop.runtime.spark import SparkRuntime

    runtime = SparkRuntime()
    yield runtime.spark
    runtime.close()


@pytest.fixture(scope="session")
def _server() -> Iterator[OxigraphServer]:
    with OxigraphServer() as server:
        yield server


@pytest.fixture
def server(_server: OxigraphServer) -> OxigraphServer:
    """A running SPARQL server with nothing in it."""
    _server.update("CLEAR ALL")
    return _server
