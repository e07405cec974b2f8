"""A state directory against lists in memory:
whatever is saved, appended, damaged and opened again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.engine.state.directory import StateDirectory
from acquatop.engine.state.names import journal_name, snapshot_name
from acquatop.errors import EnvironmentProblem
from tests.support.disks import State, quick_folder, recovered_state

contents = st.sampled_from(
    [b"", b"small", b"\xf0entry\r\n" * 3, b"large" * 20, b"large" * 20 + b"!", b"l" * 150]
)
parts = st.dictionaries(st.sampled_from(["replica", "list", "n"]), contents, max_size=3)
steps = st.one_of(
    st.tuples(st.just("save"), parts),
    st.tuples(st.just("append"), parts),
    st.tuples(
        st.sampled_from(["open again", "tear", "spoil", "spoil middle", "lose"]),
        st.integers(0, 10**6),
    ),
)


class Model:
    """Model of the expected state: snapshots with their journals by number, and the directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: dict[int, State] = {}
        self.spoiled: set[int] = set()
        self.next = 1
        self.state = self.opened()

    def opened(self) -> StateDirectory:
        state = StateDirectory.open(self.path, {}, large=100)
        state.recover()
        return state

    def newest(self) -> int:
        return max(self.kept.keys() - self.spoiled)

    def save(self, content: dict[str, bytes]) -> None:
        self.state.save(content)
        before = [self.newest()] if self.kept else []
        self.kept = {**{each: self.kept[each] for each in before}, self.next: (content, [])}
        self.spoiled.clear()
        self.next += 1

    def append(self, content: dict[str, bytes]) -> None:
        if self.kept:
            self.state.append(content)
            self.kept[self.newest()][1].append(content)
            for each in [each for each in self.kept if each > self.newest()]:
                del self.kept[each]
            self.spoiled &= self.kept.keys()

    def open_again(self, _at: int) -> None:
        self.state.close()
        self.state = self.opened()

    def tear(self, at: int) -> None:
        """Cut into the last entry of the journal, or leave half an entry behind it."""
        file = self.path / journal_name(self.newest()) if self.kept else self.path
        journal = self.kept[self.newest()][1] if self.kept else []
        if journal:
            content = file.read_bytes()
            start = content.rindex(b"\xf0entry\r\n" + self.newest().to_bytes(8, "big"))
            if at % 2:
                file.write_bytes(content + content[start : start + at % (len(content) - start)])
            else:
                file.write_bytes(content[: start + at % (len(content) - start)])
                journal.pop()
            self.open_again(0)

    def spoil(self, at: int) -> None:
        """Change a byte of the newest snapshot, if there is an older one to use."""
        if len(self.kept.keys() - self.spoiled) > 1:
            file = self.path / snapshot_name(self.newest())
            content = bytearray(file.read_bytes())
            content[at % len(content)] ^= 1 + at % 255
            file.write_bytes(content)
            self.spoiled.add(self.newest())
            self.open_again(0)

    def lose(self, at: int) -> None:
        """Remove the newest snapshot, if it leaves a trace and there is an older one to use."""
        if len(self.kept.keys() - self.spoiled) > 1 and self.kept[self.newest()][1]:
            (self.path / snapshot_name(self.newest())).unlink()
            self.spoiled.add(self.newest())
            self.open_again(0)

    def spoil_middle(self, at: int) -> None:
        """Change a byte of the journal before its last entry:
        it is refused until it is put right.
        """
        if self.kept and len(self.kept[self.newest()][1]) > 1:
            file = self.path / journal_name(self.newest())
            content = file.read_bytes()
            start = content.rindex(b"\xf0entry\r\n" + self.newest().to_bytes(8, "big"))
            wrong = bytearray(content)
            wrong[at % start] ^= 1 + at % 255
            file.write_bytes(wrong)
            with pytest.raises(EnvironmentProblem, match="is damaged at byte"):
                self.state.recover()
            file.write_bytes(content)
            self.open_again(0)

    def check(self) -> None:
        found = self.state.recover()
        if not self.kept:
            assert found is None
            return
        assert recovered_state(found) == self.kept[self.newest()]
        assert found is not None
        assert (found.problem is not None) == any(each > self.newest() for each in self.spoiled)


@settings(max_examples=120)
@given(st.lists(steps, max_size=25))
def test_it_holds_what_it_should(done: list[tuple[str, object]]) -> None:
    with quick_folder() as place:
        model = Model(place / "state")
        for name, argument in done:
            getattr(model, name.replace(" ", "_"))(argument)
            model.check()
        model.state.close()
        model.state = model.opened()
        model.check()
        model.state.close()
