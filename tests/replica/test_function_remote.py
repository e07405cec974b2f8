"""Python functions as remotes: what they may return, what they raise, and how they are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from replica.remotes import RemoteError
from replica.remotes.function import FunctionRemote, Lookup, resolve
from replica.remotes.records import Star
from tests.support.remote_contract import (
    FOLLOWERS,
    MAPPING,
    TIMEOUT,
    MakeRemote,
    Record,
    RecordRemoteContract,
    integer,
    record,
    user,
)

STAR = Star("u", {"f": FOLLOWERS})


class TestMapping(RecordRemoteContract):
    @pytest.fixture
    def make(self) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> FunctionRemote:
            return FunctionRemote(
                lambda ids: {id_: [each for each in records if each["id"] == id_] for id_ in ids},
                mapping=MAPPING,
                star=star,
            )

        return make


class TestRecords(RecordRemoteContract):
    @pytest.fixture
    def make(self) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> FunctionRemote:
            return FunctionRemote(
                lambda ids: (each for each in records if each["id"] in ids),
                mapping=MAPPING,
                star=star,
            )

        return make


def asking(function: Lookup) -> FunctionRemote:
    return FunctionRemote(function, mapping=MAPPING, star=STAR)


BARE = {"public_metrics": {"followers_count": 7}}


@pytest.mark.parametrize(
    "found",
    [
        {"1": BARE},
        {1: BARE},
        {"1": [BARE]},
        {"1": (BARE, BARE)},
        {"1": record("1", 7), "2": None},
        {"1": BARE, "": BARE, None: BARE, "9": BARE},
        [record("1", 7)],
        (record("1", 7), record("9", 7)),
        [{**BARE, "id": 1}, None, 7],
    ],
)
def test_a_function_returns_records_by_id_or_with_their_ids(found: object) -> None:
    assert asking(lambda ids: found).fetch([user(1), user(2)], TIMEOUT) == [
        {"u": user(1), "f": integer(7)}
    ]


@pytest.mark.parametrize(
    "found", [None, {}, [], {"1": None}, {"1": []}, {"1": record("2", 7)}, {"1": 7}]
)
def test_what_a_function_does_not_return_is_absent(found: object) -> None:
    assert asking(lambda ids: found).fetch([user(1), user(2)], TIMEOUT) == []


def test_a_function_is_called_once_with_ids() -> None:
    asked: list[list[str]] = []
    remote = asking(asked.append)
    assert remote.fetch([user("a b"), user(7), "<urn:other>"], TIMEOUT) == []
    assert remote.fetch(["<urn:other>"], TIMEOUT) == []
    assert asked == [["a b", "7"]]
    assert list(remote.load(TIMEOUT)) == []


@pytest.mark.parametrize("found", [7, "text", b"bytes", object()])
def test_a_function_that_returns_something_else_has_failed(found: object) -> None:
    with pytest.raises(RemoteError, match="neither a mapping nor records"):
        asking(lambda ids: found).fetch([user(1)], TIMEOUT)


def fails(_: list[str]) -> object:
    raise KeyError("no such table")


def fails_later(_: list[str]) -> object:
    yield record("1", 7)
    raise OSError("gone")


def leaves(_: list[str]) -> object:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fails, "the function fails failed: KeyError: 'no such table'"),
        (fails_later, "the function fails_later failed: OSError: gone"),
        (leaves, "the function leaves failed: SystemExit: 3"),
    ],
)
def test_what_a_function_raises_is_the_error_of_a_remote(function: Lookup, message: str) -> None:
    with pytest.raises(RemoteError) as caught:
        asking(function).fetch([user(1)], TIMEOUT)
    assert str(caught.value) == message


def test_an_error_of_a_remote_keeps_what_it_asks_for() -> None:
    def busy(_: list[str]) -> object:
        raise RemoteError("busy", retry_after=7.0)

    with pytest.raises(RemoteError) as caught:
        asking(busy).fetch([user(1)], TIMEOUT)
    assert caught.value.retry_after == 7.0


def test_a_function_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lookups_for_test.py").write_text(
        "class Users:\n    @staticmethod\n    def look_up(ids):\n        return 5\n"
    )
    (tmp_path / "broken_for_test.py").write_text("1 / 0\n")
    (tmp_path / "needing_for_test.py").write_text("import not_there_for_test\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert resolve("lookups_for_test:Users.look_up")([]) == 5
    for name, message in {
        "lookups_for_test": 'must be written as "module:function"',
        "lookups_for_test:": 'must be written as "module:function"',
        ":look_up": 'must be written as "module:function"',
        "lookups_for_test:look_up": 'the module lookups_for_test has no "look_up"',
        "lookups_for_test:Users.nothing": 'the module lookups_for_test has no "Users.nothing"',
        "lookups_for_test:__name__": "is not a function",
        "absent_for_test:look_up": "there is no module absent_for_test",
        "needing_for_test:look_up": "there is no module not_there_for_test",
        "broken_for_test:look_up": "cannot be imported: ZeroDivisionError: division by zero",
        "..os:path": "cannot be imported",
    }.items():
        with pytest.raises(ValueError, match=message.replace("(", "\\(")):
            resolve(name)
