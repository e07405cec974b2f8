"""State directory: saved data is found again, and old files are removed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from acquatop.engine.state.directory import Recovered, StateDirectory
from acquatop.engine.state.folder import make_folder
from acquatop.engine.state.names import LOCK, MANIFEST
from acquatop.errors import EnvironmentProblem
from tests.support.disks import Failing, SteppedFolder, quick_folder, state_of

REPLICA = bytes(range(200))


@pytest.fixture
def place() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder / "state"


def new(place: Path) -> StateDirectory:
    state = StateDirectory.open(place, {}, large=100)
    state.recover()
    return state


def files(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir() if each.name not in (LOCK, MANIFEST))


def test_a_new_directory_holds_nothing(place: Path) -> None:
    with StateDirectory.open(place / "in" / "another", {}) as state:
        assert state.recover() is None
        assert state.journal_length == 0
    assert state_of(place / "in" / "another") is None


def test_the_newest_snapshot_and_its_journal_are_found(place: Path) -> None:
    with new(place) as state:
        state.save({"a": b"1"})
        state.append({"b": b""})
        state.save({"a": b"2", "ä \ud800": b"\n\0" * 7, "empty": b""})
        state.append({})
        state.append({"x": b"3", "y": b"{}"})
        assert state.journal_length > 0
        saved = {"a": b"2", "ä \ud800": b"\n\0" * 7, "empty": b""}, [{}, {"x": b"3", "y": b"{}"}]
        found = state.recover()
        assert found == Recovered(*saved)
    assert state_of(place) == saved


def test_one_goes_on_where_the_journal_ended(place: Path) -> None:
    with new(place) as state:
        state.save({"a": b"1"})
        state.append({"n": b"1"})
    for number in (b"2", b"3"):
        with new(place) as state:
            state.append({"n": number})
    assert state_of(place) == ({"a": b"1"}, [{"n": b"1"}, {"n": b"2"}, {"n": b"3"}])


def test_two_snapshots_are_kept_with_their_journals(place: Path) -> None:
    with new(place) as state:
        for number in range(1, 6):
            state.save({"a": b"%d" % number})
            state.append({})
            assert files(place) == [
                f"{kind}-{each:08d}"
                for kind in ("journal", "snapshot")
                for each in range(max(1, number - 1), number + 1)
            ]


def test_a_large_part_that_stays_the_same_is_written_three_times_and_never_shared(
    place: Path,
) -> None:
    with new(place) as state:
        for number in range(1, 9):
            state.save({"replica": REPLICA, "position": b"%d" % number})
            parts = [name for name in files(place) if name.startswith("part")]
            assert parts == ["part-00000002-0", "part-00000003-0"][: max(0, number - 1)]
            for kept in files(place)[-1:]:
                assert (REPLICA in (place / kept).read_bytes()) == (number == 1)
    with new(place) as state:
        for number in range(9, 13):
            state.save({"replica": bytes(REPLICA), "position": b"%d" % number})
        assert len([name for name in files(place) if name.startswith("part")]) == 2
        for number in range(13, 15):
            state.save({"replica": REPLICA[::-1], "position": b"%d" % number})
        assert [name for name in files(place) if name.startswith("part")] == ["part-00000014-0"]
        state.save({"position": b"15"})
        state.save({"position": b"16"})
        assert files(place) == ["snapshot-00000015", "snapshot-00000016"]
    assert state_of(place) == ({"position": b"16"}, [])


def test_parts_with_the_same_content_do_not_share_a_file(place: Path) -> None:
    with new(place) as state:
        for number in range(4):
            state.save({"one": REPLICA, "two": REPLICA, "number": b"%d" % number})
    assert state_of(place) == ({"one": REPLICA, "two": REPLICA, "number": b"3"}, [])


def test_unfinished_files_are_removed(place: Path) -> None:
    with new(place) as state:
        state.save({"a": REPLICA})
        state.save({"a": REPLICA})
    before = files(place)
    for name in ("unfinished-snapshot-00000003", "unfinished-manifest.json", "part-00000003-0"):
        (place / name).write_bytes(b"torn")
    assert state_of(place) == ({"a": REPLICA}, [])
    assert files(place) == before


def test_others_have_folders_of_their_own(place: Path) -> None:
    with new(place) as state:
        checkpoint = state.folder("spark")
        (checkpoint / "offsets").write_text("1")
        assert state.folder("spark") == checkpoint == place / "spark"
        for name in ("", "..", "a/b", "snapshot-00000001", "A"):
            with pytest.raises(ValueError, match="cannot be a folder"):
                state.folder(name)
        state.save({})
    assert (checkpoint / "offsets").read_text() == "1"


def test_what_makes_no_sense_is_refused(place: Path) -> None:
    with new(place) as state:
        with pytest.raises(ValueError, match="no snapshot"):
            state.append({})
        state.save({})
    state.close()
    with pytest.raises(ValueError, match="closed"):
        state.save({})
    with StateDirectory.open(place, {}) as state:
        for operation in (state.save, state.append):
            with pytest.raises(ValueError, match="recover"):
                operation({})


@pytest.mark.parametrize(
    "error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ENOENT, 999]
)
def test_what_the_system_refuses_is_said_with_a_remedy(place: Path, error: int) -> None:
    """Simulated: the steps fail as if the system had said so."""
    failing = Failing([], error)
    with StateDirectory.open(place, {}, folder=partial(SteppedFolder, step=failing)) as state:
        state.recover()
        state.save({"a": b"1"})
        for operation in (state.save, state.append):
            failing.at = {failing.count + 2}
            with pytest.raises(EnvironmentProblem, match=rf"^{place}: cannot .*: .*\n  hint: \w+"):
                operation({"a": b"2"})
        state.append({"a": b"3"})
    assert state_of(place) == ({"a": b"1"}, [{"a": b"3"}])


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_appended_while_it_is_open_which_snapshot_is_the_newest(
    place: Path, again: bool
) -> None:
    """Simulated: the snapshot has its name, and then the disk fails until it is looked at again."""
    failing = Failing([])
    with StateDirectory.open(place, {}, folder=partial(SteppedFolder, step=failing)) as state:
        state.recover()
        state.save({"a": b"1"})
        failing.at = set(range(failing.count + 6, failing.count + 9))
        with pytest.raises(EnvironmentProblem):
            state.save({"a": b"2"})
        assert "snapshot-00000002" in files(place)
        for operation in (partial(state.append, {"a": b"3"}), state.recover):
            failing.at = {failing.count + 1}
            with pytest.raises(EnvironmentProblem):
                operation()
        if again:
            assert state.recover() == Recovered({"a": b"1"}, [])
        state.append({"a": b"4"})
    assert state_of(place) == ({"a": b"1"}, [{"a": b"4"}])


def test_a_snapshot_is_saved_though_the_old_cannot_be_removed(place: Path) -> None:
    """Simulated: every removal fails."""
    refused = []

    def step(name: str) -> None:
        if name == "remove":
            refused.append(name)
            raise PermissionError(errno.EPERM, "Operation not permitted")

    with StateDirectory.open(place, {}, folder=partial(SteppedFolder, step=step)) as state:
        state.recover()
        for number in range(5):
            state.save({"a": b"%d" % number})
    assert refused
    with new(place) as state:
        assert state.recover() == Recovered({"a": b"4"}, [])
        state.save({"a": b"5"})
    assert files(place) == ["snapshot-00000005", "snapshot-00000006"]


def test_a_snapshot_goes_before_its_journal(place: Path) -> None:
    """Simulated: the second removal fails."""
    with new(place) as state:
        state.save({"a": b"1"})
        state.append({})
        state.save({"a": b"2"})
    removals = 0

    def step(name: str) -> None:
        nonlocal removals
        removals += name == "remove"
        if removals > 1:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    with StateDirectory.open(place, {}, folder=partial(SteppedFolder, step=step)) as state:
        state.recover()
        state.save({"a": b"3"})
    assert files(place) == ["journal-00000001", "snapshot-00000002", "snapshot-00000003"]


def test_an_interrupt_at_any_step_leaves_the_state_before(place: Path) -> None:
    """As when a signal's handler raises: what is interrupted has not happened."""
    at, interrupted = 0, True

    def step(_name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    left = -1
    while interrupted:
        at += 1
        interrupted = False
        with StateDirectory.open(
            place / str(at), {}, folder=partial(SteppedFolder, step=step), large=100
        ) as state:
            state.recover()
            state.save({"replica": REPLICA})
            left = at
            try:
                state.save({"replica": REPLICA})
            except KeyboardInterrupt:
                interrupted = True
            left = -1
            state.append({"a": b"1"})
            found = state.recover()
            assert found == Recovered({"replica": REPLICA}, [{"a": b"1"}])
            for _ in range(3):
                state.save({"replica": REPLICA})
        assert state_of(place / str(at)) == ({"replica": REPLICA}, [])
    assert at > 5


def test_a_directory_that_has_vanished(place: Path) -> None:
    with new(place) as state:
        state.save({"a": b"1"})
        state.append({})
        place.rename(place.with_name("moved"))
        state.append({"a": b"2"})
        moved = place.with_name("moved")
        for each in moved.iterdir():
            each.unlink()
        moved.rmdir()
        for operation in (state.save, state.append):
            with pytest.raises(
                EnvironmentProblem, match="was removed while it was in use\n  hint: "
            ):
                operation({})


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(
            EnvironmentProblem, match="hint: a file stands where a directory is needed"
        ):
            StateDirectory.open(path, {})


def test_folders_that_are_made_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))
    )
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc here")
    make_folder(tmp_path / "a" / "b")
    assert sorted(synced) == [str(tmp_path), str(tmp_path / "a")]
