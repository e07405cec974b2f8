"""Solutions of a recorded remote, with the values that it had some time before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acquatop.lab.replay.remote_history import RemoteHistory
from replica.store import Solution
from rspql.plan import PastValue

Stated = Mapping[str, tuple[Solution, ...]]
"""Solutions of keys."""


def with_past(
    past: Sequence[PastValue], history: RemoteHistory, times_ms: Sequence[int], *, since_ms: int
) -> Iterator[Stated]:
    """Yield what changes until each of some ascending times: solutions with their past values.

    What the remote had before ``since_ms`` is unknown. A key with several values at a time has no
    past value from then. O(statements · past values) in all.
    """
    if not past:
        yield from history.changes(times_ms)
        return
    now: dict[str, tuple[Solution, ...]] = {}
    before: dict[int, dict[str, tuple[Solution, ...]]] = {each.back_ms: {} for each in past}
    known = [
        _known_changes(history, [time_ms - back for time_ms in times_ms], since_ms)
        for back in before
    ]
    for new, *others in zip(history.changes(times_ms), *known, strict=True):
        now.update(new)
        for then, said in zip(before.values(), others, strict=True):
            then.update(said)
        moved = {key for said in (new, *others) for key in said}
        yield {
            key: tuple({**each, **_values(past, before, key)} for each in now.get(key, ()))
            for key in sorted(moved)
        }


def _known_changes(
    history: RemoteHistory, times_ms: Sequence[int], since_ms: int
) -> Iterator[Stated]:
    """Yield what is stated until each time, nothing before the first time that is known."""
    unknown = sum(time_ms < since_ms for time_ms in times_ms)
    yield from ({} for _ in range(unknown))
    yield from history.changes(times_ms[unknown:])


def _values(past: Sequence[PastValue], before: Mapping[int, Stated], key: str) -> dict[str, str]:
    found = {}
    for each in past:
        solutions = before[each.back_ms].get(key, ())
        values = {said[each.variable] for said in solutions if each.variable in said}
        if len(values) == 1:
            found[each.name] = values.pop()
    return found
