"""Run the papers' experiments on all structures, and rate the choice between them."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.strategies_bench import engine, grid, many, single
from benchmarks.strategies_bench.figures import draw, table

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = ("one", "many", "engine", "grid")
DRAWN = ("one", "many")
_SECTIONS = (
    ("one", single, "MinTopk's experiments"),
    ("many", many, "MTopS' experiments"),
    ("engine", engine, "Many queries through the whole engine"),
)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench strategies", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="run one section instead of all")
    parser.add_argument(
        "--quick", action="store_true", help="a few points of each, and no pictures"
    )
    parser.add_argument(
        "--fit", action="store_true", help="print the costs of steps that the grid comes to"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console = Console(stderr=options.json)
    found: dict[str, object] = {}
    for name, section, title in _SECTIONS:
        if options.only in (None, name):
            with console.status(title):
                points = list(section.points(options.quick))
            found[name] = [asdict(point) for point in points]
            if not options.json:
                console.print(table(title, points))
            if not options.quick and name in DRAWN:
                draw(points).savefig(DOCS / f"strategies-{name}.svg", metadata={"Date": None})
    if options.only in (None, "grid"):
        with console.status("the grid"):
            cells = list(grid.cells(options.quick))
        found["grid"] = [
            {
                "width": cell.width,
                "queries": cell.queries,
                "slide": cell.slide,
                "k": cell.k,
                "took": cell.took,
                "at_least": sorted(cell.at_least),
                "chosen": cell.chosen,
            }
            for cell in cells
        ]
        if not options.json:
            console.print(grid.table(cells))
        if not options.quick:
            grid.draw(cells).savefig(DOCS / "strategies-grid.svg", metadata={"Date": None})
        if options.fit:
            console.print(grid.fitted(cells))
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
