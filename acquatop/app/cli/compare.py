"""``acquatop compare``: show in what two runs of ``evaluate`` differ, beyond noise."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import write_line

if TYPE_CHECKING:
    from acquatop.lab.report.comparison import RunComparison


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("compare", help="show in what two runs of evaluate differ")
    parser.add_argument("old", type=Path, metavar="OLD", help="a folder that evaluate has written")
    parser.add_argument("new", type=Path, metavar="NEW", help="another one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a page, such as diff.html")
    parser.add_argument("--json", action="store_true", help="print one JSON object per difference")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the differences, and write the page if one is wanted."""
    from acquatop.lab.report.comparison import EvaluatedRun, RunComparison
    from acquatop.lab.report.comparison_page import comparison_page

    comparison = RunComparison(EvaluatedRun(options.old), EvaluatedRun(options.new))
    found = comparison.differences
    if options.out is not None:
        options.out.write_text(comparison_page(comparison), "utf-8")
    if not options.json:
        _print_tables(comparison)
        return
    for each in found:
        write_line(json.dumps(each.to_json(), ensure_ascii=False))


def _print_tables(comparison: RunComparison) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from acquatop.lab.report.comparison import AXES, MEASURES
    from acquatop.lab.report.comparison_page import settings_text

    for line in settings_text(comparison):
        write_line(line)
    console = Console()
    varying = [
        axis for axis in AXES if len({getattr(new, axis) for _, new in comparison.pairs}) > 1
    ] or ["policy"]
    for measure, heading in MEASURES.items():
        table = Table(title=f"{heading}, mean per window", title_justify="left")
        for axis in varying:
            table.add_column(axis)
        for name in ("old", "new", "difference", "95 % interval"):
            table.add_column(name, justify="right")
        table.add_column("")
        for each in comparison.differences:
            if each.measure == measure:
                mean, low, high = each.difference
                table.add_row(
                    *(escape(str(getattr(each.new, axis))) for axis in varying),
                    *(f"{each.before:.3f}", f"{each.after:.3f}", f"{mean:+.3f}"),
                    f"{low:+.3f}…{high:+.3f}",
                    each.verdict,
                )
        console.print(table)
