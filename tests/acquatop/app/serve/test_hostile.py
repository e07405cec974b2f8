"""Hostile bytes from seeds: every connection ends in order, and others are served meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import requests

from acquatop.app.serve.limits import Limits
from tests.support.hostile import attack
from tests.support.markers import THOROUGH
from tests.support.staged import LIMIT, QUERY, Stage, staged, wait_for

pytestmark = THOROUGH

ATTACKS = 250
"""Attacks per seed: together they take some seconds."""

EXPECTED = {100, 200, 201, 204, 304, *range(400, 432), 501}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    limits = Limits(
        work_rate=1e6,
        work_burst=10**6,
        read_rate=1e6,
        read_burst=10**6,
        waiting=10_000,
        header_seconds=0.5,
        request_seconds=0.5,
        heartbeat_seconds=0.1,
    )
    with staged(limits) as stage:
        yield stage


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_break_the_service(
    stage: Stage, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed)
    seeds = [random.randrange(10**9) for _ in range(ATTACKS)]
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda each: attack(stage.url, Random(each)), seeds))
        assert requests.get(stage.url + "/healthz", timeout=LIMIT).status_code == 200
    found = {status for each in replies for status in each}
    assert found <= EXPECTED, found - EXPECTED
    assert {200, 400} <= found
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    wait_for(lambda: stage.meters.registry.get_sample_value("acquatop_stream_readers") == 0)
    for query in stage.client.queries():
        stage.client.remove(query["id"])
    assert stage.client.register(QUERY)["state"] == "running"
    stage.client.remove("query")
