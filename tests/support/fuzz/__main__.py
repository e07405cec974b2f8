"""Command line of the fuzzer: ``python -m tests.support.fuzz --seeds N [--from SEED]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.fuzz.judge import Report, trial
from tests.support.fuzz.trial import IN_PROCESS


def main(arguments: Sequence[str]) -> int:
    """Run the seeds, say what failed and how to replay it, and count what was sent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds (100)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed (0)")
    parser.add_argument("--connectors", default=",".join(IN_PROCESS), help="with commas between")
    options = parser.parse_args(arguments)
    connectors = options.connectors.split(",")
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    began = time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        problems, report = problems_of(seed, connectors)
        if report is not None:
            counts.update(items=report.items, used=report.used, late=report.late)
            counts.update(bad=sum(report.bad.values()), answers=report.answers)
            counts[" ".join(report.about.split()[:2])] += 1
            reasons.update(report.bad)
        if problems:
            counts["failed"] += 1
            print(f"seed {seed} fails; replay it alone with: {replay(seed, connectors)}")
            print("\n".join(f"  {each:.1500}" for each in problems[:5]), flush=True)
    print(f"{options.seeds} seeds in {time.monotonic() - began:.0f} s: {dict(counts)}")
    print(f"bad by reason: {dict(reasons.most_common())}")
    return 1 if counts["failed"] else 0


def problems_of(
    seed: int, connectors: Sequence[str], spark: SparkSession | None = None
) -> tuple[list[str], Report | None]:
    """Return the problems of a seed, and its report if it came to its end."""
    with tempfile.TemporaryDirectory(prefix="acquatop-fuzz-") as name:
        try:
            report = trial(seed, Path(name), connectors, spark)
        except Exception:
            return [traceback.format_exc()], None
    problems = [f"{report.about}: {each}" for each in report.problems]
    return problems, report


def replay(seed: int, connectors: Sequence[str]) -> str:
    """Return the command that replays one seed."""
    chosen = f" --connectors {','.join(connectors)}"
    return f"python -m tests.support.fuzz --from {seed} --seeds 1{chosen}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
