"""Killed on Spark: Python, then its Java.

The answers are those that a life without Spark gives, uninterrupted.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.crash.killing import Processes
from tests.support.crash.life import Life
from tests.support.crash.reaper import Point
from tests.support.crash.trial import Trial
from tests.support.crash.world import People, queries, write_world
from tests.support.disks import quick_folder

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_killed_python_and_killed_java() -> None:
    with People() as people, quick_folder() as folder:
        catalog = write_world(folder, people.url, events=120, batch=3_000)
        trial = Trial(
            Life(catalog, folder / "state", folder / "out", queries("sums", "friends")), people
        )
        trial.uninterrupted()
        trial.life = replace(trial.life, runtime="spark")
        processes = Processes(people)
        ways = [
            (
                "Python, before answers are given",
                processes.by_itself(Point("before Delivery.deliver", 2)),
            ),
            (
                "Java, while a batch is taken in",
                processes.by_java(Point("before StreamDriver.take", 2)),
            ),
        ]
        assert trial.run("both", ways, processes.to_its_end()) == len(ways)
        assert trial.failures == []
        # The sums of every window, judged by brute force, and all bytes.
        assert trial.verdict.judged["exact"] + trial.verdict.judged["certified"] >= 3
        assert trial.verdict.checks["files are equal"] > 5
