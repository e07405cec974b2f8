"""Killed at every point, without Spark.

The answers are those of a life that was not, and nobody is asked twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crash.killing import Processes, in_process, some_of
from tests.support.crash.life import Life
from tests.support.crash.reaper import POINTS, Point
from tests.support.crash.trial import Trial
from tests.support.crash.world import People, queries, write_world
from tests.support.disks import quick_folder
from tests.support.markers import THOROUGH


@pytest.fixture
def trial() -> Iterator[Trial]:
    with People() as people, quick_folder() as folder:
        catalog = write_world(folder, people.url, events=120)
        yield Trial(Life(catalog, folder / "state", folder / "out", queries()), people)


@THOROUGH
def test_killed_at_every_point(trial: Trial) -> None:
    trial.uninterrupted()
    points = [Point(name, 1 + number % 3) for number, name in enumerate(POINTS)]
    ways = deque((str(point), in_process(point)) for point in points)
    struck = runs = 0
    while ways:
        runs += 1
        struck += trial.run(f"run {runs}", some_of(ways))
    assert trial.failures == []
    assert struck > 50


@THOROUGH
def test_processes_that_are_killed_for_good(trial: Trial) -> None:
    """Each with hashes of its own: what is kept does not depend on them."""
    trial.uninterrupted()
    processes = Processes(trial.people)
    ways = [
        ("itself", processes.by_itself(Point("before Delivery.deliver", 2))),
        ("from outside", processes.by_request(4)),
        ("itself, in a write", processes.by_itself(Point("within growing.write_all", 3))),
    ]
    assert trial.run("real", ways) == len(ways)
    assert trial.failures == []
    assert trial.verdict.judged["exact"] > 15
    assert trial.verdict.checks["a request is within the budget"] > 20


def test_queries_on_one_grid_are_killed() -> None:
    with People() as people, quick_folder() as folder:
        catalog = write_world(folder, people.url, events=120)
        texts = queries("nearest", "nearer", "near")
        trial = Trial(Life(catalog, folder / "state", folder / "out", texts), people)
        trial.uninterrupted()
        processes = Processes(people)
        ways = [
            ("itself", processes.by_itself(Point("before Delivery.deliver", nth))) for nth in (3, 1)
        ]
        assert trial.run("real", ways) == len(ways)
        assert trial.failures == []


def test_a_strict_budget_is_spent_once(tmp_path: Path) -> None:
    """An evaluation that is made again spends what is left of its budget, and no more."""
    with People() as people, quick_folder() as folder:
        catalog = write_world(folder, people.url, more=", strict = true")
        life = Life(catalog, folder / "state", folder / "out", queries("top", "friends"))
        for nth in (1, 1, 2, 1):
            assert in_process(Point("after RestRemote.fetch", nth))(life)
        life.live()
        windows = {
            (life.out / "lines" / f"{name}.ndjson").read_bytes().count(b"\n")
            for name in life.queries
        }
        assert windows == {9}
        # Who was killed had spent it: then nothing more is asked.
        assert {len(asked) for asked in people.take().values()} == {9}
