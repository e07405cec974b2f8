"""The next batch of a recording is read while one is worked on, in process: one ahead, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.engine.stream_driver import StreamDriver
from acquatop.runtime import Batch
from connectors import ConnectorError
from connectors.lines import LinesReader

LONGEST_WAIT = 240.0
EVENTS = 400
CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "{folder}/events", maxBytesPerBatch = 2000, maxPartitions = 1 }}
[streams.":s".mapping]
subject = ":event/{{id}}"
time = "t"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n
FROM NAMED WINDOW :w ON :s [RANGE 90ms STEP 30ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
TAKE, READ = StreamDriver.take, LinesReader.read


class Watch:
    """Numbers of the batches read and taken in, and the threads that read."""

    def __init__(self, before: Callable[[Watch], None], fails_at: int = 0) -> None:
        self.read = self.taken = 0
        self.readers: set[str] = set()
        self._before = before
        self._fails_at = fails_at
        self._changed = threading.Condition()

    def reading(self, reader: LinesReader, partition: Any) -> Iterator[Any]:
        found = list(READ(reader, partition))
        with self._changed:
            self.read += 1
            self.readers.add(threading.current_thread().name)
            self._changed.notify_all()
        if self.read == self._fails_at:
            raise ConnectorError("broken")
        yield from found

    def take(self, driver: StreamDriver, batch: Batch) -> None:
        assert self.read <= self.taken + 2, "more than one batch was read ahead"
        self._before(self)
        TAKE(driver, batch)
        self.taken += 1

    def next_is_read(self) -> None:
        """Return once the batch behind the one at hand has been read; the last ones have none."""
        with self._changed:
            enough = 1 if self.taken > 4 else self.taken + 2
            assert self._changed.wait_for(lambda: self.read >= enough, LONGEST_WAIT)


def lived(folder: Path, watch: Watch | None, *, until_end: bool = True) -> Iterator[str]:
    catalog = Catalog.parse(
        CATALOG.format(folder=folder), file=folder / "catalog.toml", variables={}
    )
    watched = watch or Watch(lambda watch: None)
    with (
        patch.object(LinesReader, "read", lambda *each: watched.reading(*each)),
        patch.object(StreamDriver, "take", lambda *each: watched.take(*each)),
        Engine(catalog, runtime="local", until_end=until_end, autostart=False) as engine,
    ):
        query = engine.register(QUERY)
        engine.start()
        for answer in query:
            yield json.dumps(answer.canonical())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (
        json.dumps({"id": at, "t": 1_000 + at, "n": at * 31 % 101}) + "\n" for at in range(EVENTS)
    )
    (tmp_path / "events").write_text("".join(lines))
    return tmp_path


def test_the_next_batch_is_read_while_one_is_taken_in(folder: Path) -> None:
    watch = Watch(Watch.next_is_read)
    threads = set(threading.enumerate())
    assert list(lived(folder, watch)) == list(lived(folder, None))
    assert watch.read == watch.taken > 4
    assert any(name.startswith("acquatop-reader") for name in watch.readers)
    assert not [each for each in set(threading.enumerate()) - threads if "reader" in each.name]


def test_what_fails_ahead_fails_when_it_is_due(folder: Path) -> None:
    watch, right = Watch(Watch.next_is_read, fails_at=4), list(lived(folder, None))
    answers = []
    with pytest.raises(ConnectorError, match="broken"):
        answers.extend(lived(folder, watch))
    assert watch.taken == 3
    assert answers == right[: len(answers)]


def test_a_live_stream_is_read_when_it_is_worked_on(folder: Path) -> None:
    def none_is_ahead(watch: Watch) -> None:
        assert watch.read == watch.taken + 1

    right = list(lived(folder, None))
    answers = lived(folder, Watch(none_is_ahead), until_end=False)
    assert [next(answers) for _ in range(4)] == right[:4]
    answers.close()  # type: ignore[attr-defined]
