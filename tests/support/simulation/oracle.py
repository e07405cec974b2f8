"""Right answers in plain Python: windows built anew from the records, joined with given values.

Nothing of the engine is used here, only what a query means.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tests.support.simulation.remote import Value
from tests.support.simulation.scenario import NS, QuerySpec, Record, StreamSpec

XSD = "http://www.w3.org/2001/XMLSchema#"
ValueOf = Callable[[str], Value]
Shown = tuple[tuple[str, object], ...]
"""Row as it is shown, its variables in the order of the alphabet."""


@dataclass(frozen=True)
class Solution:
    """Solution of a window's pattern."""

    event: str
    user: str
    p: int
    t: int


def row(**values: object) -> Shown:
    """Return a row of the values that are there."""
    return tuple(sorted((name, value) for name, value in values.items() if value is not None))


def solutions(
    stream: StreamSpec, inside: Iterable[Record], *, by_position: bool = False
) -> list[Solution]:
    """Return a window's solutions, of equal ones the newest; ``by_position`` dates them so."""
    if by_position:
        inside = [replace(record, t=number) for number, record in enumerate(inside)]
    good = [record for record in inside if record.t is not None]
    if stream.arrivals == "latest":
        newest = {record.user: record for record in sorted(good, key=_newness)}
        good = list(newest.values())
    found: dict[tuple[str, str, int], Solution] = {}
    for record in sorted(good, key=lambda each: each.t or 0):
        if record.p is not None:
            event = f"{NS}event/{record.id}" if stream.arrivals == "distinct" else ""
            user = f"{NS}user/{record.user}"
            solution = Solution(event, user, record.p, record.t or 0)
            found[event, user, record.p] = solution
    return list(found.values())


def _newness(record: Record) -> tuple[int, str]:
    """Order the arrivals of one subject: of equal times the greater terms, any more than none."""
    return record.t or 0, "" if record.p is None else _integer(record.p)


def _integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def elements(stream: StreamSpec, records: Iterable[Record], count: int, last: int) -> list[Record]:
    """Return the last ``count`` elements up to the position ``last``."""
    ordered = sorted(
        (record for record in records if record.t is not None),
        key=lambda each: (
            each.t,
            str(each.id) if stream.arrivals == "distinct" else each.user,
            each.user,
            -1 if each.p is None else each.p,
        ),
    )
    return ordered[max(0, last - count) : last]


# Answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """Candidate for a place in an answer, the best with the least ``rank``."""

    rank: tuple[float, int, str]
    score: float
    shown: Shown


def ranked(
    query: QuerySpec, stream: StreamSpec, found: Sequence[Solution], value_of: ValueOf
) -> list[Ranked]:
    """Return all results of a top-k query in their order, before LIMIT and OFFSET."""
    results = []
    sign = -1 if query.descending else 1
    for newest, identity, p, shown, user in _units(query, stream, found):
        value = value_of(user) if query.service else None
        if query.service and value is None:
            continue
        score = query.merit(p, value)
        values = {"v": value} if query.service else {}
        ranks = (sign * score, -newest, identity)
        results.append(Ranked(ranks, score, row(**shown, **values)))
    return sorted(results, key=lambda each: each.rank)


def _units(
    query: QuerySpec, stream: StreamSpec, found: Sequence[Solution]
) -> Iterable[tuple[int, str, int, dict[str, object], str]]:
    """Yield what is ranked: its newest time, its identity, its number, its row, its user."""
    if query.kind == "sums":
        groups: defaultdict[str, list[Solution]] = defaultdict(list)
        for each in found:
            groups[each.user].append(each)
        for user, members in groups.items():
            shown: dict[str, object] = {"s": user, "count": len(members)}
            newest = max(member.t for member in members)
            yield newest, f"<{user}>", sum(member.p for member in members), shown, user
        return
    for each in found:
        shown = {"s": each.user, "p": each.p, "e": each.event or None}
        yield each.t, _identity(stream, each), each.p, shown, each.user


def _identity(stream: StreamSpec, each: Solution) -> str:
    if stream.arrivals == "distinct":
        return f"<{each.event}>"
    if stream.arrivals == "latest":
        return f"<{each.user}>"
    return f"<{each.user}> {_integer(each.p)}"


def joined(
    stream: StreamSpec, found: Sequence[Solution], value_of: ValueOf | None
) -> Counter[Shown]:
    """Return all rows of a query without an order."""
    rows: Counter[Shown] = Counter()
    for each in found:
        value = None if value_of is None else value_of(each.user)
        if value_of is None or value is not None:
            rows[row(s=each.user, p=each.p, e=each.event or None, v=value)] += 1
    return rows


def pairs(first: Sequence[Solution], second: Sequence[Solution]) -> Counter[Shown]:
    """Return all rows of a query that joins two windows by their users."""
    return Counter(
        row(s=one.user, p=one.p, q=other.p)
        for one in first
        for other in second
        if one.user == other.user
    )
