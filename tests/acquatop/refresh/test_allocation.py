"""Allocation of a budget by worth and weight: none starves, and what is worth most comes first."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from acquatop.refresh.allocation import FLOOR, Allocation, Bid

KEYS = "abcdefghij"


@st.composite
def bids(draw: st.DrawFn) -> list[Bid[str]]:
    made = []
    for at in range(draw(st.integers(1, 5))):
        keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=8))
        falling = sorted((draw(st.floats(0.0, 4.0)) for _ in keys), reverse=True)
        made.append(Bid(f"q{at}", draw(st.sampled_from([0.5, 1.0, 3.0])), keys, falling))
    return made


@given(made=bids(), most=st.integers(0, 12))
def test_all_keys_come_once_and_without_debts_the_best_come_first(
    made: list[Bid[str]], most: int
) -> None:
    order = Allocation().order(made, most)
    assert Counter(order) == Counter({key for bid in made for key in bid.keys})
    worth: defaultdict[str, float] = defaultdict(float)
    for bid in made:
        for key, each in zip(bid.keys, bid.worths, strict=True):
            worth[key] += bid.weight * each
    if sum(1 for bid in made if bid.keys) > 1 and most < 4:
        # Nobody is owed a whole key yet.
        assert [worth[key] for key in order] == sorted(worth.values(), reverse=True)[: len(order)]


@given(made=bids(), most=st.integers(1, 4), rounds=st.integers(1, 60))
def test_each_gets_its_floor_over_time(made: list[Bid[str]], most: int, rounds: int) -> None:
    """The worth of the first is so great that nothing else would ever be asked for."""
    wanting = [bid for bid in made if bid.keys]
    greedy = Bid("greedy", 1.0, [f"{at}" for at in range(most)], [1e9] * most)
    allocation, got = Allocation(), Counter[str]()
    for _ in range(rounds):
        fresh = Allocation()
        fresh.resume(allocation.state())
        order = allocation.order([*wanting, greedy], most)
        assert fresh.order([*wanting, greedy], most) == order
        for bid in wanting:
            got[bid.query] += len({*bid.keys} & {*order[:most]})
    weights = sum(bid.weight for bid in wanting) + 1.0
    for bid in wanting:
        part = min(FLOOR * most * bid.weight / weights, len(bid.keys))
        assert got[bid.query] >= int(rounds * part) - len(wanting)


def test_what_has_left_is_owed_nothing() -> None:
    allocation = Allocation()
    made = [Bid("a", 1.0, ["x", "y"], [1.0, 1.0]), Bid("b", 1.0, ["z"], [0.5])]
    allocation.order(made, 1)
    assert allocation.state().keys() == {"b"}
    allocation.forget("b")
    assert allocation.state() == {}
