"""Executors without Spark: processes that come and go, tasks that are done twice or too late."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from acquatop.runtime import kept_values, publications
from acquatop.runtime.kept_values import KeptValues
from acquatop.runtime.publications import Publications


class Broadcast:
    """Broadcast data; a pickled broadcast knows its number alone."""

    all: dict[int, bytes] = {}  # noqa: RUF012 (the network)
    _numbers = itertools.count()

    def __init__(self, value: Any) -> None:
        self.number = next(self._numbers)
        self.all[self.number] = pickle.dumps(value)

    @property
    def value(self) -> Any:
        return pickle.loads(self.all[self.number])

    def destroy(self) -> None:
        del self.all[self.number]


class Executors:
    """Processes that run the tasks of jobs, chosen by chance."""

    def __init__(self, chance: random.Random, patch: pytest.MonkeyPatch, large: int = 1) -> None:
        Broadcast.all.clear()
        patch.setattr(publications, "LARGE", large)
        patch.setattr(publications, "MANY", large)
        self.publications = Publications(Broadcast)  # type: ignore[arg-type]
        self.bytes = 0
        """Bytes that were sent to the executors, once to each."""
        self._chance = chance
        self._patch = patch
        self._processes: list[dict[str, KeptValues]] = [{}, {}]
        self._late: tuple[bytes, Any] | None = None
        self._trouble = 1.0

    def calm(self) -> None:
        """Let one process do everything once from now on."""
        self._processes, self._trouble = self._processes[:1], 0.0

    def run(self, work: Any, items: Sequence[Any]) -> list[Any]:
        """Return the result of each item; each may be done by two processes, or long after."""
        before = set(Broadcast.all)
        with self.publications.sent(work) as sent:
            task = pickle.dumps(sent)
            new = [data for number, data in Broadcast.all.items() if number not in before]
            self.bytes += len(task) + sum(map(len, new))
            found = [self._done(task, item) for item in items]
        if items and self._chance.random() < 0.3 * self._trouble:
            self._late = task, items[0]
        return found

    def _done(self, task: bytes, item: Any) -> Any:
        chance = self._chance
        if chance.random() < 0.2 * self._trouble:
            chance.choice(self._processes).clear()  # a process ends, and another one begins
        if self._late is not None and chance.random() < 0.3:
            # What it needs may have been destroyed since.
            with suppress(KeyError):
                self._in_process(*self._late)
            self._late = None
        tries = [
            self._in_process(task, item)
            for _ in range(chance.choice([1, 1, 2]) if self._trouble else 1)
        ]
        return chance.choice(tries)

    def _in_process(self, task: bytes, item: Any) -> Any:
        self._patch.setattr(kept_values, "SENDERS", self._chance.choice(self._processes))
        work: Callable[[Any], Any] = pickle.loads(task).unpacked()
        return work(item)
