"""Measure the replica store's bytes and time per key, against a dictionary of dictionaries."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Protocol, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from replica.store import ReplicaStore, Solution
from replica.terms import number_of

KEYS = 1_000_000
PAGE = 10_000
BATCHES = (1, 30, 1_000, 100_000)
"""Keys looked up, or refreshed, at once."""
Batch = TypeVar("Batch")
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


class Store(Protocol):
    """Common interface of both ways."""

    def put(self, asked: Sequence[str], solutions: Sequence[Solution], now: float) -> object:
        """Store an answer of a remote."""

    def values(self, keys: Sequence[str]) -> object:
        """Return the numbers of some keys."""


class Dictionaries:
    """Peer: a dictionary per key, with only the values and their fetch times."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, object]] = {}

    def put(self, asked: Sequence[str], solutions: Sequence[Solution], now: float) -> list[str]:
        """Store an answer of a remote; return the changed keys."""
        answers: dict[str, Solution] = {key: {} for key in asked}
        answers.update({solution["user"]: solution for solution in solutions})
        changed = []
        for key, solution in answers.items():
            term, before = solution.get("followers"), self._known.get(key)
            if before is not None and before["term"] == term:
                before["fetched_at"] = now
                continue
            number = float("nan") if term is None else number_of(term)
            self._known[key] = {"term": term, "number": number, "fetched_at": now}
            changed.append(key)
        return changed

    def values(self, keys: Sequence[str]) -> list[object]:
        """Return the numbers of some keys."""
        return [
            None if (known := self._known.get(key)) is None else known["number"] for key in keys
        ]


class Columns:
    """The store, with one number per key and its history of changes."""

    def __init__(self) -> None:
        self.store = ReplicaStore("user", ["user", "followers"])

    def put(self, asked: Sequence[str], solutions: Sequence[Solution], now: float) -> object:
        """Store an answer of a remote."""
        return self.store.put(asked, solutions, now)

    def values(self, keys: Sequence[str]) -> object:
        """Return the numbers of some keys."""
        return self.store.numbers("followers", self.store.rows(keys))


@dataclass(frozen=True)
class Line:
    """One job, and its cost in each of the two ways."""

    job: str
    unit: str
    columns: float
    dictionaries: float


def key_of(number: int) -> str:
    """Return the key of a number."""
    return f"<http://example.org/user/{number:09d}>"


def answers(first: int, stop: int, change: int = 0) -> list[Solution]:
    """Return a remote's answer for some keys."""
    return [
        {"user": key_of(at), "followers": f'"{at * 7 % 100_003 + change}"^^<{_INTEGER}>'}
        for at in range(first, stop)
    ]


def lines(count: int) -> Iterator[Line]:
    """Yield the costs to hold, load, look up and refresh a number of keys."""
    yield Line(
        "held, beside the key's text",
        "B/key",
        bytes_per_key(Columns, count),
        bytes_per_key(Dictionaries, count),
    )
    ways: tuple[Store, Store] = (Columns(), Dictionaries())
    yield Line(
        f"loaded, {PAGE:,} at once",
        "keys/s",
        *(rate(pages(count), stored(way, 1.0)) for way in ways),
    )
    chance = np.random.default_rng(1)
    for size in BATCHES:
        numbers = chance.integers(0, count + count // 10, (max(1, min(300, 200_000 // size)), size))
        batches = [list(map(key_of, batch)) for batch in numbers.tolist()]
        yield Line(
            f"looked up, {size:,} at once", "keys/s", *(rate(batches, way.values) for way in ways)
        )
    for size in BATCHES:
        refreshed = [
            answers(at, at + size, change=1)
            for at in range(0, min(100 * size, count - size + 1), size)
        ]
        yield Line(
            f"refreshed, {size:,} at once",
            "keys/s",
            *(rate(refreshed, stored(way, 2.0)) for way in ways),
        )


def bytes_per_key(way: Callable[[], Store], count: int) -> float:
    """Return the size of a store, less the keys' text."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    store = way()
    for page in pages(count):
        store.put((), page, 1.0)
    # Count only the stored data, not the last page.
    del page
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / count - len(key_of(0))


def pages(count: int) -> Iterator[list[Solution]]:
    """Yield a remote's data, page by page."""
    for first in range(0, count, PAGE):
        yield answers(first, min(first + PAGE, count))


def stored(way: Store, now: float) -> Callable[[list[Solution]], object]:
    """Return a function that stores answers for their keys."""
    return lambda batch: way.put([solution["user"] for solution in batch], batch, now)


def rate(batches: Iterable[list[Batch]], job: Callable[[list[Batch]], object]) -> float:
    """Return the keys per second of a job, without the time to make the batches."""
    seconds, count = 0.0, 0
    for batch in batches:
        started = time.perf_counter()
        job(batch)
        seconds += time.perf_counter() - started
        count += len(batch)
    return count / seconds


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench store", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--keys", type=int, default=KEYS, help=f"how many keys are held ({KEYS:,})")
    options = parser.parse_args()
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "numpy": version("numpy"),
    }
    console = Console(stderr=options.json)
    with console.status(f"{options.keys:,} keys with one integer each"):
        found = list(lines(options.keys))
    if options.json:
        print(
            json.dumps(
                {
                    "machine": machine,
                    "keys": options.keys,
                    "figures": [asdict(line) for line in found],
                }
            )
        )
        return
    caption = ", ".join(f"{key} {value}" for key, value in machine.items())
    table = Table(title=f"{options.keys:,} keys with one integer each", caption=caption)
    for heading in ("", "", "store", "dictionaries", "store : dictionaries"):
        table.add_column(heading, justify="right" if heading else "left")
    for line in found:
        ratio = line.columns / line.dictionaries
        table.add_row(
            line.job, line.unit, f"{line.columns:,.0f}", f"{line.dictionaries:,.0f}", f"{ratio:.2f}"
        )
    console.print(table)


if __name__ == "__main__":
    main()
