"""The SPARQL remote does what every remote must do, with both of the protocol's methods, on a real
server.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from examples.oxigraph import OxigraphServer
from replica.remotes.records import Star
from replica.remotes.sparql import SparqlRemote
from tests.support.remote_contract import MakeRemote, Record, RemoteContract, triples_of


def pattern_of(star: Star) -> str:
    columns = [f"?{star.key} <{predicate}> ?{name} ." for name, predicate in star.columns.items()]
    return " ".join(
        [
            *columns,
            *(f"?{star.key} <{predicate}> {term} ." for predicate, term in star.constants.items()),
        ]
    )


class SparqlContract(RemoteContract):
    method = ""

    @pytest.fixture
    def make(self, server: OxigraphServer) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> SparqlRemote:
            server.update(f"INSERT DATA {{ {' '.join(triples_of(records))} }}")
            variables = [star.key, *star.columns]
            return SparqlRemote(
                server.query_url,
                pattern=pattern_of(star),
                variables=variables,
                key=star.key,
                method=self.method,
            )

        return make


class TestPost(SparqlContract):
    method = "post"


class TestGet(SparqlContract):
    method = "get"
