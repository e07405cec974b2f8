"""Waiting until something is so, and positions in a log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from connectors.live import LiveReader, log_options
from tests.support.live_sources import Mailbox

PATIENCE = 60.0


Offset = dict[str, Any]


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def reader(mailbox: Mailbox, tmp_path: Path) -> Iterator[LiveReader]:
    with closing(Closing(mailbox, tmp_path / "log")) as opened:
        yield opened


class Closing(LiveReader):
    def __init__(self, mailbox: Mailbox, path: Path, **options: str) -> None:
        super().__init__(lambda: mailbox, log_options("mail", {"log": str(path), **options}))

    def close(self) -> None:
        self.stop()


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that will happen."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if happened():
            return
        pause.wait(0.005)
    raise AssertionError("it has not happened")


def offset_at(reader: LiveReader, record: int, start: Offset, limit: ReadLimit | None = None) -> Offset:
    """Return the offset behind a record once it is there."""
    limit = limit or ReadAllAvailable()
    until(lambda: reader.latestOffset(start, limit)["record"] >= record)
    return reader.latestOffset(start, limit)
