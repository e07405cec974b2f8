"""One battery over every ranker; then what each prefers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.rankers import RANKERS, Candidates


def candidates(fetched_at: list[float], k: int) -> Candidates:
    return Candidates(tuple(f"<urn:{number}>" for number in range(len(fetched_at))), np.array(fetched_at, float), k)


@pytest.mark.parametrize("name", RANKERS)
@given(fetched_at=st.lists(st.floats(-1e9, 1e9) | st.just(float("-inf"))), k=st.integers(1, 20))
def test_every_ranker_orders_candidates_without_inventing_or_repeating_any(
    name: str, fetched_at: list[float], k: int
) -> None:
    given_ = candidates(fetched_at, k)
    order = RANKERS[name](given_).tolist()
    assert len(set(order)) == len(order)
    assert set(order) <= set(range(len(fetched_at)))
    assert order == RANKERS[name](given_).tolist()


def order(name: str, fetched_at: list[float], k: int) -> list[int]:
    return RANKERS[name](candidates(fetched_at, k)).tolist()


def test_what_each_prefers() -> None:
    fetched_at = [5.0, 1.0, 3.0, 1.0, 9.0, 0.0]
    assert order("TSM", fetched_at, 3) == [0, 1, 2, 3, 4, 5]
    assert order("BSM", fetched_at, 3) == [2, 3, 1, 4, 0, 5]
    assert order("LRU", fetched_at, 3) == [5, 1, 3, 2, 0, 4]
    assert order("WST", fetched_at, 3) == []


def test_the_example_of_the_paper() -> None:
    """Figure 6(d), K=3, N=1, a budget of 2: TSM refreshes G and E, BSM refreshes C and F."""
    listed = ["G", "E", "C", "F", "A"]
    given_ = Candidates(tuple(listed), np.zeros(5), k=3)
    assert [listed[at] for at in RANKERS["TSM"](given_)[:2]] == ["G", "E"]
    assert [listed[at] for at in RANKERS["BSM"](given_)[:2]] == ["C", "F"]
