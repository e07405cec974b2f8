"""Observers and display of a run, by its options."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import sys
from pathlib import Path

import pytest

from acquatop.app.cli import build_parser
from acquatop.app.cli.queries import read_queries, read_weighted
from acquatop.app.cli.run import opened_sinks
from acquatop.app.cli.run_observers import LEVELS, Watching
from acquatop.app.watch import log
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from tests.support.empty_answer import NOTHING
from tests.support.worlds import query_text


class Terminal(io.StringIO):
    """A standard output that people look at."""

    def isatty(self) -> bool:
        return True


def options(*more: str) -> argparse.Namespace:
    return build_parser().parse_args(["run", "q.rspql", "--catalog", "c.toml", *more])


def shown(*more: str, several: bool = False) -> None:
    with Watching(options(*more), several=several) as watching, watching.answers() as show:
        show(NOTHING)


def test_levels_are_those_of_the_log() -> None:
    assert LEVELS == log.LEVELS


def test_answers_are_tables_or_lines_and_go_elsewhere_only_if_they_are_not_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for more, expected in (
        ([], "window 0  ("),
        (["--until-end"], "window 0  ("),
        (["--json"], '{"query": "q"'),
        (["--to", "out/"], ""),
        (["--to", "out/", "--until-end"], ""),
        (["--to", "out/", "--json"], '{"query": "q"'),
        (["--to", "out/", "--plain"], "window 0  ("),
    ):
        shown(*more)
        out, err = capsys.readouterr()
        assert out.startswith(expected), more
        assert bool(out) == bool(expected)
        assert err == ""
    shown(several=True)
    assert capsys.readouterr().out.startswith("q  window 0")


def test_a_terminal_shows_a_live_table_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for more, live in (
        ([], True),
        (["--until-end"], True),
        (["--to", "out/"], True),
        (["--to", "stdout"], False),
        (["--plain"], False),
        (["--json"], False),
    ):
        monkeypatch.setattr(sys, "stdout", Terminal())
        with Watching(options(*more), several=False) as watching:
            assert (type(watching.answers()).__name__ == "LiveView") is live, more
    monkeypatch.setenv("TERM", "dumb")
    with Watching(options(), several=False) as watching:
        assert isinstance(watching.answers(), contextlib.nullcontext)


def test_the_log_tells_of_the_beginning_the_end_and_what_ended_it(tmp_path: Path) -> None:
    file = tmp_path / "log"

    def watched() -> None:
        with Watching(options("--log", str(file), "--metrics", "0"), several=False) as watching:
            watching.started(queries=["q"], runtime="local")
            logging.getLogger("x").warning("something odd")
            watching.stopping()
            raise UserError("so it is")

    with pytest.raises(UserError):
        watched()
    logging.getLogger("x").warning("not heard any more")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "metrics",
        "started",
        "message",
        "stopping",
        "stopped",
    ]
    assert lines[0]["url"].startswith("http://127.0.0.1:")
    assert lines[-1].items() >= {"level": "error", "message": "so it is"}.items()


def test_on_the_standard_error_a_log_is_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with Watching(
        options("--log", "-", "--metrics", "127.0.0.1:0", "--log-level", "debug"), several=False
    ):
        logging.getLogger("x").warning("something odd")
    out, err = capsys.readouterr()
    assert out == ""
    assert [json.loads(line)["event"] for line in err.splitlines()] == [
        "metrics",
        "message",
        "stopped",
    ]


def test_where_metrics_are_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with Watching(options("--metrics", "0"), several=False):
        pass
    assert capsys.readouterr().err.startswith("acquatop: metrics at http://127.0.0.1:")
    with pytest.raises(SystemExit):
        options("--metrics", "port")
    assert (
        "'port' is not [HOST:]PORT: a port is a number from 0 to 65535" in capsys.readouterr().err
    )


def test_a_query_is_named_by_what_it_says_or_else_by_its_file(tmp_path: Path) -> None:
    named, plain, other = (tmp_path / name for name in ("named.rspql", "plain.rspql", "plain.txt"))
    named.write_text(
        "REGISTER RSTREAM :out AS "
        + query_text().strip().removeprefix("PREFIX : <http://example.org/>")
    )
    for file in (plain, other):
        file.write_text(query_text())
    catalog = Catalog({"": "http://example.org/"}, {}, {})
    queries = read_queries([str(named), str(plain)], catalog)
    assert [query.name for query in queries] == ["http://example.org/out", "plain"]
    with pytest.raises(
        UserError, match=r'plain\.rspql and .*plain\.txt are both named "plain"\n  hint: begin one'
    ):
        read_queries([str(plain), str(other)], catalog)
    with pytest.raises(UserError, match="are both named"):
        read_queries([str(plain), str(plain)], catalog)


def test_all_queries_write_to_the_same_sinks_which_are_closed_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    closed: list[str] = []

    class Sink:
        def __init__(self, target: str) -> None:
            if target == "bad":
                raise UserError("there is no kind of sink")
            opened.append(target)
            self.close = lambda: closed.append(target)

    monkeypatch.setattr("acquatop.answer.sinks.open_sink", Sink)
    with opened_sinks(["a", "b"]) as sinks:
        assert len(sinks) == 2
        assert closed == []
    assert (opened, closed) == (["a", "b"], ["b", "a"])
    with pytest.raises(UserError), opened_sinks(["c", "bad"]):
        pass
    assert closed[2:] == ["c"]
    with opened_sinks(None) as none:
        assert none == []


def test_weights_are_given_by_the_queries_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.rspql").write_text(query_text())
    files = [str(tmp_path / f"{name}.rspql") for name in ("one", "two")]
    catalog = Catalog({"": "http://example.org/"}, {}, {})
    weighted = read_weighted(files, ["two=2.5"], catalog)
    assert [query.weight for query in weighted] == [1.0, 2.5]
    for given in ("two", "two=x", "two=0", "three=1"):
        with pytest.raises(UserError):
            read_weighted(files, [given], catalog)
