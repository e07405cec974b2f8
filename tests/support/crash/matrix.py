"""Long crash matrix: ``./run crash [--runs N] [--runtime local|spark|both] [--seed N]``.

Each run kills one process after the other, at random known points and at random moments from
outside, and on Spark their Java. Then one process lives to its end. A table lists the kills of each
run and their result. The exit code is 1 if any answer differs from a life without kills, or if any
request was repeated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.support.crash.killing import Processes
from tests.support.crash.life import Life
from tests.support.crash.reaper import Point, Reaper
from tests.support.crash.trial import LivesOn, Trial
from tests.support.crash.world import People, queries, write_world
from tests.support.disks import quick_folder

_QUERIES = {"local": (), "spark": ("top", "sums", "friends", "ranked", "ranked less", "counts")}
"""On Spark one query of each kind, as each stream is a streaming query of its own."""


def main(arguments: Sequence[str]) -> int:
    """Run the matrix, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="./run crash", description="kill engines, and compare what comes of them"
    )
    parser.add_argument(
        "--runs", type=int, default=24, metavar="N", help="how many runs (%(default)s)"
    )
    parser.add_argument(
        "--runtime", choices=("local", "spark", "both"), default="both", help="%(default)s"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all that is chosen at random"
    )
    options = parser.parse_args(arguments)
    runtimes = ("local", "spark") if options.runtime == "both" else (options.runtime,)
    return max(matrix(runtime, options.runs, options.seed) for runtime in runtimes)


def matrix(runtime: str, runs: int, seed: int) -> int:
    """Print a runtime's table, and return 1 if anything differs."""
    random = Random(f"{runtime} {seed}")
    with People() as people, quick_folder() as folder:
        catalog = write_world(folder, people.url, events=random.randrange(150, 300), seed=seed)
        trial = Trial(
            Life(catalog, folder / "state", folder / "out", queries(*_QUERIES[runtime])), people
        )
        reaper = Reaper()
        with reaper.at_work():
            trial.uninterrupted()
        trial.life = replace(trial.life, runtime=runtime)
        processes, at = Processes(people), Counter[str]()
        print(
            f"{runtime}: {runs} runs of {len(trial.life.queries)} queries, "
            f"{len(trial.whole)} files of answers"
        )
        killed = 0
        for number in range(1, runs + 1):
            ways = list(_ways(processes, reaper.counts, random, runtime))
            started, before = time.monotonic(), len(trial.failures)
            struck = trial.run(f"run {number}", ways, processes.to_its_end())
            killed += struck
            at.update(name.partition(" #")[0] for name, _ in ways[:struck])
            outcome = "same" if len(trial.failures) == before else "DIFFERS"
            hows = "; ".join(name for name, _ in ways[:struck]) or "nothing"
            print(
                f"{number:4}  {outcome:8} {time.monotonic() - started:6.1f} s  killed at {hows}",
                flush=True,
            )
        print(f"{killed} kills at {len(at)} points; {len(trial.failures)} differences")
        for name, count in sorted(at.items()):
            print(f"  {count:4} × {name}")
        starts = sorted(processes.seconds)
        if starts:
            print(
                f"to begin: {statistics.median(starts):.2f} s (median), {starts[-1]:.2f} s at most"
            )
        print("".join(f"  ended with: {said}\n" for said in sorted(set(processes.failed))), end="")
        print("".join(f"  {failure}\n" for failure in trial.failures), end="")
        return 1 if trial.failures else 0


def _ways(
    processes: Processes, counts: Counter[str], random: Random, runtime: str
) -> Iterator[tuple[str, LivesOn]]:
    names = sorted(name for name in counts if not name.endswith("fetch"))
    for _ in range(random.randint(1, 4 if runtime == "local" else 2)):
        name = random.choice(names)
        # Earlier ones more often: a life that goes on reaches fewer.
        point = Point(name, random.randint(1, max(1, random.randint(1, counts[name]) // 2)))
        kind = random.choices(
            ("itself", "request", "java"), (6, 2, 3 if runtime == "spark" else 0)
        )[0]
        if kind == "itself":
            yield f"{point.name} #{point.nth}", processes.by_itself(point)
        elif kind == "java":
            yield f"{point.name} (its Java) #{point.nth}", processes.by_java(point)
        else:
            count = random.randint(1, 12)
            yield f"a request, from outside #{count}", processes.by_request(count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
