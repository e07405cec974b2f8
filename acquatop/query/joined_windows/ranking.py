"""Ranking of what several windows join to, at one close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.answer.expected_quality import ContentSample
from acquatop.errors import EvaluationError
from acquatop.ingest.panes import Pane
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column, term_column
from acquatop.query.exactness import Extents
from acquatop.query.joined_windows.made import MadeColumns
from acquatop.query.joined_windows.side import WindowSide
from acquatop.query.topk.retained import RetainedTopKN
from acquatop.topk.contract import Certainty, FloatArray, IntArray, Rows, Top
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.store import JoinedStore
from rspql.plan import TopKPlan

MOST_JOINED = 2_000_000
"""Number of solutions that windows may join to at one close: more could end the process."""
_LATE = "a solution that came too late could belong here"


@dataclass(frozen=True)
class _OneClose(Windows):
    """Windows of which one holds all that is joined at a close, whatever its time."""

    window: int = 0

    def spans(self, times_ms: IntArray) -> tuple[IntArray, IntArray]:
        """Return the one window for each time."""
        here = np.full(len(times_ms), self.window)
        return here, here


class JoinedWindowsTopKN(RetainedTopKN):
    """All that the sides' solutions join to at one close, scored.

    A joined solution is as new as the newest of its parts. What is ``made`` at the close belongs to
    them.
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: JoinedStore | None,
        sides: Sequence[WindowSide],
        window: int,
        made: MadeColumns,
    ) -> None:
        places = tuple(f"side {at}" for at in range(len(sides)))
        closing = _OneClose(width_ms=1, slide_ms=1, window=window)
        super().__init__(replace(plan, stream_variables=places), store, closing, n=0, distinct=True)
        self._sides = sides
        self._made = made
        self.add_pane(Pane(joined_solutions(plan, sides, places, made), window, window))

    def top(self, window: int) -> Top:
        """Return the best k; late solutions of any side make them uncertain."""
        found = self.best(window, self.k)
        rows, merits = found.rows.take(slice(self.k)), found.merits[: self.k]
        return replace(found, rows=rows, merits=merits)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count``, and all that tie with the last of them."""
        return self._judged(super().best(window, count))

    def _judged(self, top: Top) -> Top:
        is_late = any(side.is_uncertain for side in self._sides)
        reason = _LATE if is_late else self._made.reason
        if reason is None:
            return top
        return replace(top, certainty=Certainty.APPROXIMATE, reason=reason, bound=np.inf)

    def extents(self, window: int) -> Extents:
        """Return the sizes of the joined numbers, and of the sides' aggregates."""
        found = dict(super().extents(window))
        for side in self._sides:
            found.update(side.extents())
        return found

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best, of all sides."""
        places = self._places(rows, at)
        found = {name: term for side, place in places for name, term in side.terms(place).items()}
        made = ((name, texts[places[of][1]]) for name, (of, texts) in self._made.terms.items())
        return found | {name: term for name, term in made if term}

    @property
    def keeps_terms(self) -> bool:
        """False: the sides have the terms of one close."""
        return False

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return the averages of one of the best, of all sides."""
        return {
            name: ratio
            for side, place in self._places(rows, at)
            for name, ratio in side.ratios(place).items()
        }

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return None: terms are made of the sides' one by one."""
        return None

    def _places(self, rows: Rows, at: int) -> list[tuple[WindowSide, int]]:
        places = (int(column[at]) for column in rows.carried)
        return list(zip(self._sides, places, strict=True))

    def content(self, window: int) -> ContentSample:
        """Raise: nothing is estimated of several windows."""
        raise AssertionError("expected quality is not estimated")


def joined_solutions(
    plan: TopKPlan, sides: Sequence[WindowSide], places: Sequence[str], made: MadeColumns
) -> pa.Table:
    """Return the solutions that the sides' join to, as a pane has them; ``places`` name the sides.

    O(n log n) on columns, for the n solutions of the sides and of the result.
    """
    at = joined_places(plan, sides)
    times = reduce(np.maximum, (side.rows.times[of] for side, of in zip(sides, at, strict=True)))
    identities = [
        pa.array(side.rows.identities[of], pa.string()) for side, of in zip(sides, at, strict=True)
    ]
    owners = {
        name: number for number, part in reversed([*enumerate(plan.parts)]) for name in part.bound
    }

    def terms(name: str) -> pa.Array:
        return sides[owners[name]].column(name).take(pa.array(at[owners[name]]))

    def numbers(name: str) -> FloatArray:
        of, column = made.numbers.get(name) or (owners[name], sides[owners[name]].numbers(name))
        return column[at[of]]

    identity = pc.binary_join_element_wise(*identities, "\n")
    key = (
        pc.binary_join_element_wise(*map(terms, plan.join_variables), "\n")
        if plan.join_variables
        else identity
    )
    return pa.table(
        {
            TIME: times,
            IDENTITY: identity,
            KEY: key,
            GONE: np.zeros(len(times), dtype=np.bool_),
            **{number_column(name): numbers(name) for name in plan.score.stream_variables},
            **{
                term_column(place): pa.array(of).cast(pa.string())
                for place, of in zip(places, at, strict=True)
            },
        }
    )


def joined_places(plan: TopKPlan, sides: Sequence[WindowSide]) -> list[IntArray]:
    """Return for each side the places of the solutions that join, row by row.

    Each side shares a variable with those before it.
    """
    at = [np.arange(len(sides[0].rows))]
    owners = dict.fromkeys(plan.parts[0].bound, 0)
    for number, part in enumerate(plan.parts[1:], start=1):
        names = [name for name in part.bound if name in owners]
        known = [
            sides[owners[name]].column(name).take(pa.array(at[owners[name]])) for name in names
        ]
        new = [sides[number].column(name) for name in names]
        left, right = _matching(known, new)
        at = [*(each[left] for each in at), right]
        owners.update({name: number for name in part.bound if name not in owners})
    return at


def _matching(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[IntArray, IntArray]:
    """Return the places of the rows on both sides with equal terms in all columns.

    Raises :class:`EvaluationError` if they are too many.
    """
    codes, count = np.zeros(len(left[0]) + len(right[0]), dtype=np.int64), len(left[0])
    for one, other in zip(left, right, strict=True):
        encoded = pa.concat_arrays([one, other]).dictionary_encode()
        of_column = np.asarray(encoded.indices.to_numpy(), dtype=np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + of_column, return_inverse=True)
    first, second = codes[:count], codes[count:]
    order = np.argsort(second, kind="stable")
    ordered = second[order]
    starts, stops = (np.searchsorted(ordered, first, side=side) for side in ("left", "right"))
    sizes = stops - starts
    if (joined := int(sizes.sum())) > MOST_JOINED:
        raise EvaluationError(
            f"the windows join to {joined:.0e} solutions, more than {MOST_JOINED:.0e}\n"
            "  hint: share one more variable, or group a window's records by what is shared"
        )
    rows = np.repeat(np.arange(count), sizes)
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows, order[np.repeat(starts, sizes) + np.arange(len(rows)) - before]
