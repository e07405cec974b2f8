"""A SPARQL 1.1 endpoint as a remote: many keys per request, as a VALUES block."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import Any

from SPARQLWrapper import JSON, POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

from replica.remotes import RemoteError
from replica.store import Solution
from replica.terms import from_json, is_term

PAGE_SIZE = 10_000


class SparqlRemote:
    """Asks an endpoint for a graph pattern's solutions.

    ``pattern`` is the inside of a group graph pattern, ``key`` the variable that requests bind.
    A request is POSTed and carries at most ``block_size`` keys. Keys that are not a single IRI or
    literal are never sent. Rows with blank nodes or without the key are left out.
    """

    def __init__(
        self, endpoint: str, *, pattern: str, variables: Sequence[str], key: str, block_size: int = 100
    ) -> None:
        self.endpoint = endpoint
        self.block_size = block_size
        self._pattern = pattern
        self._projection = " ".join(f"?{name}" for name in variables)
        self._key = key

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request."""
        unsafe = next((key for key in keys if not is_term(key)), None)
        if unsafe is not None:
            raise RemoteError(f"{unsafe!r} is not an RDF term that a query can carry")
        values = f"VALUES ?{self._key} {{ {' '.join(keys)} }}"
        return self._select(f"SELECT {self._projection} WHERE {{ {values} {self._pattern} }}", timeout)

    def load(self, timeout: float) -> Iterator[list[Solution]]:
        """Return all solutions in pages, ordered by key so that pages neither overlap nor leave gaps."""
        offset = 0
        while True:
            query = (
                f"SELECT {self._projection} WHERE {{ {self._pattern} }} "
                f"ORDER BY ?{self._key} LIMIT {PAGE_SIZE} OFFSET {offset}"
            )
            page = self._select(query, timeout)
            yield page
            if len(page) < PAGE_SIZE:
                return
            offset += PAGE_SIZE

    def _select(self, query: str, timeout: float) -> list[Solution]:
        wrapper = SPARQLWrapper(self.endpoint, returnFormat=JSON)
        wrapper.setMethod(POST)
        wrapper.setTimeout(timeout)  # type: ignore[arg-type]  # any number will do; only its annotation says int
        wrapper.setQuery(query)
        try:
            results = json.loads(wrapper.query().response.read())
            solutions = [_solution(row) for row in results["results"]["bindings"]]
        except (SPARQLWrapperException, HTTPException, OSError) as error:
            raise RemoteError(f"the SPARQL endpoint {self.endpoint} failed: {_cause(error)}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"the SPARQL endpoint {self.endpoint} sent something that is not SPARQL Results JSON"
            raise RemoteError(message) from error
        return [solution for solution in solutions if solution is not None]


def _solution(row: dict[str, Any]) -> Solution | None:
    terms = {name: from_json(binding) for name, binding in row.items()}
    if any(term is None for term in terms.values()):
        return None
    return {name: term for name, term in terms.items() if term is not None}


def _cause(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error).splitlines()[0] if str(error) else type(error).__name__
