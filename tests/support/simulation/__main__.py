"""Command line of the simulation: ``./run simulate --seeds N [--from SEED] [--jobs N]``."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from tests.support.simulation.checker import Verdict
from tests.support.simulation.runs import a_folder, simulate

_PORTION = 25


@dataclass
class Portion:
    """Result of some seeds in a row."""

    count: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    failures: list[tuple[int, list[str], list[str]]] = field(default_factory=list)
    """Seeds that failed, each with its problems and its trace."""


def run_portion(seeds: Sequence[int]) -> Portion:
    """Run some seeds in this process."""
    portion = Portion()
    with a_folder() as folder:
        for seed in seeds:
            portion.count += 1
            try:
                result = simulate(seed, folder)
            except Exception:
                portion.failures.append((seed, [traceback.format_exc()], []))
                continue
            portion.verdict.add(result.verdict)
            if result.verdict.problems:
                portion.failures.append((seed, result.verdict.problems, result.trace))
    return portion


def main(arguments: Sequence[str]) -> int:
    """Run the seeds, say what failed and how to replay it, and count what was judged."""
    parser = argparse.ArgumentParser(prog="./run simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="number of seeds (1000)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--trace", action="store_true", help="print the schedule of failing seeds")
    options = parser.parse_args(arguments)
    whole, began = Portion(), time.monotonic()
    for portion in _portions(range(options.first, options.first + options.seeds), options.jobs):
        whole.count += portion.count
        whole.verdict.add(portion.verdict)
        whole.failures += portion.failures
        for seed, problems, trace in portion.failures:
            _print_failure(seed, problems, trace if options.trace else ())
        if sys.stderr.isatty():
            print(f"\r{whole.count} seeds", end="", file=sys.stderr, flush=True)
    _print_counts(whole, time.monotonic() - began)
    return 1 if whole.failures else 0


def _portions(seeds: range, jobs: int) -> Iterator[Portion]:
    portions = [seeds[at : at + _PORTION] for at in range(0, len(seeds), _PORTION)]
    if jobs == 1:
        yield from map(run_portion, portions)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_portion, portions)


def replay(seed: int) -> str:
    """Return the command that replays one seed."""
    return f"./run simulate --from {seed} --seeds 1 --trace"


def _print_failure(seed: int, problems: Sequence[str], trace: Sequence[str]) -> None:
    print(f"\nseed {seed} fails; replay it alone with: {replay(seed)}")
    for line in chain(problems[:10], trace):
        print("  " + line)


def _print_counts(whole: Portion, seconds: float) -> None:
    verdict = whole.verdict
    failed = len(whole.failures)
    print(f"\n{whole.count} seeds in {seconds:.0f} s, {failed} failed; answers judged by status:")
    _print_table(verdict.judged)
    print("answers judged after a fault, by its kind:")
    _print_table(verdict.under)
    print("answers judged by feature and status:")
    _print_coverage(verdict.covered)
    print("checks:")
    _print_table(verdict.checks)


def _print_coverage(covered: Counter[tuple[str, str]]) -> None:
    statuses = ("exact", "certified", "approximate")
    for feature in sorted({name for name, _ in covered}):
        counts = "".join(f"{covered[feature, status]:9d}" for status in statuses)
        print(f"{counts}  {feature}")


def _print_table(counts: Counter[str]) -> None:
    for name, count in counts.most_common():
        print(f"  {count:9d}  {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
