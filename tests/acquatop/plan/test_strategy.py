"""Choice of a query's structure, its reason, and the effect of a hint."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquatop.catalog.vocabulary import Strategy
from acquatop.plan.strategy import MEASURED, HintError, Workload, choose, expectations
from acquatop.topk.shared.contract import TopKRequest
from acquatop.windows import Windows

ONE = TopKRequest(Windows(1_000_000, 100_000), 100)


def of(count: int, slide: int = 100_000, **said: bool) -> Workload:
    return Workload((TopKRequest(Windows(1_000_000, slide), 100),) * count, **said)


def test_one_query_with_large_slides_is_by_itself_and_a_thousand_share() -> None:
    assert choose(of(1)).strategy is Strategy.EACH
    assert choose(of(1000)).strategy is Strategy.SHARED


def test_windows_that_slide_more_often_than_time_goes_on_share_one_merge() -> None:
    assert choose(of(1, slide=10)).strategy is Strategy.SHARED


def test_windows_that_slide_at_every_arrival_go_in_blocks() -> None:
    assert choose(of(1, slide=1)).strategy is Strategy.BLOCKS
    assert Strategy.BLOCKS not in choose(of(1, slide=2)).expected


def test_what_is_not_available_is_not_chosen() -> None:
    choice = choose(of(1000), available=(Strategy.EACH, Strategy.REFILLED))
    assert (choice.strategy, choice.why) == (
        Strategy.EACH,
        "scores never change, so what is dropped is never missed",
    )


@pytest.mark.parametrize(
    ("changes", "recurring", "may_retain", "may_approximate", "expected"),
    [
        (True, False, True, True, Strategy.EACH),
        (True, False, True, False, Strategy.REFILLED),
        (True, False, False, False, Strategy.EACH),
        (True, True, True, False, Strategy.REFILLED),
        (False, True, True, True, Strategy.REFILLED),
        (False, True, False, True, Strategy.EACH),
    ],
)
def test_where_scores_fall_it_is_not_costs_that_decide(
    changes: bool, recurring: bool, may_retain: bool, may_approximate: bool, expected: Strategy
) -> None:
    workload = of(
        100,
        changes=changes,
        recurring=recurring,
        may_retain=may_retain,
        may_approximate=may_approximate,
    )
    choice = choose(workload)
    assert (choice.strategy, choice.expected) == (expected, {})
    assert choice.why.startswith(
        "scores change" if changes else "newer arrivals replace older ones"
    )


def test_a_hint_overrides() -> None:
    assert choose(of(1), hint="shared-skyline").strategy is Strategy.SHARED
    assert choose(of(1000), hint="pane-dominance").why == "a hint asks for it"
    assert choose(of(1, changes=True), hint="refilled").strategy is Strategy.REFILLED


@pytest.mark.parametrize(
    ("workload", "hint", "message"),
    [
        (
            of(1),
            "fastest",
            'there is no strategy "fastest" here: '
            "there are pane-dominance, shared-skyline, block-skyline, nearest-grid, refilled",
        ),
        (of(1, changes=True), "shared-skyline", "for scores that never change"),
        (of(1, recurring=True), "shared-skyline", "arrivals that replace none"),
        (of(1, slide=1, changes=True), "block-skyline", "for scores that never change"),
        (of(1, slide=2), "block-skyline", "slide at every one"),
        (of(1, may_retain=False), "refilled", "may not be kept"),
    ],
)
def test_a_hint_that_cannot_be_followed_is_refused(
    workload: Workload, hint: str, message: str
) -> None:
    with pytest.raises(HintError, match=message):
        choose(workload, hint=hint)


asked = st.builds(
    TopKRequest,
    st.builds(Windows, st.integers(1, 10**6), st.integers(1, 10**6)),
    st.integers(1, 10_000),
)


@example(asked=[TopKRequest(Windows(9, 1), 2)], rate=1.0, batch=1.0)
@given(
    asked=st.lists(asked, min_size=1, max_size=5),
    rate=st.floats(0.001, 1000),
    batch=st.floats(1, 1e6),
)
def test_costs_are_positive_and_grow_with_what_steps_take(
    asked: list[TopKRequest], rate: float, batch: float
) -> None:
    workload = Workload(tuple(asked), rate, batch)
    now = expectations(workload, MEASURED)
    arrivals = ("each_arrival", "shared_arrival", "blocks_arrival")
    dearer = replace(MEASURED, **{name: getattr(MEASURED, name) + 1 for name in arrivals})
    then = expectations(workload, dearer)
    assert all(0 < now[each] < then[each] for each in now)
    assert choose(workload).expected == now
    assert choose(workload) == choose(workload)
