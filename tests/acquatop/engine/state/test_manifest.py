"""A directory goes on only with the texts that it was written for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acquatop.engine.state.directory import StateDirectory
from acquatop.engine.state.names import LOCK, MANIFEST
from acquatop.errors import EnvironmentProblem, UserError

QUERY = "SELECT ?user\nWHERE { ?user :mentions ?n }\nORDER BY ?n\nLIMIT 3"
TEXTS = {"query top": QUERY, "stream http://s": "lines"}


def opened(path: Path, **texts: str) -> StateDirectory:
    state = StateDirectory.open(path, texts)
    state.recover()
    return state


def test_the_same_texts_go_on(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, TEXTS).close()
    before = (tmp_path / MANIFEST).read_bytes()
    with StateDirectory.open(tmp_path, dict(reversed(TEXTS.items()))) as state:
        assert state.dropped == ()
    assert (tmp_path / MANIFEST).read_bytes() == before
    assert json.loads(before)["format"] == 1


def test_a_changed_text_is_refused_and_shown(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, TEXTS).close()
    with pytest.raises(UserError) as refused:
        StateDirectory.open(tmp_path, {**TEXTS, "query top": QUERY.replace("3", "5")})
    assert str(refused.value) == (
        f"query top has changed since the state in {tmp_path} was written:\n"
        "    --- in the directory\n"
        "    +++ now\n"
        "    @@ -3,2 +3,2 @@\n"
        "     ORDER BY ?n\n"
        "    -LIMIT 3\n"
        "    +LIMIT 5\n"
        f"  hint: take the old text again, use another directory, or delete "
        f"{tmp_path} to begin anew"
    )
    StateDirectory.open(tmp_path, TEXTS).close()


def test_what_is_shown_is_bounded(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, {"a": "x" * 10_000 + "\n1" * 5000, "b": "1"}).close()
    with pytest.raises(UserError, match=r"so have: b\n  hint") as refused:
        StateDirectory.open(tmp_path, {"a": "y" * 10_000 + "\n2" * 5000, "b": "2"})
    assert "lines more" in str(refused.value)
    assert len(str(refused.value)) < 3000


def test_texts_that_differ_in_nothing_to_be_seen(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, {"a": "1\n2"}).close()
    with pytest.raises(UserError, match="only the ends of its lines differ"):
        StateDirectory.open(tmp_path, {"a": "1\r\n2"})


def test_any_text_is_kept_as_it_is(tmp_path: Path) -> None:
    texts = {"ä\ud800": "\0\r\n é \udfff", "": ""}
    for _ in range(2):
        StateDirectory.open(tmp_path, texts).close()


def test_names_come_and_go(tmp_path: Path) -> None:
    opened(tmp_path, a="1", b="1").close()
    with opened(tmp_path, a="1", c="1") as state:
        assert state.dropped == ("b",)
    with opened(tmp_path, a="1", b="1", c="1") as state:
        assert state.dropped == ()


def test_a_name_that_has_gone_is_remembered_as_long_as_a_snapshot_may_know_it(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, a="1", b="1") as state:
        state.save({})
        state.declare({"a": "1"})
        assert state.dropped == ("b",)
        state.save({})
        with pytest.raises(UserError, match="b has changed"):
            state.declare({"a": "1", "b": "2"})
    with opened(tmp_path, a="1") as state:
        assert state.dropped == ()
        state.save({})
    with pytest.raises(UserError, match="a has changed"):
        opened(tmp_path, a="2", b="2")
    opened(tmp_path, a="1", b="2").close()
    with pytest.raises(UserError, match="b has changed"):
        opened(tmp_path, a="1", b="1")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    StateDirectory.open(tmp_path, {}).close()
    (tmp_path / MANIFEST).write_text('{"format": 2, "anything": []}')
    with pytest.raises(
        EnvironmentProblem,
        match=r"newer version of AcquaTop \(format 2.*\n  hint: use that version",
    ):
        StateDirectory.open(tmp_path, {})


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"format": 1}', '{"format": 1, "entries": {"a": 1}}', '{"format": []}'],
)
def test_a_damaged_manifest_is_said_to_be_so(tmp_path: Path, content: str) -> None:
    StateDirectory.open(tmp_path, {}).close()
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(EnvironmentProblem, match=rf"{MANIFEST} is damaged: .*\n  hint: "):
        StateDirectory.open(tmp_path, {})


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).touch()
    with pytest.raises(
        UserError,
        match=r"it holds other files \(a.txt, b.txt, c.txt, …\) and no manifest.json\n  hint",
    ):
        StateDirectory.open(tmp_path, {})
    assert len(list(tmp_path.iterdir())) == 4


def test_a_volume_s_root_and_a_start_that_was_killed_are_new(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / LOCK).touch()
    (tmp_path / "unfinished-manifest.json").write_text('{"form')
    with StateDirectory.open(tmp_path, TEXTS) as state:
        assert state.recover() is None
    assert (tmp_path / "lost+found").exists()


def test_a_directory_that_has_lost_its_manifest_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        state.save({})
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"put manifest.json back if it was removed"):
        StateDirectory.open(tmp_path, {})
