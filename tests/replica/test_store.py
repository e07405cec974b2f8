from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replica.store import NEVER, ReplicaStore
from tests.worlds import integer

KEYS = [f"<urn:{name}>" for name in "abcdef"]
answers = st.tuples(
    st.sets(st.sampled_from(KEYS)), st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3)), st.integers(0, 9)
)


@given(st.lists(answers, max_size=12))
def test_the_newest_answer_about_a_key_is_what_is_known_of_it(history: list) -> None:
    store, model = ReplicaStore("user", ["user", "followers"]), {}
    for asked, values, at in history:
        solutions = [{"user": key, "followers": integer(value)} for key, value in values.items()]
        changed = set(store.put(sorted(asked), solutions, at).changed)
        expected = set()
        for key in {*asked, *values}:
            before = model.get(key)
            if before is None or at >= before[1]:
                model[key] = (values.get(key), at)
                if before is None or before[0] != values.get(key):
                    expected.add(key)
        assert changed == expected
    rows = store.rows(KEYS)
    assert [row >= 0 for row in rows] == [key in model for key in KEYS]
    numbers = [np.nan if model.get(key, (None, 0))[0] is None else model[key][0] for key in KEYS]
    np.testing.assert_array_equal(store.numbers("followers", rows), np.array(numbers, dtype=float))
    assert store.present(rows).tolist() == [key in model and model[key][0] is not None for key in KEYS]
    assert store.fetched_at(rows).tolist() == [model[key][1] if key in model else NEVER for key in KEYS]


def test_it_grows_beyond_its_first_capacity() -> None:
    store = ReplicaStore("k", ["k", "v"])
    keys = [f"<urn:{number}>" for number in range(1000)]
    store.put(keys, [{"k": key, "v": integer(number)} for number, key in enumerate(keys)], now=1.0)
    assert store.numbers("v", store.rows(keys)).tolist() == list(range(1000))
    assert store.mean("v") == 499.5


def test_of_several_solutions_for_a_key_one_is_kept_and_the_others_are_counted() -> None:
    store = ReplicaStore("k", ["v"])
    solutions = [{"k": "<urn:a>", "v": integer(2)}, {"k": "<urn:a>", "v": integer(1)}]
    assert store.put(["<urn:a>"], solutions, now=1.0).ambiguous == 1
    assert store.put(["<urn:a>"], solutions[::-1], now=2.0).changed == ()
    assert store.term("v", "<urn:a>") == integer(1)


def test_a_value_that_is_no_number_is_kept_as_a_term() -> None:
    store = ReplicaStore("k", ["v"])
    store.put([], [{"k": "<urn:a>", "v": '"many"'}], now=1.0)
    assert store.term("v", "<urn:a>") == '"many"'
    assert np.isnan(store.numbers("v", store.rows(["<urn:a>"]))[0])
