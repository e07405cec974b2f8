"""State and answers in an object store: a driver that ends on one machine goes on at another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from acquatop.errors import UserError
from tests.support.crash.life import Life, content
from tests.support.crash.trial import Trial
from tests.support.crash.world import People, queries, write_world
from tests.support.disks import quick_folder
from tests.support.markers import THOROUGH
from tests.support.s3.elsewhere import World, elsewhere
from tests.support.s3.faults import Flaky, proxied
from tests.support.s3.running import SECRET, new_place


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    scheme = getattr(request, "param", "s3")
    with elsewhere(scheme, request.getfixturevalue(scheme)) as world:
        yield world


@THOROUGH
@pytest.mark.server
@pytest.mark.parametrize("world", ["s3", "az"], indirect=True)
def test_a_killed_driver_goes_on_elsewhere(world: World) -> None:
    """The bytes are those of a life on a local disk that was not killed; nobody is asked twice."""
    random = Random(7)
    ways = [
        (f"{part} {nth} {first}", world.killed_at(part, nth, first=first))
        for part, nth, first in (
            ("record-", random.randrange(2, 5), True),
            ("record-", random.randrange(2, 12), False),
            ("/lines/", random.randrange(2, 9), True),
            ("/tables/", random.randrange(2, 9), False),
        )
    ]
    assert world.trial.run("elsewhere", ways, world.to_its_end) == len(ways)
    assert world.trial.failures == []
    assert world.trial.verdict.judged["exact"] > 9


@THOROUGH
def test_keys_of_executors_go_on_elsewhere(s3: int) -> None:
    with People() as people, quick_folder() as folder, proxied(s3) as proxy:
        catalog = write_world(folder, people.url, events=90)
        trial = Trial(Life(catalog, folder / "state", folder / "out", queries("counts")), people)
        trial.uninterrupted()
        kept = 'arrivals = "distinct"\nkeys = "executors"\nbuckets = 3'
        catalog.write_text(catalog.read_text().replace('arrivals = "distinct"', kept, 1))
        trial.life = replace(trial.life, state=new_place(), out=new_place())
        world = World(trial, proxy, s3)
        ways = [
            (f"{part} {nth}", world.killed_at(part, nth, first=first))
            for part, nth, first in (("keys_", 4, True), ("record-", 5, False), ("keys_", 1, False))
        ]
        assert trial.run("elsewhere", ways, world.to_its_end) == len(ways)
        assert trial.failures == []


@THOROUGH
@pytest.mark.parametrize(
    ("part", "nth", "under_way"), [("record-", 6, set()), ("/lines/most/", 2, {"lines"})]
)
def test_an_engine_that_wakes_up_too_late_writes_nothing(
    world: World, part: str, nth: int, under_way: set[str]
) -> None:
    world.wakes_up_too_late(part, nth, under_way)


@THOROUGH
def test_a_store_that_fails_now_and_then_changes_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = Flaky(Random(3), 0.15)
    world.proxy.fault = flaky
    world.trial.life.live()
    assert content(world.trial.life.out) == world.trial.whole
    assert all(flaky.counts.values())
    said = [record.getMessage() for record in caplog.records]
    assert any("waiting for the object store" in each and "SlowDown" in each for each in said)
    assert not any(SECRET in each or "xyzzy" in each for each in said)


@THOROUGH
def test_a_strict_budget_is_spent_once_on_whatever_machine(s3: int) -> None:
    """A request is noted before it is sent: who has noted or sent it does so never again."""
    with People() as people, quick_folder() as folder, proxied(s3) as proxy:
        ledger = new_place()
        more = f', strict = true, ledger = "{ledger}"'
        catalog = write_world(folder, people.url, events=60, more=more)
        life = Life(catalog, new_place(), new_place(), queries("top", "friends"))
        world = World(Trial(life, people), proxy, s3)
        asked: list[int] = []
        # Who opens the ledger writes to it twice: that it has it, and the time.
        ways = (("/spending", 5, True), ("/spending", 4, False), ("record-", 3, False))
        for part, nth, first in ways:
            people.take()
            assert world.killed_at(part, nth, first=first)(life)
            asked += [sum(map(len, people.take().values()))]
        assert not world.to_its_end(life)
        asked += [sum(map(len, people.take().values()))]
        lines = content(life.out)
        windows = sum(lines[f"lines/{name}.ndjson"].count(b"\n") for name in life.queries)
        # One was noted, and not sent: that its server never heard of it cannot be known.
        assert (sum(asked), windows) == (windows - 1, 10)


def test_a_ledger_on_this_machine_is_refused_for_a_state_elsewhere(tmp_path: Path, s3: int) -> None:
    catalog = write_world(tmp_path, "http://127.0.0.1:9", more=", strict = true")
    life = Life(catalog, new_place(), tmp_path / "out", queries("top"))
    with pytest.raises(UserError, match=r"is strict, and its ledger is a file of this machine"):
        life.live()
    # It has released the state.
    with pytest.raises(UserError, match="is strict"):
        life.live()
