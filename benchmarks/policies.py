"""Compare refresh policies, and a clairvoyant, by their errors on generated traces."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from acquatop.lab.generate import KINDS, KindOfData, Redrawn, generate
from acquatop.lab.replay.bootstrap import interval
from acquatop.lab.replay.clairvoyant import Clairvoyant
from acquatop.lab.replay.measure import measure
from acquatop.lab.replay.oracle import Oracle, Right
from acquatop.lab.replay.replay import Replay
from acquatop.lab.replay.setting import CLAIRVOYANT, Setting
from acquatop.lab.replay.trace import Trace, open_trace
from replica.budget import Budget
from replica.rankers.battery import sample_candidates
from replica.rankers.imp import ExpectedImpact

K, N = 5, 10
PAPERS = (
    "WSJ-RND",
    "WSJ-WST",
    "WSJ-LRU",
    "WSJ-WBM",
    "AT-LRU",
    "AT-WBM",
    "AT-TSM",
    "AT-BSM",
)
OURS = "ANY-IMP"
POLICIES = (*PAPERS, OURS, CLAIRVOYANT)
ITEMS = (1, 3, 7, 15)
BANKS = (0, 3)
"""Evaluations' budgets that may be saved up."""
METRICS = ("nDCG", "precision")
KINDS_OF_DATA = {**KINDS, "redrawn 60": KindOfData(Redrawn(60.0))}
FIRST_SEED = 20_190
_LEAST = 0.001
"""Mean error per window below which the best of the papers' policies leaves nothing to gain."""
_WIDTH = 160
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One run: trace, policy, the items of each evaluation, and how many may be saved up."""

    kind: str
    seed: int
    windows: int
    policy: str
    items: int
    bank: int


@dataclass(frozen=True)
class Recording:
    """A generated trace, and the right answers of its windows."""

    trace: Trace
    oracle: Oracle
    right: Sequence[Right]

    def with_bank(self, items: int) -> Trace:
        """Return the trace with a bank for so many items."""
        service = self.trace.bound.service
        assert service is not None
        refresh = replace(service.refresh, bank=Budget(items, items, 0.0))
        bound = replace(self.trace.bound, service=replace(service, refresh=refresh))
        return replace(self.trace, bound=bound)


@lru_cache(maxsize=2)
def recorded(kind: str, seed: int, windows: int) -> Recording:
    """Return a generated trace, as it is read back from its files; the last two are cached."""
    made = generate(KINDS_OF_DATA[kind], seed=seed, windows=windows)
    folder = TemporaryDirectory()
    _FOLDERS.append(folder)
    made.write(Path(folder.name))
    trace = open_trace(folder.name, made.query)
    oracle = Oracle(trace)
    return Recording(trace, oracle, list(oracle))


_FOLDERS: list[TemporaryDirectory[str]] = []
"""Folders of this process's traces, which are read as long as it lasts."""


def run(case: Case) -> FloatArray:
    """Return each answer's shortfall from an nDCG and a precision of 1, and the items asked for."""
    recording = recorded(case.kind, case.seed, case.windows)
    trace = recording.with_bank(case.bank)
    setting = Setting(case.policy, case.items, K, N, case.seed)
    knows = case.policy == CLAIRVOYANT
    source = Clairvoyant(trace, recording.oracle) if knows else Replay(trace)
    measured = (
        measure(given, right, K)
        for given, right in zip(source.answers(setting), recording.right, strict=True)
    )
    return np.array([(1 - each.ndcg, 1 - each.precision, each.fetches) for each in measured])


# Results ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """The default's error against another's: both sums, and the interval of the difference."""

    ours: float
    other: float
    low: float
    high: float

    @property
    def counts(self) -> bool:
        """True if the interval does not hold zero."""
        return self.low > 0 or self.high < 0


@dataclass
class Found:
    """Errors and spending of all runs: a row per trace, a column per window."""

    windows: int
    of: dict[tuple[str, str, int, int], FloatArray] = field(default_factory=dict)
    """By kind, policy, items and how many evaluations' budgets are saved."""

    @property
    def kinds(self) -> list[str]:
        """Kinds of data."""
        return list(dict.fromkeys(kind for kind, *_ in self.of))

    def error(self, kind: str, policy: str, items: int, bank: int, metric: int) -> float:
        """Return the mean over the traces of the errors' sums."""
        return float(self.of[kind, policy, items, bank][:, :, metric].sum(axis=1).mean())

    def spent(self, kind: str, policy: str, items: int, bank: int) -> float:
        """Return the mean number of items asked for in an evaluation."""
        return float(self.of[kind, policy, items, bank][:, :, 2].mean())

    def best(self, kind: str, items: int, bank: int, metric: int) -> str:
        """Return the best of the papers' policies."""
        return min(PAPERS, key=lambda policy: self.error(kind, policy, items, bank, metric))

    def against(
        self, kind: str, items: int, bank: int, metric: int, other: tuple[str, int]
    ) -> Difference:
        """Compare the default with another policy and bank, trace by trace, window by window."""
        ours, others = (
            self.of[kind, policy, items, saved][:, :, metric]
            for policy, saved in ((OURS, bank), other)
        )
        _, low, high = interval(ours - others)
        bounds = low * self.windows, high * self.windows
        return Difference(float(ours.sum(axis=1).mean()), float(others.sum(axis=1).mean()), *bounds)


def measured(
    kinds: Sequence[str],
    items: Sequence[int],
    banks: Sequence[int],
    seeds: Sequence[int],
    windows: int,
    processes: int,
) -> Found:
    """Run all policies with all budgets over all traces."""
    cases = [
        Case(kind, seed, windows, policy, some, 0)
        for kind, seed, some, policy in itertools.product(kinds, seeds, items, POLICIES)
    ]
    several: dict[tuple[str, str, int, int], list[FloatArray]] = {}
    with ProcessPoolExecutor(processes) as pool:
        of_cases = pool.map(run_all, cases, itertools.repeat(banks), chunksize=len(POLICIES))
        for case, errors in zip(cases, of_cases, strict=True):
            for bank, each in zip(banks, errors, strict=True):
                several.setdefault((case.kind, case.policy, case.items, bank), []).append(each)
    return Found(windows, {key: np.array(rows) for key, rows in several.items()})


def run_all(case: Case, banks: Sequence[int]) -> list[FloatArray]:
    """Run a case with several banks.

    One of the papers' policies asks first in, first out, for as much as it may: if it leaves
    nothing in any window, or never asks, a bank is never used, and its answers are the same.
    """
    without = run(case)
    asked = without[:, 2]
    is_full = case.policy in PAPERS and bool((asked >= case.items).all() or not asked.any())
    return [
        without if is_full or not bank else run(replace(case, bank=bank * case.items))
        for bank in banks
    ]


def report(found: Found, items: Sequence[int], banks: Sequence[int]) -> None:
    """Print tables: one per kind and bank, then the comparisons."""
    console = Console(width=_WIDTH)
    for bank, kind in itertools.product(banks, found.kinds):
        saved = f", {bank} evaluations' budget saved" if bank else ""
        title = f"{kind}{saved}: error of nDCG / precision, {found.windows} windows (items asked)"
        table = _table(title, items, "policy")
        for policy in POLICIES:
            table.add_row(policy, *(_cell(found, kind, policy, some, bank) for some in items))
        console.print(table)
    for bank in banks:
        console.print(_against_papers(found, items, bank))
    if len(banks) > 1:
        console.print(_against_itself(found, items, banks[0], banks[-1]))


def _cell(found: Found, kind: str, policy: str, items: int, bank: int) -> str:
    ndcg, precision = (found.error(kind, policy, items, bank, metric) for metric in (0, 1))
    return f"{ndcg:.1f} / {precision:.1f} ({found.spent(kind, policy, items, bank):.1f})"


def _against_papers(found: Found, items: Sequence[int], bank: int) -> Table:
    """Return how far the default's errors differ from those of the best of the papers'."""
    saved = f"{bank} evaluations' budget saved" if bank else "no bank"
    title = (
        f"{saved}: {OURS} against the papers' best, in % [95 % of the paired differences; * beyond "
        f"noise] (share of the gap to the {CLAIRVOYANT} closed)"
    )
    table = _table(title, items)
    for metric, name in enumerate(METRICS):
        cells = {
            (kind, some): found.against(
                kind, some, bank, metric, (found.best(kind, some, bank, metric), bank)
            )
            for kind, some in itertools.product(found.kinds, items)
        }
        for kind in found.kinds:
            row = [
                _said(cells[kind, some], found.error(kind, CLAIRVOYANT, some, bank, metric))
                for some in items
            ]
            table.add_row(f"{name}, {kind}", *row)
        means, sums = [], []
        for some in items:
            each = [cells[kind, some] for kind in found.kinds]
            knowing = [found.error(kind, CLAIRVOYANT, some, bank, metric) for kind in found.kinds]
            shares = [
                one.ours / one.other - 1 for one in each if one.other >= _LEAST * found.windows
            ]
            ours, others = sum(one.ours for one in each), sum(one.other for one in each)
            means.append(f"{np.mean(shares):+.0%}" if shares else "")
            sums.append(
                f"{ours / others - 1:+.0%} ({(others - ours) / (others - sum(knowing)):.0%})"
            )
        table.add_row(f"{name}, mean of the kinds", *means)
        table.add_row(f"{name}, errors of all kinds added", *sums, end_section=True)
    return table


def _against_itself(found: Found, items: Sequence[int], without: int, bank: int) -> Table:
    """Return how far the default's errors with a bank differ from those without."""
    table = _table(f"{OURS} with {bank} evaluations' budget saved against {without}", items)
    for (metric, name), kind in itertools.product(enumerate(METRICS), found.kinds):
        row = [
            _said(found.against(kind, some, bank, metric, (OURS, without)), None) for some in items
        ]
        table.add_row(f"{name}, {kind}", *row)
    return table


def _said(each: Difference, knowing: float | None) -> str:
    if each.other <= 0:
        return f"{each.ours - each.other:+.1f} of none"
    low, high = each.low / each.other, each.high / each.other
    mark = "*" if each.counts else ""
    text = f"{each.ours / each.other - 1:+.0%}{mark} [{low:+.0%} {high:+.0%}]"
    if knowing is None or each.other <= knowing:
        return text
    return f"{text} ({(each.other - each.ours) / (each.other - knowing):.0%})"


def _table(title: str, items: Sequence[int], first: str = "") -> Table:
    table = Table(first, title=title)
    for some in items:
        table.add_column(f"{some} item{'s' * (some > 1)}", justify="right")
    return table


def rows(found: Found) -> Iterator[dict[str, object]]:
    """Yield all results as objects."""
    for (kind, policy, items, bank), errors in found.of.items():
        sums = errors.sum(axis=1)
        yield {
            "kind": kind,
            "policy": policy,
            "items": items,
            "bank": bank,
            "ndcg errors": sums[:, 0].tolist(),
            "precision errors": sums[:, 1].tolist(),
            "asked": sums[:, 2].tolist(),
        }


def milliseconds(candidates: int, times: int = 20) -> float:
    """Return the median milliseconds to rank candidates, sampling of their merits included."""
    random = np.random.default_rng(1)
    merits = -np.sort(-random.normal(size=candidates))

    def outlook(at: IntArray, count: int) -> FloatArray:
        return merits[at] + random.standard_normal((count, len(at)))

    given = replace(sample_candidates(candidates), merits=merits, outlook=outlook)
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        ExpectedImpact()(given)
        taken.append(time.perf_counter() - started)
    return 1000 * float(np.median(taken))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench policies", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer traces and windows")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS_OF_DATA, default=list(KINDS_OF_DATA), help="data (all)"
    )
    parser.add_argument(
        "--items", nargs="+", type=int, default=ITEMS, help="budgets per evaluation (%(default)s)"
    )
    parser.add_argument(
        "--banks",
        nargs="+",
        type=int,
        default=BANKS,
        help="how many evaluations' budgets may be saved up (%(default)s)",
    )
    parser.add_argument("--traces", type=int, help="how many traces of each kind (3, quick 2)")
    parser.add_argument("--windows", type=int, help="how many windows of each (150, quick 60)")
    parser.add_argument(
        "--seed", type=int, default=FIRST_SEED, help="of the first trace (%(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="how many runs at once (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    windows = options.windows or (60 if options.quick else 150)
    seeds = range(options.seed, options.seed + (options.traces or (2 if options.quick else 3)))
    found = measured(options.kinds, options.items, options.banks, seeds, windows, options.processes)
    ranking = milliseconds(10_000)
    if options.json:
        print(json.dumps({"errors": [*rows(found)], "milliseconds to rank 10 000": ranking}))
        return
    report(found, options.items, options.banks)
    print(f"to rank 10 000 candidates takes {ranking:.1f} ms")


if __name__ == "__main__":
    main()
