"""A replica's values in executors: those of the replica, whatever has happened to both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.ingest.reduce.replica_view import ChangedRows, HeldReplica, ReplicaView
from replica.store import ReplicaStore, RunStore
from tests.support.executors import Executors

KEYS = [f"<urn:{key}>" for key in "abcdefghijkl"]
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = [f'"{value}"^^<{XSD}{type_}>' for value in (1, 2) for type_ in ("integer", "double")]


class Looked:
    """Work of a task: what a view says about some keys."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def __call__(self, keys: Sequence[str]) -> list[Any]:
        rows = self.view.rows(pa.array(keys, pa.string()))
        runs = self.view.runs(rows)
        places, owners = (rows, ()) if runs is None else (runs.places, runs.owners.tolist())
        said = [self.view.present(rows), *(self.view.numbers(name, places) for name in "vw")]
        return [
            *(each.tolist() for each in said),
            self.view.floating("v", places).tolist(),
            owners,
            None if runs is None else self.view.runs(rows, least=1).owners.tolist(),
            round(self.view.mean("v"), 9),
        ]


def solution(chance: random.Random, key: str) -> dict[str, str]:
    values = {name: chance.choice([*VALUES, None, '"text"']) for name in "vw"}
    return {"key": key, **{name: value for name, value in values.items() if value is not None}}


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([None, 3, 8]),
    st.sampled_from([1, 500, 1 << 20]),
    st.sampled_from([ReplicaStore, RunStore]),
)
def test_executors_say_what_the_replica_says(
    seed: int, limit: int | None, large: int, kind: type[ReplicaStore | RunStore]
) -> None:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("replica.store.row_changes.LEAST", 6)
        executors = Executors(chance, patch, large)
        store = kind("key", ["key", "v", "w"], limit=limit)
        for now in range(12):
            asked = chance.sample(KEYS, chance.randint(0, 4))
            most = 1 if kind is ReplicaStore else 4
            answered = [
                solution(chance, key) for key in asked for _ in range(chance.randint(0, most))
            ]
            store.put(asked, answered, float(now))
            store.touch(store.rows(chance.sample(KEYS, 3)))
            store.evict()
            if chance.random() < 0.1:
                store.resume(store.snapshot())
            view = ReplicaView(store, ("v", "w"), ("v",))
            for _ in range(chance.choice([0, 1, 2])):
                items = [chance.sample(KEYS, 5) for _ in range(2)]
                expected = [Looked(view)(item) for item in items]
                np.testing.assert_equal(executors.run(Looked(view), items), expected)


def test_what_has_not_changed_is_neither_sent_nor_indexed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed: list[int] = []

    change = HeldReplica.change

    def counted(self: HeldReplica, rows: ChangedRows) -> None:
        changed.append(len(rows.rows))
        change(self, rows)

    monkeypatch.setattr(HeldReplica, "change", counted)
    executors = Executors(random.Random(3), monkeypatch, large=1 << 12)
    executors.calm()
    keys = [f"<urn:key:{number}>" for number in range(4_000)]
    store = ReplicaStore("key", ["key", "v"])
    sent = []
    for batch in range(8):
        some = keys if batch == 0 else keys[batch * 40 : batch * 40 + 40]
        value = f'"{batch}"^^<{XSD}integer>'
        store.put(some, [{"key": key, "v": value} for key in some], float(batch))
        executors.bytes = 0
        view = ReplicaView(store, ("v",))
        executors.run(Looked1(view), [keys[:3]])
        sent.append(executors.bytes)
        executors.bytes = 0
        executors.run(Looked1(view), [keys[:3]])
        assert executors.bytes < 4_000 + sent[-1] // 2
    assert changed == [4_000, *[40] * 7]
    assert max(sent[1:]) < sent[0] / 10


class Looked1(Looked):
    """Work that looks at one column."""

    def __call__(self, keys: Sequence[str]) -> list[Any]:
        return [self.view.numbers("v", self.view.rows(pa.array(keys))).tolist()]
