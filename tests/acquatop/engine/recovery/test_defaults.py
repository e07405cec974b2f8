"""Killed at every point with a catalog that names only required keys, each kind of remote in turn.

The streams grow while the engine runs and while it is down. The answers are those that rdflib gives
for whole windows, each written once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from examples.oxigraph import OxigraphServer
from tests.support.crash.killing import strikes
from tests.support.crash.reaper import POINTS, Point, Reaper
from tests.support.disks import quick_folder
from tests.support.markers import THOROUGH
from tests.support.minimal_lives import PARTS, Lives
from tests.support.minimal_oracle import problems
from tests.support.minimal_worlds import (
    KINDS,
    Query,
    catalog_of,
    file_streams,
    queries,
    remotes,
)

INCREMENTAL = (
    "top",
    "aggregate_top",
    "istream_top",
    "bottom",
    "stream_only",
    "two_keys",
    "computed",
)
WHOLE = ("all", "optional", "construct", "twice", "distinct", "two_windows", "aggregates")
"""Queries that are answered from whole windows, by a process that each life must start."""
WITH_WHOLE = ("python", "sparql")
IN_A_PART = 3
"""Kills in a part of the streams at most: so each kind of remote is there for some."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


def asked(kind: str) -> list[Query]:
    names = (*INCREMENTAL, *(WHOLE if kind in WITH_WHOLE else ()))
    alone = [query for query in queries("stream") if query.name in (*names, "counted_top")]
    joined = [query for query in queries("service") if query.name in names]
    return joined + [Query(f"stream_{query.name}", query.text) for query in alone]


@contextmanager
def world(folder: Path, server: OxigraphServer, kind: str) -> Iterator[Lives]:
    """Yield lives with one kind of remote, which have come to their end afterwards."""
    place = folder / kind
    place.mkdir()
    with remotes(place, server) as people:
        catalog = catalog_of(file_streams(place), people.table(kind))
        (place / "catalog.toml").write_text(catalog, "utf-8")
        yield Lives(place, asked(kind))


def reached(lives: Lives) -> deque[Point]:
    """Live without a kill, and return the points that were reached.

    Points after a step are left out: before the next one nothing happens that anyone could see.
    """
    reaper = Reaper()
    with reaper.at_work():
        killed(lives, deque())
    names = (name for name in POINTS if not name.startswith("after"))
    return deque(Point(name) for name in names if reaper.counts[name])


def killed(lives: Lives, points: deque[Point]) -> int:
    """Live with kills at some of the next points, then to the end; return the number of kills.

    A point that the beginning of a part does not reach is left out.
    """
    struck = 0
    for part in PARTS:
        lives.grow(part)
        for number in range(IN_A_PART):
            if not points:
                break
            if strikes(points[0], partial(lives.live, part)):
                points.popleft()
                struck += 1
                continue
            if number == 0:
                points.popleft()
            break
        lives.live(part)
    lives.live()
    return struck


def wrong(lives: Lives) -> Sequence[str]:
    said = [
        f"{query.name}, {problem}"
        for query in lives.queries
        for problem in problems(query.text, lives.kept.of(query.name))
    ]
    return [*said, *lives.kept.changed, *lives.differences()]


@THOROUGH
def test_killed_at_every_point(folder: Path, server: OxigraphServer) -> None:
    with world(folder, server, "python") as lives:
        points = reached(lives)
        said, struck = {"python": wrong(lives)}, 0
    for kind in KINDS:
        if kind != "python":
            with world(folder, server, kind) as lives:
                struck += killed(lives, points)
                said[kind] = wrong(lives)
    assert said == {kind: [] for kind in KINDS}
    assert list(points) == []
    assert struck > 20
