"""After a loss of power at any step, whatever has failed before, the last state is found,
or the one under way.

The disk is simulated (:class:`tests.support.disks.PowerLossFolder`):
the power of a real one cannot be cut here.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from acquatop.engine.state.directory import StateDirectory
from acquatop.errors import EnvironmentProblem
from tests.support.disks import (
    Failing,
    PowerLossFolder,
    State,
    quick_folder,
    recovered_state,
    state_of,
)

LARGE = b"the replica, which does not change often"


class Run:
    """A directory that is written, with a loss of power tried before every step."""

    def __init__(self, place: Path, random: Random, failing: Failing, chance: float) -> None:
        self.place = place
        self.random = random
        self.failing = failing
        self.chance = chance
        self.sure: State | None = None
        self.possible: list[State] = []
        self.tried = 0
        self.folder: PowerLossFolder | None = None
        self.state = StateDirectory.open(place / "live", {}, folder=self.make_folder, large=32)
        self.state.recover()

    def make_folder(self, path: Path) -> PowerLossFolder:
        self.folder = PowerLossFolder(path, self.step)
        return self.folder

    def open_again(self, _path: Path) -> PowerLossFolder:
        assert self.folder is not None
        self.folder = self.folder.opened_again(self.step)
        return self.folder

    def step(self, name: str) -> None:
        if self.folder is not None and self.random.random() < self.chance:
            self.lose_power()
        self.failing(name)

    def lose_power(self) -> None:
        assert self.folder is not None
        self.tried += 1
        left = self.place / f"left{self.tried}"
        self.folder.lose_power(left, self.random)
        found = state_of(left)
        assert found == self.sure or found in self.possible

    def save(self, parts: dict[str, bytes]) -> None:
        self._try(partial(self.state.save, parts), (parts, []))

    def append(self, parts: dict[str, bytes]) -> None:
        if self.sure is not None:
            self._try(partial(self.state.append, parts), (self.sure[0], [*self.sure[1], parts]))

    def _try(self, do: partial[None], then: State) -> None:
        self.possible.append(then)
        try:
            do()
        except EnvironmentProblem:
            return
        self.sure, self.possible = then, []
        self.lose_power()


def go(run: Run, count: int) -> None:
    large = LARGE
    for at in range(count):
        if run.random.random() < 0.2:
            large = LARGE + b"%d" % at
        if run.random.random() < 0.5:
            run.save({"replica": large, "copy": large, "position": b"%d" % at})
        else:
            run.append({"position": b"%d" % at})
    run.state.close()


@pytest.mark.parametrize("seed", range(3))
def test_power_is_lost_at_every_step(seed: int) -> None:
    with quick_folder() as place:
        run = Run(place, Random(seed), Failing([]), chance=1.0)
        go(run, 16)
        assert run.tried > 80


@pytest.mark.parametrize("seed", range(25))
def test_power_is_lost_after_steps_have_failed(seed: int) -> None:
    random = Random(seed)
    failing = Failing(random.sample(range(12, 150), k=random.choice([2, 10, 40])))
    with quick_folder() as place:
        run = Run(place, random, failing, chance=0.3)
        go(run, 14)
        found = state_of(place / "live")
        assert found == run.sure or found in run.possible


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_a_failure_at_any_single_step_leaves_the_state_before(at: int) -> None:
    with quick_folder() as place:
        for each in range(at, at + 3):
            run = Run(place / str(each), Random(each), failing := Failing([]), chance=0.6)
            run.save({"replica": LARGE, "position": b"0"})
            run.append({"position": b"1"})
            failing.count, failing.at = 0, {each}
            run.save({"replica": LARGE, "position": b"2"})
            run.append({"position": b"3"})
            run.save({"replica": LARGE, "position": b"4"})
            failing.at = set()
            assert recovered_state(run.state.recover()) == run.sure
            run.append({"position": b"5"})
            assert run.possible == []
            assert recovered_state(run.state.recover()) == run.sure
            run.state.close()


@pytest.mark.parametrize("seed", range(12))
def test_a_snapshot_that_was_taken_back_does_not_come_back(seed: int) -> None:
    """It had its name already when a step failed;
    what is appended after that must not be lost behind it.
    """
    with quick_folder() as place:
        run = Run(place, Random(seed), failing := Failing([]), chance=0.0)
        run.save({"replica": LARGE, "position": b"0"})
        run.append({"position": b"1"})
        failing.count, failing.at, run.chance = 0, {11}, 1.0
        run.save({"replica": LARGE, "position": b"2"})
        assert len(run.possible) == 1
        for number in range(3):
            run.append({"position": b"%d" % number})
        run.state.close()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("seed", range(12))
def test_what_was_recovered_after_a_kill_is_there_after_a_loss_of_power(seed: int) -> None:
    """A recovery syncs data that a killed process wrote but had not synced."""
    random = Random(seed)
    with quick_folder() as place:
        run = Run(place, random, Failing([]), chance=0.0)
        run.save({"position": b"0"})
        run.append({"position": b"1"})
        assert run.folder is not None
        for number in range(8):
            left = random.randrange(1, 9)

            def die(_step: str) -> None:
                nonlocal left
                left -= 1
                if left <= 0:
                    raise Killed

            run.folder.step = die
            operation = random.choice([run.state.save, run.state.append])
            with suppress(Killed):
                operation({"replica": LARGE, "position": b"%d" % number})
            run.state.close()
            run.state = StateDirectory.open(place / "live", {}, folder=run.open_again, large=32)
            run.sure, run.possible = recovered_state(run.state.recover()), []
            for _ in range(4):
                run.lose_power()
        run.state.close()
