from __future__ import annotations

import numpy as np
from hypothesis import given

from replica.store import WHOLE, Solution, SolutionStore
from tests.support.stores import PlainStore, limits, live, lives, number


def solutions(pairs: list[tuple[str, int]]) -> list[Solution]:
    return [{"k": key, "v": number(value)} for key, value in pairs]


@given(lives, limits)
def test_it_does_what_a_plain_store_does(life: list, limit: int | None) -> None:
    store = SolutionStore("k", ["k", "v", "w"], limit=limit)
    live(store, plain := PlainStore(["k", "v", "w"], limit, single=False), life)
    assert len(store) == sum(bool(known.solutions) for known in plain.known.values())


def test_the_order_in_which_a_remote_answers_changes_nothing() -> None:
    store = SolutionStore("k", ["k", "v"])
    pairs = [("<urn:a>", 2), ("<urn:a>", 1), ("<urn:a>", 1)]
    store.put([], solutions(pairs), now=1.0)
    assert store.put([], solutions(pairs[::-1]), now=2.0).changed == ()
    assert [solution["v"] for solution in store.solutions("<urn:a>")] == [
        number(1),
        number(1),
        number(2),
    ]


def test_what_has_no_key_is_one_item() -> None:
    store = SolutionStore(None, ["v"])
    assert WHOLE not in store
    assert store.put([WHOLE], [{"v": number(1)}, {}], now=1.0).changed == (WHOLE,)
    assert list(store.solutions(WHOLE)) == [{}, {"v": number(1)}]
    again = SolutionStore(None, ["v"])
    again.resume(store.snapshot())
    assert again.solutions(WHOLE) == store.solutions(WHOLE)
    assert store.put([WHOLE], [], now=2.0).changed == (WHOLE,)
    assert (WHOLE in store, len(store)) == (True, 0)


def test_solutions_without_the_key_are_passed_over() -> None:
    store = SolutionStore("k", ["k", "v"])
    assert store.put([], [{"v": number(1)}], now=1.0).changed == ()


def test_what_is_gone_makes_room() -> None:
    store = SolutionStore("k", ["k", "v"])
    chance, sizes = np.random.default_rng(1), []
    for now in range(300):
        keys = chance.integers(0, 50, 5).tolist()
        pairs = [(f"<urn:{key}>", value) for key in keys for value in range(chance.integers(0, 40))]
        store.put([], solutions(pairs), now=float(now))
        sizes.append(store.nbytes)
    assert max(sizes) < 3 * sizes[100]
