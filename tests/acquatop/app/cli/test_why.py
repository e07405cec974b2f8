"""``acquatop why``: on files, and of a service that has answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acquatop.app.cli import main
from tests.support.staged import staged
from tests.support.worlds import query_text

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = { path = "events" }
[streams.":s".mapping]
subject = ":{user}"
time = "at"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s (SUM(?n) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE 10s] WHERE { WINDOW :w { ?s :n ?n FILTER(?n > 1) } }
GROUP BY ?s ORDER BY DESC(?sum) LIMIT 2"""
EVENTS = [("ann", 5, 1), ("bob", 9, 2), ("cat", 3, 3), ("dan", 1, 4), ("cat", 8, 12)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (json.dumps({"user": u, "n": n, "at": 1000 * at}) + "\n" for u, n, at in EVENTS)
    (tmp_path / "events").write_text("".join(lines), "utf-8")
    (tmp_path / "catalog.toml").write_text(CATALOG, "utf-8")
    (tmp_path / "sums.rspql").write_text(QUERY, "utf-8")
    return tmp_path


def why(folder: Path, *more: str) -> list[str]:
    return ["why", str(folder / "sums.rspql"), *more, "--catalog", str(folder / "catalog.toml")]


def test_an_answer_of_files_is_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ("--window", "1970-01-01T00:00:10Z")
    for key, said in {
        "bob": "bob is in, at rank 1 with the score 9.",
        "cat": "cat is not in: score 3, 5 needed, place 3 in the order of scores.",
        "dan": "No record has it, or one of these conditions fails: ?n > 1.",
    }.items():
        assert main(why(folder, key, *first)) == 0
        assert capsys.readouterr().out.splitlines()[1:][-1] == said
    assert main(why(folder, "<http://example.org/cat>", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "in"
    assert document["closes"] == "1970-01-01T00:00:20.000Z"
    assert document["solutions"][0]["score"] == 8


def test_a_window_without_an_answer_is_a_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(why(folder, "bob", "--window", "77")) == 2
    assert "no such answer" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(why(folder, "bob", "--window", "noon"))


def test_an_answer_of_a_service_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with staged() as stage:
        id = stage.client.register(query_text(), "q")["id"]
        ask = ["why", id, "--url", stage.url]
        assert main([*ask, "ann"]) == 2
        assert "there is no answer yet" in capsys.readouterr().err
        stage.give("q", 60_000, "ann", "bob")
        assert main([*ask, "ann", "--window", "60000"]) == 0
        out = capsys.readouterr().out
        assert "ann is in, at rank 1" in out
        assert "Only the answer's rows are kept" in out
        assert main([*ask, " "]) == 2
        assert stage.client.why(id, "carl")["verdict"] == "not found"
