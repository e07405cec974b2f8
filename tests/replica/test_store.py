from __future__ import annotations

import numpy as np
from hypothesis import given

from replica.store import ReplicaStore
from replica.terms import number_of
from tests.support.stores import KEYS, TERMS, PlainStore, limits, live, lives, number


@given(lives, limits)
def test_it_does_what_a_plain_store_does(life: list, limit: int | None) -> None:
    store = ReplicaStore("k", ["k", "v", "w"], limit=limit)
    live(store, plain := PlainStore(["k", "v", "w"], limit, single=True), life)
    firsts = [(plain.known[key].solutions or [{}])[0] if key in plain.known else {} for key in KEYS]
    numbers = np.array([number_of(first["v"]) if "v" in first else np.nan for first in firsts])
    np.testing.assert_array_equal(store.numbers("v", store.rows(KEYS)), numbers)
    known = numbers[np.isfinite(numbers)]
    np.testing.assert_allclose(store.mean("v"), known.mean() if len(known) else np.nan)
    assert len(store) == len(plain.known)


def test_it_grows_beyond_its_first_capacity() -> None:
    store = ReplicaStore("k", ["k", "v"])
    keys = [f"<urn:{number}>" for number in range(1000)]
    store.put(keys, [{"k": key, "v": number(at)} for at, key in enumerate(keys)], now=1.0)
    assert store.numbers("v", store.rows(keys)).tolist() == list(range(1000))
    assert store.mean("v") == 499.5


def test_a_key_takes_less_than_100_bytes_beside_its_own_text() -> None:
    store = ReplicaStore("k", ["k", "v"])
    for first in range(0, 20_000, 1_000):
        keys = [f"<http://example.org/user/{at:09d}>" for at in range(first, first + 1_000)]
        store.put([], [{"k": key, "v": number(at)} for at, key in enumerate(keys)], now=1.0)
        if first >= 9_000:
            assert (store.nbytes - store.text_bytes) / store.held < 100


def test_of_several_solutions_for_a_key_one_is_kept_and_the_others_are_counted() -> None:
    store = ReplicaStore("k", ["v"])
    solutions = [{"k": "<urn:a>", "v": number(2)}, {"k": "<urn:a>", "v": number(1)}]
    assert store.put(["<urn:a>"], solutions, now=1.0).ambiguous == 1
    assert store.put(["<urn:a>"], solutions[::-1], now=2.0).changed == ()
    assert store.term("v", "<urn:a>") == number(1)


def test_every_term_comes_back_as_it_came() -> None:
    store = ReplicaStore("k", ["v"])
    keys = [f"<urn:{at}>" for at in range(len(TERMS))]
    for terms in (TERMS, TERMS[::-1]):
        store.put(
            [], [{"k": key, "v": term} for key, term in zip(keys, terms, strict=True)], now=1.0
        )
        assert [store.term("v", key) for key in keys] == terms
        np.testing.assert_array_equal(
            store.numbers("v", store.rows(keys)), np.array(list(map(number_of, terms)))
        )


def test_its_history_is_told_of_every_refresh_once() -> None:
    store = ReplicaStore("k", ["v"])
    for now, value in ((1.0, 5), (2.0, 5), (4.0, 6), (3.0, 9)):
        store.put(["<urn:a>", "<urn:z>"], [{"k": "<urn:a>", "v": number(value)}], now=now)
    rows = store.rows(["<urn:a>", "<urn:z>", "<urn:never>"])
    assert store.fetched_at(rows).tolist() == [4.0, 4.0, -np.inf]
    assert store.changed_at(rows).tolist() == [4.0, -np.inf, -np.inf]
    assert store.numbers("v", rows)[0] == 6


def test_nothing_is_known_from_the_start() -> None:
    store, nowhere = ReplicaStore("k", ["v"]), np.array([-1, -1])
    assert store.rows(["<urn:a>"]).tolist() == [-1]
    assert store.rows([]).tolist() == []
    assert np.isnan(store.numbers("v", nowhere)).all()
    assert not store.present(nowhere).any()
    assert store.fetched_at(nowhere).tolist() == [-np.inf, -np.inf]
    assert np.isnan(store.mean("v"))
    assert store.put([], [], now=1.0).changed == ()
    assert store.term("v", "<urn:a>") is None
