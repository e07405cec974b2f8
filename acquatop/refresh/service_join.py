"""Join with a SERVICE pattern answered from a replica: keys to ask for, their order, solutions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from acquatop.ingest.terms import to_ast
from acquatop.refresh.flow import ReplicaFlow
from acquatop.refresh.order import Appraised, RefreshOrder
from acquatop.refresh.proposers import Proposed
from acquatop.refresh.remote_past import past_of
from acquatop.topk.snapshot import pack_parts, reading, unpack_parts
from replica.maintainer import Maintainer
from replica.store import Solution, SolutionStore
from rspql.ast import Group, Iri, Literal, ServicePattern, TriplePattern, Values, Variable, walk
from rspql.plan import RemotePart

Row = tuple[Iri | Literal | None, ...]

_PAST = "past"
"""Name of a history's part in snapshots."""
_FAR = 1_000_000_000
"""Assumed number of evaluations for which a key is still needed, if it is unknown."""


class ReplicaJoin:
    """Part of a query that a remote answers, with a replica in the remote's place."""

    def __init__(
        self,
        part: RemotePart,
        maintainer: Maintainer[SolutionStore],
        order: RefreshOrder[SolutionStore],
    ) -> None:
        self.part = part
        self.flow = ReplicaFlow(maintainer, order)
        self._store = maintainer.store
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._past = past_of(part.past, self._store)

    def appraised(
        self, keys: Sequence[str], results: Sequence[str], share: float = 1.0
    ) -> Appraised:
        """Return keys in the order in which to ask for them, with their worths.

        Those without any value come first. The others follow in the ranker's order. The ranker is
        given those of the last ``results`` in their order, then the others, the oldest first. Keys
        that the remote did not have come last. Others have a claim to all but a ``share`` of the
        usual spending.
        """
        rows = self._store.rows(keys)
        unknown = [keys[at] for at in np.flatnonzero(rows < 0).tolist()]
        is_present = self._store.present(rows)
        absent = [keys[at] for at in np.flatnonzero((rows >= 0) & ~is_present).tolist()]
        fetched_at = dict(zip(keys, self._store.fetched_at(rows).tolist(), strict=True))
        present = {keys[at] for at in np.flatnonzero(is_present).tolist()}
        shown = [key for key in dict.fromkeys(results) if key in present]
        others = sorted(present.difference(shown), key=lambda key: (fetched_at[key], key))
        listed = (*shown, *others)
        proposed = Proposed(listed, np.full(len(listed), np.nan), np.full(len(listed), _FAR))
        return self.flow.appraised(unknown, proposed, absent, window=0, k=len(shown), share=share)

    def unknown(self, keys: Iterable[str]) -> int:
        """Return the number of unknown keys."""
        return sum(key not in self._store for key in keys)

    def age(self, key: str) -> float:
        """Return the seconds since a key was last fetched."""
        now = self.flow.maintainer.now()
        return now - float(self._store.fetched_at(self._store.rows([key]))[0])

    def forget_rows(self, changed: Iterable[str]) -> None:
        """Drop cached solutions of keys for which the replica has other solutions now."""
        if self.flow.evicts:
            self._rows.clear()  # the replica may have evicted any key
        for key in changed:
            self._rows.pop(key, None)

    def values(self, keys: Iterable[str]) -> Values:
        """Return the replica's solutions for some keys, as a VALUES block to join with.

        The solutions of these keys stay cached, and no others.
        """
        self._rows = {key: self._rows_of(key) for key in keys}
        now = self.flow.maintainer.now()
        rows = (
            (*row, *before)
            for key, found in self._rows.items()
            for before in [self._before(key, now)]
            for row in found
        )
        return Values(tuple(map(Variable, self.part.columns)), tuple(rows))

    # Past values ----------------------------------------------------------------------------------

    @property
    def looks_back(self) -> bool:
        """True if the query needs values that the remote had before."""
        return self._past is not None

    def note_looks(self, keys: Iterable[str]) -> None:
        """Note the replica's values of keys in their history, if the query looks back."""
        if self._past is None:
            return
        self._past.note(keys)
        self._past.go_to(self.flow.maintainer.now())
        if self.flow.evicts:
            self._past.keep_held()

    def without_past(self, keys: Iterable[str]) -> int:
        """Return the number of known keys of which no value of the time looked back to is known."""
        lacking = set() if self._past is None else set(self._past.lacking())
        return sum(key in lacking and bool(self._store.solutions(key)) for key in keys)

    def _before(self, key: str, now: float) -> Row:
        if self._past is None:
            return ()
        before = self._past.before(key, now)
        return tuple(
            to_ast(before[each.name]) if each.name in before else None for each in self.part.past
        )

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state, with the replica."""
        past = {} if self._past is None else {_PAST: self._past.snapshot()}
        return pack_parts({**self.flow.snapshot(), **past})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            self.flow.resume(parts)
            if self._past is not None:
                self._past.resume(parts[_PAST])
        self._rows.clear()

    def _rows_of(self, key: str) -> tuple[Row, ...]:
        known = self._rows.get(key)
        return tuple(map(self._row, self._store.solutions(key))) if known is None else known

    def _row(self, solution: Solution) -> Row:
        return tuple(
            to_ast(solution[name]) if name in solution else None for name in self.part.variables
        )


def is_bound_from_the_start(key: str, group: Group) -> bool:
    """Return True if the triple patterns at the beginning of a group bind a variable.

    If so, restricting the variable before them is equivalent to restricting it after the group:
    later elements keep it as it is.

    >>> key, p = Variable("k"), Iri("urn:p")
    >>> is_bound_from_the_start("k", Group((TriplePattern(key, p, Variable("v")),)))
    True
    """
    for element in group.elements:
        if not isinstance(element, TriplePattern):
            return False
        if Variable(key) in (element.subject, element.predicate, element.object):
            return True
    return False


def depths(parts: Sequence[RemotePart]) -> Mapping[ServicePattern, int]:
    """Return each part's depth: 0, or one more than the deepest part whose answers give its keys.

    Raises ValueError if a part's keys come from a pattern that is not one of the parts, or from its
    own.
    """
    sources = {part.pattern: _services_in(part.key_source) for part in parts}
    known: dict[ServicePattern, int] = {}
    while len(known) < len(sources):
        ready = [
            each for each, needed in sources.items() if each not in known and needed <= known.keys()
        ]
        if not ready:
            raise ValueError(
                "the keys of a SERVICE must not depend on its own answers, nor on unknown ones"
            )
        known.update(
            {
                each: max((known[needed] + 1 for needed in sources[each]), default=0)
                for each in ready
            }
        )
    return known


def _services_in(source: Group | None) -> set[ServicePattern]:
    return {node for node in walk(source) if isinstance(node, ServicePattern)} if source else set()
