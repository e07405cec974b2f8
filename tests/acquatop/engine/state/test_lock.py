"""One engine at a time."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acquatop.engine.state.directory import StateDirectory
from acquatop.engine.state.folder import Folder, read_file
from acquatop.engine.state.lock import DirectoryLock
from acquatop.engine.state.names import LOCK
from acquatop.errors import EnvironmentProblem


def test_a_second_one_is_told_who_has_it(tmp_path: Path) -> None:
    with StateDirectory.open(tmp_path, {}):
        with pytest.raises(
            EnvironmentProblem,
            match=f"{tmp_path} is in use by this process itself\n  hint: stop it, or",
        ):
            StateDirectory.open(tmp_path, {})
        (tmp_path / LOCK).write_text("{")
        with pytest.raises(EnvironmentProblem, match="is in use by another process"):
            StateDirectory.open(tmp_path, {})
    StateDirectory.open(tmp_path, {}).close()


def test_it_says_who_holds_it_and_since_when(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    lock = DirectoryLock.take(folder, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    said = read_file(folder, LOCK)
    assert f'"pid": {os.getpid()}, ' in said.decode()
    assert b'"since": "2026-01-02 03:04:05+00:00"' in said
    lock.check()
    lock.release()
    lock.release()
    folder.close()


@pytest.mark.parametrize("again", [False, True])
def test_who_loses_its_lock_writes_no_more(tmp_path: Path, again: bool) -> None:
    with StateDirectory.open(tmp_path, {}) as state:
        state.save({})
        (tmp_path / LOCK).unlink()
        if again:
            (tmp_path / LOCK).touch()
        with pytest.raises(
            EnvironmentProblem, match="was removed while it was in use\n  hint: stop all"
        ):
            state.append({})


def test_an_engine_that_could_not_be_opened_holds_nothing(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, {"query": "one"}).close()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(Exception, match="has changed"):
            StateDirectory.open(tmp_path, {"query": "two"})
    assert len(list(Path("/dev/fd").iterdir())) == before
    StateDirectory.open(tmp_path, {"query": "one"}).close()


def test_threads_take_turns(tmp_path: Path) -> None:
    with StateDirectory.open(tmp_path, {}) as state:
        state.save({})
        writers = [
            threading.Thread(target=lambda: [state.append({}) for _ in range(5)]) for _ in range(3)
        ]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        found = state.recover()
        assert found is not None
        assert len(found.journal) == 15
