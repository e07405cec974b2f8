"""The SPARQL remote does what every remote must do, with both of the protocol's methods, on a real
server.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from acquatop import Engine
from examples.oxigraph import OxigraphServer
from replica.remotes.records import Star
from replica.remotes.sparql import SparqlRemote
from tests.support.fuseki import FusekiServer
from tests.support.guides import snippets_of
from tests.support.remote_contract import MakeRemote, Record, RemoteContract, triples_of

DOCS = Path(__file__).parents[2] / "docs"


def pattern_of(star: Star) -> str:
    columns = [f"?{star.key} <{predicate}> ?{name} ." for name, predicate in star.columns.items()]
    return " ".join(
        [
            *columns,
            *(f"?{star.key} <{predicate}> {term} ." for predicate, term in star.constants.items()),
        ]
    )


def remote_at(address: str, star: Star, method: str) -> SparqlRemote:
    variables = [star.key, *star.columns]
    return SparqlRemote(
        address, pattern=pattern_of(star), variables=variables, key=star.key, method=method
    )


class SparqlContract(RemoteContract):
    method = ""

    @pytest.fixture
    def make(self, server: OxigraphServer) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> SparqlRemote:
            server.update(f"INSERT DATA {{ {' '.join(triples_of(records))} }}")
            return remote_at(server.query_url, star, self.method)

        return make


class TestPost(SparqlContract):
    method = "post"


class TestGet(SparqlContract):
    method = "get"


@pytest.fixture
def fuseki(_fuseki: FusekiServer) -> FusekiServer:
    return _fuseki


class TestFuseki(RemoteContract):
    @pytest.fixture
    def make(self, fuseki: FusekiServer) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> SparqlRemote:
            fuseki.update("CLEAR ALL")
            fuseki.update(f"INSERT DATA {{ {' '.join(triples_of(records))} }}")
            return remote_at(fuseki.query_url, star, "post")

        return make


STREAM = """
[prefixes]
"" = "http://example.org/"
[streams.":mentioned"]
connector = "lines"
options = { path = "mentions.ndjson" }
[streams.":mentioned".mapping]
subject = "http://example.org/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """SELECT ?user (?n + ?followers AS ?score) FROM NAMED WINDOW :w ON :mentioned [RANGE 3s]
WHERE { WINDOW :w { ?user :n ?n } SERVICE :people { ?user :followers ?followers } }
ORDER BY DESC(?score) LIMIT 1"""


def test_the_service_on_the_page_about_fuseki_is_joined_with(
    fuseki: FusekiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = snippets_of(DOCS / "howto" / "fuseki.md")
    fuseki.update(
        "PREFIX : <http://example.org/> CLEAR ALL; "
        "INSERT DATA { :ann :followers 100 . :bob :followers 7 }"
    )
    monkeypatch.setenv("FUSEKI", fuseki.query_url.removesuffix("/query"))
    (tmp_path / "catalog.toml").write_text(STREAM + shown.text)
    events = [{"t": 1000, "user": "ann", "n": 3}, {"t": 2000, "user": "bob", "n": 50}]
    (tmp_path / "mentions.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    with Engine.from_catalog(tmp_path / "catalog.toml", runtime="local", until_end=True) as engine:
        (answer,) = engine.register(QUERY)
    (row,) = answer.rows
    assert (str(row.bindings["user"]), row.score) == ("http://example.org/ann", 103.0)
