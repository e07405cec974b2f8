"""Items of all kinds over all connectors, out of all sinks: a seed decides, plain Python judges."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from connectors.registry import CONNECTORS
from tests.support.fuzz.__main__ import problems_of, replay
from tests.support.fuzz.encoding import FORMATS
from tests.support.fuzz.feeds import ELSEWHERE, IN_FILES, LIVE
from tests.support.fuzz.items import PROPERTIES
from tests.support.fuzz.trial import IN_PROCESS
from tests.support.fuzz.values import GENERATORS
from tests.support.markers import THOROUGH
from tests.support.mqtt.mosquitto import MOSQUITTO

SEEDS_IN_FILES, SEEDS_LIVE = 4, 1


def test_each_connector_format_and_datatype_is_sent() -> None:
    """A new one needs a feed, an encoder or a generator."""
    assert {*IN_FILES, *LIVE, "parquet", *ELSEWHERE} == set(CONNECTORS)
    formats = {format_ for each in CONNECTORS.values() for format_ in each.formats}
    assert {*FORMATS, "columns"} == formats
    assert set(PROPERTIES.values()) <= set(GENERATORS)


@THOROUGH
@pytest.mark.parametrize("connector", IN_PROCESS)
def test_nothing_that_anyone_sends_stops_the_engine_or_is_lost(connector: str) -> None:
    if connector == "mqtt" and MOSQUITTO is None:
        pytest.skip("there is no mosquitto (a package of Debian's and Homebrew's)")
    for seed in range(SEEDS_LIVE if connector in LIVE else SEEDS_IN_FILES):
        problems, _ = problems_of(seed, [connector])
        assert not problems, f"replay it with: {replay(seed, [connector])}\n" + "\n".join(problems)


def test_nor_is_anything_lost_on_spark(spark: SparkSession) -> None:
    problems, _ = problems_of(1, ["spark"], spark)
    assert not problems, "\n".join(problems)
