"""Contract of all remotes: the test class of each remote derives from it, and makes the remote.

::

    class TestMyRemote(RemoteContract):
        @pytest.fixture
        def make(self) -> MakeRemote:
            return lambda records, star: MyRemote(...)

A remote of RDF rather than of records can take :func:`triples_of` the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from replica.remotes import Remote, RemoteError
from replica.remotes.records import Field, KeyTemplate, RecordMapping, RecordReader, Star
from replica.remotes.values import XSD
from replica.store import Solution

NS = "http://example.org/"
FOLLOWERS, NAME, RATE, FRIEND, KIND = (
    NS + name for name in ("followers", "name", "rate", "friend", "kind")
)
MAPPING = RecordMapping(
    KeyTemplate.parse(NS + "user/{id}"),
    {
        FOLLOWERS: Field("public_metrics.followers_count", XSD + "integer"),
        NAME: Field("name"),
        RATE: Field("rate", XSD + "double"),
        FRIEND: Field("friends", NS + "user/{id}"),
        KIND: Field("kind", NS + "{kind}"),
    },
)
Record = dict[str, Any]
MakeRemote = Callable[[Sequence[Record], Star], Remote]
TIMEOUT = 20.0
ODD_IDS = [
    "a b",
    "x&ids=1",
    "50%",
    "%41",
    "#top",
    "q?x=1;y",
    "Zoë",
    "東京",
    "😀",
    "a'b(c)*!",
    "a:b@c",
    "plus+plus",
]
NO_KEYS = [
    "",
    "1",
    '"1"',
    "<urn:1>",
    f"<{NS}user/>",
    f"<{NS}user/1> }} DROP ALL #",
    f"<{NS}user/1",
    f"<{NS}user/%31>",
    f"<{NS}user/%ff>",
    f"<{NS}user/\x00>",
    "<urn:acquatop:blank:00112233445566778899aabbccddeeff>",
]


def user(id_: object) -> str:
    term = MAPPING.key.term(id_)
    assert term is not None
    return term


def record(id_: str, followers: object = None, **others: object) -> Record:
    metrics = {} if followers is None else {"public_metrics": {"followers_count": followers}}
    return {"id": id_, **metrics, **others}


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def triples_of(records: Iterable[Record]) -> Iterator[str]:
    """Return the N-Triples that records stand for."""
    for each in records:
        for predicate in MAPPING.properties:
            for solution in RecordReader(MAPPING, Star("s", {"o": predicate})).read(each).solutions:
                yield f"{solution['s']} <{predicate}> {solution['o']} ."


def fetch(remote: Remote, keys: Sequence[str]) -> list[Solution]:
    """Ask for keys in blocks of the remote's size,
    and return what it answers in an order of its own.
    """
    size = remote.block_size
    blocks = [keys[start : start + size] for start in range(0, len(keys), size)]
    return ordered(solution for block in blocks for solution in remote.fetch(block, TIMEOUT))


def ordered(solutions: Iterable[Solution]) -> list[Solution]:
    return sorted((dict(each) for each in solutions), key=lambda each: sorted(each.items()))


class RemoteContract:
    """Tests of any remote; a subclass gives the fixture ``make``."""

    @pytest.fixture
    def make(self) -> MakeRemote:
        raise NotImplementedError

    def test_terms_have_the_types_of_the_mapping(self, make: MakeRemote) -> None:
        records = [record("1", 7, name="Ann", rate=2.5), record("2", 0, name="Bob", rate=-0.25)]
        remote = make(records, Star("user", {"f": FOLLOWERS, "n": NAME, "r": RATE}))
        assert fetch(remote, [user(1), user(2)]) == ordered(
            [
                {"user": user(1), "f": integer(7), "n": '"Ann"', "r": f'"2.5"^^<{XSD}double>'},
                {"user": user(2), "f": integer(0), "n": '"Bob"', "r": f'"-0.25"^^<{XSD}double>'},
            ]
        )

    def test_keys_that_it_does_not_have_are_left_out(self, make: MakeRemote) -> None:
        remote = make([record("1", 7)], Star("user", {"f": FOLLOWERS}))
        assert fetch(remote, [user(2), user(1), user("none")]) == [
            {"user": user(1), "f": integer(7)}
        ]
        assert fetch(remote, [user(2)]) == []
        assert fetch(remote, []) == []

    def test_a_whole_block_is_answered(self, make: MakeRemote) -> None:
        remote = make(
            [record(str(number), number) for number in range(120)], Star("user", {"f": FOLLOWERS})
        )
        assert remote.block_size >= 1
        keys = [user(number) for number in range(remote.block_size)]
        assert len(remote.fetch(keys, TIMEOUT)) == remote.block_size
        assert len(fetch(remote, [user(number) for number in range(120)])) == 120

    def test_what_lacks_a_property_has_no_solution(self, make: MakeRemote) -> None:
        remote = make(
            [record("1", 7), record("2", name="Bob"), record("3", 9, name="Cid")],
            Star("u", {"n": NAME, "f": FOLLOWERS}),
        )
        assert fetch(remote, [user(1), user(2), user(3)]) == [
            {"u": user(3), "n": '"Cid"', "f": integer(9)}
        ]

    def test_several_values_are_several_solutions(self, make: MakeRemote) -> None:
        remote = make(
            [record("1", 7, friends=["2", "3"])], Star("u", {"v": FRIEND, "f": FOLLOWERS})
        )
        assert fetch(remote, [user(1)]) == [
            {"u": user(1), "v": user(2), "f": integer(7)},
            {"u": user(1), "v": user(3), "f": integer(7)},
        ]

    def test_constants_must_be_among_the_values(self, make: MakeRemote) -> None:
        records = [
            record("1", 7, kind="Person"),
            record("2", 8, kind="Bot"),
            record("3", 9, kind=["Bot", "Person"]),
        ]
        remote = make(records, Star("u", {"f": FOLLOWERS}, {KIND: f"<{NS}Person>"}))
        assert [each["f"] for each in fetch(remote, [user(1), user(2), user(3)])] == [
            integer(7),
            integer(9),
        ]

    def test_what_is_said_twice_counts_once(self, make: MakeRemote) -> None:
        remote = make([record("1", 7), record("1", 7)], Star("u", {"f": FOLLOWERS}))
        assert fetch(remote, [user(1)]) == [{"u": user(1), "f": integer(7)}]

    def test_values_of_all_kinds_are_kept(self, make: MakeRemote) -> None:
        names = ['"', "\\", "\n\r\t", "Zoë 東京 😀", "", "<script>", "?x } DROP", "\u202e", "a,b;c"]
        records = [
            record(str(number), 10 ** (number * 4), name=name) for number, name in enumerate(names)
        ]
        remote = make(records, Star("u", {"n": NAME, "f": FOLLOWERS}))
        escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
        assert fetch(remote, [user(number) for number in range(len(names))]) == ordered(
            {
                "u": user(number),
                "n": f'"{name.translate(escaped)}"',
                "f": integer(10 ** (number * 4)),
            }
            for number, name in enumerate(names)
        )

    def test_odd_keys_are_asked_for_as_they_are(self, make: MakeRemote) -> None:
        remote = make(
            [record(id_, place) for place, id_ in enumerate(ODD_IDS)], Star("u", {"f": FOLLOWERS})
        )
        keys = [user(id_) for id_ in ODD_IDS]
        assert fetch(remote, keys) == ordered(
            {"u": key, "f": integer(place)} for place, key in enumerate(keys)
        )

    @pytest.mark.parametrize("key", NO_KEYS)
    def test_what_is_no_key_of_its_costs_nothing_but_itself(
        self, make: MakeRemote, key: str
    ) -> None:
        remote = make([record("1", 7)], Star("u", {"f": FOLLOWERS}))
        assert fetch(remote, [key, user(1)]) == [{"u": user(1), "f": integer(7)}]
        assert remote.fetch([key], TIMEOUT) == []

    def test_loading_brings_everything_or_nothing(self, make: MakeRemote) -> None:
        remote = make(
            [record("1", 7, friends=["2", "3"]), record("2", 8)], Star("u", {"v": FRIEND})
        )
        assert ordered(solution for page in remote.load(TIMEOUT) for solution in page) in (
            [],
            [{"u": user(1), "v": user(2)}, {"u": user(1), "v": user(3)}],
        )


class RecordRemoteContract(RemoteContract):
    """Further tests for remotes of records."""

    def test_a_key_that_is_asked_for_twice_is_answered_once(self, make: MakeRemote) -> None:
        remote = make([record("1", 7)], Star("u", {"f": FOLLOWERS}))
        assert remote.fetch([user(1), user(1)], TIMEOUT) == [{"u": user(1), "f": integer(7)}]

    def test_more_keys_than_a_block_holds_are_refused(self, make: MakeRemote) -> None:
        remote = make([record("1", 7)], Star("u", {"f": FOLLOWERS}))
        with pytest.raises(RemoteError) as caught:
            remote.fetch([user(number) for number in range(remote.block_size + 1)], TIMEOUT)
        assert caught.value.too_large

    @pytest.mark.parametrize("value", ["7", 7.5, True, {"x": 1}, [[7]], "", None, [], {}, "seven"])
    def test_a_value_of_another_type_is_no_solution_and_is_counted(
        self, make: MakeRemote, value: object
    ) -> None:
        odd = {"id": "1", "public_metrics": {"followers_count": value}}
        remote = make([odd, record("2", 8)], Star("u", {"f": FOLLOWERS}))
        assert fetch(remote, [user(1), user(2)]) == [{"u": user(2), "f": integer(8)}]
        assert sum(remote.rejected.values()) == 1  # type: ignore[attr-defined]
