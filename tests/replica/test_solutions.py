from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.solutions import WHOLE, SolutionStore
from replica.store import NEVER, Solution
from tests.worlds import TableRemote, integer, user_term

KEYS = [f"<urn:{name}>" for name in "abcd"]
answers = st.tuples(
    st.sets(st.sampled_from(KEYS)),
    st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2)), max_size=8),
    st.integers(0, 9),
)


def solutions(pairs: list[tuple[str, int]]) -> list[Solution]:
    return [{"k": key, "v": integer(value)} for key, value in pairs]


@given(st.lists(answers, max_size=12))
def test_the_newest_answer_about_a_key_is_all_that_is_known_of_it(history: list) -> None:
    store, model = SolutionStore("k", ["k", "v"]), {}
    for asked, pairs, at in history:
        changed = set(store.put(sorted(asked), solutions(pairs), at).changed)
        expected = set()
        for key in asked | {key for key, _ in pairs}:
            known = sorted(value for name, value in pairs if name == key)
            if key not in model or at >= model[key][1]:
                if key not in model or model[key][0] != known:
                    expected.add(key)
                model[key] = known, at
        assert changed == expected
    for key in KEYS:
        known, at = model.get(key, ([], NEVER))
        assert list(store.solutions(key)) == solutions([(key, value) for value in known])
        assert store.fetched_at(key) == at
        assert (key in store) == (key in model)
    assert len(store) == sum(bool(known) for known, _ in model.values())


def test_the_order_in_which_a_remote_answers_changes_nothing() -> None:
    store = SolutionStore("k", ["k", "v"])
    pairs = [("<urn:a>", 2), ("<urn:a>", 1), ("<urn:a>", 1)]
    store.put([], solutions(pairs), now=1.0)
    assert store.put([], solutions(pairs[::-1]), now=2.0).changed == ()
    assert [solution["v"] for solution in store.solutions("<urn:a>")] == [integer(1), integer(1), integer(2)]


def test_what_has_no_key_is_one_item() -> None:
    store = SolutionStore(None, ["v"])
    assert WHOLE not in store
    assert store.put([WHOLE], [{"v": integer(1)}, {}], now=1.0).changed == (WHOLE,)
    assert list(store.solutions(WHOLE)) == [{}, {"v": integer(1)}]
    assert store.put([WHOLE], [], now=2.0).changed == (WHOLE,)
    assert (WHOLE in store, len(store)) == (True, 0)


def test_solutions_without_the_key_are_passed_over() -> None:
    store = SolutionStore("k", ["k", "v"])
    assert store.put([], [{"v": integer(1)}], now=1.0).changed == ()


def test_a_maintainer_fills_it_and_several_can_share_a_budget() -> None:
    remote = TableRemote({"a": 1, "b": 2}, block_size=1)
    keeper = Maintainer(SolutionStore("user", ["user", "followers"]), remote, Budget(3, 3, 5.0))
    keys = [user_term(user) for user in "abz"]
    left = keeper.budget.less(keeper.refresh(keys[:1]).spending, under_way=1)
    assert (left.items, left.requests) == (2, 1)
    refreshed = keeper.refresh(keys[1:], budget=left)
    assert refreshed.fetched == {keys[1]}
    assert keeper.under_way == 0
    assert [list(keeper.store.solutions(key)) for key in keys] == [
        [{"user": keys[0], "followers": integer(1)}],
        [{"user": keys[1], "followers": integer(2)}],
        [],
    ]
    assert keeper.load() == 2
