from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.store import ReplicaStore, SnapshotError, SolutionStore
from replica.store.snapshot import State, pack, unpack
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


@given(lives, lives, limits, st.sampled_from(KINDS))
def test_a_store_and_its_copy_live_alike(
    life: list, further: list, limit: int | None, kind: type
) -> None:
    store = kind("k", ["k", "v", "w"], limit=limit)
    live(store, plain := PlainStore(["k", "v", "w"], limit, single=kind is ReplicaStore), life)
    copy = kind.restore(store.snapshot())
    check(copy, plain)
    for step in further:
        for each in (store, copy):
            each.results = do(each, step)
        assert store.results == copy.results
        assert store.rows(KEYS).tolist() == copy.rows(KEYS).tolist()
    again, other = (unpack_any(each.snapshot()) for each in (store, copy))
    assert again.settings == other.settings
    for name, cells in again.columns.items():
        # The history's columns are as long as there was room.
        length = min(len(cells), len(other.columns[name]))
        np.testing.assert_array_equal(cells[:length], other.columns[name][:length])


def do(store: ReplicaStore | SolutionStore, step: Put | Touch | Evict) -> object:
    match step:
        case Put():
            return store.put(step.asked, step.solutions, step.now)
        case Touch():
            return store.touch(store.rows(step.keys))
        case Evict():
            return store.evict()


def unpack_any(snapshot: bytes) -> State:
    kind = "replica store" if b'"replica store"' in snapshot[:60] else "solution store"
    return unpack(kind, 2, snapshot)


@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_noticed(kind: type) -> None:
    snapshot = filled(kind).snapshot()
    chance = np.random.default_rng(1)
    for at in chance.integers(0, len(snapshot), 200).tolist():
        with pytest.raises(SnapshotError):
            kind.restore(snapshot[:at])
        with pytest.raises(SnapshotError):
            kind.restore(
                snapshot[:at]
                + bytes([snapshot[at] ^ 1 << int(chance.integers(8))])
                + snapshot[at + 1 :]
            )


def test_what_is_wrong_is_said() -> None:
    snapshot = filled(ReplicaStore).snapshot()
    with pytest.raises(SnapshotError, match="not a snapshot of a replica"):
        ReplicaStore.restore(b"PK\x03\x04")
    with pytest.raises(SnapshotError, match="its checksum does not match"):
        ReplicaStore.restore(snapshot[:-1])
    with pytest.raises(
        SnapshotError, match="a snapshot of a replica store, version 2, not solution store, 2"
    ):
        SolutionStore.restore(snapshot)
    newer = pack("replica store", 3, State({}, {}))
    with pytest.raises(SnapshotError, match="version 3"):
        ReplicaStore.restore(newer)


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_can_have_written_is_refused(kind: type) -> None:
    state = unpack_any(snapshot := filled(kind).snapshot())
    name = json.loads(snapshot[26 : snapshot.index(b"\n", 27)])["kind"]
    forged = [
        {**state.columns, each: cells[:-1]} for each, cells in state.columns.items() if len(cells)
    ]
    forged += [
        {other: cells for other, cells in state.columns.items() if other != each}
        for each in state.columns
    ]
    forged += [
        {**state.columns, each: cells + 77}
        for each, cells in state.columns.items()
        if cells.dtype.kind == "i"
    ]
    for columns in forged:
        restored = None
        try:
            restored = kind.restore(pack(name, 2, State(state.settings, columns)))
        except SnapshotError:
            continue
        assert len(restored.keys(restored.all_rows())) == restored.held


def test_no_more_is_unpacked_than_was_announced() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    columns = [{"name": "x", "type": "|u1", "shape": [3], "size": len(bomb)}]
    line = json.dumps({"kind": "x", "version": 1, "settings": {}, "columns": columns}).encode()
    content = line + b"\n" + bomb
    state = unpack("x", 1, b"acquatop-replica\n%08x\n" % zlib.crc32(content) + content)
    assert len(state.columns["x"]) == 3


def test_types_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="type"):
        pack("x", 1, State({}, {"x": np.array(["a"], object)}))
