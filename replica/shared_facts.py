"""Facts that a remote has told, passed on between the replicas of queries that ask the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from replica.store import Solution
from replica.store.keyed_store import KeyedStore


class ToldReply(NamedTuple):
    """Reply about some keys, and the time at which its request was sent."""

    keys: list[str]
    solutions: list[Solution]
    fetched_at: float


class _Fact(NamedTuple):
    fetched_at: float
    solutions: list[dict[str, str]]


class SharedFacts:
    """Facts about one question to a remote. Each replica takes part with a :class:`FactsInbox`.

    ``lock`` is held while a store changes: another thread may copy it for a replica that joins.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._inboxes: list[FactsInbox] = []

    def join(self, store: KeyedStore, names: Mapping[str, str]) -> FactsInbox:
        """Return the inbox of one more replica.

        ``names`` are those that all use, by the names of the replica's own variables.
        """
        inbox = FactsInbox(self, store, names)
        with self.lock:
            self._inboxes = [*self._inboxes, inbox]
        return inbox

    def __len__(self) -> int:
        """Return the number of replicas."""
        return len(self._inboxes)

    def others(self, inbox: FactsInbox) -> list[FactsInbox]:
        """Return the inboxes of the other replicas."""
        return [each for each in self._inboxes if each is not inbox]

    def leave(self, inbox: FactsInbox) -> None:
        """Tell a replica nothing any more."""
        with self.lock:
            self._inboxes = self.others(inbox)


class FactsInbox:
    """Facts that others have fetched and one replica has not stored yet: the newest of each key.

    A replica stores them when its next evaluation begins, as its values change at no other time.

    >>> from replica.store import ReplicaStore
    >>> facts = SharedFacts()
    >>> one, other = (
    ...     facts.join(ReplicaStore(key, (key, "n")), {key: "key", "n": "n"}) for key in "ab"
    ... )
    >>> one.tell(["<urn:x>", "<urn:y>"], [{"a": "<urn:x>", "n": '"1"'}], 7.0)
    >>> list(map(tuple, other.take()))
    [(['<urn:x>', '<urn:y>'], [{'b': '<urn:x>', 'n': '"1"'}], 7.0)]
    >>> list(other.take()), list(one.take())
    ([], [])
    """

    def __init__(self, facts: SharedFacts, store: KeyedStore, names: Mapping[str, str]) -> None:
        self.facts = facts
        self._store = store
        self._names = dict(names)
        self._own = {common: own for own, common in names.items()}
        self._facts: dict[str, _Fact] = {}

    def tell(self, keys: Sequence[str], solutions: Sequence[Solution], fetched_at: float) -> None:
        """Tell the other replicas a reply about some keys."""
        others = self.facts.others(self)
        if not others:
            return
        of_key: dict[str, list[dict[str, str]]] = {key: [] for key in keys}
        for solution in solutions:
            found = of_key.get(solution[self._store.key_variable or ""])
            if found is not None:
                found.append({self._names[name]: term for name, term in solution.items()})
        with self.facts.lock:
            for other in others:
                for key, common in of_key.items():
                    other._hear(key, _Fact(fetched_at, common))

    def _hear(self, key: str, fact: _Fact) -> None:
        known = self._facts.get(key)
        if known is None or known.fetched_at <= fact.fetched_at:
            self._facts[key] = fact

    def take(self) -> Iterator[ToldReply]:
        """Yield what has been told, the oldest first, and forget it."""
        with self.facts.lock:
            facts, self._facts = self._facts, {}
        told = sorted(facts.items(), key=lambda each: each[1].fetched_at)
        for fetched_at, together in groupby(told, key=lambda each: each[1].fetched_at):
            several = list(together)
            solutions: list[Solution] = [
                {self._own[name]: term for name, term in solution.items()}
                for _, fact in several
                for solution in fact.solutions
            ]
            yield ToldReply([key for key, _ in several], solutions, fetched_at)

    def take_over(self) -> bool:
        """Fill the new replica with what another one knows; return False if none knows anything.

        With the values go their times, and what has been learned of their changes.
        """
        with self.facts.lock:
            for other in self.facts.others(self):
                if len(other._store) and self._is_like(other):
                    self._store.resume(other._store.snapshot())
                    self._facts = dict(other._facts)
                    return True
        return False

    def _is_like(self, other: FactsInbox) -> bool:
        mine, theirs = self._store, other._store
        return (
            type(mine) is type(theirs)
            and mine.variables == theirs.variables
            and mine.key_variable == theirs.key_variable
        )

    def leave(self) -> None:
        """Hear nothing any more."""
        self.facts.leave(self)

    def state(self) -> dict[str, Any]:
        """Return what has been told and not stored yet, as JSON."""
        return {key: list(fact) for key, fact in self._facts.items()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self._facts = {key: _Fact(at, solutions) for key, (at, solutions) in state.items()}
