"""Output of an evaluation: tables, pictures, the page."""

from __future__ import annotations

from pathlib import Path

from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report.report import report
from acquatop.lab.report.tables import write_tables

REPORT = "report.html"


def write_output(summary: ReplaySummary, folder: Path, *, plots: bool = True) -> None:
    """Write the CSV files, the pictures as PNG and SVG, and ``report.html``, into a folder.

    Without ``plots`` no pictures are made, and matplotlib is not needed.
    """
    from acquatop.lab.report.pictures import pictures

    write_tables(summary, folder)
    drawn = list(pictures(summary)) if plots else []
    for picture in drawn:
        picture.write(folder)
    (folder / REPORT).write_text(report(summary, drawn), "utf-8")
