"""A SERVICE pattern answered from a replica: which keys to ask for, in which order, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from acquatop.ingest.terms import to_ast
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.proposers import Proposed
from acquatop.topk.snapshot import pack_parts, reading, unpack_parts
from replica.maintainer import Asked, Maintainer
from replica.store import Solution, SolutionStore
from rspql.ast import Group, Iri, Literal, ServicePattern, TriplePattern, Values, Variable, walk
from rspql.plan import RemotePart

Row = tuple[Iri | Literal | None, ...]

_FAR = 1_000_000_000
"""In how many evaluations a key is taken to be needed again where nothing says so."""


class ReplicaJoin:
    """One part of a query that a remote answers, and the replica in the remote's place."""

    def __init__(self, part: RemotePart, maintainer: Maintainer[SolutionStore], order: RefreshOrder) -> None:
        self.part = part
        self.maintainer = maintainer
        self._store = maintainer.store
        self._order = order
        self._rows: dict[str, tuple[Row, ...]] = {}

    def ask(self, keys: Sequence[str], results: Sequence[str]) -> Asked:
        """Send requests for keys, as far as the account allows; ``results`` are those in the answer before."""
        if self._store.limit is not None:
            self._store.touch(self._store.rows(keys))
        return self.maintainer.ask(self.in_asking_order(keys, results))

    def in_asking_order(self, keys: Sequence[str], results: Sequence[str]) -> list[str]:
        """Return keys in the order in which to ask for them: those without any value come first.

        The others come as the ranker says, which is given those of the ``results`` before in their
        order and then what was fetched longest ago; last come keys that the remote did not have.
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
        return self._order(unknown, proposed, absent, window=0, k=len(shown), now=self.maintainer.now())

    def unknown(self, keys: Iterable[str]) -> int:
        """Return of how many keys nothing is known."""
        return sum(key not in self._store for key in keys)

    def age(self, key: str) -> float:
        """Return how many seconds ago a key was last fetched."""
        return self.maintainer.now() - float(self._store.fetched_at(self._store.rows([key]))[0])

    def forget_rows(self, changed: Iterable[str]) -> None:
        """Note that the replica has other solutions now for some keys."""
        if self._store.limit is not None:
            self._rows.clear()  # the replica may have let go of any
        for key in changed:
            self._rows.pop(key, None)

    def values(self, keys: Iterable[str]) -> Values:
        """Return all solutions that the replica has for some keys, as a block to join with."""
        rows = (row for key in keys for row in self._rows_of(key))
        return Values(tuple(map(Variable, self.part.variables)), tuple(rows))

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here, the replica too."""
        return pack_parts({"maintainer": self.maintainer.snapshot(), "order": self._order.snapshot()})

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            self.maintainer.resume(parts["maintainer"])
            self._order.resume(parts["order"])
        self._rows.clear()

    def _rows_of(self, key: str) -> tuple[Row, ...]:
        if key not in self._rows:
            self._rows[key] = tuple(map(self._row, self._store.solutions(key)))
        return self._rows[key]

    def _row(self, solution: Solution) -> Row:
        return tuple(to_ast(solution[name]) if name in solution else None for name in self.part.variables)


def is_bound_from_the_start(key: str, group: Group) -> bool:
    """Say whether the triple patterns that a group begins with bind a variable.

    If so, restricting the variable before them comes to the same as restricting it after the group:
    whatever follows keeps it as it is.

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
    """Return after how many other parts each can be asked: those whose answers its keys come from.

    Raises ValueError when a part's keys come from a pattern that is not one of the parts, or from its own.
    """
    sources = {part.pattern: _services_in(part.key_source) for part in parts}
    known: dict[ServicePattern, int] = {}
    while len(known) < len(sources):
        ready = [each for each, needed in sources.items() if each not in known and needed <= known.keys()]
        if not ready:
            raise ValueError("the keys of a SERVICE must not depend on its own answers, nor on unknown ones")
        known.update({each: max((known[needed] + 1 for needed in sources[each]), default=0) for each in ready})
    return known


def _services_in(source: Group | None) -> set[ServicePattern]:
    return {node for node in walk(source) if isinstance(node, ServicePattern)} if source else set()
