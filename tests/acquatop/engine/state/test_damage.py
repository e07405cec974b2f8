"""Bytes that are not what was written are found, said, and gone around if older ones are whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from acquatop.engine.state.directory import Recovered, StateDirectory
from acquatop.errors import EnvironmentProblem
from tests.support.disks import quick_folder, state_of

REPLICA = bytes(range(120))
OLDER = {"replica": REPLICA, "position": b"3"}
NEWER = {"replica": REPLICA, "position": b"5"}
USED = "snapshot-00000003 and its journal are used"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with two snapshots, their large parts in files, and journals of three entries."""
    with quick_folder() as folder:
        with StateDirectory.open(folder / "state", {}, large=100) as state:
            for _ in range(2):
                state.save({"replica": REPLICA})
            state.save(OLDER)
            for number in (b"1", b"2", b"3"):
                state.append({"after 3": number})
            state.save(NEWER)
            for number in (b"1", b"2", b"3"):
                state.append({"after 4": number})
        yield folder / "state"


def recover(place: Path) -> Recovered | None:
    with StateDirectory.open(place, {}) as state:
        return state.recover()


def journal(name: str, count: int = 3) -> list[dict[str, bytes]]:
    return [{name: b"%d" % number} for number in range(1, count + 1)]


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :]


def test_the_two_snapshots_share_no_file(place: Path) -> None:
    parts = sorted(each.name for each in place.glob("part-*"))
    assert parts == ["part-00000003-0", "part-00000002-0"][::-1]
    assert recover(place) == Recovered(NEWER, journal("after 4"))


@pytest.mark.parametrize("name", ["snapshot-00000004", "part-00000002-0"])
def test_a_byte_that_has_changed_anywhere_in_the_newest_snapshot(place: Path, name: str) -> None:
    content = (place / name).read_bytes()
    for at in range(len(content)):
        (place / name).write_bytes(flipped(content, at))
        found = recover(place)
        assert found is not None
        assert (found.parts, found.journal) == (OLDER, journal("after 3")), at
        assert found.problem is not None
        assert found.problem.startswith(f"{place}: {name} is damaged (")
        assert found.problem.endswith(f"; {USED}")


@pytest.mark.parametrize("name", ["snapshot-00000004", "part-00000002-0"])
def test_a_newest_snapshot_that_was_cut_or_continued(place: Path, name: str) -> None:
    content = (place / name).read_bytes()
    for wrong in [*(content[:length] for length in range(len(content))), content + b"\0"]:
        (place / name).write_bytes(wrong)
        found = recover(place)
        assert found is not None
        assert found.parts == OLDER
        assert found.problem is not None


@pytest.mark.parametrize("name", ["snapshot-00000004", "part-00000002-0"])
def test_a_file_that_is_missing(place: Path, name: str) -> None:
    (place / name).unlink()
    assert recover(place) == Recovered(
        OLDER, journal("after 3"), f"{place}: {name} is missing; {USED}"
    )


def test_one_snapshot_in_the_place_of_another(place: Path) -> None:
    shutil.copy(place / "snapshot-00000003", place / "snapshot-00000004")
    found = recover(place)
    assert found is not None
    assert found.problem is not None
    assert "snapshot-00000004 is damaged (it was written as snapshot-00000003)" in found.problem


def test_damage_to_the_older_snapshot_is_no_problem(place: Path) -> None:
    for name in ("snapshot-00000003", "part-00000003-0", "journal-00000003"):
        (place / name).write_bytes(b"")
        assert recover(place) == Recovered(NEWER, journal("after 4"))


def test_what_is_damaged_is_set_aside_and_its_number_not_used_again(place: Path) -> None:
    whole = (place / "snapshot-00000004").read_bytes()
    (place / "snapshot-00000004").write_bytes(b"")
    with StateDirectory.open(place, {}, large=100) as state:
        for _ in range(2):
            found = state.recover()
            assert found is not None
            assert found.problem == (
                f"{place}: snapshot-00000004 is damaged (it does not begin as a snapshot "
                f"does); {USED}"
            )
        state.append({"after 3": b"4"})
        assert (place / "damaged-snapshot-00000004").exists()
        assert (place / "damaged-journal-00000004").exists()
    (place / "damaged-snapshot-00000004").write_bytes(whole)
    assert state_of(place) == (OLDER, journal("after 3", 4))
    with StateDirectory.open(place, {}, large=100) as state:
        state.recover()
        for number in range(2):
            assert (place / "damaged-snapshot-00000004").exists()
            state.save({"replica": REPLICA, "number": b"%d" % number})
        names = {
            each.name for each in place.iterdir() if each.name.startswith(("damaged", "snapshot"))
        }
        assert names == {"snapshot-00000005", "snapshot-00000006"}


def test_a_snapshot_saved_after_a_damaged_one(place: Path) -> None:
    (place / "part-00000002-0").write_bytes(b"")
    with StateDirectory.open(place, {}, large=100) as state:
        state.recover()
        for number in range(3):
            state.save(NEWER)
            assert (place / "damaged-snapshot-00000004").exists() == (number == 0)
    assert state_of(place) == (NEWER, [])


def test_no_snapshot_is_whole(place: Path) -> None:
    (place / "snapshot-00000004").unlink()
    (place / "part-00000003-0").unlink()
    before = sorted(each.name for each in place.iterdir())
    with pytest.raises(EnvironmentProblem) as refused:
        recover(place)
    assert str(refused.value) == (
        f"{place}: no snapshot is whole: snapshot-00000004 is missing; part-00000003-0 is missing\n"
        "  hint: put back these files from a copy, or delete the directory to begin anew"
    )
    assert sorted(each.name for each in place.iterdir()) == before


def test_a_journal_that_was_cut_anywhere_ends_with_its_last_whole_entry(place: Path) -> None:
    file = place / "journal-00000004"
    content = file.read_bytes()
    lengths = set()
    for length in range(len(content) + 1):
        file.write_bytes(content[:length])
        with StateDirectory.open(place, {}) as state:
            found = state.recover()
            assert found is not None
            assert found.problem is None
            count = len(found.journal)
            assert found == Recovered(NEWER, journal("after 4", count))
            lengths.add(count)
            state.append({"after 4": b"%d" % (count + 1)})
        assert state_of(place) == (NEWER, journal("after 4", count + 1))
    assert lengths == {0, 1, 2, 3}


NOT_WRITTEN = (
    "journal-00000004 ends at byte %d with what was never written so (damage, or a loss of "
    "power); the 2 entries before it are used"
)


def test_a_byte_that_has_changed_anywhere_in_a_journal(place: Path) -> None:
    """In the last entry it could be one that a loss of power left; what precedes it is used."""
    file = place / "journal-00000004"
    content = file.read_bytes()
    last = content.rindex(b"\xf0entry\r\n")
    for at in range(len(content)):
        file.write_bytes(flipped(content, at))
        if at >= last:
            assert recover(place) == Recovered(
                NEWER, journal("after 4", 2), f"{place}: {NOT_WRITTEN % last}"
            )
            continue
        with pytest.raises(
            EnvironmentProblem,
            match=r"journal-00000004 is damaged at byte \d+: [01] entries before",
        ) as refused:
            recover(place)
        assert (
            f"\n  hint: put back {file} from a copy, or remove it to go on from snapshot-00000004"
            in str(refused.value)
        )
    file.unlink()
    assert state_of(place) == (NEWER, [])


def test_an_entry_that_was_taken_out_or_repeated(place: Path) -> None:
    file = place / "journal-00000004"
    head, *entries = file.read_bytes().split(b"\xf0entry\r\n")
    first, second, third = (b"\xf0entry\r\n" + each for each in entries)
    file.write_bytes(head + first + third)
    with pytest.raises(EnvironmentProblem, match="is damaged at byte"):
        recover(place)
    file.write_bytes(head + first + second + first)
    found = recover(place)
    assert found is not None
    assert (found.parts, found.journal) == (NEWER, journal("after 4", 2))
    assert "with what was never written so" in str(found.problem)


def test_zeros_at_the_end_of_a_journal(place: Path) -> None:
    file = place / "journal-00000004"
    file.write_bytes(file.read_bytes() + bytes(1000))
    assert state_of(place) == (NEWER, journal("after 4"))


def test_the_journal_of_another_snapshot_is_not_used(place: Path) -> None:
    shutil.copy(place / "journal-00000003", place / "journal-00000004")
    found = recover(place)
    assert found is not None
    assert (found.parts, found.journal) == (NEWER, [])
    assert "the 0 entries before it are used" in str(found.problem)


def test_a_bit_that_has_changed_anywhere_in_the_manifest_is_no_change_of_a_text(
    place: Path,
) -> None:
    texts = {"query top": "SELECT ?s { ?s ?p 1 }", "stream s": "lines"}
    with StateDirectory.open(place, texts):
        pass
    file = place / "manifest.json"
    content = file.read_bytes()
    random = Random(7)
    said = []
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << random.randrange(8)
        file.write_bytes(changed)
        try:
            StateDirectory.open(place, texts).close()
        except EnvironmentProblem as problem:
            said.append(str(problem))
        else:
            # Only how it is laid out has changed, or the name of the checksum itself.
            file.write_bytes(content)
    remedy = "\n  hint: put back a copy of it, or delete the directory to begin anew"
    assert all(each.startswith(f"{file} is damaged: ") for each in said)
    assert all(each.endswith(remedy) for each in said)
    assert len(said) > len(content) // 2


def test_a_manifest_of_an_earlier_version_gets_a_checksum(place: Path) -> None:
    file = place / "manifest.json"
    with StateDirectory.open(place, {"a": "1"}):
        content = file.read_bytes()
    parsed = json.loads(content)
    del parsed["checksum"]
    file.write_text(json.dumps(parsed))
    StateDirectory.open(place, {"a": "1"}).close()
    assert file.read_bytes() == content
