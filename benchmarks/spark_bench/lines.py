"""Output of the benchmark: a table for each part, a line for each way of doing its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table


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
