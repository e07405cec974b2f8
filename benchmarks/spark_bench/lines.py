"""Output of the benchmark: a table for each part, a line for each way of doing its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.table import Table

from benchmarks.spark_bench.floor import Answers, differences


@dataclass(frozen=True)
class Line:
    """One way of doing a job: its figures by column, and a note."""

    way: str
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    is_right: bool = True


@dataclass(frozen=True)
class Part:
    """Results of a part of the benchmark: title, target, and lines."""

    letter: str
    title: str
    wanted: str
    columns: Sequence[str]
    lines: Sequence[Line]

    def table(self) -> Table:
        """Return the part as a printable table."""
        caption = f"wanted: {self.wanted}"
        table = Table(title=f"{self.letter}. {self.title}", caption=caption, title_justify="left")
        table.add_column("")
        for column in self.columns:
            table.add_column(column, justify="right")
        table.add_column("", overflow="fold")
        for line in self.lines:
            table.add_row(
                line.way, *(shown(line.figures.get(each)) for each in self.columns), line.note
            )
        return table


def shown(figure: float | None) -> str:
    """Return a figure in readable form.

    >>> shown(168_123.4), shown(8.123), shown(0.0456), shown(None)
    ('168,123', '8.12', '0.0456', '')
    """
    if figure is None:
        return ""
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.3g}"


def checked(line: Line, expected: Answers, result: Mapping[str, Any]) -> Line:
    """Return a way's line, with a note if the answers of its result are not the expected ones."""
    given = {
        close: [(number, score) for number, score in rows] for close, rows in result["answers"]
    }
    wrong = differences(expected, given)
    if not wrong:
        return line
    note = f"WRONG in {len(wrong)} of {len(expected)} windows, first {wrong[0]}"
    return replace(line, note=f"{line.note}; {note}" if line.note else note, is_right=False)


def relative(lines: Sequence[Line], to: int, figure: str, column: str) -> list[Line]:
    """Add a column with each line's figure as a multiple of one line's."""
    one = lines[to].figures.get(figure)
    if not one:
        return list(lines)
    return [
        replace(line, figures={**line.figures, column: line.figures[figure] / one})
        if figure in line.figures
        else line
        for line in lines
    ]
