"""The one battery that every top-k structure must pass: random streams against brute force.

Every run checks by itself that exact answers are right, that nothing is missing above the bound of
the others, that arrivals without a merit are counted, and, after every step, the structure's
invariants.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Certainty
from acquatop.windows import Windows
from tests.support.topk_streams import CHANGING, RECURRING, STRUCTURES, Shape, run, same, shapes

EACH = pytest.mark.parametrize("name", STRUCTURES)


@EACH
@settings(max_examples=120)
@given(shape=shapes(changes=True, recurring=True))
def test_what_is_said_to_be_exact_is_right(name: str, shape: Shape) -> None:
    run(name, shape)


@EACH
@settings(max_examples=60)
@given(shape=shapes())
def test_without_changes_and_arrivals_that_come_again_every_answer_is_exact(
    name: str, shape: Shape
) -> None:
    assert all(top.certainty is Certainty.EXACT for top in run(name, shape))


@pytest.mark.parametrize("name", CHANGING)
@settings(max_examples=60)
@given(shape=shapes(changes=True, recurring=True, n=100))
def test_with_room_for_all_every_answer_is_exact(name: str, shape: Shape) -> None:
    assert all(top.certainty is Certainty.EXACT for top in run(name, shape, loses=False))


@EACH
@settings(max_examples=50)
@example(
    shape=Shape(0, Windows(3, 2, 0), k=1, n=0, levels=3, recurring=True, changes=True, keys="own"),
    seed=0,
)
@given(shape=shapes(changes=True, recurring=True), seed=st.integers(0, 2**32))
def test_how_arrivals_are_cut_into_batches_changes_nothing(
    name: str, shape: Shape, seed: int
) -> None:
    cut = run(name, shape, cut=random.Random(seed))
    assert list(map(same, cut)) == list(map(same, run(name, shape)))


@pytest.mark.parametrize("name", ["super_mtkn_distinct", "pane_dominance_distinct"])
@settings(max_examples=120)
@given(shape=shapes(changes=True, extremes=False, keys="own"))
def test_what_executors_have_left_out_is_missed_by_no_exact_answer(name: str, shape: Shape) -> None:
    run(name, shape, prunes=True)


@EACH
@settings(max_examples=50)
@given(shape=shapes(changes=True, recurring=True), seed=st.integers(0, 2**32))
def test_a_snapshot_goes_on_as_if_nothing_had_happened(name: str, shape: Shape, seed: int) -> None:
    saved = run(name, shape, save=random.Random(seed))
    assert list(map(same, saved)) == list(map(same, run(name, shape)))


@EACH
@settings(max_examples=40)
@given(shape=shapes(changes=True, recurring=True))
def test_looking_changes_nothing_and_what_is_predicted_is_right_for_what_is_known(
    name: str, shape: Shape
) -> None:
    peeked = run(name, shape, peek=True)
    assert list(map(same, peeked)) == list(map(same, run(name, shape)))


@pytest.mark.parametrize("name", CHANGING)
def test_most_answers_are_exact_while_little_changes(name: str) -> None:
    """A structure that never dares to say exact would pass all else."""
    shape = Shape(0, Windows(20, 5), k=3, n=6, changes=True, recurring=name in RECURRING, size=60)
    tops = [top for seed in range(30) for top in run(name, replace(shape, seed=seed))]
    assert sum(top.certainty is Certainty.EXACT for top in tops) > 0.5 * len(tops)
