from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.store import key_index
from replica.store.hash_table import HashTable
from replica.store.key_index import KeyIndex

names = st.one_of(
    st.text(max_size=20), st.integers(0, 50).map(lambda at: f"<http://example.org/user/{at}>")
)
rounds = st.lists(st.tuples(st.sets(names, max_size=70), st.integers(0, 100)), max_size=5)


@settings(max_examples=60)
@given(rounds, st.randoms(use_true_random=False), st.sampled_from([(0, 0), (9, 20), (1024, 99)]))
def test_it_finds_what_a_dict_finds(
    batches: list[tuple[set[str], int]], random, remembered: tuple[int, int]
) -> None:
    with patch.multiple(key_index, _ASKED=remembered[0], _RECENT=remembered[1]):
        check_as_a_dict(batches, random)


def check_as_a_dict(batches: list[tuple[set[str], int]], random) -> None:
    index, plain = KeyIndex(), {}
    for names, share in batches:
        new = [name for name in names if name not in plain]
        rows = index.add(new).tolist()
        assert not set(rows) & set(plain.values()), (
            "rows of keys that are held are not given to others"
        )
        plain.update(zip(new, rows, strict=True))
        gone = random.sample(sorted(plain), len(plain) * share // 100)
        index.remove(np.array([plain.pop(name) for name in gone], np.int64))
        sought = [*plain, *gone, *names, "nowhere"]
        expected = [plain.get(name, -1) for name in sought]
        assert index.find(sought).tolist() == expected, "as arrays"
        assert [index.find([name])[0] for name in sought] == expected, "one by one"
        assert index.keys(np.array([*plain.values()], np.int64)) == [*plain]
        assert index.all_rows().tolist() == sorted(plain.values())
        assert len(index) == len(plain)
        assert index.text_bytes == sum(len(name.encode("utf-8", "surrogatepass")) for name in plain)
    again = KeyIndex()
    again.resume(index.state())
    assert again.find([*plain]).tolist() == [*plain.values()]
    assert again.add(["new"]) == index.add(["new"])


def test_keys_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replica.store.key_index.hash", lambda key: -1, raising=False)
    index = KeyIndex()
    keys = [f"<urn:{'x' * (at % 20)}{at}>" for at in range(100)]
    rows = index.add(keys)
    assert index.find(keys).tolist() == rows.tolist()
    assert [index.find([key])[0] for key in keys] == rows.tolist()
    index.remove(rows[::2])
    assert index.find(keys).tolist() == [
        -1 if at % 2 == 0 else row for at, row in enumerate(rows.tolist())
    ]
    assert index.find(["<urn:n>"] * 99).tolist() == [-1] * 99


def test_what_comes_and_goes_does_not_pile_up() -> None:
    index = KeyIndex()
    rows = index.add([f"<urn:start/{at}>" for at in range(1000)])
    sizes = []
    for turn in range(100):
        index.remove(rows[:100])
        rows = np.concatenate(
            [rows[100:], index.add([f"<urn:turn{turn}/{at}>" for at in range(100)])]
        )
        sizes.append(index.nbytes)
    assert index.capacity < 1300
    assert max(sizes) < 1.5 * sizes[0]
    assert index.find(index.keys(rows)).tolist() == rows.tolist()


@given(st.lists(st.integers(0, 2**32 - 1), unique=True, max_size=60), st.integers(60, 200))
def test_a_table_built_anew_holds_the_same(tags: list[int], room: int) -> None:
    table, rows = HashTable(64), np.arange(len(tags))
    batch = np.array(tags, np.uint64)
    table.put(batch, rows)
    table.remove(batch[::3], rows[::3])
    table.make_room(room)
    found = table.find(batch, lambda at, rows: np.ones(len(at), bool))
    assert found.tolist() == [-1 if row % 3 == 0 else row for row in rows.tolist()]
    assert [next(table.rows_at(tag), -1) for tag in tags] == found.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": np.array([2, 9, -1], np.int32)},
        {"lengths": np.array([2, 1, -2], np.int32)},
        {"free": np.array([], np.int32)},
        {"free": np.array([0], np.int32)},
        {"texts": np.frombuffer(b"aa\xff", np.uint8)},
        {"lengths": np.array([2, 2, -1], np.int32), "texts": np.frombuffer(b"aaaa", np.uint8)},
    ],
)
def test_columns_that_cannot_be_an_index_are_refused(change: dict) -> None:
    index = KeyIndex()
    index.add(["aa", "b", "c"])
    index.remove(np.array([2]))
    with pytest.raises(ValueError, match=r"rows|texts|decode"):
        KeyIndex().resume({**index.state(), **change})
