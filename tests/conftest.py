"""Fixtures for all tests, and their distribution to workers.

Each worker has one Spark session and one SPARQL server.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from examples.oxigraph import OxigraphServer
from tests.support import quick_java
from tests.support.fuseki import FusekiServer
from tests.support.hdfs.running import hdfs_server
from tests.support.heavy import is_heavy
from tests.support.markers import ProgramGuard, mark_by_fixtures
from tests.support.maven import FUSEKI, HDFS, KAFKA, MavenPackages
from tests.support.s3.running import AZURITE, MISSING, azure_server, pointing_to, s3_server

if TYPE_CHECKING:
    from tests.support.kafka.broker import KafkaBroker

collect_ignore = [
    "support/newcomer/api.py",
    "support/newcomer/mqtt_in_pyspark.py",
    "support/s3/server.py",
]
"""Programs that run with packages of their own."""

settings.register_profile(
    "acquatop",
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("acquatop")


class ByFile(LoadScopeScheduling):
    """Gives workers whole files, in their order; the heavy tests of all files to one worker.

    They use several cores as it is, share a Spark session, and the processes that Spark starts
    have ten seconds to come up, which two Sparks at once could exceed.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        name = re.split(r"::|\[", test, maxsplit=1)[0]
        return "heavy" if is_heavy(self.config.rootpath / file, name) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Let ``ByFile`` give out the tests if no other way is asked for."""
    config.option.loadscopereorder = False
    return ByFile(config, log) if config.option.dist == "load" else None


def pytest_configure(config: pytest.Config) -> None:
    """Watch what tests start, and let Spark and Python start quickly."""
    for name, value in quick_java.surroundings().items():
        os.environ.setdefault(name, value)
    # What a Python compiles is kept: each of hundreds of programs would compile the engine again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A program that hangs can be asked where.
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    sys.dont_write_bytecode = False
    config.pluginmanager.register(ProgramGuard(), "program-guard")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they use, and begin with the heavy ones, then the files that have a limit
    of their own, then those of other slow ones, as they take longest; short ones at the end let
    workers end together.
    """
    for item in items:
        mark_by_fixtures(item)
        if item.get_closest_marker("spark") and not heavy(item):
            raise pytest.UsageError(f"{item.nodeid}: annotate its session, spark: SparkSession")
    slow = {item.path for item in items if item.get_closest_marker("slow") and not heavy(item)}
    longest = {item.path for item in items if item.get_closest_marker("timeout")}
    items.sort(key=lambda item: (not heavy(item), item.path not in longest, item.path not in slow))


def heavy(item: pytest.Item) -> bool:
    """Return True if a test is heavy."""
    part = item.parent if isinstance(item.parent, pytest.Class) else item
    return is_heavy(item.path, part.name.partition("[")[0])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from acquatop.runtime.spark import SparkRuntime

    runtime = SparkRuntime()
    yield runtime.spark
    runtime.close()


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let executors read all batches; the driver would read those of small worlds itself."""
    from acquatop.runtime import placement

    monkeypatch.setattr(placement, "MOST_BYTES", -1)
    monkeypatch.setattr(placement, "MOST_ROWS", -1)


@pytest.fixture(scope="session")
def _server() -> Iterator[OxigraphServer]:
    with OxigraphServer() as server:
        yield server


@pytest.fixture
def server(_server: OxigraphServer) -> OxigraphServer:
    """A running SPARQL server with nothing in it."""
    _server.update("CLEAR ALL")
    return _server


@pytest.fixture(scope="session")
def _s3() -> Iterator[int]:
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}; locks/s3.lock has them")
    with s3_server() as port:
        yield port


@pytest.fixture(scope="session")
def _az() -> Iterator[int]:
    if AZURITE is None:
        pytest.skip("ACQUATOP_AZURITE does not name Azurite's program")
    with azure_server() as port:
        yield port


@pytest.fixture(scope="session")
def _hdfs() -> Iterator[int]:
    _need(HDFS)
    with hdfs_server() as port:
        yield port


@pytest.fixture(scope="session")
def _kafka() -> Iterator[KafkaBroker]:
    _need(KAFKA)
    # Its client is compiled, and not for every Python.
    from tests.support.kafka.broker import KafkaBroker

    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def _fuseki() -> Iterator[FusekiServer]:
    _need(FUSEKI)
    with FusekiServer() as server:
        yield server


def _need(packages: MavenPackages) -> None:
    if missing := packages.lacking():
        lock = f"locks/{packages.name}.xml"
        pytest.skip(f"not here: {', '.join(missing)}; ./run test fetches {lock}")


@pytest.fixture
def hdfs(_hdfs: int) -> Iterator[int]:
    """The port of a running NameNode's WebHDFS, which the environment names."""
    with pointing_to(_hdfs):
        yield _hdfs


@pytest.fixture
def az(_az: int) -> Iterator[int]:
    """The port of a running server of Azure's protocol, which the environment names."""
    with pointing_to(_az):
        yield _az


@pytest.fixture
def s3(_s3: int) -> Iterator[int]:
    """The port of a running S3 server, which the environment names."""
    with pointing_to(_s3):
        yield _s3
