"""View of several replicas: for each tuple of the stream's terms, what they know together."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from acquatop.catalog.graphs import StaticGraph, digest_of
from acquatop.refresh.local_join import LocalJoin
from acquatop.refresh.remote_past import RemotePast, past_of
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.key_tuples import key_text, terms_in
from replica.store import RunStore, Solution, SolutionStore
from rspql.plan import Join

_MOST_HELD = 100_000
"""Number of tuples above which those are dropped that the open windows do not need."""

_RESULTS, _GRAPHS = "results", "graphs"
"""Names of the parts of a snapshot."""

Needs = tuple[tuple[str, ...], ...]
"""Keys of each service that a tuple's results depend on."""


class TupleNews(NamedTuple):
    """Tuples whose results have changed or become known; ``first`` are those never known before."""

    changed: frozenset[str]
    first: frozenset[str]


class JoinedView(RunStore):
    """Results of a join, by tuple; a tuple is unknown until all keys that it depends on are known.

    A tuple's text is that of its terms. Results are computed when they are first looked up, and
    again when a replica has asked for one of the keys. Memory is O(tuples looked up); tuples of
    several terms, or without services, beyond 100 000 are dropped if no open window needs them.
    """

    def __init__(
        self, join: Join, stores: Sequence[SolutionStore], graphs: Sequence[StaticGraph] = ()
    ) -> None:
        key = key_text(join.inputs)
        limit = _MOST_HELD if len(join.inputs) > 1 or join.is_constant else None
        super().__init__(key, (key, *join.outputs), limit=limit)
        self._join = join
        self._stores = stores
        self._engine = LocalJoin(join, graphs)
        self._graphs = digest_of(graphs)
        self._past = [
            past_of(each.past, store) for each, store in zip(join.services, stores, strict=True)
        ]
        self._now = -math.inf
        """Time that past values are looked back from."""
        self._is_chained = any(each.giver is not None for each in join.services)
        self._needs: dict[str, Needs] = {}
        self._forgettings = [each.forgotten for each in stores]
        self._new: set[str] = set()
        """Tuples that looking them up has made known."""
        self._moved: set[str] = set()
        """Tuples whose results other static graphs have changed."""
        self._dependents: list[defaultdict[str, set[str]]] = [
            defaultdict(set) for _ in join.services
        ]

    def rows(self, keys: Sequence[str]) -> IntArray:
        """Return each tuple's row, -1 if it is unknown. O(tuples), and the joins of new ones."""
        found = super().rows(keys)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            new = self._join_again(list(dict.fromkeys(keys[at] for at in missing.tolist())))
            if new:
                # What never changes is known by all that look it up.
                self._new |= set() if self._join.is_constant else new
                found[missing] = super().rows([keys[at] for at in missing.tolist()])
        return found

    def load(self) -> None:
        """Join all that the replicas hold, if one term is a tuple: executors are sent it."""
        if len(self._join.inputs) > 1:
            return
        for each, store in zip(self._join.services, self._stores, strict=True):
            if each.giver is None:
                self.rows(store.keys(store.all_rows()))
        self._new.clear()

    def needs_of(self, key: str) -> Needs:
        """Return the keys of each service that a tuple depends on, as far as they are known."""
        known = None if self._is_chained else self._needs.get(key)
        return self._needs_of(key)[0] if known is None else known

    def touch_needs(self, keys: Iterable[str]) -> None:
        """Keep the results of tuples that are needed, and what they depend on in the replicas."""
        needed = list(keys)
        self.touch(self.rows(needed))
        bases: list[dict[str, None]] = [{} for _ in self._stores]
        if all(store.limit is None for store in self._stores):
            return
        for key in needed:
            for of_service, several in zip(bases, self.needs_of(key), strict=True):
                of_service.update(dict.fromkeys(several))
        for store, of_service in zip(self._stores, bases, strict=True):
            store.touch(store.rows(list(of_service)))

    def forget_evicted(self) -> None:
        """Forget the tuples that depend on keys that the replicas have evicted."""
        forgettings = [each.forgotten for each in self._stores]
        if forgettings == self._forgettings:
            return
        self._forgettings = forgettings
        for past in self._past:
            if past is not None:
                past.keep_held()
        for store, dependents in zip(self._stores, self._dependents, strict=True):
            bases = list(dependents)
            gone = np.flatnonzero(store.rows(bases) < 0).tolist()
            self._forgotten(sorted({key for at in gone for key in dependents.get(bases[at], ())}))

    def update(
        self, fetched: Sequence[Iterable[str]], changed: Sequence[Iterable[str]]
    ) -> TupleNews:
        """Join again what depends on keys that were fetched or changed, by service.

        Return what is new since the last time. What has become known may be waited for.
        """
        again = {
            key
            for several in (fetched, changed)
            for dependents, keys in zip(self._dependents, several, strict=True)
            for base in keys
            for key in dependents.get(base, ())
        }
        names = sorted(again)
        rows = super().rows(names)
        known = {name for name, row in zip(names, rows.tolist(), strict=True) if row >= 0}
        told = self._join_again(names) | self._moved
        # What was looked up, and so scored, before it changed had another value then.
        first = (told - known - self._moved) | (self._new - told)
        told |= self._new
        self._new.clear()
        self._moved.clear()
        return TupleNews(frozenset(told), frozenset(first))

    # Past values ----------------------------------------------------------------------------------

    def look_back(self, now: float, changed: Sequence[Iterable[str]]) -> list[set[str]]:
        """Note what has changed, by service, and go on in time.

        Return the keys that have other past values now, by service. Let them be joined again.
        """
        self._now = now
        moved: list[set[str]] = []
        for past, dependents, keys in zip(self._past, self._dependents, changed, strict=True):
            if past is not None:
                past.note([key for key in keys if key in dependents or key in past])
            moved.append(set() if past is None else past.go_to(now))
        return moved

    def without_past(self) -> frozenset[str]:
        """Return the known tuples with results whose past values may be unknown."""
        found: set[str] = set()
        for store, past, dependents in zip(self._stores, self._past, self._dependents, strict=True):
            lacking = [] if past is None else [key for key in past.lacking() if key in dependents]
            present = store.present(store.rows(lacking)).tolist()
            for key, has_some in zip(lacking, present, strict=True):
                found.update(dependents[key] if has_some else ())
        return frozenset(found)

    def history_snapshot(self) -> bytes:
        """Return the past values, and the time that they are looked back from."""
        parts = {f"past{at}": each.snapshot() for at, each in enumerate(self._past) if each}
        return pack_parts({"now": json.dumps(self._now).encode(), **parts})

    def resume_history(self, snapshot: bytes) -> None:
        """Restore the past values; the results themselves are restored after them."""
        parts = unpack_parts(snapshot)
        self._now = json.loads(parts["now"])
        for at, each in enumerate(self._past):
            if each is not None:
                each.resume(parts[f"past{at}"])

    def wholly(self, fetched: Sequence[frozenset[str]]) -> frozenset[str]:
        """Return the tuples of which every key that they depend on was fetched, by service."""
        some = {
            key
            for dependents, keys in zip(self._dependents, fetched, strict=True)
            for base in keys
            for key in dependents.get(base, ())
        }
        return frozenset(
            key
            for key in some
            if all(
                base in keys
                for keys, needed in zip(fetched, self._needs[key], strict=True)
                for base in needed
            )
        )

    def snapshot(self) -> bytes:
        """Return the results, and what the static graphs were, if there are any."""
        results = super().snapshot()
        return pack_parts({_RESULTS: results, _GRAPHS: self._graphs}) if self._graphs else results

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; the replicas must have been restored before.

        If static graphs have changed since, all is joined again.
        """
        parts = unpack_parts(snapshot) if self._graphs else {_RESULTS: snapshot}
        super().resume(parts[_RESULTS])
        self._needs.clear()
        self._new.clear()
        self._moved.clear()
        for dependents in self._dependents:
            dependents.clear()
        for key in self.keys(self.all_rows()):
            self._link(key, self._needs_of(key)[0])
        if parts.get(_GRAPHS, b"") != self._graphs:
            self._moved |= self._join_again(self.keys(self.all_rows()))

    def _join_again(self, keys: Sequence[str]) -> set[str]:
        """Join tuples whose keys are known; return those whose results are new or have changed.

        Those that now depend on a key that was never fetched become unknown.
        """
        tuples: dict[str, tuple[Sequence[str], Needs]] = {}
        unknown: list[str] = []
        for key in keys:
            needs, are_known = self._needs_of(key)
            if are_known:
                tuples[key] = terms_in(key), needs
            else:
                unknown.append(key)
        return self._forgotten(unknown) | self._joined(tuples)

    def _forgotten(self, keys: Sequence[str]) -> set[str]:
        """Forget tuples; return those that were known."""
        rows = super().rows(keys)
        held = rows[rows >= 0]
        names = set(self.keys(held))
        if len(held):
            self._forget(held)
        return names

    def _joined(self, tuples: Mapping[str, tuple[Sequence[str], Needs]]) -> set[str]:
        if not tuples:
            return set()
        results: dict[str, list[Solution]] = {key: [] for key in tuples}
        for key, solution in self._engine.solutions(tuples, self._known(tuples)):
            results[key].append({self.key_variable: key, **solution})
        changed: set[str] = set()
        for now, several in self._by_time(tuples).items():
            solutions = [each for key in several for each in results[key]]
            changed.update(self.put(several, solutions, now).changed)
        for key, (_, needs) in tuples.items():
            self._link(key, needs)
        return changed

    def _known(
        self, tuples: Mapping[str, tuple[Sequence[str], Needs]]
    ) -> list[dict[str, Sequence[Solution]]]:
        known: list[dict[str, Sequence[Solution]]] = []
        for at, (store, past) in enumerate(zip(self._stores, self._past, strict=True)):
            keys = dict.fromkeys(each for _, needs in tuples.values() for each in needs[at])
            if past is not None:
                past.note(keys)
            known.append({key: self._solutions(store, past, key) for key in keys})
        return known

    def _solutions(
        self, store: SolutionStore, past: RemotePast | None, key: str
    ) -> Sequence[Solution]:
        """Return a key's solutions, with the values that it had before."""
        solutions = store.solutions(key)
        before = {} if past is None else past.before(key, self._now)
        return [{**each, **before} for each in solutions] if before else solutions

    def _by_time(self, tuples: Mapping[str, tuple[Sequence[str], Needs]]) -> dict[float, list[str]]:
        """Return tuples by the oldest fetch of a key that they depend on."""
        ages: list[dict[str, float]] = []
        for at, store in enumerate(self._stores):
            keys = list(dict.fromkeys(each for _, needs in tuples.values() for each in needs[at]))
            fetched_at = store.fetched_at(store.rows(keys)).tolist()
            ages.append(dict(zip(keys, fetched_at, strict=True)))
        # Another key may have been fetched longer ago, but the results are of now.
        held = self.fetched_at(super().rows(list(tuples))).tolist()
        by_time: dict[float, list[str]] = {}
        for (key, (_, needs)), before in zip(tuples.items(), held, strict=True):
            oldest = min(
                (of[base] for of, needed in zip(ages, needs, strict=True) for base in needed),
                default=0.0 if self._join.is_constant else before,
            )
            by_time.setdefault(max(oldest, before), []).append(key)
        return by_time

    def _needs_of(self, key: str) -> tuple[Needs, bool]:
        """Return the keys that a tuple depends on, and whether all of them are known.

        Those that an unknown key would give are missing.
        """
        terms = dict(zip(self._join.inputs, terms_in(key), strict=True))
        needs: list[tuple[str, ...]] = []
        are_known = True
        for each, store in zip(self._join.services, self._stores, strict=True):
            if each.giver is None:
                needed: tuple[str, ...] = (key_text(terms[name] for name in each.keys),)
            else:
                giver, (name,) = self._stores[each.giver], each.keys
                given = {
                    solution[name]
                    for base in needs[each.giver]
                    for solution in giver.solutions(base)
                    if name in solution
                }
                needed = tuple(sorted(given))
            needs.append(needed)
            are_known = are_known and all(base in store for base in needed)
        return tuple(needs), are_known

    def _link(self, key: str, needs: Needs) -> None:
        before = self._needs.get(key)
        if before == needs:
            return
        self._unlink(key)
        self._needs[key] = needs
        for dependents, needed in zip(self._dependents, needs, strict=True):
            for base in needed:
                dependents[base].add(key)

    def _unlink(self, key: str) -> None:
        for dependents, needed in zip(self._dependents, self._needs.pop(key, ()), strict=False):
            for base in needed:
                dependents[base].discard(key)
                if not dependents[base]:
                    del dependents[base]

    def _forget(self, rows: IntArray) -> None:
        for key in self.keys(rows):
            self._unlink(key)
        super()._forget(rows)
