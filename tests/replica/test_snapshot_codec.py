"""The codec of all snapshots, and bytes that the two codecs before it wrote."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from acquatop.ingest.panes import PaneBuffer
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.topk.contract import FirstPart
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.budget import Budget
from replica.clocks import EventTime
from replica.maintainer import Maintainer
from replica.remotes.silent import SilentRemote
from replica.snapshot import AnyArray, SnapshotError, State, pack, unpack
from replica.store import NEVER, ReplicaStore, SolutionStore

WRITTEN = Path(__file__).parents[1] / "fixtures" / "snapshots"
"""Snapshots that the last version before the common codec wrote, one of each kind."""
ANN, BOB, CY = "<urn:ann>", "<urn:bob>", "<urn:cy>"


def written(name: str) -> bytes:
    return (WRITTEN / name).read_bytes()


def number(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


# Columns ------------------------------------------------------------------------------------------

numbers = st.sampled_from(["f8", "f4", "f2", "i8", "i4", "u1", "u2", "u8", "?"]).flatmap(
    lambda kind: arrays.arrays(np.dtype(kind), st.integers(0, 5))
)
texts = st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])))).map(
    lambda values: np.array([*values, None], object)[:-1]
)


@given(
    st.dictionaries(st.text("ab.:", max_size=3), st.dictionaries(st.text("xy"), numbers | texts))
)
def test_columns_of_any_lengths_come_back(tables: dict[str, dict[str, AnyArray]]) -> None:
    again = unpack("x", 1, pack("x", 1, State({"k": [1, None]}, tables)))
    assert again.settings == {"k": [1, None]}
    assert {name: {*columns} for name, columns in again.tables.items()} == {
        name: {*columns} for name, columns in tables.items()
    }
    for name, columns in tables.items():
        for column, cells in columns.items():
            back = again.tables[name][column]
            if cells.dtype != object:
                assert back.dtype == cells.dtype
                assert back.tobytes() == cells.tobytes()
            assert len(back) == len(cells)


def test_bytes_of_another_kind_or_version_are_refused() -> None:
    packed = pack("list", 1, State({}, {}))
    for kind, version in (("list", 2), ("heap", 1)):
        with pytest.raises(SnapshotError, match=f"list version 1, not of {kind} version {version}"):
            unpack(kind, version, packed)
    for other in (b"", b"PK\x03\x04", b"acquatop-parts\n" + packed):
        with pytest.raises(SnapshotError, match="not a snapshot"):
            unpack("list", 1, other)
    with pytest.raises(SnapshotError, match="checksum"):
        unpack("list", 1, packed[:-1])


# Bytes of earlier versions ------------------------------------------------------------------------


def test_a_replica_of_an_earlier_version_is_read() -> None:
    store = ReplicaStore("user", ["followers", "name"], limit=5)
    store.resume(written("replica_store"))
    rows = store.rows([ANN, BOB, CY])
    assert store.terms("followers", rows) == [number(8), number(9), None]
    assert store.terms("name", rows) == ['"Änn"', None, None]
    assert store.present(rows).tolist() == [True, True, False]
    assert store.fetched_at(rows).tolist() == [20.0, 10.0, 10.0]
    assert store.changed_at(rows).tolist() == [20.0, NEVER, NEVER]
    again = ReplicaStore("user", ["followers", "name"], limit=5)
    again.resume(store.snapshot())
    assert again.snapshot() == store.snapshot()


def test_solutions_of_an_earlier_version_are_read() -> None:
    store = SolutionStore("user", ["friend"])
    store.resume(written("solution_store"))
    assert [each["friend"] for each in store.solutions(ANN)] == [BOB, CY]
    assert (store.solutions(BOB), BOB in store, CY in store) == ((), True, False)


def test_a_maintainer_of_an_earlier_version_goes_on() -> None:
    store, now = ReplicaStore("user", ["followers", "name"]), EventTime()
    keeper = Maintainer(store, SilentRemote(), Budget(5, 5, 60.0), now=now)
    keeper.resume(written("maintainer"))
    assert now() == 5.0
    assert (keeper.account.spending.items, keeper.account.left.items) == (2, 3)
    assert store.terms("followers", store.rows([ANN, CY])) == [number(9), number(8)]


def test_a_structure_of_an_earlier_version_is_read() -> None:
    held = PaneDominance(2, 1, FirstPart(), distinct=True)
    held.resume(written("pane_dominance"))
    for window, names, merits in ((1, ["d", "b"], [9.5, 7.0]), (3, ["d"], [9.5])):
        top = held.top(window)
        assert (top.rows.identities.tolist(), top.merits.tolist()) == (names, merits)
    assert top.rows.carried[0].tolist() == ["dd"]


def test_waiting_solutions_of_an_earlier_version_are_read() -> None:
    buffer = PaneBuffer(Windows(9, 3, 0))
    buffer.resume(written("pane_buffer"))
    assert (buffer.earliest_ms(), buffer.latest_ms()) == (2, 4)
    row = {TIME: pa.array([1], pa.int64()), IDENTITY: ["b"], GONE: [False], "?v": ["y"]}
    assert len(buffer.add(pa.table(row))) == 1
    panes = [pane.solutions.column(IDENTITY).to_pylist() for pane in buffer.take_until(9)]
    assert panes == [[None], ["a"]]


@pytest.mark.parametrize("name", sorted(each.name for each in WRITTEN.iterdir()))
def test_damage_to_bytes_of_earlier_versions_is_noticed(name: str) -> None:
    snapshot = written(name)
    makers = {
        "replica_store": lambda: ReplicaStore("user", ["followers", "name"]).resume,
        "solution_store": lambda: SolutionStore("user", ["friend"]).resume,
        "maintainer": lambda: (
            Maintainer(
                ReplicaStore("user", ["followers", "name"]), SilentRemote(), Budget(5, 5, 60.0)
            ).resume
        ),
        "pane_dominance": lambda: PaneDominance(2).resume,
        "pane_buffer": lambda: PaneBuffer(Windows(9, 3, 0)).resume,
    }
    makers[name]()(snapshot)
    for at in range(0, len(snapshot), 97):
        damaged = snapshot[:at] + bytes([snapshot[at] ^ 1 << at % 8]) + snapshot[at + 1 :]
        for wrong in (snapshot[:at], damaged):
            with pytest.raises(SnapshotError):
                makers[name]()(wrong)


def forged(column: dict[str, object], body: bytes) -> bytes:
    """Return bytes as earlier versions wrote them for a replica."""
    header = {"kind": "x", "version": 1, "settings": {}, "columns": [{**column, "size": len(body)}]}
    content = json.dumps(header).encode() + b"\n" + body
    return b"acquatop-replica\n%08x\n" % zlib.crc32(content) + content


def test_no_more_is_unpacked_than_was_announced() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    state = unpack("x", 1, forged({"name": "t.x", "type": "|u1", "shape": [3]}, bomb))
    assert len(state.tables["t"]["x"]) == 3


@pytest.mark.parametrize("column", [{"type": "|O"}, {"shape": [4]}, {"shape": "no"}, {"type": 5}])
def test_columns_that_no_version_wrote_are_refused(column: dict[str, object]) -> None:
    right = {"name": "x", "type": "|u1", "shape": [3]}
    assert unpack("x", 1, forged(right, zlib.compress(b"abc"))).tables["rows"]["x"].tolist()
    with pytest.raises(SnapshotError, match="damaged"):
        unpack("x", 1, forged({**right, **column}, zlib.compress(b"abc")))
