"""Sources that Spark asks in the driver: with whose Python, and under what name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader

from acquatop.runtime.driver_source import register_in_driver
from connectors.lines import LinesDataSource


class Theirs(DataSource):
    """A source of a session's own, with the name of another."""

    @classmethod
    def name(cls) -> str:
        return LinesDataSource.name()

    def schema(self) -> str:
        return "theirs INT"

    def reader(self, schema: object) -> DataSourceReader:
        raise AssertionError("nothing is read")


def test_the_executors_python_need_not_be_on_the_drivers_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "./environment/bin/python")
    # Code that has come to the driver with spark-submit is only in the path of its modules.
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "arrived.py").write_text(
        "from connectors.lines import LinesDataSource\n"
        "class Arrived(LinesDataSource):\n"
        "    def schema(self):\n"
        "        return 'arrived BINARY'\n"
    )
    from arrived import Arrived  # type: ignore[import-not-found]

    form = register_in_driver(spark, Arrived)
    assert spark.readStream.format(form).option("path", "a").load().columns == ["arrived"]


def test_a_format_of_the_session_stays_as_it_is(spark: SparkSession) -> None:
    spark.dataSource.register(Theirs)
    try:
        form = register_in_driver(spark, LinesDataSource)
        assert form != Theirs.name()
        assert spark.read.format(Theirs.name()).load().columns == ["theirs"]
    finally:
        # Others share the session.
        spark.dataSource.register(LinesDataSource)
