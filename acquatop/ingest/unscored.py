"""Solutions without a score yet: their key is unknown, or the remote has nothing for it."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import NO_ROWS, AnyArray, IntArray, Rows
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_KIND, _VERSION = "waiting", 1

LIMIT = 10_000
"""Maximum number of waiting solutions; more are dropped, and the loss is remembered."""

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class WaitingSolutions:
    """Solutions as columns, and the windows that each lies in."""

    rows: Rows
    firsts: IntArray
    lasts: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: AnyArray) -> WaitingSolutions:
        """Return the solutions at some positions, or where a mask is true."""
        return WaitingSolutions(self.rows.take(at), self.firsts[at], self.lasts[at])

    def followed_by(self, others: WaitingSolutions) -> WaitingSolutions:
        """Return these solutions and others behind them."""
        if not len(self):
            return others
        return WaitingSolutions(
            Rows.together([self.rows, others.rows]),
            np.concatenate([self.firsts, others.firsts]),
            np.concatenate([self.lasts, others.lasts]),
        )

    def replaced(self, at: IntArray, others: WaitingSolutions) -> WaitingSolutions:
        """Return these solutions with others at some positions."""
        order = np.arange(len(self))
        order[at] = len(self) + np.arange(len(at))
        return self.followed_by(others).take(order)

    def numbers(self) -> list[tuple[float, ...]]:
        """Return the stream numbers of each solution."""
        columns = [part.tolist() for part in self.rows.parts]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def by_span(self) -> dict[tuple[int, int], Rows]:
        """Return the rows by the first and the last window that they lie in."""
        spans: dict[tuple[int, int], list[int]] = {}
        each = zip(self.firsts.tolist(), self.lasts.tolist(), strict=True)
        for at, span in enumerate(each):
            spans.setdefault(span, []).append(at)
        return {span: self.rows.take(np.array(at)) for span, at in spans.items()}


class Unscored:
    """Waiting solutions by identity, the newest of each."""

    def __init__(self) -> None:
        self._become(WaitingSolutions(NO_ROWS, _NONE, _NONE))

    def _become(self, all_: WaitingSolutions) -> None:
        self._all = all_
        self._places = {each: at for at, each in enumerate(all_.rows.identities.tolist())}

    def __len__(self) -> int:
        return len(self._all)

    @property
    def all(self) -> WaitingSolutions:
        """All waiting solutions."""
        return self._all

    def identities(self) -> Set[str]:
        """Return the identities of all waiting solutions."""
        return self._places.keys()

    def of(self, window: int) -> WaitingSolutions:
        """Return the waiting solutions of a window. O(all) on columns."""
        return self._all.take(self._are_of(window))

    def count(self, window: int) -> int:
        """Return the number of waiting solutions of a window."""
        return int(np.count_nonzero(self._are_of(window)))

    def _are_of(self, window: int) -> AnyArray:
        return (self._all.firsts <= window) & (window <= self._all.lasts)

    def put(self, rows: Rows, firsts: IntArray, lasts: IntArray) -> WaitingSolutions:
        """Add solutions, given the windows that each lies in.

        If too many wait now, remove and return the oldest of all.
        """
        if not len(rows):
            return WaitingSolutions(rows, firsts, lasts)
        newest = {each: at for at, each in enumerate(rows.identities.tolist())}
        added = WaitingSolutions(rows, firsts, lasts).take(np.array(list(newest.values())))
        places = np.array([self._places.get(each, -1) for each in newest])
        kept = self._all
        if (places >= 0).any():
            kept = kept.replaced(places[places >= 0], added.take(places >= 0))
        self._become(kept.followed_by(added.take(places < 0)))
        if len(self) <= LIMIT:
            return added.take(_NONE)
        times, identities = self._all.rows.times.tolist(), self._all.rows.identities.tolist()
        order = sorted(range(len(self)), key=lambda at: (-times[at], identities[at]))
        shed = self._all.take(np.array(order[LIMIT:]))
        self.remove(shed.rows.identities.tolist())
        return shed

    def remove(self, identities: Iterable[str]) -> None:
        """Remove the solutions with some identities."""
        places = [self._places[each] for each in identities if each in self._places]
        if places:
            stays = np.ones(len(self), dtype=np.bool_)
            stays[places] = False
            self._become(self._all.take(stays))

    def take(self, keys: Set[str]) -> WaitingSolutions:
        """Remove and return the solutions that join with some keys."""
        are_taken = np.fromiter(
            (key in keys for key in self._all.rows.keys.tolist()), np.bool_, len(self)
        )
        taken = self._all.take(are_taken)
        if len(taken):
            self._become(self._all.take(~are_taken))
        return taken

    def close_before(self, window: int) -> None:
        """Drop solutions that lie only in earlier windows."""
        stays = self._all.lasts >= window
        if not stays.all():
            self._become(self._all.take(stays))

    def snapshot(self) -> bytes:
        """Return the whole state."""
        spans = {"firsts": self._all.firsts, "lasts": self._all.lasts}
        tables = {"spans": spans, "rows": table_of(self._all.rows)}
        return pack(_KIND, _VERSION, State({}, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises ``SnapshotError`` for any other bytes."""
        tables = unpack(_KIND, _VERSION, snapshot).tables
        with reading():
            spans = tables["spans"]
            self._become(WaitingSolutions(rows_of(tables["rows"]), spans["firsts"], spans["lasts"]))


def objects(values: list[str] | tuple[str, ...]) -> AnyArray:
    """Return texts as a column of objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
