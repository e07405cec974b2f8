"""Content of aggregates per key, wherever they are kept: its members' rankings, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from acquatop.plan.bound import BoundQuery
from replica.store import JoinedStore

_CONTENT = "content"


class _Ranking(Protocol):
    def leave(self) -> None: ...


class _Kept(Protocol):
    def note_late(self, first: int, last: int) -> None: ...
    def close_before(self, window: int) -> None: ...
    def snapshot(self) -> bytes: ...
    def resume(self, snapshot: bytes) -> None: ...


RankingT = TypeVar("RankingT", bound=_Ranking)
KeptT = TypeVar("KeptT", bound=_Kept)


class Aggregates(Generic[RankingT, KeptT]):
    """Aggregates per key in one place, and a ranking of them for each member."""

    def __init__(self, bound: BoundQuery, store: JoinedStore | None, content: KeptT) -> None:
        self._bound = bound
        self._store = store
        self._content = content
        self._rankings: dict[str, RankingT] = {}

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        ranking = self._rankings.pop(name, None)
        if ranking is not None:
            ranking.leave()

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``."""
        self._content.note_late(first, last)

    def complete(self, window: int) -> None:
        """Do nothing: the first ranking that settles has all counted."""

    def values_changed(self) -> None:
        """Do nothing: reducers do not see the replica."""

    def open_from(self, window: int) -> None:
        """Release earlier solutions."""
        self._content.close_before(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        return {_CONTENT: self._content.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot; the replica must have been restored before."""
        self._content.resume(parts[_CONTENT])
