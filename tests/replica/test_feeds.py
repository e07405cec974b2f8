"""Feeds of changes: files that grow, are replaced and cut; long replies that break off; the queue
in between.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.feeds import Pushed, PushQueue
from replica.feeds.framing import LONGEST_MESSAGE, Lines, ServerSentEvents
from replica.feeds.http import HttpFeed
from replica.feeds.iterated import IteratedFeed
from replica.feeds.lines import LinesFeed
from replica.feeds.retry_pauses import RetryPauses
from replica.http.client import HttpClient
from replica.remotes.records import RecordReader, Star
from replica.store import ReplicaStore, Solution
from tests.support.json_server import Answer, Asked, JsonServer, serving
from tests.support.remote_contract import FOLLOWERS, MAPPING, integer, record, user

LONG = 120.0
"""Seconds after which a test that waits for another thread gives up."""
STAR = Star("u", {"f": FOLLOWERS})
Said = Mapping[str, Sequence[Solution]]


def reading() -> RecordReader:
    return RecordReader(MAPPING, STAR)


def line(id_: str, followers: object = None, **others: object) -> bytes:
    return json.dumps(record(id_, followers, **others)).encode() + b"\n"


def followers(said: Said) -> dict[str, list[str]]:
    return {key: [solution["f"] for solution in solutions] for key, solutions in said.items()}


class Heard:
    """A sink that keeps what it is told, and lets others wait for it."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[tuple[Said, float]] = queue.SimpleQueue()

    def __call__(self, said: Said, now: float) -> None:
        self._said.put((said, now))

    def next(self) -> dict[str, list[str]]:
        return followers(self._said.get(timeout=LONG)[0])

    def all(self) -> list[dict[str, list[str]]]:
        return [followers(self._said.get()[0]) for _ in range(self._said.qsize())]


# Queue --------------------------------------------------------------------------------------------


def solution(id_: int, value: int) -> Solution:
    return {"u": user(id_), "f": integer(value)}


def test_a_queue_holds_the_newest_of_each_key_and_gives_it_once() -> None:
    pushed = PushQueue()
    pushed({user(1): [solution(1, 5)], user(2): [solution(2, 6)]}, 1.0)
    pushed({user(1): [solution(1, 7)]}, 2.0)
    pushed({user(2): [solution(2, 0)]}, 0.5)  # from another feed, which was slower
    assert len(pushed) == 2
    assert pushed.drain() == [
        Pushed([user(2)], [solution(2, 6)], 1.0),
        Pushed([user(1)], [solution(1, 7)], 2.0),
    ]
    assert pushed.drain() == []


def test_what_a_queue_gives_goes_into_a_store() -> None:
    pushed, store = PushQueue(), ReplicaStore("u", ["f"])
    pushed({user(1): [solution(1, 5)], user(2): []}, 1.0)
    pushed({user(1): []}, 2.0)
    changed = [store.put(each.asked, each.solutions, each.now).changed for each in pushed.drain()]
    assert changed == [(user(2),), (user(1),)]
    assert store.fetched_at(store.rows([user(1), user(2)])).tolist() == [2.0, 1.0]


def test_a_queue_that_is_full_loses_what_has_waited_longest() -> None:
    pushed = PushQueue(limit=2)
    for id_ in (1, 2, 1, 3):
        pushed({user(id_): []}, float(id_))
    assert [each.asked for each in pushed.drain()] == [[user(1)], [user(3)]]
    assert pushed.dropped == 1


def test_many_threads_may_use_a_queue() -> None:
    pushed = PushQueue()
    drained: list[Pushed] = []

    def push(first: int) -> None:
        for id_ in range(first, first + 500):
            pushed({user(id_): [solution(id_, id_)]}, float(id_))

    threads = [threading.Thread(target=push, args=(500 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        drained += pushed.drain()
    drained += pushed.drain()
    assert sorted(key for each in drained for key in each.asked) == sorted(map(user, range(2000)))


# Framing ------------------------------------------------------------------------------------------


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


@given(st.binary(), st.lists(st.integers(0, 100)))
def test_lines_are_the_same_however_they_are_cut(data: bytes, places: list[int]) -> None:
    lines = Lines()
    found = [each for piece in cut(data, places) for each in lines.feed(piece)]
    assert [*found, lines.end()] == [each.removesuffix(b"\r") for each in data.split(b"\n")]


@given(st.lists(st.integers(0, 100)))
def test_events_are_the_same_however_they_are_cut(places: list[int]) -> None:
    data = (
        b"\xef\xbb\xbfdata: one\r\n\r\n: remark\n\nevent: change\ndata:two\ndata:  "
        b"lines\nid: \xc3\xbc\n\nid: 5\n\n"
        b"data\n\nretry: soon\nretry: 3000\nid: 6\ndata: {}\n\nid: 7\ndata: unfinished"
    )
    events = ServerSentEvents(last_id="4")
    found = [each for piece in cut(data, places) for each in events.feed(piece)]
    assert found == [b"one", b"two\n lines", b"", b"{}"]
    assert (events.last_id, events.retry_seconds, events.end()) == ("6", 3.0, b"")


def test_messages_without_an_end_do_not_fill_the_memory() -> None:
    lines, events = Lines(longest=10), ServerSentEvents()
    assert list(lines.feed(b"x" * 25)) == []
    assert list(lines.feed(b"y\nshort\n")) == [b"x" * 10, b"short"]
    many = b"data: " + b"x" * (LONGEST_MESSAGE // 2) + b"\n"
    assert list(events.feed(many * 5)) == []
    assert [len(each) for each in events.feed(b"\n")] == [LONGEST_MESSAGE - 1]


# Files --------------------------------------------------------------------------------------------


class Follower:
    """A feed of a file that looks at it when told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = reading()
        self.heard = Heard()
        self.feed = LinesFeed(path, self.reader, clock=lambda: 5.0)
        # What start() does, but for the thread.
        self.feed.listen(self.heard)

    def poll(self) -> list[dict[str, list[str]]]:
        self.feed.poll()
        return self.heard.all()

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path / "changes.jsonl")


def test_lines_are_told_when_they_are_whole_and_of_each_key_the_last(follower: Follower) -> None:
    follower.append(line("1", 5) + line("2", 6) + b"\n" + line("1", 7) + line("3", 8)[:20])
    assert follower.poll() == [{user(1): [integer(7)], user(2): [integer(6)]}]
    assert follower.poll() == []
    follower.append(line("3", 8)[20:])
    assert follower.poll() == [{user(3): [integer(8)]}]


def test_a_record_says_all_that_there_is_of_its_key(follower: Follower) -> None:
    follower.append(
        line("1")
        + line("2", 6, deleted=True)
        + line("3", 7, deleted=False)
        + line("4", "x", deleted=True)
    )
    follower.append(line("5", 9, deleted="no"))
    none: list[str] = []
    assert follower.poll() == [
        {user(1): none, user(2): none, user(3): [integer(7)], user(4): none, user(5): [integer(9)]}
    ]


def test_bad_lines_are_counted_and_cost_nothing_but_themselves(follower: Follower) -> None:
    follower.append(
        line("1", 5)
        + line("1", "many")
        + b"{\n\xff\n[]\n7\nnull\n"
        + line("")
        + b"[" * 50_000
        + b"\n"
    )
    follower.append(
        b'{"public_metrics": {"followers_count": 7}}\n' + b'{"id": NaN}\n' + line("2", 6)
    )
    told = {key: value for each in follower.poll() for key, value in each.items()}
    assert told == {user(1): [integer(5)], user(2): [integer(6)]}
    assert dict(follower.reader.rejected) == {
        '"public_metrics.followers_count" is not xsd:integer': 1,
        "not JSON": 4,
        "not an object": 3,
        '"id" does not fit into an IRI': 1,
        'no "id"': 1,
    }


def test_a_file_may_come_later_and_may_be_a_long_one(follower: Follower) -> None:
    assert follower.poll() == []
    assert follower.feed.failure is not None
    assert "No such file" in follower.feed.failure
    follower.append(b"".join(line(str(number), number) for number in range(3000)))
    told: dict[str, list[str]] = {}
    for each in follower.poll():
        told |= each
    assert told == {user(number): [integer(number)] for number in range(3000)}
    assert follower.feed.failure is None


def test_a_file_that_is_replaced_is_read_to_its_end_and_then_the_other(follower: Follower) -> None:
    follower.append(line("1", 5))
    assert len(follower.poll()) == 1
    follower.append(line("2", 6) + line("3", 7).strip())
    follower.path.rename(follower.path.with_suffix(".1"))
    assert follower.poll() == [
        {user(2): [integer(6)]}
    ]  # nobody knows yet whether its last line goes on
    follower.append(line("1", 8))
    assert follower.poll() == [{user(3): [integer(7)]}, {user(1): [integer(8)]}]
    follower.append(line("4", 9))
    assert follower.poll() == [{user(4): [integer(9)]}]
    assert not follower.reader.rejected


def test_a_file_that_is_cut_is_read_from_its_beginning(follower: Follower) -> None:
    follower.append(line("1", 5) + line("2", 6) + b'{"id": "unfini')
    assert len(follower.poll()) == 1
    follower.path.write_bytes(line("1", 7))
    assert follower.poll() == [{user(1): [integer(7)]}]
    follower.path.write_bytes(b"")
    assert follower.poll() == []
    follower.append(line("1", 8))
    assert follower.poll() == [{user(1): [integer(8)]}]
    assert not follower.reader.rejected


def test_a_file_that_cannot_be_read_is_tried_again(follower: Follower) -> None:
    follower.path.mkdir()
    assert follower.poll() == []
    assert follower.feed.failure is not None
    assert "Is a directory" in follower.feed.failure
    follower.path.rmdir()
    follower.append(line("1", 5))
    assert follower.poll() == [{user(1): [integer(5)]}]


def test_a_file_is_followed_by_a_thread_until_it_is_stopped(tmp_path: Path) -> None:
    path, heard = tmp_path / "changes.jsonl", Heard()
    feed = LinesFeed(path, reading(), clock=lambda: 5.0, poll_seconds=0.001)
    feed.start(heard)
    for number in range(3):
        with path.open("ab") as file:
            file.write(line("1", number))
        assert heard.next() == {user(1): [integer(number)]}
    feed.stop()
    with path.open("ab") as file:
        file.write(line("1", 9))
    feed.poll()
    assert heard.all() == []


def test_a_sink_may_stop_its_feed(follower: Follower) -> None:
    told: list[float] = []

    def stop(_: Said, now: float) -> None:
        told.append(now)
        follower.feed.stop()

    follower.feed.listen(stop)
    follower.append(b"".join(line(str(number), number) for number in range(3000)))
    follower.poll()
    assert told == [5.0]


# Replies ------------------------------------------------------------------------------------------


class Stream:
    """The pieces of a reply, as a test gives them."""

    def __init__(self) -> None:
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces.get, None)

    def send(self, piece: bytes) -> None:
        self._pieces.put(piece)

    def end(self) -> None:
        self._pieces.put(None)


class Pauses:
    """Waits in a test's place: each pause is handed over, and lasts until the test goes on."""

    def __init__(self) -> None:
        self._pauses: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._go: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def __call__(self, seconds: float) -> bool:
        self._pauses.put(seconds)
        return self._go.get(timeout=LONG)

    def next(self) -> float:
        return self._pauses.get(timeout=LONG)

    def go(self, *, stopped: bool = False) -> None:
        self._go.put(stopped)


class Chance(Random):
    """Always the same."""

    def random(self) -> float:
        return 1.0


class Follow:
    """A feed of replies, each of which a test gives."""

    def __init__(self, stack: ExitStack) -> None:
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self.server: JsonServer = stack.enter_context(serving(self._answer))
        self.pauses, self.heard, self.reader = Pauses(), Heard(), reading()
        self.feed = HttpFeed(
            self.server.url + "/changes",
            self.reader,
            client=HttpClient(name="the changes", longest_reply=1 << 30),
            clock=lambda: 5.0,
            random=Chance(),
            lifetime=LONG,
            wait=self.pauses,
        )

    def _answer(self, _: Asked) -> Answer:
        return self.answers.get(timeout=LONG)

    def give(
        self,
        pieces: Iterable[bytes],
        kind: str = "application/x-ndjson",
        status: int = 200,
        **more: str,
    ) -> None:
        headers = {
            "Content-Type": kind,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        self.answers.put(Answer(pieces, status, headers))


@pytest.fixture
def follow() -> Iterator[Follow]:
    with ExitStack() as stack:
        each = Follow(stack)
        yield each
        each.feed.stop()
        each.pauses.go(stopped=True)


def test_records_are_told_as_they_arrive(follow: Follow) -> None:
    stream = Stream()
    follow.give(stream)
    follow.feed.start(follow.heard)
    stream.send(line("1", 5) + line("2", 6)[:10])
    assert follow.heard.next() == {user(1): [integer(5)]}
    assert (follow.feed.failure, follow.feed.connections) == (None, 1)
    stream.send(line("2", 6)[10:] + b"\n\n" + line("1") + b"nonsense\n" + line("3", 7).strip())
    assert follow.heard.next() == {user(2): [integer(6)], user(1): []}
    stream.end()
    assert follow.heard.next() == {user(3): [integer(7)]}
    assert follow.pauses.next() == 1.0
    assert follow.feed.failure == "the connection was closed"
    assert dict(follow.reader.rejected) == {"not JSON": 1}


def test_events_are_told_and_the_next_request_says_which_was_the_last(follow: Follow) -> None:
    stream = Stream()
    follow.give(stream, "text/event-stream; charset=utf-8")
    follow.give([b": nothing new\n\n"], "text/event-stream")
    follow.feed.start(follow.heard)
    stream.send(b"id: 41\nretry: 250\ndata: " + line("1", 5) + b"\nid: 42\ndata: " + line("2", 6))
    assert follow.heard.next() == {user(1): [integer(5)]}
    stream.end()
    assert follow.pauses.next() == 0.25
    follow.pauses.go()
    assert follow.pauses.next() == 0.25
    sent = [each.headers.get("Last-Event-ID") for each in follow.server.asked]
    assert sent == [None, "41"]
    assert follow.feed.connections == 2


def test_pauses_grow_until_something_comes_and_are_as_long_as_asked_for(follow: Follow) -> None:
    for _ in range(8):
        follow.give([b""], status=500)
    follow.give([], status=503, Retry_After="300")
    follow.give([line("1", 5)])
    follow.feed.start(follow.heard)
    pauses = []
    for _ in range(10):
        pauses.append(follow.pauses.next())
        if len(pauses) == 9:
            assert follow.feed.failure is not None
            assert "503" in follow.feed.failure
        if len(pauses) < 10:
            follow.pauses.go()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 300.0, 1.0]


def test_a_pause_is_between_half_and_all_by_chance() -> None:
    pauses = RetryPauses(1.0, 60.0, Random(7))
    some = [pauses.after(3) for _ in range(200)]
    assert 2.0 <= min(some) < 2.1 < 3.9 < max(some) <= 4.0
    assert pauses.after(10_000) <= 60.0
    assert pauses.after(0, asked=0.0) > 0.0
    assert pauses.after(0, asked=1e6) <= 60.0


def test_a_reply_that_breaks_off_is_read_again(follow: Follow) -> None:
    follow.answers.put(
        Answer(line("1", 5) + line("2"), headers={"Content-Length": "9999", "Connection": "close"})
    )
    follow.give([line("2", 6)])
    follow.feed.start(follow.heard)
    assert follow.heard.next() == {user(1): [integer(5)], user(2): []}
    assert follow.pauses.next() == 1.0
    assert follow.feed.failure is not None
    assert "ended early" in follow.feed.failure
    follow.pauses.go()
    assert follow.heard.next() == {user(2): [integer(6)]}


def test_nothing_is_told_once_a_feed_is_stopped(follow: Follow) -> None:
    stream = Stream()
    follow.give(stream)
    follow.feed.start(follow.heard)
    stream.send(line("1", 5))
    assert follow.heard.next() == {user(1): [integer(5)]}
    follow.feed.stop()
    stream.send(line("1", 6))
    stream.end()
    follow.pauses.next()
    assert follow.heard.all() == []
    assert len(follow.server.asked) == 1


def test_a_sink_that_fails_is_not_passed_over_in_silence(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.put(follow.feed.failure))

    def fail(_: Said, now: float) -> None:
        raise ValueError("full")

    follow.give([line("1", 5)])
    follow.feed.start(fail)
    assert died.get(timeout=LONG) == "it is followed no longer: ValueError: full"


# Iterators ----------------------------------------------------------------------------------------


def test_an_iterator_that_fails_or_ends_is_asked_for_again() -> None:
    heard, asked = Heard(), iter(range(4))

    def messages() -> Iterator[bytes]:
        number = next(asked)
        yield line("1", number)
        if number < 2:
            raise OSError("gone")

    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 4

    feed = IteratedFeed("mine", messages, reading(), clock=lambda: 1.0, random=Random(1), wait=wait)
    feed.start(heard)
    for number in range(4):
        assert heard.next() == {user(1): [integer(number)]}
    feed.stop()
