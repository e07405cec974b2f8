"""Verbs with a catalog that names only required keys, and with no option that has a default."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from acquatop.answer.answer import Answer
from acquatop.app.cli import main
from acquatop.lab.replay import runner
from examples.oxigraph import OxigraphServer
from tests.support import programs
from tests.support.markers import THOROUGH
from tests.support.minimal_answers import from_json
from tests.support.minimal_oracle import problems
from tests.support.minimal_worlds import (
    CORE,
    NS,
    STREAMS,
    Query,
    Remotes,
    catalog_of,
    file_streams,
    queries,
    remotes,
)

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.server


def written(folder: Path, people: Remotes, kind: str, asked: list[Query]) -> list[str]:
    """Write a catalog and queries, and return the queries' files."""
    catalog = catalog_of(file_streams(folder), people.table(kind))
    (folder / "catalog.toml").write_text(catalog, "utf-8")
    for query in asked:
        (folder / f"{query.name}.rspql").write_text(query.text, "utf-8")
    return [str(folder / f"{query.name}.rspql") for query in asked]


def name_of(query: Query) -> str:
    """Return the name of REGISTER, else that of the file."""
    registered = re.search(r"REGISTER \w+ :(\w+)", query.text)
    return query.name if registered is None else NS + registered[1]


@pytest.mark.spark
@pytest.mark.slow
def test_run(tmp_path: Path, server: OxigraphServer) -> None:
    """On Spark, as that is the default."""
    asked = [query for query in queries("service") if query.name in CORE]
    asked += [
        Query(f"stream_{query.name}", query.text)
        for query in queries("stream")
        if query.name in CORE
    ]
    with remotes(tmp_path, server) as people:
        files = written(tmp_path, people, "sparql", asked)
        command = [sys.executable, "-m", "acquatop", "run", *files, "--catalog", "catalog.toml"]
        done = programs.run([*command, "--until-end", "--json"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answers = [from_json(json.loads(line)) for line in done.stdout.splitlines()]
    by_query: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_query[answer.query].append(answer)
    said = [
        f"{query.name}, {problem}"
        for query in asked
        for problem in problems(query.text, by_query[name_of(query)])
    ]
    assert said == []


def test_check_explain_and_fmt(
    tmp_path: Path, server: OxigraphServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*queries("service"), *queries("endpoint")]
    with remotes(tmp_path, server) as people:
        files = written(tmp_path, people, "sparql", asked)
    catalog = ["--catalog", str(tmp_path / "catalog.toml")]
    for arguments in (["check", *files, *catalog], ["fmt", *files], ["fmt", "--check", *files]):
        assert main(arguments) == 0
        assert "error" not in capsys.readouterr().out
    for file in files:
        assert main(["explain", file, *catalog]) == 0
        assert capsys.readouterr().err == ""


@THOROUGH
def test_record_evaluate_and_advise(
    tmp_path: Path,
    server: OxigraphServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "available_cores", lambda: 0)
    asked = [query for query in queries("service") if query.name == "top"]
    with remotes(tmp_path, server) as people:
        (file,) = written(tmp_path, people, "sparql", asked)
        out, catalog = str(tmp_path / "out"), str(tmp_path / "catalog.toml")
        events = str(len(STREAMS["stream"]))
        assert (
            main(
                ["record", "--query", file, "--catalog", catalog, "--out", out, "--events", events]
            )
            == 0
        )
    trace = ["--trace", out, "--query", file]
    assert main(["evaluate", *trace, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    settings = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(settings) == 20
    assert main(["advise", *trace, "--target", "precision=0.9", "--json"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("{"), said
    assert json.loads(said.out)["choice"] is not None
