"""Expected quality of an answer, given remote changes that the replica has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from acquatop.answer.estimate import CERTAIN, Estimate, belonging, estimate
from acquatop.answer.sample_top_k import greatest
from acquatop.answer.window_sample import WindowSample
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import NO_ROWS, AnyArray, Certainty, FloatArray, IntArray, Rows, Top
from connectors.mapping import TIME
from replica.store.runs import Runs, runs_at
from replica.view import ListedValues

_FEWEST, _MOST, _CELLS = 64, 256, 1 << 15
"""Bounds of the number of worlds drawn, and the number of cells that determines it."""

CONSIDERED = 2_000
"""Maximum number of solutions considered one by one; reached for large answers."""

CONSIDERED_AT_LEAST, CONSIDERED_PER_RESULT = 256, 25

STANDING_FOR_OTHERS = 256
"""Number of other solutions that stand for all those not considered one by one."""

_SEEN, _FEWEST_OF_A_PANE = 1_024, 4
"""Number of a window's solutions kept for that purpose, and the minimum for each pane."""

_POPULATION = 4_096
"""Number of replica rows that stand for the remote's possible values of an unknown key."""


class ChangeChances(Protocol):
    """Parts of a model of the remote's changes that estimates read."""

    def rates(self, rows: IntArray) -> FloatArray:
        """Return the number of changes per second of each row."""

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
        """Return values that each row may have now, given that it has changed: a row per world."""


Lookup = Callable[[AnyArray], IntArray]
"""Function that finds the replica's row of each key; below zero for unknown keys."""


@dataclass(frozen=True)
class ContentSample:
    """Content of a window: rows ``held``, and ``others``, which stand for ``count`` rows.

    Their keys are texts, unless ``look_up`` finds the replica's rows of others. Then the answer's
    rows are all held.
    """

    held: Rows
    others: Rows = NO_ROWS
    count: float = 0.0
    look_up: Lookup | None = None

    @property
    def is_whole(self) -> bool:
        """True if the whole content of the window is here."""
        return self.count <= len(self.others)


def considered(k: int) -> int:
    """Return the number of solutions considered one by one for an answer of k.

    The others are far behind.

    >>> considered(1), considered(20), considered(1000)
    (256, 500, 2000)
    """
    return min(CONSIDERED, max(CONSIDERED_AT_LEAST, CONSIDERED_PER_RESULT * k))


class ContentOfStream:
    """Content of the windows if solutions are the stream's: the list, and a sample of the others.

    Solutions dropped from the list may be right by now, so some of them are needed: about a
    thousand solutions of all ``panes`` of a window together.
    """

    def __init__(self, numbers: tuple[str, ...], *, panes: int = 1, seed: int = 0) -> None:
        self._numbers = numbers
        self._sample = WindowSample(
            np.random.default_rng(seed),
            max(_FEWEST_OF_A_PANE, min(STANDING_FOR_OTHERS, _SEEN // panes)),
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
        """Approximate number of a pane's solutions that are kept."""
        return self._sample.room

    def add_sample(self, first: int, last: int, rows: Rows, count: int) -> None:
        """See some of ``count`` solutions of a pane.

        Others may follow, and none replaces another.
        """
        self._sample.merge(first, last, rows, count)

    def of(self, window: int, held: Rows, waiting: Rows) -> ContentSample:
        """Return a window's content, given the list's rows and those waiting for a first value."""
        known = _together(held, waiting if len(waiting) else NO_ROWS)
        return ContentSample(known, *self._sample.of(window, known.identities))

    def close_before(self, window: int) -> None:
        """Drop data that lies only in earlier windows."""
        self._sample.close_before(window)

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return self._sample.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        self._sample.resume(snapshot)


class QualityEstimator:
    """Estimator of answers' quality against worlds drawn from a model of the remote's changes.

    In a world each key keeps its value, or has another one with the probability that it has changed
    by now. All solutions that join with the key follow it. An unknown key has the value of any
    present key, or none, as often as known keys have none. The truth of a world are its best k; the
    answer's quality against it is averaged. O(worlds · solutions): the best are examined one by
    one, 25 for each result but at least 256 and at most 2 000; 256 stand for the others.

    The worlds of a window depend on the seed and the window alone.
    """

    def __init__(
        self,
        scoring: ReplicaScoring,
        store: ListedValues,
        model: ChangeChances,
        *,
        k: int,
        offset: int = 0,
        seed: int = 0,
    ) -> None:
        self._scoring = scoring
        self._store = store
        self._model = model
        self._k = k
        self._offset = offset
        self._seed = seed
        self.chances: dict[str, float] = {}
        """Chances that solutions belong in the last answer estimated, by identity."""

    def of(self, top: Top, content: ContentSample, now: float) -> Estimate:
        """Return the expected quality of a window's answer at ``now``, a time of the store's clock.

        ``top`` are the window's best k, those before the offset included.
        """
        self.chances = {}
        random = np.random.default_rng((self._seed, top.window & (2**63 - 1)))
        look_up = content.look_up or self._rows_of_texts
        worlds = _Worlds(self._scoring, self._store, look_up, self._model, now, random)
        answer, held = _divided(content.held, top.rows)
        if top.certainty is Certainty.EXACT and worlds.are_alike(answer, held, content.others):
            return CERTAIN
        rows, rest, count = self._divide(answer, held, content, worlds, random)
        if not len(rows) and not len(rest):
            return CERTAIN
        size = max(_FEWEST, min(_MOST, _CELLS // (len(rows) + len(rest))))
        merits, reported = worlds.merits(rows, size), len(top)
        order = worlds.reported(rows, len(top))
        if order is not None:
            reported = min(self._k, len(order))
            merits = merits[:, np.concatenate([order, np.setdiff1d(range(merits.shape[1]), order)])]
        if len(rest):
            others = worlds.merits(rest, size)
            there = others[~np.isnan(others)]
            each = others.shape[1] / len(rest)
            best = greatest(there, each * count * len(there) / others.size, self._k, size, random)
            merits = np.concatenate([merits, best], axis=1)
        self._note_chances(rows, merits, order, worlds)
        return estimate(merits, reported, self._k, self._offset)

    def _note_chances(
        self, rows: Rows, merits: FloatArray, reported: IntArray | None, worlds: _Worlds
    ) -> None:
        """Note for each row the share of worlds in which some of what it joins is among the best.

        ``reported`` are the columns that were put first.
        """
        if not len(rows):
            return
        owners = worlds.owners(rows)
        belongs = belonging(merits, self._k)[:, : len(owners)]
        if reported is not None:
            columns = np.concatenate([reported, np.setdiff1d(range(len(owners)), reported)])
            belongs[:, columns] = belongs.copy()
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        shares = np.logical_or.reduceat(belongs, starts, axis=1).mean(axis=0).tolist()
        self.chances = dict(zip(rows.identities.tolist(), shares, strict=True))

    def _rows_of_texts(self, keys: AnyArray) -> IntArray:
        return self._store.rows(keys.tolist())

    def _divide(
        self,
        answer: Rows,
        held: Rows,
        content: ContentSample,
        worlds: _Worlds,
        random: np.random.Generator,
    ) -> tuple[Rows, Rows, float]:
        """Return the rows to examine one by one, the answer first; others.

        And how many those stand for.
        """
        others, count = content.others, content.count
        if content.is_whole:
            held, others, count = _together(held, others), NO_ROWS, 0.0
        room = max(0, considered(self._k) - len(answer))
        if len(held) > room:
            order = np.argsort(-worlds.kept(held), kind="stable")
            left = held.take(order[room:])
            held, others, count = (
                held.take(order[:room]),
                _together(others, left),
                count + len(left),
            )
        if len(others) > STANDING_FOR_OTHERS:
            others = others.take(random.choice(len(others), STANDING_FOR_OTHERS, replace=False))
        return _together(answer, held), others, count


class _Worlds:
    """Sampler of the values that the remote may have now."""

    def __init__(
        self,
        scoring: ReplicaScoring,
        store: ListedValues,
        look_up: Lookup,
        model: ChangeChances,
        now: float,
        random: np.random.Generator,
    ) -> None:
        self._scoring = scoring
        self._store = store
        self._look_up = look_up
        self._model = model
        self._now = now
        self._random = random

    def are_alike(self, *several: Rows) -> bool:
        """Return True if no key of some solutions can have changed: then all worlds are equal."""
        for each in several:  # the first few usually decide
            rows = self._look_up(each.keys)
            if (rows < 0).any() or self._model.chance(rows, self._now).any():
                return False
        return True

    def kept(self, solutions: Rows) -> FloatArray:
        """Return the merits of solutions with the replica's values; NaN if it has none."""
        rows = self._look_up(solutions.keys)
        runs = self._store.runs(np.maximum(rows, -1), least=1)
        merits = self._of_places(solutions, rows if runs is None else runs.places, runs)
        best = merits if runs is None else runs.best(merits)
        return np.where(self._store.present(rows), best, np.nan)

    def _of_places(self, solutions: Rows, places: IntArray, runs: Runs | None) -> FloatArray:
        numbers = {
            name: self._store.numbers(name, places) for name in self._scoring.remote_variables
        }
        parts = solutions.parts
        parts = parts if runs is None else tuple(part[runs.owners] for part in parts)
        return self._scoring.merits_given(numbers, parts, len(places))

    def reported(self, solutions: Rows, answer: int) -> IntArray | None:
        """Return the columns of :meth:`merits` that an answer shows, the best first.

        It is made of the first ``answer`` solutions. None if each is one column.
        """
        rows = np.maximum(self._look_up(solutions.keys), -1)
        runs = self._store.runs(rows, least=1)
        if runs is None:
            return None
        merits = self._of_places(solutions, runs.places, runs)
        merits[~self._store.present(rows)[runs.owners]] = np.nan
        shown = np.flatnonzero((runs.owners < answer) & ~np.isnan(merits))
        return shown[np.argsort(-merits[shown], kind="stable")]

    def owners(self, solutions: Rows) -> IntArray:
        """Return the solution of each column of :meth:`merits`."""
        runs = self._store.runs(np.maximum(self._look_up(solutions.keys), -1), least=1)
        return np.arange(len(solutions)) if runs is None else runs.owners

    def merits(self, solutions: Rows, count: int) -> FloatArray:
        """Return the merits of solutions, a row per world.

        NaN if the remote does not have a key.
        """
        if not len(solutions):
            return np.empty((count, 0))
        rows, of = self._distinct(solutions.keys)
        held = np.maximum(rows, -1)
        present = self._store.present(held)
        changed = self._random.random((count, len(rows))) < self._model.chance(held, self._now)
        is_there = np.where(changed, self._appears(rows, present, count), present)
        runs, columns = self._store.runs(held, least=1), of
        stream = solutions.parts
        if runs is not None:
            # A column for each solution of the join: those of one key change together.
            counts = runs.counts
            mine = runs_at((np.cumsum(counts) - counts)[of], counts[of])
            columns, of = mine.places, of[mine.owners]
            stream = tuple(part[mine.owners] for part in stream)
        numbers = {
            name: each[:, columns].ravel()
            for name, each in self._numbers(held, present, changed, runs).items()
        }
        parts = tuple(np.tile(part, count) for part in stream)
        merits = self._scoring.merits_given(numbers, parts, count * len(of)).reshape(count, len(of))
        merits = np.where(is_there[:, of], merits, np.nan)
        if not len(self._known):
            # Without any known key, unknown keys are assumed to be better than all known ones.
            merits[:, rows[of] < 0] = np.inf
        return merits

    def _distinct(self, keys: AnyArray) -> tuple[IntArray, IntArray]:
        """Return distinct rows, below zero for unknown keys, and the index of each key's row."""
        rows = self._look_up(keys)
        unknown: dict[object, int] = {}
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = -1 - unknown.setdefault(keys[at], len(unknown))
        distinct, of = np.unique(rows, return_inverse=True)
        return distinct, of

    def _appears(self, rows: IntArray, present: BoolArray, count: int) -> BoolArray:
        """Return a mask per world of the keys that the remote has, given that they changed."""
        # A key that was absent can only have appeared.
        chance = np.where(present, 1 - self._vanishing, np.where(rows >= 0, 1.0, 1 - self._absent))
        if (chance == 1).all():
            return np.ones((count, len(rows)), dtype=np.bool_)
        return self._random.random((count, len(rows))) < chance

    def _numbers(
        self, rows: IntArray, present: BoolArray, changed: BoolArray, runs: Runs | None
    ) -> dict[str, FloatArray]:
        """Return the remote's present numbers for each key, by variable: old or changed ones.

        With ``runs`` there is a column for each place of a key.
        """
        places = rows
        if runs is not None:
            places, rows = runs.places, rows[runs.owners]
            present, changed = present[runs.owners], changed[:, runs.owners]
        matters = changed.any(axis=0)
        anyone: IntArray | None = None
        found = {}
        for name in self._scoring.remote_variables:
            values = self._store.numbers(name, places)
            is_known = present & ~np.isnan(values)
            numbers = np.full(changed.shape, np.nan)
            moved, others = matters & is_known, matters & ~is_known
            if moved.any():
                numbers[:, moved] = self._model.draw(
                    name, rows[moved], values[moved], len(changed), self._random, now=self._now
                )
            if others.any() and len(self._known):
                # A key takes all its numbers from the same other key.
                anyone = self._anyone(changed.shape) if anyone is None else anyone
                numbers[:, others] = self._store.numbers(name, anyone[:, others].ravel()).reshape(
                    len(changed), -1
                )
            found[name] = np.where(changed, numbers, values)
        return found

    def _anyone(self, shape: tuple[int, ...]) -> IntArray:
        """Return random places of keys that the remote has, to stand for others."""
        return self._known[self._random.integers(0, len(self._known), shape)]

    @cached_property
    def _known(self) -> IntArray:
        """Places of keys that the remote has."""
        rows = self._population[self._store.present(self._population)]
        runs = self._store.runs(rows)
        return rows if runs is None else runs.places

    @cached_property
    def _population(self) -> IntArray:
        rows = self._store.all_rows()
        return (
            rows
            if len(rows) <= _POPULATION
            else rows[self._random.integers(0, len(rows), _POPULATION)]
        )

    @cached_property
    def _absent(self) -> float:
        """Share of keys asked for that the remote does not have."""
        return (
            1 - float(self._store.present(self._population).mean())
            if len(self._population)
            else 0.0
        )

    @cached_property
    def _vanishing(self) -> float:
        """Probability that a changed key is gone: as many keys are assumed to go as to come."""
        present = self._store.present(self._population)
        if present.all() or not present.any():
            return 0.0
        come = float(self._model.rates(self._population[~present]).sum())
        change = float(self._model.rates(self._population[present]).sum())
        return min(1.0, come / change) if change > 0 else 0.0


def _together(*several: Rows) -> Rows:
    """Return rows one after the other, without their carried columns."""
    some = [
        Rows(rows.times, rows.identities, rows.keys, rows.parts) for rows in several if len(rows)
    ]
    return Rows.together(some) if some else NO_ROWS


def _divided(held: Rows, top: Rows) -> tuple[Rows, Rows]:
    """Return the held rows of an answer, in its order, and all other held rows."""
    at = {identity: place for place, identity in enumerate(held.identities.tolist())}
    places = [at.pop(identity, -1) for identity in top.identities.tolist()]
    answer = top if -1 in places else held.take(np.array(places, dtype=np.int64))
    return answer, held.take(np.array(list(at.values()), dtype=np.int64))
