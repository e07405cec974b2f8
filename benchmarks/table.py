"""Shared output of benchmarks: machine, versions, and rows of figures, as a table or as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """Time that one way of doing the job took."""

    name: str
    seconds: float
    events: int

    @property
    def events_per_second(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def report(
    title: str, figures: Sequence[Figure], packages: Sequence[str], *, as_json: bool
) -> None:
    """Print the figures, the first of which is the floor."""
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in packages},
    }
    floor = figures[0].seconds / figures[0].events
    rows = [
        {
            "name": figure.name,
            "events": figure.events,
            "seconds": round(figure.seconds, 3),
            "events_per_second": round(figure.events_per_second),
            "times_the_floor": round(figure.seconds / figure.events / floor, 1),
        }
        for figure in figures
    ]
    if as_json:
        print(json.dumps({"title": title, "machine": machine, "figures": rows}))
        return
    table = Table(
        title=title, caption=", ".join(f"{key} {value}" for key, value in machine.items())
    )
    for heading in ("", "events", "s", "events/s", "× floor"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        table.add_row(
            str(row["name"]),
            f"{row['events']:,}",
            f"{row['seconds']}",
            f"{row['events_per_second']:,}",
            f"{row['times_the_floor']}",
        )
    Console().print(table)
