"""Documentation: all settings are documented, and the examples run."""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acquatop.app.cli import build_parser, main
from acquatop.app.cli.demo import SCENES
from acquatop.catalog import catalog
from acquatop.catalog.remotes import AUTH, FEEDS, KINDS, METHODS, TABLES, keys_of
from acquatop.catalog.services import COMMON_KEYS, SOLUTIONS, policies
from acquatop.lab.generate import KINDS as KINDS_OF_CHANGE
from acquatop.lab.replay.data import values_of
from acquatop.lab.replay.measure import NUMBERS
from acquatop.plugins import OWN_PROPOSERS as PROPOSERS
from acquatop.topk.strategies import OWN as OWN_STRATEGIES
from connectors.lexical import KNOWN
from connectors.registry import CONNECTORS
from examples.oxigraph import OxigraphServer
from replica.rankers import DEFAULT_RANKERS
from rspql import compile_query
from rspql.limits import LIMITS
from rspql.plan import TopKPlan
from rspql.scoring import FUNCTIONS
from tests.support.markdown import anchor_of, broken_links
from tests.support.markers import THOROUGH
from tests.support.worlds import NS, catalog_text, query_text, user_term

ROOT = Path(__file__).parents[1]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def snippets(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(name), re.DOTALL)


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield name
                yield from options_of(verb)


def test_every_verb_and_option_is_documented() -> None:
    documented = text_of("docs/cli.md")
    assert [each for each in options_of(build_parser()) if f"{each}" not in documented] == []


def test_every_scene_of_the_demo_is_an_example_and_documented() -> None:
    examples = {each.parent.name for each in (ROOT / "examples").glob("*/demo.py")}
    assert set(SCENES) == examples
    assert [each for each in SCENES if f"| `{each}` |" not in text_of("docs/cli.md")] == []


def test_every_verb_of_run_is_listed() -> None:
    verbs = re.findall(r"^(\w+)\)", text_of("run"), re.MULTILINE)
    shown = subprocess.run([ROOT / "run"], capture_output=True, text=True, check=True).stdout
    assert "demo" in verbs
    assert [verb for verb in verbs if f"\n  {verb} " not in shown] == []


def catalog_keys() -> set[str]:
    """Return every key that the catalog's code accepts."""
    files = (ROOT / "acquatop" / "catalog").glob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    allowed = (
        call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "allow"
    )
    found = {
        argument.value
        for call in allowed
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    return {*found, *COMMON_KEYS, *(key for kind in KINDS for key in keys_of(kind))}


def test_every_catalog_key_and_choice_is_documented() -> None:
    documented = text_of("docs/catalog.md")
    choices = {
        *CONNECTORS,
        *catalog.ARRIVALS,
        *OWN_STRATEGIES,
        *SOLUTIONS,
        *KINDS,
        *METHODS,
        *AUTH,
        *FEEDS,
        *TABLES,
    }
    choices |= {*PROPOSERS, *DEFAULT_RANKERS}
    datatypes = {iri.replace("http://www.w3.org/2001/XMLSchema#", "xsd:") for iri in KNOWN}
    assert len(catalog_keys()) > 20
    assert [
        each for each in {*catalog_keys(), *choices, *datatypes} if f"`{each}`" not in documented
    ] == []


def test_every_key_of_an_experiment_and_every_measure_is_documented() -> None:
    documented = text_of("docs/evaluate.md")
    calls = (
        node
        for node in ast.walk(ast.parse(text_of("acquatop/lab/replay/experiment.py")))
        if isinstance(node, ast.Call)
    )
    allowed = (
        call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "allow"
    )
    keys = {
        argument.value
        for call in allowed
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    keys |= {name for kind in KINDS_OF_CHANGE for name in values_of(kind)}
    assert len(keys) > 15
    assert [
        each for each in {*keys, *KINDS_OF_CHANGE, *NUMBERS} if f"`{each}`" not in documented
    ] == []


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_option_of_a_connector_is_documented(name: str) -> None:
    connector, documented = CONNECTORS[name], text_of("docs/connectors.md")
    ((section, listed),) = re.findall(
        rf"^\| \[`{name}`\]\(#([\w-]+)\) \|.*\| ([^|]*) \|$", documented, re.MULTILINE
    )
    assert re.findall(r"`(\w+)`", listed) == list(connector.formats)
    sections = re.split(r"^##+ ", documented, flags=re.MULTILINE)
    (text,) = (each for each in sections if anchor_of(each.partition("\n")[0]) == section)
    rows = re.findall(r"^\| (`.*?) \|.*\| (.*?) *\|$", text, re.MULTILINE)
    names = {option: default for cell, default in rows for option in re.findall(r"`(\w+)`", cell)}
    assert set(names) >= set(connector.options)
    shared = {option for cell, _ in rows if "," in cell for option in re.findall(r"`(\w+)`", cell)}
    required = {option for option, each in connector.options.items() if each.required}
    assert {
        option for option, default in names.items() if default == "required"
    } == required - shared


def test_every_policy_can_be_named_in_a_catalog() -> None:
    assert {policy.split("-")[1] for policy in policies()} == set(DEFAULT_RANKERS)


def test_the_limits_are_those_that_are_documented() -> None:
    table = re.search(
        r"\| at most \| of \|\n\|---\|---\|\n((?:\|.*\n)+)", text_of("docs/language.md")
    )
    assert table is not None
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]
    assert rows == [[f"{limit.most:,}".replace(",", " "), limit.what] for limit in LIMITS]


def test_every_scoring_function_is_documented() -> None:
    documented = text_of("docs/language.md")
    assert [
        each.signature for each in FUNCTIONS.values() if f"`{each.signature}`" not in documented
    ] == []


def test_every_environment_variable_is_documented() -> None:
    used = set()
    for package in ("acquatop", "rspql", "replica", "connectors"):
        for file in (ROOT / package).rglob("*"):
            if file.suffix in (".py", ".properties"):
                used |= set(re.findall(r"ACQUATOP_[A-Z_]+", file.read_text("utf-8")))
    assert used
    assert [each for each in used if each not in text_of("docs/cli.md")] == []


def test_all_of_the_service_is_documented() -> None:
    from acquatop.app.serve.formats import FORMATS
    from acquatop.app.serve.openapi import document
    from acquatop.app.serve.problems import KINDS

    shown = text_of("docs/serve.md")
    addresses = {path.replace("/resume", "/pause") for path in document()["paths"]}
    rows = re.findall(r"^\| `(.+?)` \|(?: ([0-9]{3}) \|)?", shown, re.MULTILINE)
    assert [each for each in addresses if f"{each}`" not in shown] == []
    assert {name: int(status) for name, status in rows if status} == {
        name: kind.status for name, kind in KINDS.items()
    }
    assert [each.media_type for each in FORMATS if f"`{each.media_type}`" not in shown] == []


def test_the_catalog_and_the_queries_in_the_documents_are_good(tmp_path: Path) -> None:
    shown, pattern, _feed, functions = snippets("docs/catalog.md", "toml")
    table = '[services.":ERP"]\nremote = "table"\npath = "t.csv"\nrefresh = { items = 1 }\n'
    table += '[services.":ERP".mapping]\nkey = "http://example.org/{id}"\n'
    text = shown + table + pattern + functions
    parsed = catalog.Catalog.parse(text, file=tmp_path / "c.toml", variables={})
    assert list(parsed.services) == [f"{NS}people", f"{NS}ERP"]
    assert list(parsed.functions) == ["decay"]
    first, *_ = snippets("docs/language.md", "sparql")
    for query in (first, *snippets("README.md", "sparql")):
        assert compile_query(query).k > 0


def test_the_queries_in_the_readme_are_the_examples() -> None:
    shown = snippets("README.md", "sparql")
    examples = [
        text_of(f"examples/{each}/query.rspql") for each in ("social_media", "manufacturing")
    ]
    assert [query in text for query, text in zip(shown, examples, strict=True)] == [True, True]


def test_the_documentation_can_be_read() -> None:
    """Its words are limited: who adds some leaves out others.

    A page for each thing that people connect or compare (the papers, a broker, a store) has its
    place in the limit.
    """
    pages = (ROOT / "docs").rglob("*.md")
    written = (word for page in pages for word in page.read_text("utf-8").split())
    # The bars of tables are none.
    assert sum(any(sign.isalnum() for sign in word) for word in written) <= 41_000


@THOROUGH
def test_the_program_in_the_readme_runs(server: OxigraphServer, tmp_path: Path) -> None:
    server.update(
        f"INSERT DATA {{ {user_term('ann')} <{NS}followers> 1 . "
        f"{user_term('bob')} <{NS}followers> 2 }}"
    )
    (program,) = snippets("README.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "ENDPOINT": server.query_url, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "3000 exact [('http://example.org/user/bob', 12.0), ('http://example.org/user/ann', 7.0)]",
        "6000 exact [('http://example.org/user/bob', 12.0), ('http://example.org/user/ann', 7.0)]",
        "9000 exact [('http://example.org/user/ann', 9.0)]",
        "12000 exact [('http://example.org/user/ann', 9.0)]",
    ]


def test_the_functions_in_the_language_s_document_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = snippets("docs/language.md", "python")
    (tmp_path / "catalog.toml").write_text(catalog_text(), "utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    query = query_text(score="decay(?mentions) + ?followers")
    assert isinstance(compile_query(query, functions=names["functions"]), TopKPlan)


def test_the_changes_in_the_document_of_sliding_windows_are_these(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = snippets("docs/sliding.md", "python")
    exec(program, {})
    assert capsys.readouterr().out == "[0 1 2 4] [0 1 2 4] [-1 -1  0  1]\n[1 2] [2 4]\n"


def test_the_queries_in_the_document_of_strategies_are_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = snippets("docs/strategies.md", "python")
    exec(program, {})
    assert capsys.readouterr().out.splitlines() == [
        "last two [1] [5.]",
        "last six [1 3] [5. 2.]",
        "last two [4] [4.]",
        "last six [1 4] [5. 4.]",
        "last two [5] [3.]",
    ]


def test_the_explanation_that_is_shown_is_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (shown,) = (text for text in snippets("docs/cli.md", "console") if "acquatop explain" in text)
    command, expected = shown.split("\n", 1)
    assert main([str(each) for each in command.removeprefix("$ acquatop ").split()]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.stem
)
def test_links_in_the_documents_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []
