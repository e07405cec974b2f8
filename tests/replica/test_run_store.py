"""All solutions of keys as columns: what they hold, what is learned, and older snapshots."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from replica.store import ReplicaStore, RunStore, Solution
from replica.terms import number_of
from tests.support.stores import PlainStore, in_order, limits, live, lives, number


@given(lives, limits)
def test_it_does_what_a_plain_store_does(life: list, limit: int | None) -> None:
    store = RunStore("k", ["k", "v", "w"], limit=limit)
    plain = PlainStore(["k", "v", "w"], limit, single=False)
    live(store, plain, life)
    for key, known in plain.known.items():
        rows = store.rows([key])
        runs = store.runs(rows)
        said = [store.terms(name, runs.places) for name in ("v", "w")]
        held = [
            {name: term for name, term in (("k", key), ("v", v), ("w", w)) if term is not None}
            for v, w in zip(*said, strict=True)
        ]
        assert in_order(held) == in_order([{**each, "k": key} for each in known.solutions])
        for name in ("v", "w"):
            np.testing.assert_equal(
                store.numbers(name, runs.places),
                [number_of(term) if term else np.nan for term in store.terms(name, runs.places)],
            )
    again = RunStore("k", ["k", "v", "w"], limit=limit)
    again.resume(store.snapshot())
    assert again.snapshot() == store.snapshot()


@given(lives, limits)
def test_it_goes_on_from_a_store_with_one_solution_for_each_key(
    life: list, limit: int | None
) -> None:
    one = ReplicaStore("k", ["k", "v", "w"], limit=limit)
    live(one, PlainStore(["k", "v", "w"], limit, single=True), life)
    many = RunStore("k", ["k", "v", "w"], limit=limit)
    many.resume(one.snapshot())
    rows = one.all_rows()
    assert many.keys(many.all_rows()) == one.keys(rows)
    np.testing.assert_array_equal(many.present(rows), one.present(rows))
    np.testing.assert_array_equal(many.fetched_at(rows), one.fetched_at(rows))
    places = many.runs(rows, least=1).places
    for name in ("v", "w"):
        assert many.terms(name, places) == one.terms(name, rows)


def test_numbers_of_equal_other_terms_are_the_same_before_and_after() -> None:
    store = RunStore("k", ["k", "tool", "age"])

    def said(*ages: tuple[str, int]) -> list[Solution]:
        return [{"k": "<urn:a>", "tool": tool, "age": number(age)} for tool, age in ages]

    store.put(["<urn:a>"], said(("<urn:t>", 9), ("<urn:u>", 10)), 1.0)
    assert store.put(["<urn:a>"], said(("<urn:u>", 10), ("<urn:t>", 9)), 2.0).changed == ()
    store.put(["<urn:a>"], said(("<urn:t>", 19), ("<urn:u>", 10)), 3.0)
    before, _, steps, _, _ = store.history.value_changes["age"].changes.figures.T
    assert before.tolist() == [9.0, 10.0]
    assert steps.tolist() == [10.0, 0.0]
    # With another number of solutions it is not known which is which.
    store.put(["<urn:a>"], said(("<urn:t>", 5)), 4.0)
    assert len(store.history.value_changes["age"].changes.figures) == 2
