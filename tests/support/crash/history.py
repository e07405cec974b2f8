"""History of a killed run of the crash tests, as lines of JSON that the checker judges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.crash.life import Life, content
from tests.support.crash.world import SERVICE_OF, USERS
from tests.support.simulation.checker import Verdict
from tests.support.simulation.recorded import Run, judge_recorded, write_history
from tests.support.simulation.remote import ServiceSpec
from tests.support.simulation.scenario import QuerySpec, Record, StreamSpec

_NAMES = {"m": "p", "f": "v", "n": "count"}
_SPECS = {
    each.name: each
    for each in (
        QuerySpec("top", "top", ("latest",), 6000, 2000, 2, service="one", projection=("s",)),
        QuerySpec(
            "sums", "sums", ("all",), 6000, 2000, 3, service="two", projection=("s", "count")
        ),
        QuerySpec("most", "top", ("distinct",), 6000, 2000, 3, projection=("e",)),
        QuerySpec(
            "least", "top", ("distinct",), 6000, 2000, 2, descending=False, projection=("e",)
        ),
        QuerySpec("shared most", "top", ("shared",), 5000, 1500, 3, projection=("e",)),
        QuerySpec("shared next", "top", ("shared",), 1000, 3000, 2, offset=1, projection=("e",)),
    )
}
_LATENESS = {"latest": 200, "all": 2000, "distinct": 200, "shared": 200}
_ARRIVALS = {"latest": "latest", "all": "all", "distinct": "distinct", "shared": "distinct"}


def judged(
    life: Life,
    killed: Sequence[str],
    asked: Sequence[tuple[int, str, Sequence[str]]],
    right: Mapping[str, bytes],
) -> Verdict:
    """Write the history of a run beside its answers, and return the checker's verdict on it."""
    queries = [_SPECS.get(name, QuerySpec(name, "other", (), 1, 1)) for name in life.queries]
    records = _records(life.catalog.parent / "events.jsonl")
    values = {user: ((0.0, 7 * int(user[1:]) % 40),) for user in USERS}
    names = {query.name: _NAMES for query in queries if query.kind != "other"}
    run = Run(
        recording=True,
        streams=[StreamSpec(n, _ARRIVALS[n], _LATENESS[n], None, records) for n in _LATENESS],
        queries=queries,
        services=[ServiceSpec(name, values, items=3, requests=1) for name in SERVICE_OF],
        names=names,
        killed=killed,
        asked=asked,
        holds=content(life.out),
        right=right,
    )
    path = life.catalog.with_name(f"{life.out.name}.history.ndjson")
    write_history(path, run)
    return judge_recorded(path)


def _records(path: Path) -> tuple[Record, ...]:
    return tuple(_record(line, at) for at, line in enumerate(path.read_bytes().splitlines()))


def _record(line: bytes, number: int) -> Record:
    try:
        said = json.loads(line)
    except ValueError:
        return Record(line, 0.0, None, number)
    return Record(line, 0.0, said["t"], said["id"], said["user"], said["mentions"])
