"""A replica's values in files: what tasks read of them is what the replica holds."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from acquatop.ingest.buckets import shared_values
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.shared_values import SharedValues
from acquatop.ingest.buckets.sorted_hashes import buckets_of, unsigned
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.topk.contract import IntArray
from replica.store import ReplicaStore
from tests.support.disks import quick_folder
from tests.support.worlds import integer

HASHES = IdentityHash(bytes(16))
BUCKETS = 3
KEYS = np.array([f"<urn:{at}>" for at in range(40)], dtype=object)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few files be many."""
    monkeypatch.setattr(shared_values, "MOST_CHANGES", 3)


def change(store: ReplicaStore, chance: random.Random, now: float) -> None:
    """Ask for some keys, of which the remote has some; forget the oldest."""
    asked = chance.sample(KEYS.tolist(), chance.randint(0, 6))
    found = [
        {"key": key, "value": integer(chance.randrange(4))}
        for key in asked
        if chance.random() < 0.7
    ]
    store.put(asked, found, now)
    store.touch(store.rows(chance.sample(KEYS.tolist(), 3)))
    store.evict()


def check(shared: SharedValues, store: ReplicaStore, folder: ChunkFolder, before: float) -> None:
    heads, tails = HASHES.of(KEYS.tolist())
    buckets = buckets_of(heads, BUCKETS)
    for number, values in enumerate(shared.of_buckets(("value",), ("value",), before)):
        at: IntArray = np.flatnonzero(buckets == number)
        at = at[np.argsort(unsigned(heads[at]))]
        view = values.read(folder, (heads[at], tails[at]))
        rows, right = view.known(), store.rows(KEYS[at].tolist())
        assert (rows >= 0).tolist() == (right >= 0).tolist()
        present = store.present(right) & (right >= 0)
        assert view.present(rows).tolist() == present.tolist()
        numbers = view.numbers("value", rows)[present]
        assert np.array_equal(numbers, store.numbers("value", right)[present], equal_nan=True)
        assert not view.floating("value", rows).any()
        due = (right >= 0) & ~present & (store.fetched_at(right) <= before)
        assert view.may_be_asked_again().tolist() == due.tolist()
        assert view.size("value") == store.size("value")
        assert view.mean("value") == store.mean("value") or np.isnan(store.mean("value"))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([None, 5, 20]))
def test_tasks_read_what_the_replica_holds(seed: int, limit: int | None) -> None:
    chance = random.Random(seed)
    store = ReplicaStore("key", ["key", "value"], limit=limit)
    store.put(KEYS[:20].tolist(), [{"key": key, "value": integer(7)} for key in KEYS[:15]], 0.0)
    with quick_folder() as path:
        folder = ChunkFolder(str(path))
        shared = SharedValues(store, folder, HASHES, BUCKETS)
        assert shared.have_changed(KEYS[:1].tolist())
        for now in range(1, 12):
            change(store, chance, float(now))
            check(shared, store, folder, now - chance.choice([0.0, 2.0, 99.0]))
            assert sorted(shared.files) == folder.names()
            event(f"{len(shared.files)} files")
        shared.close()
        assert folder.names() == []


def test_only_what_has_changed_since_is_new() -> None:
    store = ReplicaStore("key", ["key", "value"])
    store.put(["<urn:1>", "<urn:2>"], [{"key": "<urn:1>", "value": integer(7)}], 0.0)
    with quick_folder() as path:
        shared = SharedValues(store, ChunkFolder(str(path)), HASHES, BUCKETS)
        shared.of_buckets(("value",), (), 0.0)
        store.put(["<urn:2>"], [{"key": "<urn:2>", "value": integer(1)}], 1.0)
        assert shared.have_changed(["<urn:1>", "<urn:2>"])
        assert not shared.have_changed(["<urn:1>"])
        assert shared.have_changed(["<urn:3>"])
