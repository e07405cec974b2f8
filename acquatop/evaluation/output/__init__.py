"""All that an evaluation leaves behind: tables, pictures, the page."""

from __future__ import annotations

from pathlib import Path

from acquatop.evaluation.output.report import report
from acquatop.evaluation.output.tables import write_tables
from acquatop.evaluation.summary import Summary

REPORT = "report.html"


def write_output(summary: Summary, folder: Path, *, plots: bool = True) -> None:
    """Write the CSV files, the pictures as PNG and SVG, and ``report.html``, into a folder.

    Without ``plots`` nothing is drawn, and matplotlib is not needed.
    """
    from acquatop.evaluation.output.pictures import pictures

    write_tables(summary, folder)
    drawn = list(pictures(summary)) if plots else []
    for picture in drawn:
        picture.write(folder)
    (folder / REPORT).write_text(report(summary, drawn), "utf-8")
