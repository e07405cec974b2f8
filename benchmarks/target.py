"""Hold a target quality with as few items as possible, beside fixed budgets, on generated data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from acquatop.catalog.quality_target import METRICS, QualityTarget
from acquatop.lab.generate import KINDS
from acquatop.lab.replay.bench import ScoreBench
from acquatop.lab.replay.data import Generated
from acquatop.lab.replay.row_trace import open_recorded
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import Trace

K, N, MOST, SETTLING = 5, 10, 40, 10
"""Results, candidates beyond them, items at most, and windows that are left out at the start."""

FIXED = (5, 7, 10)


class Held(NamedTuple):
    """Mean items per evaluation and mean quality, realised and expected."""

    items: float
    realised: float
    expected: float


def measured(trace: Trace, target: QualityTarget | None, items: int, metric: str) -> Held:
    """Replay a recording with a target, or with a fixed budget."""
    service = trace.bound.service
    assert service is not None
    service = replace(service, refresh=replace(service.refresh, target=target))
    bench = ScoreBench(replace(trace, bound=replace(trace.bound, service=service)))
    found = [*bench.measured(Setting("ANY-IMP", items, K, N, 1))][SETTLING:]
    names = ("fetches", metric, f"expected_{metric}")
    return Held(*(float(np.nanmean([getattr(each, name) for each in found])) for name in names))


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row per recording: held with the target, and by fixed budgets."""
    target = QualityTarget(options.metric, options.target)
    for kind in options.kinds:
        for seed in range(1, options.seeds + 1):
            with TemporaryDirectory(prefix="acquatop-") as folder:
                data = Generated(kind, {}, {}, windows=options.windows)
                trace = open_recorded(*data.write(seed, Path(folder) / "data"))
                assert isinstance(trace, Trace)
                held = measured(trace, target, MOST, options.metric)
                fixed = [measured(trace, None, each, options.metric) for each in FIXED]
            each = (f"{one.realised:.3f}" for one in fixed)
            yield [
                f"{kind} {seed}",
                f"{held.items:.1f}",
                f"{held.realised:.3f}",
                f"{held.expected:.3f}",
                *each,
            ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, row by row as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metric", choices=METRICS, default="precision")
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--windows", type=int, default=100)
    options = parser.parse_args(arguments)
    head = ["data", "items", "realised", "expected", *(f"{each} items" for each in FIXED)]
    table = Table(*head)
    console = Console()
    for row in rows(options):
        table.add_row(*row)
        console.print(" ".join(row))
    console.print(table)


if __name__ == "__main__":
    main()
