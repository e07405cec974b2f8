"""The materialised view against its table: whatever changes, it holds the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.papers.views.table_view import TableView
from acquatop.topk.refill.controller import Controller
from tests.support.refill_model import expected_interval
from tests.support.topk_streams import INF, NAN, column


class Numbers(dict[Any, float]):
    """A table in memory, that counts how often it is asked."""

    asked = 0

    def best(self, count: int) -> tuple[Any, Any]:
        self.asked += 1
        keys = sorted(self, key=lambda key: (-self[key], key))[:count]
        return column(keys) if keys else np.empty(0, object), np.array([self[key] for key in keys])

    def change(self, changes: dict[Any, float], view: TableView) -> None:
        for key, merit in changes.items():
            self.pop(key, None)
            if not np.isnan(merit):
                self[key] = merit
        view.changed(column(changes), np.array(list(changes.values())))
        self.refill(view)
        view._check(column(self), np.array(list(self.values())))

    def refill(self, view: TableView) -> None:
        """Give a view what it wants."""
        wanted = view.wanted
        if wanted is not None:
            keys, merits = self.best(wanted)
            view.fill(keys, merits, wanted, is_whole=len(keys) == len(self), seconds=1.0)


def viewed(numbers: Numbers, controller: Controller) -> TableView:
    view = TableView(controller, Ticks())
    numbers.refill(view)
    return view


class Ticks:
    """A clock that goes on by one each time it is looked at."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


merits = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, INF, -INF, NAN])


@settings(max_examples=150, deadline=None)
@given(
    table=st.dictionaries(
        st.integers(0, 20), merits.filter(lambda merit: merit == merit), max_size=20
    ),
    changes=st.lists(st.dictionaries(st.integers(0, 25), merits, max_size=4), max_size=25),
    k=st.integers(1, 5),
    more=st.integers(0, 5),
    text=st.booleans(),
)
def test_the_best_are_the_table_s(
    table: dict[int, float], changes: list[dict[int, float]], k: int, more: int, text: bool
) -> None:
    named = (lambda key: f"k{key:02}") if text else (lambda key: key)
    numbers = Numbers({named(key): merit for key, merit in table.items()})
    view = viewed(numbers, Controller(k, k + more))
    for some in changes:
        numbers.change({named(key): merit for key, merit in some.items()}, view)
        keys, best = numbers.best(k)
        found = view.top()
        assert (found[0].tolist(), found[1].tolist()) == (keys.tolist(), best.tolist())


def test_what_holds_the_whole_table_is_never_refilled() -> None:
    numbers = Numbers({key: float(key) for key in range(5)})
    view = viewed(numbers, Controller(3, 10))
    for key in range(4):
        numbers.change({key: NAN}, view)
    numbers.change({7: -9.0, 8: 1.0}, view)
    assert (view.top()[0].tolist(), view.refills) == ([4, 8, 7], 1)


def test_a_row_of_the_last_place_s_merit_counts() -> None:
    numbers = Numbers(dict.fromkeys(range(10), 1.0))
    view = viewed(numbers, Controller(2, 4))
    assert len(view) == 4
    numbers.change({0: NAN, 1: NAN}, view)
    assert (view.top()[0].tolist(), view.refills) == ([2, 3], 1)
    numbers.change({2: NAN}, view)
    assert (view.top()[0].tolist(), view.refills) == ([3, 4], 2)


def test_refills_are_as_rare_as_the_walk_says() -> None:
    """Rows that jump anywhere: the chance that one leaves the view is that one enters it."""
    chance = np.random.default_rng(11)
    size, k, more = 200, 10, 6
    numbers = Numbers(enumerate(chance.random(size).tolist()))
    view = viewed(numbers, Controller(k, k + more))
    updates, refills = 0, view.refills
    while view.refills < refills + 12:
        view.controller.kmax, updates = k + more, updates + 1
        key = int(chance.integers(size))
        numbers[key] = float(chance.random())
        view.changed(np.array([key]), np.array([numbers[key]]))
        numbers.refill(view)
    # With i of the view lost, one of k + more - i goes with each update, or comes.
    p = (k + more / 2) / size
    assert updates / 12 == pytest.approx(expected_interval(more + 1, p, p), rel=0.6)
