"""The SPARQL remote does what every remote must do, with both of the protocol's methods, on a real
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.oxigraph import OxigraphServer
from replica.remotes.records import Star
from replica.remotes.sparql import SparqlRemote
from tests.support.fuseki import FusekiServer
from tests.support.guides import follow
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


def test_the_page_about_fuseki_can_be_followed(
    fuseki: FusekiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FUSEKI", fuseki.query_url.removesuffix("/query"))
    follow(DOCS / "howto" / "fuseki.md")
