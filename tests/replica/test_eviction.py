from __future__ import annotations

import numpy as np
import pytest

from replica.store import ReplicaStore, SolutionStore
from tests.support.stores import number

AB = ["<urn:a>", "<urn:b>"]


def answers(keys: list[str]) -> list[dict[str, str]]:
    return [{"k": key, "v": number(1)} for key in keys]


def keys_of(store: ReplicaStore | SolutionStore) -> list[str]:
    return store.keys(store.all_rows())


@pytest.mark.parametrize("kind", [ReplicaStore, SolutionStore])
def test_what_was_needed_longest_ago_goes_first(kind: type) -> None:
    store = kind("k", ["v"], limit=2)
    for key in ("<urn:a>", "<urn:b>"):
        store.put([key], answers([key]), now=1.0)
        assert store.evict() == 0
    store.touch(store.rows(["<urn:a>", "<urn:never>"]))
    store.evict()
    store.put(["<urn:c>"], [], now=2.0)
    assert store.evict() == 1
    assert keys_of(store) == ["<urn:a>", "<urn:c>"]


def test_what_one_evaluation_needs_stays_even_beyond_the_limit() -> None:
    store = ReplicaStore("k", ["v"], limit=1)
    store.put(AB, answers(AB), now=1.0)
    assert store.evict() == 0
    store.touch(store.rows(AB))
    assert store.evict() == 0
    assert store.evict() == 1, "in this evaluation nothing was needed"


def test_too_large_a_remote_fills_the_replica_up_to_its_limit_and_no_further() -> None:
    store = ReplicaStore("k", ["v"], limit=3)
    keys = [f"<urn:{at}>" for at in range(10)]
    assert len(store.put([], answers(keys[:2]), now=1.0).changed) == 2
    assert store.put([], answers(keys[::-1]), now=2.0).changed == (keys[2],), (
        "known ones are as they were"
    )
    assert store.put([keys[8]], answers(keys[5:]), now=3.0).changed == (keys[8],), (
        "what is asked for is always stored"
    )
    assert store.fetched_at(store.rows(keys[:2])).tolist() == [2.0, 2.0]


def test_all_that_was_known_of_a_forgotten_key_is_gone() -> None:
    store = ReplicaStore("k", ["v"], limit=0)
    store.put(AB, [{"k": AB[0], "v": '"x"'}], now=1.0)
    store.put(AB, [{"k": AB[0], "v": '"y"'}], now=2.0)
    store.evict()
    assert store.evict() == 2
    rows = np.arange(2)
    assert store.fetched_at(rows).tolist() == store.changed_at(rows).tolist() == [-np.inf, -np.inf]
    assert not store.present(rows).any()
    assert np.isnan(store.mean("v"))
    assert store.put(["<urn:c>"], [], now=0.0).changed == ("<urn:c>",), (
        "its row was another's, fetched later"
    )
    assert store.term("v", "<urn:c>") is None


def test_without_a_limit_nothing_is_forgotten() -> None:
    store = ReplicaStore("k", ["v"])
    store.put([], answers(AB), now=1.0)
    assert [store.evict() for _ in range(3)] == [0, 0, 0]
    assert len(store) == 2
