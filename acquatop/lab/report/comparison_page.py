"""Self-contained page of a comparison of two runs: a table, with each difference drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from acquatop.lab.report.comparison import MEASURES, Difference, RunComparison
from acquatop.lab.report.html import html_table, part_of_page

_WIDTH, _HEIGHT, _MARGIN = 160, 18, 6


def comparison_page(comparison: RunComparison) -> str:
    """Return the page. It loads nothing, and is the same for the same results."""
    title = f"{comparison.new.folder.name} against {comparison.old.folder.name}"
    tables = "".join(
        f"<h2>{heading}</h2>{_table(comparison, measure)}" for measure, heading in MEASURES.items()
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{part_of_page('report.css')}</style>\n"
        f"</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f'<p class="lead">{escape(" ".join(settings_text(comparison)))} Means per window on the '
        "windows that both have; differences with 95 % intervals, paired by window and seed."
        f"</p>\n{tables}</body>\n</html>\n"
    )


def settings_text(comparison: RunComparison) -> Iterator[str]:
    """Yield sentences about the settings in which the runs differ."""
    if not comparison.is_of_one_question:
        yield "The right answers differ: these are other recordings, or other queries."
    for axis, (before, after) in comparison.differing.items():
        yield f"{axis}: {before} before, {after} now."
    for axis, (old, new) in comparison.only_in_one.items():
        if old:
            yield f"{axis} only in {comparison.old.folder.name}: {_list(old)}."
        if new:
            yield f"{axis} only in {comparison.new.folder.name}: {_list(new)}."


def _list(values: list[object]) -> str:
    return ", ".join(str(value) or "(unnamed)" for value in values)


def _table(comparison: RunComparison, measure: str) -> str:
    found = [each for each in comparison.differences if each.measure == measure]
    bounds = (abs(end) for each in found for end in each.difference if math.isfinite(end))
    extent = max(bounds, default=0.0) or 1.0
    head = ["policy", "data", "budget", "k", "n", "old", "new", "difference", "", ""]
    rows = ([*_settings(each), *_numbers(each, extent)] for each in found)
    return html_table(head, rows, texts=(1, 9))


def _settings(each: Difference) -> list[str]:
    cell = each.new
    return [escape(cell.policy), escape(cell.data), str(cell.budget), str(cell.k), str(cell.n)]


def _numbers(each: Difference, extent: float) -> list[str]:
    mean, low, high = each.difference
    said = f"{mean:+.4f}<small>{low:+.4f}…{high:+.4f}</small>"
    marked = f'<td class="best">{said}</td>' if each.verdict == "better" else said
    drawn = _drawn(mean, low, high, extent)
    return [f"{each.before:.4f}", f"{each.after:.4f}", marked, drawn, each.verdict]


def _drawn(mean: float, low: float, high: float, extent: float) -> str:
    """Return the interval as a line with a dot, beside the line of no difference."""

    def place(value: float) -> float:
        return round(_WIDTH / 2 + (_WIDTH / 2 - _MARGIN) * value / extent, 1)

    middle = _HEIGHT / 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" stroke="currentColor">'
        f"<title>{mean:+.4f}, from {low:+.4f} to {high:+.4f}</title>"
        f'<path d="M{_WIDTH / 2} 0V{_HEIGHT}" opacity=".35"/>'
        f'<path d="M{place(low)} {middle}H{place(high)}" stroke-width="2"/>'
        f'<circle cx="{place(mean)}" cy="{middle}" r="3.5" fill="currentColor"/></svg>'
    )
