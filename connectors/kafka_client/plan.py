"""Choice of how far a batch reads in each partition: side by side in the messages' own times."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Offsets = Mapping[str, int]
"""Offset of the next message in each partition, as ``TOPIC/NUMBER``."""
OffsetsAt = Callable[[int], Offsets]
"""Lookup of the first message of each partition from a time on, in milliseconds."""


def size(start: Offsets, end: Offsets) -> int:
    """Return how many offsets are between two places; a partition's first is where it begins."""
    return sum(at - start.get(place, 0) for place, at in end.items())


def batch_end(
    start: Offsets, end: Offsets, most: int, times: tuple[int, int], offsets_at: OffsetsAt
) -> dict[str, int]:
    """Return how far to read, at most ``most`` offsets, and at least one if there is one.

    Partitions that are behind are read up to the same time, so that none is ahead of the others:
    what is ahead would make the others' messages late. ``times`` are the least and the greatest
    time of a message. Takes a logarithmic number of lookups, none if all fits.

    >>> stamps = {"t/0": [1, 2, 3, 4], "t/1": [3, 3, 4, 9]}
    >>> def at(time):
    ...     return {
    ...         each: sum(stamp < time for stamp in found) for each, found in stamps.items()
    ...     }
    >>> batch_end({"t/0": 0, "t/1": 0}, {"t/0": 4, "t/1": 4}, 5, (1, 9), at)
    {'t/0': 3, 't/1': 2}
    """
    if size(start, end) <= most:
        return dict(end)
    if sum(at > start.get(place, 0) for place, at in end.items()) == 1:
        return shares(start, end, most)

    def before(time: int) -> dict[str, int]:
        found = offsets_at(time)
        return {
            place: max(start.get(place, 0), min(at, found.get(place, at)))
            for place, at in end.items()
        }

    low, high = times[0], times[1] + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(start, before(middle)) <= most else (low, middle)
    reached = before(low)
    # So many messages of one time are cut anyhow.
    return reached if 0 < size(start, reached) <= most else shares(start, before(low + 1), most)


def shares(start: Offsets, end: Offsets, most: int) -> dict[str, int]:
    """Return how far to read if each partition has an equal share; small ones leave theirs.

    >>> shares({"t/0": 0, "t/1": 0}, {"t/0": 9, "t/1": 2}, 6)
    {'t/0': 4, 't/1': 2}
    """
    room, found = most, dict(end)
    left = {place: at - start.get(place, 0) for place, at in end.items()}
    for number, place in enumerate(sorted(left, key=lambda each: left[each])):
        taken = min(left[place], -(-room // (len(left) - number)))
        found[place] = end[place] - left[place] + taken
        room -= taken
    return found
