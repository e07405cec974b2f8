"""CSV files of an experiment's results: rewritten each time, deterministic for equal results."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from acquatop.lab.replay.bench import Bench
from acquatop.lab.replay.data import Data
from acquatop.lab.replay.measure import NUMBERS
from acquatop.lab.replay.runner import Results
from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report.axes import place_text

RESULTS = (
    "policy,budget,k,n,seed,window,close_ms,ndcg,ndcg_positional,precision,fetches,requests,status,"
    "expected_precision,expected_ndcg,answer"
).split(",")
RIGHT = "seed,close_ms,place,result,score".split(",")
DETAILS = "policy,budget,k,n,seed,window,rank_correlation,stale,age_seconds".split(",")
SUMMARY = (
    "data,policy,budget,k,n,seeds,windows,measure,"
    "cumulated,cumulated_median,cumulated_low,cumulated_high,mean,mean_low,mean_high"
).split(",")
IMPROVEMENTS = (
    "new,old,metric,most_percent,most_at,least_percent,least_at,"
    "printed_most_percent,printed_least_percent"
).split(",")


def write_tables(summary: ReplaySummary, folder: Path) -> None:
    """Write the results as CSV files into a folder.

    The files are ``results.csv``, ``details.csv``, ``right.csv``, ``summary.csv`` and
    ``improvements.csv``. If recordings differ in more than the seed, the first three are in a
    folder for each, by its name.
    """
    results, most = summary.results, max(summary.experiment.ks)
    for data in summary.experiment.data:
        place = folder / data.name if data.name else folder
        place.mkdir(parents=True, exist_ok=True)
        _write(place / "results.csv", RESULTS, _rows(results, data.name, RESULTS[5:]))
        _write(place / "details.csv", DETAILS, _rows(results, data.name, DETAILS[5:]))
        _write(place / "right.csv", RIGHT, _right(data, summary.experiment.seeds, most))
    _write(folder / "summary.csv", SUMMARY, _summary(summary))
    _write(folder / "improvements.csv", IMPROVEMENTS, _improvements(summary))


def _rows(results: Results, name: str, columns: Sequence[str]) -> Iterable[Sequence[object]]:
    for setting in results.experiment.settings():
        for measured in results.measured[name, setting]:
            yield *astuple(setting), *(getattr(measured, column) for column in columns)


def _right(data: Data, seeds: Sequence[int], most: int) -> Iterable[Sequence[object]]:
    """Yield the right results of each window, computed anew: that takes less than to keep them."""
    for seed in seeds if data.varies_by_seed else seeds[:1]:
        with TemporaryDirectory(prefix="acquatop-") as scratch:
            bench = Bench(data, seed, Path(scratch))
        for right in bench.right(most):
            yield seed, *right


def _summary(summary: ReplaySummary) -> Iterable[Sequence[object]]:
    for cell in summary.cells:
        for name in NUMBERS:
            series = summary.series(cell, name)
            seeds, windows = series.shape
            mean = summary.interval(cell, name)
            cumulated = summary.cumulated(cell, name)
            bounds = (windows * mean.low, windows * mean.high)
            sums = float(cumulated.mean()), float(np.median(cumulated)), *bounds
            yield *astuple(cell), seeds, windows, name, *sums, *mean


def _improvements(summary: ReplaySummary) -> Iterable[Sequence[object]]:
    for each in summary.improvements():
        most, least = (
            place_text(summary.experiment, cell) or "everywhere"
            for cell in (each.at_most, each.at_least)
        )
        printed = ("", "") if each.printed is None else (each.printed.most, each.printed.least)
        yield each.new, each.old, each.metric, each.most, most, each.least, least, *printed


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value) for value in row] for row in rows)
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(text.getvalue(), "utf-8")
    fresh.replace(path)


def _text(value: object) -> str:
    """Return a value as text: floats with six decimals, NaN as an empty text.

    >>> _text(0.1 + 0.2), _text(7), _text(math.nan), _text("exact")
    ('0.300000', '7', '', 'exact')
    """
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value + 0.0:.6f}"
    return str(value)
