"""Facts that a remote has told, passed on between the replicas of queries that ask the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from replica.remotes import RemoteError
from replica.store import Solution
from replica.store.keyed_store import KeyedStore


class ToldReply(NamedTuple):
    """Reply about some keys, and the time at which its request was sent."""

    keys: list[str]
    solutions: list[Solution]
    fetched_at: float
    error: RemoteError | None = None


class _Fact(NamedTuple):
    fetched_at: float
    solutions: list[dict[str, str]]


Hear = Callable[[ToldReply], None]
"""Function that is told the reply to a request of another replica."""

Listen = Callable[[list[str]], Hear]
"""Function that is given the keys of a request to listen to."""


class _Listener(NamedTuple):
    inbox: FactsInbox
    keys: list[str]
    hear: Hear


class RequestUnderWay:
    """RequestUnderWay of one replica that is under way, and the others that listen to it."""

    def __init__(self, asker: FactsInbox, keys: Sequence[str]) -> None:
        self.asker = asker
        self.keys = frozenset(keys)
        self.listeners: list[_Listener] = []


class SharedFacts:
    """Facts about one question to a remote. Each replica takes part with a :class:`FactsInbox`.

    Replicas may be used by several threads, each by one. ``lock`` is held while a store changes:
    another thread may copy it for a replica that joins.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._inboxes: list[FactsInbox] = []
        self.under_way: list[RequestUnderWay] = []
        """Requests that have no reply yet."""

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
    >>> [told[:3] for told in other.take()]
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
        of_key = self._in_common_names(keys, solutions)
        with self.facts.lock:
            for other in others:
                for key, common in of_key.items():
                    other._hear(key, _Fact(fetched_at, common))

    def _in_common_names(
        self, keys: Iterable[str], solutions: Sequence[Solution]
    ) -> dict[str, list[dict[str, str]]]:
        of_key: dict[str, list[dict[str, str]]] = {key: [] for key in keys}
        for solution in solutions:
            found = of_key.get(solution.get(self._store.key_variable or "", ""))
            if found is not None:
                found.append({self._names[name]: term for name, term in solution.items()})
        return of_key

    def _in_own_names(self, solutions: Iterable[Mapping[str, str]]) -> list[Solution]:
        return [{self._own[name]: term for name, term in each.items()} for each in solutions]

    # Requests under way ---------------------------------------------------------------------------

    def send(self, keys: Sequence[str]) -> RequestUnderWay:
        """Let others listen to a request that is being sent."""
        request = RequestUnderWay(self, keys)
        with self.facts.lock:
            self.facts.under_way.append(request)
        return request

    def listen(self, keys: Sequence[str], listen: Listen) -> set[str]:
        """Listen to the requests of others that ask for some of the keys; return these keys."""
        heard: set[str] = set()
        with self.facts.lock:
            for request in self.facts.under_way:
                of_it = [key for key in keys if key in request.keys and key not in heard]
                if of_it and request.asker is not self:
                    request.listeners.append(_Listener(self, of_it, listen(of_it)))
                    heard.update(of_it)
        return heard

    def land(self, request: RequestUnderWay, reply: ToldReply) -> None:
        """Tell the reply to a request to those who listen."""
        with self.facts.lock:
            self.facts.under_way.remove(request)
            listeners = request.listeners
        if not listeners:
            return
        of_key = self._in_common_names(request.keys, reply.solutions)
        for inbox, keys, hear in listeners:
            solutions = inbox._in_own_names(each for key in keys for each in of_key[key])
            hear(ToldReply(keys, solutions, reply.fetched_at, reply.error))

    # Facts told -----------------------------------------------------------------------------------

    def _hear(self, key: str, fact: _Fact) -> None:
        known = self._facts.get(key)
        if known is None or known.fetched_at <= fact.fetched_at:
            self._facts[key] = fact

    def take(self) -> Iterator[ToldReply]:
        """Yield what has been told, the oldest first, and forget it."""
        with self.facts.lock:
            facts, self._facts = self._facts, {}
        keys = list(facts)
        times = self._store.fetched_at(self._store.rows(keys)).tolist()
        # What came by a request that it listened to, it knows already.
        news = (
            (key, facts[key])
            for key, at in zip(keys, times, strict=True)
            if at < facts[key].fetched_at
        )
        told = sorted(news, key=lambda each: each[1].fetched_at)
        for fetched_at, together in groupby(told, key=lambda each: each[1].fetched_at):
            several = list(together)
            solutions = self._in_own_names(each for _, fact in several for each in fact.solutions)
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
