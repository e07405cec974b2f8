"""The tutorial and the how-to pages are true: what they show runs, in their order,
and prints what they say.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine
from examples.mosquitto import MosquittoBroker
from examples.oxigraph import OxigraphServer
from tests.support.guides import follow, snippets_of
from tests.support.markers import THOROUGH

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = [DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]
NEED_SPARK = ("cluster.md",)
ELSEWHERE = ("extend.md", "kafka.md")
"""Pages that tests of their own follow."""

INSTALLED_ALONE = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_QUIET": "1",
}
"""Settings with which pip fetches nothing; the zero is how that option is said to be set."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in, as a shell is; modules written there can be imported,
    and are forgotten afterwards.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, value in INSTALLED_ALONE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@THOROUGH
def test_the_tutorial_can_be_followed(
    folder: Path, server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MosquittoBroker() as broker:
        monkeypatch.setenv("STORE", server.query_url.removesuffix("/query"))
        monkeypatch.setenv("BROKER", broker.url)
        follow(DOCS / "tutorial.md")


@THOROUGH
@pytest.mark.parametrize(
    "page", [page.name for page in GUIDES[1:] if page.name not in NEED_SPARK + ELSEWHERE]
)
def test_a_how_to_page_can_be_followed(page: str, folder: Path) -> None:
    follow(DOCS / "howto" / page)


WITH_PRICES = """[prefixes]
"" = "http://example.org/"
[streams.":bought"]
connector = "lines"
options = { path = "bought.ndjson" }
[streams.":bought".mapping]
subject = "http://example.org/user/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
PRICED = """SELECT ?user (?n + halved(?price) AS ?score)
FROM NAMED WINDOW :w ON :bought [RANGE 3s]
WHERE { WINDOW :w { ?user :n ?n } SERVICE :prices { ?user :price ?price } }
ORDER BY DESC(?score) LIMIT 1"""


@THOROUGH
def test_what_the_page_about_extensions_installs_answers_a_query(folder: Path) -> None:
    follow(DOCS / "howto" / "extend.md")
    catalog = WITH_PRICES + (folder / "prices.toml").read_text("utf-8")
    (folder / "catalog.toml").write_text(catalog)
    events = ({"t": 1000, "user": "ann", "n": 5}, {"t": 2000, "user": "bob", "n": 1})
    (folder / "bought.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    with Engine.from_catalog("catalog.toml", runtime="local", until_end=True) as engine:
        (answer,) = engine.register(PRICED)
    (row,) = answer.rows
    assert (str(row.bindings["user"]), row.score) == ("http://example.org/user/bob", 31.0)


@pytest.mark.parametrize("page", NEED_SPARK)
def test_a_how_to_page_about_spark_can_be_followed(
    page: str, folder: Path, spark: SparkSession
) -> None:
    follow(DOCS / "howto" / page)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_what_a_guide_shows_is_run_or_says_why_not(page: Path) -> None:
    assert page.read_text("utf-8").count("\n```") == 2 * len(list(snippets_of(page)))
