"""The engine in simulated time: seeds decide queries, streams, remotes, faults and restarts."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from acquatop.engine.surroundings import Surroundings
from replica.clocks import MachineClock
from replica.feeds.contract import ChangeSink, Feed
from replica.store import Solution
from tests.support.markers import THOROUGH
from tests.support.simulation.__main__ import Portion, replay, run_portion
from tests.support.simulation.checker import Verdict, judge
from tests.support.simulation.disk import SimulatedFolder
from tests.support.simulation.remote import ServiceSpec
from tests.support.simulation.runs import a_folder, simulate
from tests.support.simulation.scenario import (
    KILL_KINDS,
    Kill,
    QuerySpec,
    Record,
    Scenario,
    StreamSpec,
)
from tests.support.simulation.sparql import LOSSES
from tests.support.simulation.world import World, Wrap

# On a machine with much else to do the seeds take longer than one test may.
pytestmark = [THOROUGH, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parents[3]
SEEDS = 2000
FOUND = (7_200_034, 8_001_745)
"""Seeds beyond these that have failed once."""
MOST_FOR_A_DEFECT = 200
"""Seeds within which an injected defect must be found."""


FEATURES = """
    arrivals: all; arrivals: distinct; arrivals: latest
    batches: several partitions; batches: late records in several partitions
    batches: read ahead; batches: read ahead in vain
    budget: strict; budget: not strict; clock: jumps; evaluations are lost
    input: live; input: recording; order: ascending; order: descending; OFFSET
    output: RSTREAM; output: ISTREAM; output: DSTREAM
    query comes late, may leave and come back
    query: top; query: sums; query: whole; query: pairs; query: behind
    query: elements over elements; query: whole over elements
    remote: bank; remote: capacity; remote: default settings; remote: own settings; remote: feed
    remote: limits over time; remote: only pushes; remote: shared by queries
    state: directory; state: none
    stream: default settings; stream: idle; stream: late records; stream: lateness
    stream: pane-dominance; stream: shared-skyline
"""
"""Features of which enough answers must have been judged."""


@pytest.fixture(scope="module")
def whole() -> Portion:
    return run_portion(range(SEEDS))


def test_no_seed_fails(whole: Portion) -> None:
    said = [
        "\n".join([f"seed {seed}: {replay(seed)}", *problems[:5]])
        for seed, problems, _ in whole.failures
    ]
    assert not said, "\n".join(said[:10])


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_has_failed_does_not_fail_again(seed: int) -> None:
    with a_folder() as folder:
        assert simulate(seed, folder).verdict.problems == []


def test_enough_is_judged(whole: Portion) -> None:
    judged, under, checks = whole.verdict.judged, whole.verdict.under, whole.verdict.checks
    assert judged["exact"] > 10 * SEEDS
    assert judged["certified"] > SEEDS
    assert judged["approximate"] > SEEDS
    remote = ("slow", "failing", "partial", "limited", "wrong", "hanging")
    lost = (f"lost: {reason}" for reason in LOSSES)
    for kind in (*KILL_KINDS, *remote, *lost, "clock set forward", "clock set back"):
        assert under[kind] > SEEDS / 20, kind
    for check in (
        "files are equal",
        "no window is left out",
        "given again, it is the same",
        "limits over time hold",
        "spending is reported",
        "events add up",
    ):
        assert checks[check] > SEEDS / 4, check
    for check in (
        "strict budgets hold over crashes",
        "a window without an answer is told",
        "ISTREAM is right",
        "DSTREAM is right",
        "approximate is right",
    ):
        assert checks[check] > SEEDS / 40, check


def test_answers_of_every_feature_are_judged(whole: Portion) -> None:
    features = [name.strip() for name in FEATURES.replace("\n", ";").split(";") if name.strip()]
    counts: Counter[str] = Counter()
    for (feature, _), count in whole.verdict.covered.items():
        counts[feature] += count
    assert set(features) == set(counts)
    for feature in features:
        assert counts[feature] > SEEDS / 40, feature


# The same seed does the same ----------------------------------------------------------------------

SOME = (0, 7, 23, 48, 96, 120)


def digests(seeds: Sequence[int]) -> list[str]:
    with a_folder() as folder:
        return [simulate(seed, folder).digest for seed in seeds]


def test_a_seed_has_one_trace_in_every_process() -> None:
    code = (
        "from tests.acquatop.engine.test_simulation import SOME, digests\n"
        "print(*digests(SOME), sep='\\n')"
    )
    others = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    ]
    here = digests(SOME)
    assert len(set(here)) == len(SOME)
    assert others == [here, here]
    assert digests(SOME) == here


# A scenario of one's own ------------------------------------------------------------------------


def side_outputs_after(kill: Kill | None) -> Mapping[str, bytes]:
    """Return the side outputs of a recording with bad and late records, killed at a step."""
    times = (1_000, None, 1_500, 1_100, 1_900, None)
    records = tuple(
        Record(b"{" if t is None else line(t, number), 0.0, t, number, "u0", number)
        for number, t in enumerate(times)
    )
    stream = StreamSpec("a", "all", 0, None, records, side_outputs=True)
    query = QuerySpec("q", "whole", ("a",), 100, 100)
    kills = () if kill is None else (kill,)
    scenario = Scenario(2, True, True, True, (stream,), (), (query,), kills, False, False)
    with a_folder() as folder:
        return World(scenario, folder, "own").run().side


def line(t: int, number: int) -> bytes:
    return json.dumps({"t": t, "id": number, "user": "u0", "p": number}).encode()


def test_side_outputs_are_written_once_wherever_a_life_ends() -> None:
    right = side_outputs_after(None)
    assert [content.count(b"\n") for content in right.values()] == [2, 1]
    for kind in ("kill at disk", "power loss", "kill at batch"):
        for nth in range(1, 60, 2):
            assert side_outputs_after(Kill(kind, nth)) == right, (kind, nth)


def test_a_strict_budget_is_spent_once_wherever_a_life_ends() -> None:
    # In each window more users are new than may be asked for: every evaluation spends all.
    users = [f"u{number % 6}" for number in range(24)]
    records = tuple(
        Record(json.dumps({"t": t, "id": t, "user": user, "p": 1}).encode(), 0.0, t, t, user, 1)
        for t, user in zip(range(1_000, 1_000 + 40 * len(users), 40), users, strict=True)
    )
    values = dict.fromkeys(users, ((0.0, 7),))
    service = ServiceSpec("s0", values, items=1, requests=1, strict=True, is_instant=True)
    query = QuerySpec("q", "top", ("a",), 200, 200, k=5, service="s0")
    stream = StreamSpec("a", "all", 0, None, records)
    verdict = Verdict()
    with a_folder() as folder:
        for kind in ("kill at request", "kill at disk", "power loss"):
            for nth in range(1, 40, 3):
                kills = (Kill(kind, nth),)
                scenario = Scenario(
                    nth, True, True, False, (stream,), (service,), (query,), kills, False, True
                )
                verdict.add(judge(World(scenario, folder, "own").run()))
    assert verdict.problems == []
    assert verdict.checks["strict budgets hold over crashes"] > 30


def limited_and_strict(seed: int, wrap: Wrap | None, folder: Path) -> Verdict:
    """Judge a live run in which the clock is set, and which is killed at its second request."""
    users = [f"u{number}" for number in range(6)]
    times = range(1_000, 3_000, 50)
    records = tuple(
        Record(
            json.dumps({"t": t, "id": t, "user": users[t // 50 % 6], "p": 1}).encode(),
            t / 1000,
            t,
            t,
            users[t // 50 % 6],
            1,
        )
        for t in times
    )
    values = dict.fromkeys(users, ((0.0, 7),))
    limits = ((3, "requests", 10.0),)
    service = ServiceSpec(
        "s0", values, items=1, requests=1, limits=limits, strict=True, is_instant=True
    )
    query = QuerySpec("q", "top", ("a",), 200, 200, k=5, service="s0")
    stream = StreamSpec("a", "all", 0, None, records)
    kills = (Kill("kill at request", 2),)
    scenario = Scenario(
        seed, False, True, False, (stream,), (service,), (query,), kills, True, False
    )
    return judge(World(scenario, folder, f"own {seed}", wrap).run())


def test_limits_hold_over_a_restart_whatever_the_clock_is_set_to() -> None:
    verdict, defective = Verdict(), Verdict()
    with a_folder() as folder:
        for seed in range(12):
            verdict.add(limited_and_strict(seed, None, folder))
            defective.add(limited_and_strict(seed, without_boots, folder))
    assert verdict.problems == []
    assert verdict.checks["limits over time hold"] == 12
    # A ledger that begins each life with the time of day spends too much.
    assert [each for each in defective.problems if each.startswith("limits over time hold")]


def test_a_killed_run_leaves_nothing_for_long() -> None:
    code = (
        "import os, signal\n"
        "from tests.support.simulation.runs import a_folder\n"
        "with a_folder() as folder:\n"
        "    print(folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    left = Path(run.stdout.strip())
    assert left.name.startswith("acquatop-simulation-")
    with a_folder() as folder:
        assert not left.exists()
        # Those of runs under way are left alone.
        with a_folder():
            assert folder.exists()


# Defects are found --------------------------------------------------------------------------------


class ForgetfulFolder(SimulatedFolder):
    """Disk that says it has synced and has not."""

    def sync(self, file: int) -> None:
        self.step("sync")

    def sync_names(self) -> None:
        self.step("sync names")


class LyingFeed:
    """Feed that tells older values than those that it was told."""

    failure: str | None = None

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def start(self, sink: ChangeSink) -> None:
        before: dict[str, Sequence[Solution]] = {}

        def tell(said: dict[str, Sequence[Solution]], now: float) -> None:
            sink({key: before.get(key, ()) for key in said}, now)
            before.update(said)

        self._feed.start(tell)  # type: ignore[arg-type]

    def stop(self) -> None:
        self._feed.stop()


def forgetful(around: Surroundings) -> Surroundings:
    make = around.state_folder

    def open_folder(path: Path) -> SimulatedFolder:
        folder = make(path)
        assert isinstance(folder, SimulatedFolder)
        folder.__class__ = ForgetfulFolder
        return folder

    return replace(around, state_folder=open_folder)


def hasty(around: Surroundings) -> Surroundings:
    machine = around.machine
    return replace(
        around,
        clock=lambda: 5 * around.clock(),
        machine=MachineClock(machine.boot, lambda: 5 * machine.seconds()),
    )


def without_boots(around: Surroundings) -> Surroundings:
    """Give each life a machine's clock of its own."""
    return replace(around, machine=MachineClock(secrets.token_hex(8), around.machine.seconds))


def lying(around: Surroundings) -> Surroundings:
    return replace(around, open_feed=lambda *arguments: LyingFeed(around.open_feed(*arguments)))


@pytest.mark.parametrize(
    ("defect", "kinds"),
    [
        (forgetful, ("given again", "no window", "all told", "it begins", "files are", "life")),
        (hasty, ("limits over time hold",)),
        (lying, ("certified is right",)),
    ],
)
def test_a_faulty_component_is_found(
    defect: Callable[[Surroundings], Surroundings], kinds: tuple[str, ...]
) -> None:
    with a_folder() as folder:
        for seed in range(MOST_FOR_A_DEFECT):
            try:
                problems = simulate(seed, folder, defect).verdict.problems
            except AssertionError as error:
                problems = [f"no window: {error}"]
            if any(problem.startswith(kinds) for problem in problems):
                return
    pytest.fail("it was not found")
