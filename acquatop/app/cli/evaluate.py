"""``acquatop evaluate``: replay a recording in many settings, and report the accuracy of each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import read_text, write_line
from acquatop.app.cli.replay_progress import telling
from acquatop.errors import UserError

if TYPE_CHECKING:
    from acquatop.lab.replay.experiment import Experiment
    from acquatop.lab.replay.summary import ReplaySummary

METRICS = {"ndcg": "nDCG", "precision": "precision"}
"""The metrics of the tables, and their headings."""

POLICIES = ("WSJ-LRU", "WSJ-WBM", "AT-TSM", "AT-BSM", "ANY-IMP")
BUDGETS = (1, 3, 7, 15)


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "evaluate", help="replay a recording with many policies and budgets, and compare them"
    )
    add_trace_options(parser, required=False)
    parser.add_argument(
        "--experiment", metavar="NAME|FILE", help="a TOML file that says all of this, or 0 to 4"
    )
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="what kind of data an experiment generates, such as list, in place of its own",
    )
    parser.add_argument(
        "--budgets", nargs="+", type=wholes, metavar="B", help="items per evaluation (1 3 7 15)"
    )
    parser.add_argument(
        "-k", nargs="+", type=wholes, metavar="K", help="how many results (as the query says)"
    )
    parser.add_argument(
        "-n",
        nargs="+",
        type=wholes,
        metavar="N",
        help="how many more candidates (as the catalog says)",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=wholes, metavar="S", help="of chance, and of generated data (1)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where tables, pictures and the report go"
    )
    parser.add_argument(
        "--no-plots", action="store_true", help="draw no pictures: then matplotlib is not needed"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per setting instead of tables"
    )
    add_process_options(parser)
    parser.set_defaults(execute=execute)


def add_trace_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options that name a recording, a query and policies."""
    parser.add_argument(
        "--trace", type=Path, required=required, metavar="DIR", help="a folder with a recording"
    )
    parser.add_argument(
        "--query", required=required, metavar="FILE", help="a file with an RSP-QL query"
    )
    parser.add_argument(
        "--policies", nargs="+", type=texts, metavar="P", help="such as AT-TSM WSJ-LRU"
    )


def add_process_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that control execution."""
    parser.add_argument(
        "--processes", type=positive, metavar="N", help="how many at once (one per core)"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def execute(options: argparse.Namespace) -> None:
    """Run the settings that have no results yet, print a summary, and write the requested files."""
    from acquatop.lab.replay.runner import run
    from acquatop.lab.replay.summary import ReplaySummary
    from acquatop.lab.report import REPORT, write_output
    from acquatop.lab.report.drawing import check_drawing

    experiment = _experiment(options)
    plots = options.out is not None and not options.no_plots
    if plots:
        check_drawing()
    with _folder(options.out) as folder, telling(options.out) as told:
        summary = ReplaySummary(run(experiment, folder, processes=options.processes, told=told))
    _say_notes(summary)
    if options.out is not None:
        write_output(summary, options.out, plots=plots)
    if options.json:
        _print_json(summary)
    else:
        _print_tables(summary)
        if options.out is not None:
            write_line(f"report: {options.out / REPORT}")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder for results: the given one, or else a temporary one."""
    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="acquatop-") as scratch:
        yield Path(scratch)


# The experiment -----------------------------------------------------------------------------------


def _experiment(options: argparse.Namespace) -> Experiment:
    from dataclasses import replace

    from acquatop.lab.replay.experiment import load_experiment
    from acquatop.lab.replay.setting import CLAIRVOYANT

    given = {
        "policies": options.policies,
        "budgets": options.budgets,
        "ks": options.k,
        "ns": options.n,
    }
    given |= {"seeds": options.seeds}
    said: dict[str, Any] = {
        name: joined(values) for name, values in given.items() if values is not None
    }
    if options.kind is not None and options.experiment is None:
        raise UserError("--kind is for experiments that generate data: name one with --experiment")
    if options.experiment is not None:
        if options.trace is not None or options.query is not None:
            raise UserError(
                "an experiment says which recording is replayed: leave out --trace and --query"
            )
        experiment = load_experiment(options.experiment)
        if options.kind is not None:
            experiment = experiment.on_kind(_kind(options.kind))
    elif options.trace is None or options.query is None:
        raise UserError(
            "there is nothing to replay\n  hint: give --trace DIR and --query FILE, or "
            "--experiment NAME"
        )
    else:
        experiment = of_trace(options.trace, options.query)
    check_policies(said.get("policies", ()), yardsticks=(CLAIRVOYANT,))
    return replace(experiment, **said)


def _kind(name: str) -> str:
    """Return the name of a kind of generated data; raise :class:`UserError` for others."""
    from acquatop.lab.generate import KINDS

    if name not in KINDS:
        raise UserError(f'there is no kind "{name}"\n  hint: known are {", ".join(KINDS)}')
    return name


def of_trace(folder: Path, file: str) -> Experiment:
    """Return an experiment on a recording, with the query's K and the catalog's N.

    Raises errors of the recording and of the query before anything is replayed.
    """
    from acquatop.lab.replay.data import Recorded
    from acquatop.lab.replay.experiment import Experiment
    from acquatop.lab.replay.row_trace import RowTrace, open_recorded

    query = read_text(file)
    trace = open_recorded(folder, query, file)
    data = Recorded(folder.resolve(), query, file)
    if isinstance(trace, RowTrace):
        k, n = trace.k, trace.n
    else:
        assert trace.bound.service is not None
        k, n = trace.bound.plan.k, trace.bound.service.refresh.n
    question = (
        f"{file} on the recording {data.folder.name}: which policy and which budget give which "
        "accuracy?"
    )
    return Experiment(
        (data,),
        POLICIES,
        BUDGETS,
        (k,),
        (n,),
        title=f"Policies on {data.folder.name}",
        question=question,
    )


def check_policies(policies: tuple[str, ...], yardsticks: tuple[str, ...] = ()) -> None:
    """Raise :class:`UserError` for what is neither a policy nor one of the yardsticks."""
    from acquatop.catalog.services import policies as policies_of
    from rspql.diagnostics import nearest

    known = (*policies_of(), *yardsticks)
    for each in policies:
        if each not in known:
            near = nearest(each, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
            raise UserError(f'there is no policy "{each}"\n  hint: {hint}')


def joined(values: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the values of an option that was given in several parts, each value once."""
    return tuple(dict.fromkeys(each for several in values for each in several))


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def texts(text: str) -> tuple[str, ...]:
    """Return the comma-separated parts of a text, without empty ones."""
    return tuple(each for each in text.split(",") if each)


def wholes(text: str) -> tuple[int, ...]:
    """Return comma-separated whole numbers."""
    values = texts(text)
    if not values or not all(each.isascii() and each.isdigit() for each in values):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 1,3,7")
    return tuple(map(int, values))


# Output -------------------------------------------------------------------------------------------


def _say_notes(summary: ReplaySummary) -> None:
    """Log what is odd in the recordings as warnings."""
    import logging

    for place, counts in sorted(summary.results.notes.items()):
        for what, count in counts.items():
            if not what.endswith("what held already"):
                logging.getLogger("acquatop").warning("%s: %s %s", place, f"{count:,}", what)


def _print_json(summary: ReplaySummary) -> None:
    from dataclasses import asdict

    from acquatop.lab.replay.measure import NUMBERS

    for cell in summary.cells:
        measures = {name: summary.interval(cell, name)._asdict() for name in NUMBERS}
        measures = {
            name: {part: _plain(value) for part, value in each.items()}
            for name, each in measures.items()
        }
        windows = summary.series(cell, "ndcg").shape[1]
        write_line(json.dumps({**asdict(cell), "windows": windows, **measures}, ensure_ascii=False))


def _plain(value: float) -> float | None:
    return None if value != value else round(value, 6)


def _print_tables(summary: ReplaySummary) -> None:
    from rich.console import Console
    from rich.table import Table

    from acquatop.lab.report.axes import views

    console = Console()
    for view, (metric, name) in product(views(summary.experiment), METRICS.items()):
        table = Table(
            title=f"{name}, mean per window{', at ' + view.rest if view.rest else ''}",
            title_justify="left",
        )
        table.add_column(view.axis.name)
        for text in view.axis.texts():
            table.add_column(text, justify="right")
        for policy in summary.experiment.policies:
            cells = [view.cell(policy, value) for value in view.axis.values]
            table.add_row(policy, *(f"{summary.interval(cell, metric).mean:.3f}" for cell in cells))
        console.print(table)
