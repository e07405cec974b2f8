"""Ranges of rows in named places, cut into parts of equal length for the cores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Range(NamedTuple):
    """Rows of a place, from a first one to behind a last one."""

    place: str
    begin: int
    end: int


def cut_ranges(ranges: Iterable[Range], parts: int, least: int) -> list[tuple[Range, ...]]:
    """Return ranges as so many parts at most, in order; all but the last have ``least`` rows.

    >>> cut_ranges([Range("a", 0, 3), Range("b", 5, 5), Range("c", 0, 2)], parts=2, least=1)
    [(Range(place='a', begin=0, end=3),), (Range(place='c', begin=0, end=2),)]
    """
    wanted = [each for each in ranges if each.end > each.begin]
    rows = sum(each.end - each.begin for each in wanted)
    room = left = max(least, -(-rows // parts))
    found: list[list[Range]] = [[]]
    for place, first, end in wanted:
        begin = first
        while begin < end:
            if not left:
                found.append([])
                left = room
            taken = min(left, end - begin)
            found[-1].append(Range(place, begin, begin + taken))
            begin, left = begin + taken, left - taken
    return [tuple(part) for part in found if part]
