"""Measure posts of X per second from a socket to columns, compared with JSON parsers alone."""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pj

from benchmarks.table import Figure, report
from connectors.live import LiveReader, log_options
from connectors.mapping import IRI, Property, Template
from connectors.read_limits import ReadAllAvailable
from connectors.x_api.filtered_stream import FilteredStream, Settings
from connectors.x_api.line_splitter import lines_of
from connectors.x_api.messages import Messages
from connectors.x_api.posts import PostsMapping
from connectors.x_api.recent_ids import RecentIds
from connectors.x_api.token import VARIABLE
from examples.x.server import XServer

NS = "http://example.org/"
USER = Template.parse(NS + "user/{}")
MENTIONS = PostsMapping(
    Template.parse(NS + "mention/{item}"),
    properties={
        NS + "of": Property("entities.mentions.id", IRI, USER),
        NS + "by": Property("author_id", IRI, USER),
    },
)
PER_CHUNK = 100
"""Posts per chunk of the server."""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench x", description=__doc__)
    parser.add_argument("--posts", type=int, default=100_000, help="how many (%(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="how often; the best counts (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    lines = _posts(options.posts)
    data = b"".join(lines)
    rows = pa.record_batch([lines_of(data)], ["value"])
    works: list[tuple[str, Callable[[], object]]] = [
        ("floor: pyarrow reads the fields wanted", lambda: _read(data)),
        ("json.loads", lambda: [json.loads(line) for line in lines]),
        (
            "bytes to lines, posts told from those that came before",
            lambda: RecentIds().add(Messages.of(rows[0]).ids),
        ),
        ("lines to columns, a row per mention", lambda: MENTIONS.records(rows)),
    ]
    figures = [_best(name, options.posts, options.repeat, work) for name, work in works]
    figures.append(
        _best("socket to log to columns", options.posts, options.repeat, lambda: _whole_way(lines))
    )
    size = len(data) // options.posts
    title = f"{options.posts:,} posts of {size} bytes (events here)"
    report(title, figures, ["pyarrow", "requests"], as_json=options.json)


def _posts(count: int) -> list[bytes]:
    chance = random.Random(1)
    return [_line(number, chance) for number in range(count)]


def _line(number: int, chance: random.Random) -> bytes:
    users = [str(chance.randrange(10**9)) for _ in range(chance.choice((1, 1, 2)))]
    mentions = [{"start": 0, "end": 9, "username": f"user{user}", "id": user} for user in users]
    metrics = dict.fromkeys(
        ("retweet_count", "reply_count", "like_count", "quote_count", "impression_count"), 0
    )
    text = (
        " ".join(f"@user{user}" for user in users)
        + " Grüße, what do you think of this? 👋 https://t.co/abcdefghij"
    )
    post = {
        "id": str(10**18 + number),
        "text": text,
        "edit_history_tweet_ids": [str(10**18 + number)],
        "author_id": str(chance.randrange(10**9)),
        "created_at": "2026-01-01T00:00:00.000Z",
        "public_metrics": metrics,
        "entities": {"mentions": mentions, "annotations": []},
    }
    line = {"data": post, "matching_rules": [{"id": "1", "tag": "mentions"}]}
    return json.dumps(line, ensure_ascii=False).encode() + b"\r\n"


def _read(data: bytes) -> pa.Table:
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    options = pj.ParseOptions(
        explicit_schema=MENTIONS.line_schema, unexpected_field_behavior="ignore"
    )
    return pj.read_json(pa.BufferReader(data), reading, options)


def _whole_way(lines: list[bytes]) -> None:
    """Let a server send all posts at once, and read them from the log until they are columns."""
    token = os.environ[VARIABLE] = "xyzzy"
    chunks = [
        b"".join(lines[start : start + PER_CHUNK]) for start in range(0, len(lines), PER_CHUNK)
    ]
    with tempfile.TemporaryDirectory() as folder, XServer(token=token) as server:
        server.rules["1"] = {"value": "has:mentions", "tag": ""}
        settings = Settings(server.url)
        reader = LiveReader(
            lambda: FilteredStream(settings), log_options("x", {"log": str(Path(folder) / "log")})
        )
        with closing(_Reading(reader)) as reading:
            reading.until(0)
            assert server.wait_for(streams=1)
            for chunk in chunks:
                server.send(chunk)
            reading.until(len(lines))


class _Reading:
    def __init__(self, reader: LiveReader) -> None:
        self._reader, self._offset, self._seen = reader, reader.initialOffset(), 0
        self._pause = threading.Event()

    def until(self, posts: int) -> None:
        """Read until a number of posts are columns."""
        while True:
            end = self._reader.latestOffset(self._offset, ReadAllAvailable())
            for part in self._reader.partitions(self._offset, end):
                for batch in self._reader.read(part):
                    assert MENTIONS.records(batch).num_rows >= len(batch)
                    self._seen += len(batch)
            self._offset = end
            if self._seen >= posts:
                return
            self._pause.wait(0.001)

    def close(self) -> None:
        self._reader.stop()


def _best(name: str, posts: int, repeat: int, work: Callable[[], object]) -> Figure:
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return Figure(name, min(seconds), posts)


if __name__ == "__main__":
    main()
