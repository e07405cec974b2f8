"""Solutions of the open windows by identity: those that a newer arrival may replace.

An identity is kept as an unpredictable hash of 128 bits (:mod:`acquatop.ingest.identity_hash`), not
as its text. Two different identities among n are taken for one with a probability of about n²/2¹²⁹.
Otherwise results never depend on the hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acquatop.ingest.identity_hash import IdentityHash
from acquatop.topk.contract import AnyArray, IntArray
from acquatop.topk.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "retained", 1
_SLACK = 1024
_GREATEST = 2.0**63 - 1024
"""Greatest double that is a 64-bit integer."""


@dataclass(frozen=True)
class HashedIdentities:
    """Columns of hashes, one row per identity."""

    heads: IntArray
    tails: IntArray

    @classmethod
    def of(cls, hashes: tuple[IntArray, IntArray]) -> HashedIdentities:
        """Return the identities with some hashes, given as heads and tails."""
        return cls(*hashes)

    def __len__(self) -> int:
        return len(self.heads)

    def take(self, at: IntArray | npt.NDArray[np.bool_]) -> HashedIdentities:
        """Return those at some positions."""
        return HashedIdentities(self.heads[at], self.tails[at])

    def newest(self) -> IntArray:
        """Return the position of each identity's last row, in order. O(n log n)."""
        order = np.lexsort((self.tails, self.heads))
        heads, tails = self.heads[order], self.tails[order]
        # The sort is stable, so the last of equals is the last row.
        is_last = (
            np.append((heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1]), True)
            if len(order)
            else order > 0
        )
        return np.sort(order[is_last])


@dataclass(frozen=True)
class SolutionColumns:
    """Columns of solutions: the last window of each, its key's code, its time, and its numbers.

    The ``parts`` are columns of doubles or of 64-bit integers.
    """

    lasts: IntArray
    keys: IntArray
    times: IntArray
    parts: tuple[AnyArray, ...]

    def __len__(self) -> int:
        return len(self.lasts)

    def take(self, at: IntArray | npt.NDArray[np.bool_] | slice) -> SolutionColumns:
        """Return those at some positions."""
        return SolutionColumns(
            self.lasts[at], self.keys[at], self.times[at], tuple(part[at] for part in self.parts)
        )

    @classmethod
    def together(cls, several: Sequence[SolutionColumns]) -> SolutionColumns:
        """Return the rows of one or more, one after the other."""
        return cls(
            np.concatenate([each.lasts for each in several]),
            np.concatenate([each.keys for each in several]),
            np.concatenate([each.times for each in several]),
            tuple(map(np.concatenate, zip(*(each.parts for each in several), strict=True))),
        )


@dataclass(frozen=True)
class _Run:
    """Solutions in the order of their identities' heads, with a mask of those still held."""

    identities: HashedIdentities
    solutions: SolutionColumns
    here: npt.NDArray[np.bool_]

    @classmethod
    def sorted(cls, identities: HashedIdentities, solutions: SolutionColumns) -> _Run:
        order = np.argsort(identities.heads, kind="stable")
        return cls(
            identities.take(order), solutions.take(order), np.ones(len(order), dtype=np.bool_)
        )

    def __len__(self) -> int:
        return len(self.here)

    def find(self, wanted: HashedIdentities) -> IntArray:
        """Return the position of each identity; -1 if it is not found. O(m log n)."""
        heads, tails = self.identities.heads, self.identities.tails
        at = np.searchsorted(heads, wanted.heads)
        open_ = np.arange(len(at))
        found = np.full(len(at), -1)
        while len(open_):
            open_ = open_[at[open_] < len(heads)]
            open_ = open_[heads[at[open_]] == wanted.heads[open_]]
            same = (tails[at[open_]] == wanted.tails[open_]) & self.here[at[open_]]
            found[open_[same]] = at[open_[same]]
            open_ = open_[~same]
            at[open_] += 1
        return found

    def kept(self, window: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the solutions that are still in this window or a later one."""
        return self.here & (self.solutions.lasts >= window)


class Deduplicated:
    """Solutions with some numbers each, in sorted runs, as in a log-structured merge tree.

    ``whole`` says for each of the numbers if it is an integer.

    Memory is O(solutions of the open windows): 41 bytes for each and 8 for every number, at most
    twice that, plus a constant. Finding and adding m among n takes O(m log² n), amortised.
    """

    def __init__(self, whole: Sequence[bool], hashes: IdentityHash | None = None) -> None:
        self._hashes = hashes or IdentityHash()
        nothing = np.empty(0, dtype=np.int64)
        self._whole = whole
        self._none = SolutionColumns(
            nothing, nothing, nothing, tuple(nothing if each else np.empty(0) for each in whole)
        )
        self._runs: list[_Run] = []
        self._open = -(2**63)
        self._by_last: dict[int, int] = {}

    def __len__(self) -> int:
        """Return the number of solutions that the open windows hold."""
        return sum(self._by_last.values())

    def identities(self, texts: list[str] | pa.Array | pa.ChunkedArray) -> HashedIdentities:
        """Return the identities of some texts, by which solutions are found. O(bytes)."""
        return HashedIdentities.of(self._hashes.of(texts))

    def pop(self, identities: HashedIdentities) -> SolutionColumns | None:
        """Remove and return the solutions with some identities; None if there are none.

        An identity has one solution at most. Each identity must be given once.
        """
        found = [self._pop_from(run, identities) for run in self._runs]
        some = [each for each in found if len(each)]
        return SolutionColumns.together(some) if some else None

    def has_longer(self, identities: HashedIdentities, lasts: IntArray) -> npt.NDArray[np.bool_]:
        """Return a mask of the identities that are held for windows after the given last ones."""
        longer = np.zeros(len(identities), dtype=np.bool_)
        for run in self._runs:
            at = run.find(identities)
            known = np.flatnonzero(at >= 0)
            held = run.solutions.lasts[at[known]]
            longer[known] |= (held >= self._open) & (held > lasts[known])
        return longer

    def put(self, identities: HashedIdentities, solutions: SolutionColumns) -> None:
        """Add solutions whose identities are not held."""
        if len(solutions):
            self._count(solutions, 1)
            self._runs.append(_Run.sorted(identities, solutions))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._merge(2)
        self._purge()

    def of_keys(self, keys: IntArray, size: int) -> SolutionColumns:
        """Return the solutions of some keys, whose codes are below ``size``.

        O(all that is held).
        """
        wanted = np.zeros(size, dtype=np.bool_)
        wanted[keys] = True
        found = [
            run.solutions.take(wanted[run.solutions.keys] & run.kept(self._open))
            for run in self._runs
        ]
        return SolutionColumns.together([self._none, *found])

    def close_before(self, window: int) -> None:
        """Drop solutions that lie only in earlier windows."""
        self._open = max(self._open, window)
        for last in [last for last in self._by_last if last < window]:
            del self._by_last[last]
        self._purge()

    def snapshot(self) -> bytes:
        """Return the whole state, with the secret seed of the hashes."""
        lasts, counts = list(self._by_last), list(self._by_last.values())
        settings = {
            "seed": self._hashes.seed.hex(),
            "open": self._open,
            "lasts": lasts,
            "counts": counts,
        }
        tables = {f"run{at}": _table_of(run) for at, run in enumerate(self._runs)}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            settings = state.settings
            hashes = IdentityHash(bytes.fromhex(settings["seed"]))
            by_last = dict(zip(settings["lasts"], settings["counts"], strict=True))
            runs = [_run_of(columns, self._whole) for columns in state.tables.values()]
            self._open = settings["open"]
        self._hashes, self._by_last, self._runs = hashes, by_last, runs

    def _pop_from(self, run: _Run, identities: HashedIdentities) -> SolutionColumns:
        at = run.find(identities)
        at = at[at >= 0]
        at = at[run.solutions.lasts[at] >= self._open]
        run.here[at] = False
        popped = run.solutions.take(at)
        self._count(popped, -1)
        return popped

    def _count(self, solutions: SolutionColumns, sign: int) -> None:
        lasts, counts = np.unique(solutions.lasts, return_counts=True)
        for last, count in zip(lasts.tolist(), counts.tolist(), strict=True):
            self._by_last[last] = self._by_last.get(last, 0) + sign * count

    def _purge(self) -> None:
        if sum(map(len, self._runs)) > 2 * len(self) + _SLACK:
            self._merge(len(self._runs))

    def _merge(self, count: int) -> None:
        """Merge the last few runs into one, without solutions that are gone."""
        runs, self._runs = self._runs[-count:], self._runs[:-count]
        kept = [(run, run.kept(self._open)) for run in runs]
        identities = [run.identities.take(at) for run, at in kept]
        together = HashedIdentities(
            np.concatenate([each.heads for each in identities]),
            np.concatenate([each.tails for each in identities]),
        )
        if len(together):
            solutions = SolutionColumns.together([run.solutions.take(at) for run, at in kept])
            self._runs.append(_Run.sorted(together, solutions))

    def _check(self) -> None:
        """Assert every invariant. O(n log n)."""
        kept = [run.kept(self._open) for run in self._runs]
        assert sum(int(at.sum()) for at in kept) == len(self)
        assert sum(map(len, self._runs)) <= 2 * len(self) + _SLACK
        names = [
            pair
            for run, at in zip(self._runs, kept, strict=True)
            for pair in zip(
                run.identities.heads[at].tolist(), run.identities.tails[at].tolist(), strict=True
            )
        ]
        assert len(set(names)) == len(names)
        assert all((np.diff(run.identities.heads.astype(float)) >= 0).all() for run in self._runs)


def _table_of(run: _Run) -> dict[str, AnyArray]:
    known = run.solutions
    hashes = {"heads": run.identities.heads, "tails": run.identities.tails}
    own = {"lasts": known.lasts, "keys": known.keys, "times": known.times, "here": run.here}
    return {**hashes, **own, **{f"part{at}": part for at, part in enumerate(known.parts)}}


def as_integers(column: AnyArray) -> IntArray:
    """Return a column of 64-bit integers; older versions kept doubles, as near as they are.

    >>> as_integers(np.array([2.0, 2.0**63])).tolist()
    [2, 9223372036854774784]
    """
    if column.dtype.kind == "i":
        return column
    return np.nan_to_num(column).clip(-(2.0**63), _GREATEST).astype(np.int64)


def _run_of(columns: Mapping[str, AnyArray], whole: Sequence[bool]) -> _Run:
    parts = [columns[f"part{at}"] for at in range(len(whole))]
    return _Run(
        HashedIdentities(columns["heads"], columns["tails"]),
        SolutionColumns(
            columns["lasts"],
            columns["keys"],
            columns["times"],
            tuple(
                as_integers(part) if is_whole else part
                for part, is_whole in zip(parts, whole, strict=True)
            ),
        ),
        columns["here"],
    )
