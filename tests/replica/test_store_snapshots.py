from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.snapshot import AnyArray, State, pack, unpack
from replica.store import ReplicaStore, SnapshotError, SolutionStore
from tests.support.stores import (
    KEYS,
    Evict,
    PlainStore,
    Put,
    Touch,
    check,
    limits,
    live,
    lives,
    number,
)

KINDS = [ReplicaStore, SolutionStore]


def filled(kind: type) -> ReplicaStore | SolutionStore:
    store = kind("k", ["k", "v"], limit=7)
    store.put(KEYS[:3], [{"k": key, "v": number(at)} for at, key in enumerate(KEYS[:2])], now=1.0)
    store.put(KEYS[:2], [{"k": KEYS[0], "v": '"text"'}, {"k": KEYS[0]}], now=5.0)
    return store


def restored(kind: type, snapshot: bytes) -> ReplicaStore | SolutionStore:
    store = kind("k", ["k", "v"], limit=7)
    store.resume(snapshot)
    return store


@given(lives, lives, limits, st.sampled_from(KINDS))
def test_a_store_and_its_copy_live_alike(
    life: list, further: list, limit: int | None, kind: type
) -> None:
    store = kind("k", ["k", "v", "w"], limit=limit)
    live(store, plain := PlainStore(["k", "v", "w"], limit, single=kind is ReplicaStore), life)
    copy = kind("k", ["k", "v", "w"], limit=limit)
    copy.resume(store.snapshot())
    check(copy, plain)
    for step in further:
        for each in (store, copy):
            each.results = do(each, step)
        assert store.results == copy.results
        assert store.rows(KEYS).tolist() == copy.rows(KEYS).tolist()
    again, other = (unpack_any(each.snapshot()) for each in (store, copy))
    assert again.settings == other.settings
    copies = dict(columns_of(other))
    for name, cells in columns_of(again):
        # The history's columns are as long as there was room.
        length = min(len(cells), len(copies[name]))
        np.testing.assert_array_equal(cells[:length], copies[name][:length], str(name))


def do(store: ReplicaStore | SolutionStore, step: Put | Touch | Evict) -> object:
    match step:
        case Put():
            return store.put(step.asked, step.solutions, step.now)
        case Touch():
            return store.touch(store.rows(step.keys))
        case Evict():
            return store.evict()


def columns_of(state: State) -> Iterator[tuple[tuple[str, str], AnyArray]]:
    for table, columns in state.tables.items():
        for name, cells in columns.items():
            yield (table, name), cells


def unpack_any(snapshot: bytes) -> State:
    kind = "replica store" if b'"replica store"' in snapshot[:60] else "solution store"
    return unpack(kind, 2, snapshot)


@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_noticed(kind: type) -> None:
    snapshot = filled(kind).snapshot()
    chance = np.random.default_rng(1)
    for at in chance.integers(0, len(snapshot), 200).tolist():
        with pytest.raises(SnapshotError):
            restored(kind, snapshot[:at])
        with pytest.raises(SnapshotError):
            restored(
                kind,
                snapshot[:at]
                + bytes([snapshot[at] ^ 1 << int(chance.integers(8))])
                + snapshot[at + 1 :],
            )


def test_what_is_wrong_is_said() -> None:
    snapshot = filled(ReplicaStore).snapshot()
    with pytest.raises(SnapshotError, match="not a snapshot"):
        restored(ReplicaStore, b"PK\x03\x04")
    with pytest.raises(SnapshotError, match="its checksum does not match"):
        restored(ReplicaStore, snapshot[:-1])
    with pytest.raises(
        SnapshotError,
        match="snapshot of replica store version 2, not of solution store version 2",
    ):
        restored(SolutionStore, snapshot)
    newer = pack("replica store", 3, State({}, {}))
    with pytest.raises(SnapshotError, match="version 3"):
        restored(ReplicaStore, newer)


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_can_have_written_is_refused(kind: type) -> None:
    state = unpack_any(snapshot := filled(kind).snapshot())
    name = json.loads(snapshot[27 : snapshot.index(b"\n", 27)])["kind"]
    columns = dict(columns_of(state))
    forged = [{**columns, each: cells[:-1]} for each, cells in columns.items() if len(cells)]
    forged += [
        {other: cells for other, cells in columns.items() if other != each} for each in columns
    ]
    forged += [
        {**columns, each: cells + 77} for each, cells in columns.items() if cells.dtype.kind == "i"
    ]
    forged += [{**columns, each: np.array(["a", "b"], object)} for each in columns]
    refused = 0
    for each in forged:
        tables: dict[str, dict[str, AnyArray]] = {}
        for (table, column), cells in each.items():
            tables.setdefault(table, {})[column] = cells
        try:
            store = restored(kind, pack(name, 2, State(state.settings, tables)))
        except SnapshotError:
            refused += 1
            continue
        assert len(store.keys(store.all_rows())) == store.held
    assert refused > len(forged) // 2
