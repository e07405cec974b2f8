"""Estimates of an answer's quality: measures over possible worlds, and samples of large panes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.answer.estimate import Estimate, estimate
from acquatop.answer.sample_top_k import greatest
from acquatop.answer.window_sample import WindowSample
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from acquatop.topk.contract import NO_ROWS, Rows

merits = st.integers(0, 6).map(float) | st.just(float("nan"))


@given(st.data(), st.integers(1, 6), st.integers(0, 9), st.integers(1, 4))
def test_it_is_the_mean_of_both_measures_over_worlds(
    data: st.DataObject, k: int, size: int, worlds: int
) -> None:
    offset = data.draw(st.integers(0, k - 1))
    reported = data.draw(st.integers(0, min(k, size)))
    drawn = np.array([[data.draw(merits) for _ in range(size)] for _ in range(worlds)]).reshape(
        worlds, size
    )
    precision, ndcg = [], []
    for world in drawn:
        order = [at for at in np.argsort(-world, kind="stable").tolist() if not np.isnan(world[at])]
        relevance = relevancies(order[offset:k])
        answer = range(offset, reported)
        precision.append(precision_at(k - offset, answer, relevance))
        ndcg.append(ndcg_at(k - offset, answer, relevance))
    found = estimate(drawn, reported, k, offset)
    assert found.precision == pytest.approx(np.mean(precision))
    assert found.ndcg == pytest.approx(np.mean(ndcg))


def test_an_answer_that_no_world_contradicts_is_right() -> None:
    assert estimate(np.tile(np.arange(9.0, 0, -1), (5, 1)), 3, 3) == Estimate(1.0, 1.0)
    assert estimate(np.zeros((5, 9)), 3, 3) == Estimate(1.0, 1.0), (
        "of equals the answer's are the better"
    )


def test_answers_of_thousands_have_finite_gains() -> None:
    found = estimate(np.arange(3000.0)[None, ::-1].repeat(2, axis=0), 3000, 3000)
    assert found == Estimate(1.0, 1.0)


def test_the_greatest_are_distributed_as_those_of_so_many_draws() -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=2000)
    drawn = np.sort(random.choice(values, (4000, 50)), axis=1)[:, ::-1][:, :3]
    found = greatest(values, 50, 3, 4000, random)
    assert (np.diff(found, axis=1) <= 0).all()
    assert found.mean(axis=0) == pytest.approx(drawn.mean(axis=0), abs=0.05)
    assert found.std(axis=0) == pytest.approx(drawn.std(axis=0), abs=0.05)


def test_of_fewer_draws_than_are_wanted_the_others_are_missing() -> None:
    found = greatest(np.array([1.0]), 2, 3, 4, np.random.default_rng(3))
    assert np.isnan(found[:, 2]).all()
    assert (found[:, :2] == 1).all()
    assert np.isnan(greatest(np.empty(0), 5, 3, 4, np.random.default_rng(3))).all()


def rows(times: list[int], identities: list[int]) -> Rows:
    return Rows(
        np.array(times),
        np.array(identities),
        np.array(identities),
        (np.array(times, dtype=np.float64),),
    )


def here(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.bool_)


def test_small_panes_are_held_whole_and_the_newest_of_an_identity_counts() -> None:
    sample = WindowSample(np.random.default_rng(0), room=4)
    assert sample.chosen(4).tolist() == [0, 1, 2, 3]
    sample.add(0, 1, rows([1, 2, 3], [7, 8, 9]), here(3), 3)
    sample.add(1, 2, rows([4, 5], [8, 9]), np.array([False, True]), 2)
    found, count = sample.of(1, np.array([7]))
    assert (found.identities.tolist(), found.times.tolist(), count) == ([8], [4], 1.0)
    assert len(sample.of(0, np.array([7]))[0]) == 2
    sample.close_before(2)
    assert sample.of(2, np.array([]))[0].identities.tolist() == [8]
    sample.close_before(3)
    assert sample.of(2, np.array([])) == (NO_ROWS, 0.0)


def test_a_part_of_a_large_pane_stands_for_all_of_it() -> None:
    sample = WindowSample(np.random.default_rng(0), room=50)
    at = sample.chosen(1000)
    assert 40 < len(at) <= 50
    sample.add(0, 0, rows(at.tolist(), at.tolist()), here(len(at)), 1000)
    found, count = sample.of(0, at[:10])
    assert len(found) == len(at) - 10
    assert count == pytest.approx(1000 * len(found) / len(at))
