"""The fewest items that bring the expected quality to a target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.answer.estimate import Estimate
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.quality_target import ITEMS, QualityTarget
from acquatop.catalog.services import Service
from acquatop.errors import UserError
from acquatop.lab.replay.bench import ScoreBench
from acquatop.lab.replay.data import Generated
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.row_trace import open_recorded
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import Trace
from acquatop.refresh.enough_items import EnoughItems
from acquatop.topk.contract import FloatArray, IntArray
from replica.rankers import Candidates
from replica.spending.allowance import ItemAllowance
from tests.support.markers import THOROUGH

TARGET = QualityTarget("precision", 0.9)


def candidates(merits: list[float], chances: list[float], k: int, seed: int = 0) -> Candidates:
    """Return candidates that have any merit from 0 to 10 if they have changed."""
    count = len(merits)
    outlook = np.random.default_rng(seed + 1)

    def drawn(at: IntArray, worlds: int) -> FloatArray:
        return outlook.uniform(0, 10, (worlds, len(at)))

    return Candidates(
        rows=np.arange(count),
        fetched_at=np.zeros(count),
        merits=-np.sort(-np.array(merits)),
        k=k,
        now=1.0,
        slide=1.0,
        remaining=np.ones(count, np.int64),
        intervals=np.ones(count),
        chances=np.array(chances),
        outlook=drawn,
        random=np.random.default_rng(seed),
        allowance=ItemAllowance(count, count, 0),
    )


def asked(some: Candidates, target: QualityTarget = TARGET) -> int:
    enough = EnoughItems(target)
    enough.set([0.0, 1.0, 1.0, 1])  # no audit now
    return enough.of(some, np.arange(len(some)), lambda: some.merits)


SOME = st.lists(st.floats(0, 10), min_size=1, max_size=12)


@given(SOME, st.floats(0, 1), st.integers(1, 4), st.integers(0, 9))
def test_a_higher_target_never_asks_for_less(
    merits: list[float], chance: float, k: int, seed: int
) -> None:
    found = [
        asked(
            candidates(merits, [chance] * len(merits), k, seed), QualityTarget("precision", least)
        )
        for least in (0.01, 0.5, 0.9, 1.0)
    ]
    assert found == sorted(found)
    assert all(0 <= each <= len(merits) for each in found)


@given(SOME, st.integers(1, 4))
def test_nothing_is_asked_for_if_nothing_changes(merits: list[float], k: int) -> None:
    assert asked(candidates(merits, [0.0] * len(merits), k)) == 0


def test_all_is_asked_for_if_that_does_not_suffice_or_nothing_is_expected() -> None:
    some = candidates([9, 8, 7, 6, 5, 4, 3], [1.0] * 7, 2)
    assert asked(some, QualityTarget("precision", 1.0)) == 7
    assert EnoughItems(TARGET).of(some, np.arange(7), None) == 7
    few = replace(some, allowance=ItemAllowance(3, 3, 0))
    assert asked(few, QualityTarget("precision", 1.0)) == 3


def test_an_audit_raises_the_aim_if_more_was_wrong_than_foreseen() -> None:
    some = candidates([9, 8, 7, 6, 5, 4], [0.05] * 6, 2)
    enough = EnoughItems(QualityTarget("precision", 0.6))
    wanted = enough.of(some, np.arange(6), lambda: some.merits[::-1])
    assert wanted == 4
    enough.note(Estimate(1.0, 1.0))
    assert enough.ratio == 4.0
    other = EnoughItems(TARGET)
    other.set(enough.settings())
    assert other.settings() == enough.settings()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{ precision = 1.2 }", "above 0, and at most 1"),
        ("{ precision = true }", "above 0, and at most 1"),
        ("{ ndcg = 0.5, precision = 0.5 }", "one of precision and ndcg"),
        ("{ }", "one of precision and ndcg"),
        ("{ recall = 0.5 }", "recall"),
    ],
)
def test_a_wrong_target_is_told(said: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        parsed(f"target = {said}")


def test_a_target_stands_in_place_of_items_or_beside_them() -> None:
    alone = parsed("target = { ndcg = 1 }").refresh
    assert (alone.target, alone.budget.items) == (QualityTarget("ndcg", 1.0), ITEMS)
    both = parsed("target = { precision = 0.9 }\nitems = 7").refresh
    assert (both.target, both.budget.items) == (TARGET, 7)


def parsed(refresh: str) -> Service:
    text = (
        '[services."http://example.org/s"]\nendpoint = "http://example.org/sparql"\n'
        f'[services."http://example.org/s".refresh]\n{refresh}\n'
    )
    catalog = Catalog.parse(text, file=Path("catalog.toml"), variables={})
    return catalog.services["http://example.org/s"]


@THOROUGH
@pytest.mark.parametrize("kind", ["redrawn", "walks", "tails", "list"])
def test_a_target_is_held_with_a_part_of_what_is_allowed(kind: str, tmp_path: Path) -> None:
    """Far fewer items do than the 40 that are allowed."""
    values = {"changes": 20.0} if kind == "redrawn" else {}
    data = Generated(kind, values, {}, users=150, windows=80)
    trace = open_recorded(*data.write(1, tmp_path / "data"))
    assert isinstance(trace, Trace)
    service = trace.bound.service
    assert service is not None
    service = replace(service, refresh=replace(service.refresh, target=TARGET))
    bound = replace(trace.bound, service=service)
    measured: list[Measured] = [
        *ScoreBench(replace(trace, bound=bound)).measured(Setting("ANY-IMP", 40, 5, 10, 1))
    ]
    settled = measured[10:]
    realised = float(np.mean([each.precision for each in settled]))
    items = float(np.mean([each.fetches for each in settled]))
    assert realised >= TARGET.least - 0.04, (realised, items)
    assert items < 15, (realised, items)
