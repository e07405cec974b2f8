"""The parts of the connector by themselves: lines, ids, rules, tokens, addresses, options."""

from __future__ import annotations

import copy
import pickle
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import ConnectorError
from connectors.x import XDataSource
from connectors.x_api.api import URL, check_url
from connectors.x_api.connection import words_of
from connectors.x_api.line_splitter import LineSplitter
from connectors.x_api.recent_ids import RecentIds
from connectors.x_api.rules import LONGEST_TAG, Change, Rule, change_of, rules_of
from connectors.x_api.token import Token

pieces = st.lists(
    st.binary(max_size=6) | st.sampled_from([b"\n", b"\r\n", b"ab", b"\xf0\x9f"]), max_size=20
)


@given(pieces)
def test_lines_are_the_same_however_their_bytes_are_cut(pieces: list[bytes]) -> None:
    buffer = LineSplitter()
    found = [line for piece in pieces for line in buffer.feed(piece).to_pylist()]
    *whole, rest = b"".join(pieces).split(b"\n")
    assert found == [line.removesuffix(b"\r") for line in whole]
    assert buffer.rest == rest


@given(st.lists(st.integers(1, 8), max_size=12), st.integers(1, 5))
def test_of_a_long_line_only_the_beginning_is_kept(cuts: list[int], longest: int) -> None:
    data = b"abcdefghijkl\nxy\n"
    buffer, found, start = LineSplitter(longest), [], 0
    for end in [*np.cumsum(cuts).tolist(), len(data)]:
        found += buffer.feed(data[start:end]).to_pylist()
        assert len(buffer.rest) <= longest
        start = max(start, min(end, len(data)))
    first, second = found
    assert b"abcdefghijkl".startswith(first)
    assert second == b"xy"[: len(second)]


@given(st.lists(st.lists(st.integers(1, 60), max_size=8), max_size=12), st.integers(4, 20))
def test_an_id_is_new_but_once_among_the_newest(batches: list[list[int]], most: int) -> None:
    recent, seen = RecentIds(most), set[int]()
    for batch in batches:
        found = recent.add(np.array(batch, np.uint64))
        for id_, is_new in zip(batch, found.tolist(), strict=True):
            if id_ in sorted(seen)[-most:] or id_ not in seen:
                assert is_new == (id_ not in seen)
            seen.add(id_)
    assert recent.ids().tolist() == sorted(seen)[-most:]


def test_memory_of_ids_is_bounded() -> None:
    recent = RecentIds(10_000)
    for start in range(1, 200_000, 5_000):
        recent.add(np.arange(start, start + 5_000, dtype=np.uint64))
        assert len(recent) <= 20_000 + 5_000
    assert recent.ids().tolist() == list(range(190_001, 200_001))


rules = st.builds(Rule, st.sampled_from("abc"), st.sampled_from(["", "s", "t"]))


@given(st.dictionaries(st.sampled_from("123456"), rules), st.sets(rules, min_size=1))
def test_a_change_leaves_the_rules_that_are_wanted_and_touches_no_other(
    present: dict[str, Rule], wanted: set[Rule]
) -> None:
    change = change_of(present, wanted)
    left = {id_: rule for id_, rule in present.items() if id_ not in change.delete}
    assert sorted([*left.values(), *change.add]) == sorted(wanted)
    # As few as can be: what stays is all of the wanted that was there, and each but once.
    assert len(left) == len(wanted & set(present.values()))
    assert bool(change) == (change != Change([], []))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cats", "a JSON object from tags to rules"),
        ("[]", "a JSON object from tags to rules"),
        ("{}", "a JSON object from tags to rules"),
        ('{"a": 7}', "a JSON object from tags to rules"),
        ('{"a": " "}', "a rule is empty"),
        ('{"a": "cats", "b": "cats "}', 'the rule "cats" has two tags'),
        (f'{{"{"a" * (LONGEST_TAG + 1)}": "cats"}}', "has more than 255 characters"),
    ],
)
def test_rules_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        rules_of(text)


@given(st.text(string.ascii_letters + "%/+=", min_size=8))
def test_a_token_is_hidden_however_it_is_written(text: str) -> None:
    token = Token.of("T", {"T": f" {text}\n"})
    assert text not in token.hidden_in(f"say {text}!")
    assert text not in repr(token)
    assert text not in repr(vars(token))


def test_a_token_comes_from_the_environment_alone_and_goes_to_no_other_process() -> None:
    token = Token.of("T", {"T": "xyzzy"})
    with pytest.raises(TypeError):
        pickle.dumps(token)
    with pytest.raises(TypeError):
        copy.copy(token)
    for environment in ({}, {"T": " "}):
        with pytest.raises(ConnectorError, match="the environment variable T must have"):
            Token.of("T", environment)
    with pytest.raises(ConnectorError, match="characters that no token has") as caught:
        Token.of("T", {"T": "xyz zy"})
    assert "zy" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["api.x.com", "ftp://x", "https://", "https://a@x", "https://x?a=b", "http://x:0", "http://["],
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(ConnectorError, match="is the address of a server"):
        check_url(url)


def test_a_token_is_sent_in_the_clear_only_to_this_machine() -> None:
    for url in (URL, "http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"):
        assert check_url(url) == url
    with pytest.raises(ConnectorError, match="must begin with https"):
        check_url("http://api.x.com")


def test_errors_are_told_in_words() -> None:
    wrapped = OSError("the library's")
    wrapped.__cause__ = TimeoutError()
    assert words_of(wrapped) == "the answer took too long"
    assert words_of(ValueError("internal")) == "the connection broke off"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'the connector "x" needs the option log'),
        ({"log": "l", "backfillMinutes": "6"}, "from 0 to 5"),
        ({"log": "l", "backfillMinutes": "soon"}, "from 0 to 5"),
        ({"log": "l", "url": "x"}, "the option url"),
        ({"log": "l", "rules": "x"}, "the option rules"),
    ],
)
def test_options_that_are_wrong_are_refused_with_a_remedy(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConnectorError, match=message):
        XDataSource(options).streamReader(None)


def test_a_reader_goes_to_other_processes_without_what_is_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X_BEARER_TOKEN", "xyzzy")
    reader = XDataSource({"log": "l", "rules": '{"a": "cats"}'}).streamReader(None)
    assert b"xyzzy" not in pickle.dumps(reader)
