"""What an answer can be expected to be worth, given how the remote's values change behind the replica's back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from acquatop.answer.estimate import CERTAIN, Estimate, estimate
from acquatop.answer.sample_top_k import greatest
from acquatop.answer.window_sample import WindowSample
from acquatop.ingest.match import GONE, IDENTITY, KEY, number_column
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.unscored import Solution, objects, rows_of
from acquatop.topk.contract import NO_ROWS, AnyArray, Certainty, FloatArray, IntArray, Rows, Top
from connectors.mapping import TIME

_FEWEST, _MOST, _CELLS = 64, 256, 1 << 15
"""How many worlds are drawn: as many as make so many cells, within these bounds."""

CONSIDERED = 2_000
"""How many solutions are considered one by one at most, and are of large answers."""

_CONSIDERED_AT_LEAST, _CONSIDERED_PER_RESULT = 256, 25

STANDING_FOR_OTHERS = 256
"""How many others stand for all that are not."""

_SEEN, _FEWEST_OF_A_PANE = 1_024, 4
"""How many of a window's solutions are kept for that, and of a pane at least."""

_POPULATION = 4_096
"""How many of the replica's rows stand for what the remote may have for a key that nothing is known of."""


class Store(Protocol):
    """What is asked of a replica."""

    def rows(self, keys: list[str]) -> IntArray:
        """Return each key's row, -1 where nothing is known of the key."""

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN where there is none."""

    def present(self, rows: IntArray) -> BoolArray:
        """Return whether the remote had each row's key when it was last asked."""

    def all_rows(self) -> IntArray:
        """Return the rows of all keys."""


class ChangeModel(Protocol):
    """What is asked of a model of how the remote's values change."""

    def rates(self, rows: IntArray) -> FloatArray:
        """Return how often each row changes in a second."""

    def chance(self, rows: IntArray, now: float) -> FloatArray:
        """Return the chance that each row has changed since it was fetched."""

    def draw(
        self,
        variable: str,
        rows: IntArray,
        values: FloatArray,
        count: int,
        random: np.random.Generator,
        *,
        now: float,
    ) -> FloatArray:
        """Return values that each row may have now, given that it has changed, a row of them per world."""


@dataclass(frozen=True)
class Content:
    """What a window holds: what is ``held``, and of the ``others`` all, or some which stand for ``count`` of them."""

    held: Rows
    others: Rows = NO_ROWS
    count: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether all that the window holds is here."""
        return self.count <= len(self.others)


def considered(k: int) -> int:
    """Return how many solutions are considered one by one for an answer of k: the others stand far behind.

    >>> considered(1), considered(20), considered(1000)
    (256, 500, 2000)
    """
    return min(CONSIDERED, max(_CONSIDERED_AT_LEAST, _CONSIDERED_PER_RESULT * k))


class ContentOfStream:
    """What the windows hold where solutions are the stream's: all that the list holds, and a sample of the others.

    What is dropped from the list may be right by now, so it has to be seen, if only in part: of
    all ``panes`` of a window together some thousand solutions.
    """

    def __init__(self, numbers: tuple[str, ...], *, panes: int = 1, seed: int = 0) -> None:
        self._numbers = numbers
        self._sample = WindowSample(
            np.random.default_rng(seed), max(_FEWEST_OF_A_PANE, min(STANDING_FOR_OTHERS, _SEEN // panes))
        )

    def add_pane(self, pane: Pane) -> None:
        """See a pane's solutions, as the list does. O(1) for large panes."""
        solutions = pane.solutions.take(pa.array(self._sample.chosen(len(pane.solutions))))
        rows = Rows(
            solutions.column(TIME).to_numpy(),
            objects(solutions.column(IDENTITY).to_pylist()),
            objects(solutions.column(KEY).to_pylist()),
            tuple(solutions.column(number_column(name)).to_numpy() for name in self._numbers),
        )
        gone = np.asarray(solutions.column(GONE).to_numpy(), dtype=np.bool_)
        self._sample.add(pane.first, pane.last, rows, gone, len(pane.solutions))

    @property
    def room(self) -> int:
        """How many of a pane's solutions are kept about."""
        return self._sample.room

    def add_sample(self, first: int, last: int, rows: Rows, count: int) -> None:
        """See some of ``count`` solutions of a pane, others of which may be seen later; none replaces another."""
        self._sample.merge(first, last, rows, count)

    def of(self, window: int, held: Rows, waiting: list[Solution]) -> Content:
        """Return a window's content, given what the list holds of it, and what waits for a first value."""
        known = _together(held, rows_of(waiting) if waiting else NO_ROWS)
        return Content(known, *self._sample.of(window, known.identities))

    def close_before(self, window: int) -> None:
        """Forget what lies only in windows before this one."""
        self._sample.close_before(window)

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here."""
        return self._sample.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot; raises ``SnapshotError`` for any other bytes."""
        self._sample.resume(snapshot)


class Expectation:
    """Estimates a query's answers against worlds drawn from what is known of how the remote changes.

    In a world each key keeps its value, or has another one, with the chance that it has by now; all
    solutions that join with it go along. Keys that nothing is known of have the value of any key that
    is, or none, as often as these have none. The truth of a world are its best k; what the answer is worth
    against it is averaged. O(worlds · solutions): the best are looked at one by one, 25
    for each result but at least 256 and at most 2 000; 256 stand for the others.

    The worlds of a window depend on the seed and the window alone.
    """

    def __init__(
        self, scoring: ReplicaScoring, store: Store, model: ChangeModel, *, k: int, offset: int = 0, seed: int = 0
    ) -> None:
        self._scoring = scoring
        self._store = store
        self._model = model
        self._k = k
        self._offset = offset
        self._seed = seed

    def of(self, top: Top, content: Content, now: float) -> Estimate:
        """Return what a window's answer is expected to be worth at ``now``, a time of the store's clock.

        ``top`` are the window's best k, those before the offset among them.
        """
        random = np.random.default_rng((self._seed, top.window & (2**63 - 1)))
        worlds = _Worlds(self._scoring, self._store, self._model, now, random)
        answer, held = _divided(content.held, top.rows)
        if top.certainty is Certainty.EXACT and worlds.are_alike(answer, held, content.others):
            return CERTAIN
        rows, rest, count = self._divide(answer, held, content, worlds, random)
        if not len(rows) and not len(rest):
            return CERTAIN
        size = max(_FEWEST, min(_MOST, _CELLS // (len(rows) + len(rest))))
        merits = worlds.merits(rows, size)
        if len(rest):
            others = worlds.merits(rest, size)
            there = others[~np.isnan(others)]
            best = greatest(there, count * len(there) / others.size, self._k, size, random)
            merits = np.concatenate([merits, best], axis=1)
        return estimate(merits, len(top), self._k, self._offset)

    def _divide(
        self, answer: Rows, held: Rows, content: Content, worlds: _Worlds, random: np.random.Generator
    ) -> tuple[Rows, Rows, float]:
        """Return what to look at one by one, the answer first; what stands for others, and for how many of them."""
        others, count = content.others, content.count
        if content.is_whole:
            held, others, count = _together(held, others), NO_ROWS, 0.0
        room = max(0, considered(self._k) - len(answer))
        if len(held) > room:
            order = np.argsort(-worlds.kept(held), kind="stable")
            left = held.take(order[room:])
            held, others, count = held.take(order[:room]), _together(others, left), count + len(left)
        if len(others) > STANDING_FOR_OTHERS:
            others = others.take(random.choice(len(others), STANDING_FOR_OTHERS, replace=False))
        return _together(answer, held), others, count


class _Worlds:
    """Draws what the remote may have now."""

    def __init__(
        self,
        scoring: ReplicaScoring,
        store: Store,
        model: ChangeModel,
        now: float,
        random: np.random.Generator,
    ) -> None:
        self._scoring = scoring
        self._store = store
        self._model = model
        self._now = now
        self._random = random

    def are_alike(self, *several: Rows) -> bool:
        """Say whether no key of some solutions can have changed, so that all worlds are the same."""
        for each in several:  # the first few tell it as a rule
            rows = self._store.rows(each.keys.tolist())
            if (rows < 0).any() or self._model.chance(rows, self._now).any():
                return False
        return True

    def kept(self, solutions: Rows) -> FloatArray:
        """Return the merits of solutions as far as the replica knows, NaN where it knows of none."""
        rows = self._store.rows(solutions.keys.tolist())
        numbers = {name: self._store.numbers(name, rows) for name in self._scoring.remote_variables}
        merits = self._scoring.merits_given(numbers, solutions.parts, len(rows))
        return np.where(self._store.present(rows), merits, np.nan)

    def merits(self, solutions: Rows, count: int) -> FloatArray:
        """Return the merits of solutions, a row per world; NaN where the remote does not have a key."""
        if not len(solutions):
            return np.empty((count, 0))
        rows, of = self._distinct(solutions.keys)
        held = np.maximum(rows, -1)
        present = self._store.present(held)
        changed = self._random.random((count, len(rows))) < self._model.chance(held, self._now)
        is_there = np.where(changed, self._appears(rows, present, count), present)
        numbers = {name: each[:, of].ravel() for name, each in self._numbers(held, present, changed).items()}
        parts = tuple(np.tile(part, count) for part in solutions.parts)
        merits = self._scoring.merits_given(numbers, parts, count * len(of)).reshape(count, len(of))
        merits = np.where(is_there[:, of], merits, np.nan)
        if not len(self._known):
            # With nothing to go by, what is not known is expected to be better than all that is.
            merits[:, rows[of] < 0] = np.inf
        return merits

    def _distinct(self, keys: AnyArray) -> tuple[IntArray, IntArray]:
        """Return each key's row once, below zero for each that is not known, and which of them each key has."""
        texts = keys.tolist()
        rows = self._store.rows(texts)
        unknown: dict[str, int] = {}
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = -1 - unknown.setdefault(texts[at], len(unknown))
        distinct, of = np.unique(rows, return_inverse=True)
        return distinct, of

    def _appears(self, rows: IntArray, present: BoolArray, count: int) -> BoolArray:
        """Return whether the remote has each key, given that what it has for it is not what it was."""
        # A key that was absent can only have appeared.
        chance = np.where(present, 1 - self._vanishing, np.where(rows >= 0, 1.0, 1 - self._absent))
        if (chance == 1).all():
            return np.ones((count, len(rows)), dtype=np.bool_)
        return self._random.random((count, len(rows))) < chance

    def _numbers(self, rows: IntArray, present: BoolArray, changed: BoolArray) -> dict[str, FloatArray]:
        """Return what the remote has for each key by now, by variable: what it had, but where that has changed."""
        matters = changed.any(axis=0)
        anyone: IntArray | None = None
        found = {}
        for name in self._scoring.remote_variables:
            values = self._store.numbers(name, rows)
            is_known = present & ~np.isnan(values)
            numbers = np.full(changed.shape, np.nan)
            moved, others = matters & is_known, matters & ~is_known
            if moved.any():
                numbers[:, moved] = self._model.draw(
                    name, rows[moved], values[moved], len(changed), self._random, now=self._now
                )
            if others.any() and len(self._known):
                # A key has all its numbers from the same other one.
                anyone = self._anyone(changed.shape) if anyone is None else anyone
                numbers[:, others] = self._store.numbers(name, anyone[:, others].ravel()).reshape(len(changed), -1)
            found[name] = np.where(changed, numbers, values)
        return found

    def _anyone(self, shape: tuple[int, ...]) -> IntArray:
        """Return rows of keys that the remote has, in any others' place."""
        return self._known[self._random.integers(0, len(self._known), shape)]

    @cached_property
    def _known(self) -> IntArray:
        return self._population[self._store.present(self._population)]

    @cached_property
    def _population(self) -> IntArray:
        rows = self._store.all_rows()
        return rows if len(rows) <= _POPULATION else rows[self._random.integers(0, len(rows), _POPULATION)]

    @cached_property
    def _absent(self) -> float:
        """The share of keys asked for that the remote does not have."""
        return 1 - float(self._store.present(self._population).mean()) if len(self._population) else 0.0

    @cached_property
    def _vanishing(self) -> float:
        """The chance that a key is gone, given that it has changed: as many are to go as come."""
        present = self._store.present(self._population)
        if present.all() or not present.any():
            return 0.0
        come = float(self._model.rates(self._population[~present]).sum())
        change = float(self._model.rates(self._population[present]).sum())
        return min(1.0, come / change) if change > 0 else 0.0


def _together(*several: Rows) -> Rows:
    """Return rows one after the other, without what they carry."""
    some = [Rows(rows.times, rows.identities, rows.keys, rows.parts) for rows in several if len(rows)]
    return Rows.together(some) if some else NO_ROWS


def _divided(held: Rows, top: Rows) -> tuple[Rows, Rows]:
    """Return an answer's rows as they are held, in its order, and all others that are held."""
    at = {identity: place for place, identity in enumerate(held.identities.tolist())}
    places = [at.pop(identity, -1) for identity in top.identities.tolist()]
    answer = top if -1 in places else held.take(np.array(places, dtype=np.int64))
    return answer, held.take(np.array(list(at.values()), dtype=np.int64))
