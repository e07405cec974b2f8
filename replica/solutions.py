"""A replica of joins with many: every solution that the remote has for a key, and when each key was fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from replica.store import NEVER, Solution, Stored

WHOLE = ""
"""The one key of a pattern that is fetched whole; no term has an empty text."""


@dataclass(frozen=True)
class _Known:
    solutions: tuple[Solution, ...]
    fetched_at: float


class SolutionStore:
    """All solutions by key, as many as the remote has; a key that it has none for is remembered too.

    Without a ``key_variable`` all that the remote answers belongs to the one key ``WHOLE``. A key's
    solutions are a multiset in the terms' order. Storing n solutions takes O(n log n).

    >>> store = SolutionStore("user", ["user", "friend"])
    >>> answer = [{"user": "<urn:a>", "friend": "<urn:c>"}, {"user": "<urn:a>", "friend": "<urn:b>"}]
    >>> store.put(["<urn:a>", "<urn:z>"], answer, now=5.0).changed
    ('<urn:a>', '<urn:z>')
    >>> [solution["friend"] for solution in store.solutions("<urn:a>")], store.solutions("<urn:z>")
    (['<urn:b>', '<urn:c>'], ())
    """

    def __init__(self, key_variable: str | None, variables: Iterable[str]) -> None:
        self.key_variable = key_variable
        self.variables = tuple(variables)
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        """Return how many keys have a solution."""
        return sum(bool(known.solutions) for known in self._known.values())

    def __contains__(self, key: str) -> bool:
        """Say whether the remote has ever answered for a key, be it with nothing."""
        return key in self._known

    def solutions(self, key: str) -> Sequence[Solution]:
        """Return what is known of a key: none both when the remote has none and when it was never asked."""
        known = self._known.get(key)
        return known.solutions if known else ()

    def fetched_at(self, key: str) -> float:
        """Return when a key was last fetched, ``NEVER`` where it was not."""
        known = self._known.get(key)
        return known.fetched_at if known else NEVER

    def put(self, asked: Iterable[str], solutions: Iterable[Solution], now: float) -> Stored:
        """Store what the remote answered; a key asked for and not answered has no solution."""
        by_key = self._by_key(asked, solutions)
        return Stored(tuple(key for key, found in by_key.items() if self._set(key, _ordered(found), now)), ambiguous=0)

    def _by_key(self, asked: Iterable[str], solutions: Iterable[Solution]) -> Mapping[str, list[Solution]]:
        if self.key_variable is None:
            return {WHOLE: list(solutions)}
        by_key: dict[str, list[Solution]] = {key: [] for key in asked}
        for solution in solutions:
            if self.key_variable in solution:
                by_key.setdefault(solution[self.key_variable], []).append(solution)
        return by_key

    def _set(self, key: str, solutions: tuple[Solution, ...], now: float) -> bool:
        before = self._known.get(key)
        if before is not None and now < before.fetched_at:
            return False  # a late answer to an older question says nothing new
        self._known[key] = _Known(solutions, now)
        return before is None or before.solutions != solutions


def _ordered(solutions: Iterable[Solution]) -> tuple[Solution, ...]:
    return tuple(sorted(solutions, key=lambda each: tuple(_cells(each))))


def _cells(solution: Solution) -> Iterator[tuple[str, str]]:
    yield from sorted(solution.items())
