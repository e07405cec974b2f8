"""Right answer of every window, from its whole content and the remotes' values at its close.

It is independent of the engine: no state is kept between windows, nothing is pruned, no replica is
used. Only decoding, matching of records, and the score's arithmetic are shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column
from acquatop.lab.replay.result_names import result_names
from acquatop.lab.replay.right_join import JoinedRows, RightRemote, joined_names, right_remotes
from acquatop.lab.replay.trace import Trace
from acquatop.lab.replay.window_solutions import solutions_of
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from connectors.mapping import TIME
from replica.store import Solution
from rspql.plan import AggregateColumn, Aggregation, gap_of
from rspql.scoring import vectorise, vectorise_condition


@dataclass(frozen=True)
class Right:
    """A window's results in the right order: identities and merits; without offset and limit."""

    window: int
    closes_ms: int
    identities: list[str]
    merits: FloatArray


@dataclass(frozen=True)
class WindowRows:
    """Rows of one window that are joined and ranked: one per solution, or per key of aggregates.

    ``keys`` are positions among the stream's.
    """

    identities: IntArray
    keys: IntArray
    times: IntArray
    numbers: Mapping[str, FloatArray]


class Oracle:
    """The right answers of a trace.

    A result is identified by its solution's text; by its subject if only the latest arrival counts
    or arrivals are distinct; by its key if the query aggregates; of several results of one also by
    the remotes' terms (:func:`~acquatop.lab.replay.result_names.result_names`). A window of n
    results costs O(n log n).
    """

    def __init__(self, trace: Trace) -> None:
        plan = trace.bound.plan
        self._trace = trace
        self._score = vectorise(plan.score.expression, plan.score.functions, plan.score.datatypes)
        condition = plan.score.condition
        self._holds = (
            None
            if condition is None
            else vectorise_condition(condition, plan.score.functions, plan.score.datatypes)
        )
        solutions, self._of_window = solutions_of(trace)
        self._times = np.asarray(solutions.column(TIME).to_numpy(), dtype=np.int64)
        self._identities, self._texts = _coded(solutions.column(IDENTITY))
        self._keys, key_texts = _coded(solutions.column(KEY))
        if plan.aggregate is not None:
            self._texts = key_texts
        self._gone = np.asarray(
            solutions.column(GONE).to_numpy(zero_copy_only=False), dtype=np.bool_
        )
        self._numbers = {
            name: np.asarray(solutions.column(number_column(name)).to_numpy(), dtype=np.float64)
            for name in (
                plan.score.stream_variables if plan.aggregate is None else plan.aggregate.numbers
            )
        }
        self._key_texts = key_texts
        # A text's position among all: it orders equal scores of equal age.
        self._in_text_order = np.argsort(np.argsort(self._texts, kind="stable"), kind="stable")

    @property
    def keys(self) -> AnyArray:
        """The stream's keys, each once."""
        return self._key_texts

    def __iter__(self) -> Iterator[Right]:
        """Yield the right answers of all windows, in their order."""
        closes = [closes_ms for _, closes_ms in self._closes()]
        remotes = right_remotes(self._trace, self._key_texts, closes)
        for (window, closes_ms, content), remote in zip(self.contents(), remotes, strict=True):
            yield self.answer(window, closes_ms, content, remote)

    def contents(self) -> Iterator[tuple[int, int, WindowRows]]:
        """Yield the windows in their order: each one's number, its close, and its content."""
        for window, closes_ms in self._closes():
            opens_ms = closes_ms - self._trace.bound.windows.width_ms
            yield window, closes_ms, self._content(self._of_window(window, opens_ms, closes_ms))

    def _closes(self) -> Iterator[tuple[int, int]]:
        bounds = self._trace.bound.windows
        return ((window, bounds.bounds(window)[1]) for window in self._trace.windows())

    def answer(
        self, window: int, closes_ms: int, content: WindowRows, remote: RightRemote
    ) -> Right:
        """Return the answer of a window's content with what a remote, or a replica, has."""
        joined = remote.results(content.keys)
        merits = self.merits(content, joined)
        at = np.flatnonzero(~np.isnan(merits))
        rows, merits = joined.rows[at], merits[at]
        identities = content.identities[rows]
        terms = None if joined.terms is None else [joined.terms[place] for place in at.tolist()]
        plan = self._trace.bound.plan
        order = np.lexsort(
            (
                _term_order(terms, joined_names(plan), len(at)),
                self._in_text_order[identities],
                -content.times[rows],
                -merits,
            )
        )
        names = [self._texts[code] for code in identities[order].tolist()]
        if terms is not None:
            ranked = [terms[place] for place in order.tolist()]
            names = result_names(names, ranked, joined_names(plan))
        return Right(window, closes_ms, names, merits[order])

    def merits(self, content: WindowRows, joined: JoinedRows) -> FloatArray:
        """Return the merits of a content's joined rows, NaN for those that are no results."""
        columns = {name: numbers[joined.rows] for name, numbers in content.numbers.items()}
        columns.update(joined.numbers)
        scores = np.broadcast_to(self._score(columns), len(joined.rows))
        is_result = ~np.isnan(scores)
        if self._holds is not None:
            is_result &= self._holds(columns)
        sign = 1.0 if self._trace.bound.plan.score.descending else -1.0
        return np.where(is_result, sign * scores, np.nan)

    def tie_order(self, content: WindowRows) -> IntArray:
        """Return the order of a content's rows if all have equal merits."""
        return np.lexsort((self._in_text_order[content.identities], -content.times))

    def _content(self, at: IntArray) -> WindowRows:
        if self._trace.bound.matcher.arrivals != "distinct":
            # The last of an identity is the newest; in reverse order it comes first.
            _, firsts = np.unique(self._identities[at][::-1], return_index=True)
            at = np.sort(at[::-1][firsts])
        at = at[~self._gone[at]]
        numbers = {name: column[at] for name, column in self._numbers.items()}
        aggregate = self._trace.bound.plan.aggregate
        if aggregate is None:
            return WindowRows(self._identities[at], self._keys[at], self._times[at], numbers)
        kinds = {name: self._trace.bound.matcher.number_kind(name) for name in numbers}
        scaled = {
            name: column if (kind := kinds[name]) is None else column / kind.scale
            for name, column in numbers.items()
        }
        return _grouped(aggregate, self._keys[at], self._times[at], scaled)


def _term_order(terms: Sequence[Solution] | None, variables: Sequence[str], count: int) -> IntArray:
    """Return the position of each result's terms among all: it orders results of one solution."""
    if terms is None:
        return np.zeros(count, dtype=np.int64)
    said = [tuple(each.get(name, "") for name in variables) for each in terms]
    places = {each: place for place, each in enumerate(sorted(set(said)))}
    return np.array([places[each] for each in said], dtype=np.int64)


def _coded(column: pa.ChunkedArray) -> tuple[IntArray, AnyArray]:
    encoded = column.combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    codes = np.asarray(
        pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64
    )
    return codes, np.array(encoded.dictionary.to_pylist(), dtype=object)


def _grouped(
    aggregate: Aggregation,
    keys: IntArray,
    times: IntArray,
    numbers: Mapping[str, FloatArray],
) -> WindowRows:
    """Return a row per key: its aggregates, and its newest solution's time."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    if not len(distinct):
        return WindowRows(
            distinct,
            distinct,
            distinct,
            {column.variable: np.empty(0) for column in aggregate.columns},
        )
    counts = np.diff(starts, append=len(keys))
    ordered = {name: each[order] for name, each in numbers.items()}
    gaps = {
        of: np.add.reduceat((ordered[gap_of(of)] > 0).astype(np.int64), starts)
        for of in aggregate.uncertain
    }
    made = {
        column.variable: _aggregate(
            column,
            ordered.get(column.of or ""),
            starts,
            counts,
            gaps.get(column.of or "", np.zeros(len(counts), dtype=np.int64)),
        )
        for column in aggregate.columns
    }
    return WindowRows(distinct, distinct, np.maximum.reduceat(times[order], starts), made)


def _aggregate(
    column: AggregateColumn,
    values: FloatArray | None,
    starts: IntArray,
    counts: IntArray,
    gaps: IntArray,
) -> FloatArray:
    """Return one aggregate of each key; NaN for an error, but a count passes over these."""
    if column.function == "count" or values is None:
        return (counts - gaps).astype(np.float64)
    return np.where(gaps > 0, np.nan, _aggregate_of(column.function, values, starts, counts))


def _aggregate_of(
    function: str, values: FloatArray, starts: IntArray, counts: IntArray
) -> FloatArray:
    if function in ("min", "max"):
        extreme = np.minimum if function == "min" else np.maximum
        return np.asarray(extreme.reduceat(values, starts))
    ends = (starts + counts).tolist()
    # Exact like the engine's sums: in any order of addition they are rounded once.
    sums = np.array(
        [math.fsum(values[start:end]) for start, end in zip(starts.tolist(), ends, strict=True)]
    )
    return sums / counts if function == "avg" else sums
