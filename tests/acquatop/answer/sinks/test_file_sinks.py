"""Battery for all sinks that keep answers in files: whatever happens, the bytes end the same."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acquatop.answer.answer import Answer
from acquatop.answer.sinks import NdjsonSink, Sink
from acquatop.answer.sinks.growing import lines_backwards
from acquatop.answer.sinks.naming import instant_name, safe_name
from acquatop.errors import EnvironmentProblem, UserError
from tests.support.sink_crash_child import KINDS
from tests.support.sink_samples import FILE_SINKS, answer, content_of, odd_terms, row

ALL = pytest.mark.parametrize("kind", FILE_SINKS)
EACH = pytest.mark.parametrize("kind", KINDS)
SEVERAL = [kind for kind in FILE_SINKS if kind != "one file"]
ROOT = Path(__file__).parents[4]
WINDOWS = 12


def answers_for(kind: str) -> list[Answer]:
    return [answer(window, form=FILE_SINKS[kind][0]) for window in range(WINDOWS)]


def opened(kind: str, folder: Path) -> Sink:
    folder.mkdir(exist_ok=True)
    return FILE_SINKS[kind][1](folder)


def uninterrupted(kind: str, folder: Path) -> dict[str, bytes]:
    sink = opened(kind, folder)
    sink.write(answers_for(kind))
    sink.close()
    return content_of(folder)


@ALL
@pytest.mark.parametrize("seed", range(2))
def test_cuts_replays_and_new_processes_change_no_byte(
    kind: str, seed: int, tmp_path: Path
) -> None:
    expected, choice = uninterrupted(kind, tmp_path / "whole"), random.Random(seed)
    answers, done = answers_for(kind), 0
    sink = opened(kind, tmp_path / "cut")
    while done < len(answers):
        start = choice.randint(0, done) if choice.random() < 0.4 else done
        done = choice.randint(start, len(answers))
        if choice.random() < 0.4:
            sink = opened(kind, tmp_path / "cut")
        sink.write(answers[start:done])
    assert content_of(tmp_path / "cut") == expected


def test_killed_at_any_call_a_writer_recovers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.sink_crash_child", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert int(done.stdout.split()[0]) > 60


@EACH
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
def test_a_place_that_cannot_be_written_is_named_and_written_later(
    kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = uninterrupted(kind, tmp_path / "whole")
    answers = answers_for(kind)
    message = (
        rf"cannot write answers to {tmp_path}/\w+/.+: .+\n"
        r"  hint: .+ another place; .+ at the next start"
    )
    for name in ("open", "write", "fsync", "ftruncate" if growing(kind) else "replace"):
        folder = tmp_path / name
        sink = opened(kind, folder)
        sink.write([*answers[:4], replace(answers[4], reason="another")])
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing(code, getattr(os, name), name))
            with pytest.raises(EnvironmentProblem, match=message):
                sink.write(answers[4:8])
        sink.write(answers[4:])
        assert content_of(folder) == expected
        assert not list(folder.rglob(".*"))


def growing(kind: str) -> bool:
    return kind in ("ndjson", "canonical", "one file")


def failing(code: int, call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def instead(*arguments: Any, **options: Any) -> Any:
        if name == "write":
            call(arguments[0], arguments[1][:7])
        raise OSError(code, os.strerror(code))

    return instead


@EACH
def test_a_folder_that_is_a_file_or_cannot_be_written_is_refused_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        EnvironmentProblem, match=r"file.*(exists|Not a dir)[^~]*hint: .*another place"
    ):
        FILE_SINKS[kind][1](tmp_path / "file")
    with pytest.raises(EnvironmentProblem, match=r"Not a directory"):
        FILE_SINKS[kind][1](tmp_path / "file" / "below")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(EnvironmentProblem, match=r"Permission denied\n  hint: make it writable"):
        FILE_SINKS[kind][1](tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("kind", SEVERAL)
def test_queries_do_not_meet(kind: str, tmp_path: Path) -> None:
    names = [
        "out",
        "Out",
        "urn:out",
        "../../out",
        "/etc/out",
        "",
        ".",
        "..",
        "ou\0t",
        "é",
        "\ud800",
        "x" * 300,
    ]
    names += [safe_name("urn:out"), "urn:out/"]
    form, sink = FILE_SINKS[kind][0], opened(kind, tmp_path / "sink")
    for window in (1, 2):
        sink.write([answer(window, name, form=form) for name in names])
    assert len(content_of(tmp_path / "sink")) == len(names) * (1 if growing(kind) else 2)
    assert [each.name for each in tmp_path.iterdir()] == ["sink"]


def test_names_are_told_apart_where_case_is_not() -> None:
    assert len({safe_name(name).casefold() for name in ("out", "Out", "OUT", "oUt")}) == 4
    times = [-62_135_596_800_000, -60_000, 0, 999, 1000, 10**12, 2 * 10**12]
    times += [253_402_300_799_998, 253_402_300_799_999, 253_402_300_800_000, 10**15]
    assert sorted(map(instant_name, times)) == list(map(instant_name, times))


@pytest.mark.parametrize(
    ("tail", "before"),
    [
        (b'{"query": "http://exa', 0),
        (b'{"query": "http://exa', 3),
        (b"\0" * 9000, 0),
        (b"\0" * 9000, 3),
        (b"\0" * 50 + b'ed": "1"}\n{"query"', 0),
        (b"\0" * 50 + b'ed": "1"}\n{"query"', 3),
        (b'{"window": {"closes": "soon"}}\n[]\n\n', 3),
    ],
)
def test_what_a_loss_of_power_leaves_at_the_end_is_cut_off(
    tail: bytes, before: int, tmp_path: Path
) -> None:
    answers = [answer(window) for window in range(6)]
    path = tmp_path / "a.ndjson"
    NdjsonSink(path).write(answers)
    expected = path.read_bytes()
    path.write_bytes(b"".join(expected.splitlines(keepends=True)[:before]) + tail)
    NdjsonSink(path).write(answers[before:])
    assert path.read_bytes() == expected


def test_going_on_reads_only_the_end_and_leaves_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    answers = [answer(window) for window in range(500)]
    NdjsonSink(path).write(answers)
    reader = path.open("rb")
    whole = reader.read()
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"\0" * 50)
    NdjsonSink(path).write(answers[-2:])
    NdjsonSink(path).write([answer(500)])
    assert path.read_bytes()[250:].startswith(whole[250:])
    assert reader.read().count(b"\n") == 1


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_lines_are_read_backwards_whatever_the_block(block: int, tmp_path: Path) -> None:
    for text in (
        b"",
        b"\n",
        b"a",
        b"a\n",
        b"a\nbb",
        b"\n\na\n\nccccccccccccccc\nb\r\n",
        b"a" * 40 + b"\nb",
    ):
        (tmp_path / "file").write_bytes(text)
        with (tmp_path / "file").open("rb") as file:
            found = list(lines_backwards(file.fileno(), len(text), block))
        assert b"".join(line for _, line in reversed(found)) == text
        assert all(
            text[start:].startswith(line) and line.count(b"\n") <= 1 for start, line in found
        )


def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    for text in ('{"query": "http://example.org/other", "form"', "1,2,3\n"):
        path.write_text(text)
        with pytest.raises(
            UserError, match=r"something else[^~]*hint: name another file, or a folder"
        ):
            NdjsonSink(path).write([answer()])
        assert path.read_text() == text
    path.write_text('{"q')
    NdjsonSink(path).write([answer()])
    with pytest.raises(UserError, match=r"one query: http://example\.org/out or urn:b"):
        NdjsonSink(path).write([answer(1), answer(1, "urn:b")])
    os.mkfifo(tmp_path / "pipe.ndjson")
    with pytest.raises(UserError, match="is not a regular file"):
        NdjsonSink(tmp_path / "pipe.ndjson").write([answer()])


def test_canonical_lines_depend_on_the_data_alone(tmp_path: Path) -> None:
    for name, each in (
        ("a", answer(2)),
        ("b", replace(answer(2), latency_seconds=9.0, emitted_ms=0)),
    ):
        NdjsonSink(tmp_path / name, canonical=True).write([each])
    assert content_of(tmp_path / "a") == content_of(tmp_path / "b")


@pytest.mark.parametrize(
    "kind", [kind for kind, (form, _) in FILE_SINKS.items() if form == "select"]
)
def test_odd_terms_and_scores_do_not_stop_a_query(kind: str, tmp_path: Path) -> None:
    rows = tuple(
        row(1, score, user=term)
        for term in odd_terms()
        for score in (float("inf"), float("nan"), None)
    )
    opened(kind, tmp_path).write([answer(rows=rows)])
    assert content_of(tmp_path)


@ALL
def test_windows_that_count_elements_may_close_at_one_time(kind: str, tmp_path: Path) -> None:
    several = [
        replace(each, closes_ms=1000 * (each.window // 3), counts_elements=True)
        for each in answers_for(kind)
    ]
    whole = opened(kind, tmp_path / "whole")
    whole.write(several)
    cut = opened(kind, tmp_path / "cut")
    for start, stop in ((0, 4), (2, 5), (5, 12)):
        cut.write(several[start:stop])
    expected = content_of(tmp_path / "whole")
    assert content_of(tmp_path / "cut") == expected
    pieces = (
        sum(content.count(b"\n") for content in expected.values())
        if len(expected) == 1
        else len(expected)
    )
    assert pieces == WINDOWS
