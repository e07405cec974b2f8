"""Topk+N: keep the candidates of every open window as events arrive and remote values change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.operators.match import GONE, IDENTITY, KEY, number_column, term_column
from acquatop.operators.panes import Pane
from acquatop.topk.candidate import Candidate, best_rank
from acquatop.topk.super_mtkn import SuperMTKN
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.store import ReplicaStore
from rspql.plan import Score, TopKPlan
from rspql.scoring import Interval, ScoreFunction, bounds, vectorise, vectorise_condition

FloatArray = npt.NDArray[np.float64]

WAITING_LIMIT = 10_000
"""How many solutions may wait for a first value of the remote's; what is beyond it is dropped, and remembered."""


class TopKN:
    """The Super-MTK+N list of one query, joined with a replica.

    Solutions whose key the replica does not know have no score yet: they wait, outside the list,
    until the remote has been asked for them. A solution that the remote has nothing for, or whose
    score cannot be computed, is no solution of the query, but it stays with those that wait, as
    the remote may have something later.
    """

    def __init__(self, plan: TopKPlan, store: ReplicaStore, n: int, windows: Windows) -> None:
        self.list = SuperMTKN(plan.k + plan.offset, n)
        self.waiting: dict[str, Candidate] = {}
        self._plan = plan
        self._windows = windows
        self._store = store
        self._score = _scoring(plan.score)
        self._sign = 1.0 if plan.score.descending else -1.0

    # Arrivals -----------------------------------------------------------------------------------

    def add_pane(self, pane: Pane) -> None:
        """Take in one pane's solutions; only those that could matter become candidates."""
        gone = pane.solutions.column(GONE)
        self._remove(pane.solutions.filter(gone).column(IDENTITY).to_pylist())
        solutions = pane.solutions.filter(pc.invert(gone))
        if not len(solutions):
            return
        stream = [solutions.column(number_column(name)).to_numpy() for name in self._plan.score.stream_variables]
        keys = solutions.column(KEY).combine_chunks().dictionary_encode()
        merits = self._merits(stream, keys.dictionary.to_pylist(), keys.indices.to_numpy())
        chosen, rest = self._choose(solutions, merits)
        self._forget(solutions, stream, merits, rest, pane)
        self._take(_candidates(solutions, stream, merits, chosen, pane, self._plan))

    def note_late(self, late: pa.Table) -> None:
        """Note what came after a window of its own had closed: it is left out of the windows still open, too.

        It may have been a solution there, or have replaced one, so nothing is certain in them.
        """
        anything = (np.inf,) * len(self._plan.score.stream_variables)
        nothing = tuple(-each for each in anything)
        for first, last in sorted(set(zip(*map(np.ndarray.tolist, self._windows.spans(_times(late))), strict=True))):
            self.list.note_dropped(range(first, last + 1), best_rank(np.inf), nothing, anything)

    def _remove(self, identities: list[str]) -> None:
        self.list.remove(identities)
        for identity in identities:
            self.waiting.pop(identity, None)

    def _merits(self, stream: list[FloatArray], keys: list[str], indices: npt.NDArray[np.int64]) -> FloatArray:
        """Return the merit of each solution, NaN where the remote's part is missing or not a number."""
        rows = self._store.rows(keys)
        columns = dict(zip(self._plan.score.stream_variables, stream, strict=True))
        for name in self._plan.score.remote_variables:
            columns[name] = self._store.numbers(name, rows)[indices]
        present = self._store.present(rows)[indices]
        return np.where(present, self._sign * np.broadcast_to(self._score(columns), present.shape), np.nan)

    def _choose(self, solutions: pa.Table, merits: FloatArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which solutions go on: the pane's best K+N, all without a merit, all that replace one held."""
        identities = solutions.column(IDENTITY)
        capacity = self.list.k + self.list.n
        held = pa.array([*(candidate.identity for candidate in self.list), *self.waiting], pa.string())
        replaces = pc.is_in(identities, value_set=held).to_numpy(zero_copy_only=False)
        # The list's own order: merit, then the newer, then the smaller identity (rows come sorted by it).
        order = np.lexsort((np.arange(len(merits)), -solutions.column(TIME).to_numpy(), -merits))
        best = np.zeros(len(merits), dtype=bool)
        best[order[:capacity]] = True
        goes_on = best | replaces | np.isnan(merits)
        return np.flatnonzero(goes_on), np.flatnonzero(~goes_on)

    def _forget(
        self,
        solutions: pa.Table,
        stream: list[FloatArray],
        merits: FloatArray,
        rest: npt.NDArray[np.int64],
        pane: Pane,
    ) -> None:
        if not len(rest):
            return
        times = solutions.column(TIME).to_numpy()
        best = rest[np.lexsort((rest, -times[rest], -merits[rest]))[0]]
        rank = (-float(merits[best]), -int(times[best]), str(solutions.column(IDENTITY)[int(best)].as_py()))
        lows = tuple(float(column[rest].min()) for column in stream)
        highs = tuple(float(column[rest].max()) for column in stream)
        self.list.note_dropped(range(pane.first, pane.last + 1), rank, lows, highs)

    def _take(self, arrivals: list[Candidate]) -> None:
        """Put arrivals where they belong: into the list, or among those that wait."""
        for arrival in arrivals:
            self.waiting.pop(arrival.identity, None)
        without = [arrival for arrival in arrivals if np.isnan(arrival.merit)]
        self.list.remove(arrival.identity for arrival in without)
        self.list.insert(arrival for arrival in arrivals if not np.isnan(arrival.merit))
        self.waiting.update((arrival.identity, arrival) for arrival in without)
        if len(self.waiting) > WAITING_LIMIT:
            self._shed()

    def _shed(self) -> None:
        ordered = sorted(self.waiting.values(), key=lambda each: (-each.time_ms, each.identity))
        for candidate in ordered[WAITING_LIMIT:]:
            del self.waiting[candidate.identity]
            span = range(candidate.first, candidate.last + 1)
            self.list.note_dropped(span, best_rank(np.inf), candidate.numbers, candidate.numbers)

    # Changes of the remote's values ---------------------------------------------------------------

    def apply_changes(self, keys: Iterable[str]) -> None:
        """Rescore what joins with keys whose remote values have changed; let in who has a score now."""
        changed = set(keys)
        held = [candidate for key in sorted(changed) for candidate in self.list.with_key(key)]
        woken = [candidate for candidate in self.waiting.values() if candidate.key in changed]
        touched = [*held, *woken]
        # Where a key has but one solution, and that is held, none with the key has been forgotten.
        self._bound_forgotten(changed - {each.key for each in touched if each.identity == each.key})
        merits = self._merits_of(touched).tolist()
        scored = dict(zip((candidate.identity for candidate in touched), merits, strict=True))
        lost = [candidate for candidate in held if np.isnan(scored[candidate.identity])]
        self.list.remove(candidate.identity for candidate in lost)
        self.waiting.update((candidate.identity, candidate) for candidate in lost)
        self.list.rescore((each, scored[each.identity]) for each in held if not np.isnan(scored[each.identity]))
        self._admit([(each, scored[each.identity]) for each in woken if not np.isnan(scored[each.identity])])

    def _admit(self, woken: list[tuple[Candidate, float]]) -> None:
        for candidate, merit in woken:
            del self.waiting[candidate.identity]
            candidate.set_merit(merit)
        self.list.insert(candidate for candidate, _ in woken)

    def _merits_of(self, candidates: list[Candidate]) -> FloatArray:
        names = self._plan.score.stream_variables
        stream = [np.array([each.numbers[at] for each in candidates]) for at in range(len(names))]
        return self._merits(stream, [each.key for each in candidates], np.arange(len(candidates)))

    def _bound_forgotten(self, keys: Iterable[str]) -> None:
        """Raise what windows have lost to what it could be worth with these keys' new values."""
        for key in keys:
            rows = self._store.rows([key])
            remote = {}
            for name in self._plan.score.remote_variables:
                value = float(self._store.numbers(name, rows)[0])
                remote[name] = Interval(value, value)
            if any(np.isnan(each.low) for each in remote.values()):
                continue  # no value, no solution
            for window in self.list.open_windows():
                dropped = self.list.dropped(window)
                if dropped is not None:
                    self.list.raise_dropped(window, self.reach(dropped.lows, dropped.highs, remote))

    # What an answer needs -------------------------------------------------------------------------

    def reach(
        self, lows: Iterable[float], highs: Iterable[float], remote: Mapping[str, Interval] | None = None
    ) -> float:
        """Return the best merit possible for stream values within ranges, whatever the remote's not given."""
        ranges = zip(self._plan.score.stream_variables, map(Interval, lows, highs), strict=True)
        score = self._plan.score
        known = {**score.ranges, **dict(ranges), **(remote or {})}
        reach = bounds(score.expression, known, functions=score.functions)
        return reach.high if score.descending else -reach.low

    def expected(self, waiting: list[Candidate]) -> FloatArray:
        """Return a guess at the merit of solutions that wait: with the mean of the replica's values."""
        columns = {
            name: np.array([each.numbers[at] for each in waiting])
            for at, name in enumerate(self._plan.score.stream_variables)
        }
        for name in self._plan.score.remote_variables:
            mean = self._store.mean(name)
            columns[name] = np.full(len(waiting), 0.0 if np.isnan(mean) else mean)
        return self._sign * np.broadcast_to(self._score(columns), len(waiting))

    def close_before(self, window: int) -> None:
        """Let go of all that lies only in windows before this one."""
        self.list.close_before(window)
        for identity in [each.identity for each in self.waiting.values() if each.last < window]:
            del self.waiting[identity]


def _scoring(score: Score) -> ScoreFunction:
    """Return what scores columns: NaN where the score is an error or its condition does not hold."""
    value = vectorise(score.expression, score.functions)
    if score.condition is None:
        return value
    holds = vectorise_condition(score.condition, score.functions)
    return lambda columns: np.where(holds(columns), value(columns), np.nan)


def _times(solutions: pa.Table) -> npt.NDArray[np.int64]:
    return np.asarray(solutions.column(TIME).to_numpy())


def _candidates(
    solutions: pa.Table,
    stream: list[FloatArray],
    merits: FloatArray,
    chosen: npt.NDArray[np.int64],
    pane: Pane,
    plan: TopKPlan,
) -> list[Candidate]:
    rows = solutions.take(pa.array(chosen))
    terms = [rows.column(term_column(name)).to_pylist() for name in plan.stream_variables]
    numbers = [column[chosen].tolist() for column in stream]
    return [
        Candidate(identity, key, time_ms, merit, pane.first, pane.last, values, names)
        for identity, key, time_ms, merit, values, names in zip(
            rows.column(IDENTITY).to_pylist(),
            rows.column(KEY).to_pylist(),
            rows.column(TIME).to_pylist(),
            merits[chosen].tolist(),
            list(zip(*numbers, strict=True)) if numbers else [()] * len(chosen),
            zip(*terms, strict=True),
            strict=True,
        )
    ]
