"""A SPARQL 1.1 endpoint as a remote: many keys per request, as a VALUES block."""

from __future__ import annotations

import json
import time
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

    ``pattern`` is the inside of a group graph pattern, ``key`` the variable that requests bind; a
    pattern without one is fetched whole, page by page, as one item. ``nested`` patterns are asked
    for within a group of their own: needed unless what joins with the keys may as well stand
    before the pattern as after it, as it may with triple patterns. A request is POSTed and carries
    at most ``block_size`` keys. Keys that are not a single IRI or literal are never sent. Rows
    with blank nodes or without the key are left out.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        pattern: str,
        variables: Sequence[str],
        key: str | None,
        block_size: int = 100,
        nested: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.block_size = block_size
        # A line end of its own, as the pattern's last line may be anything.
        self._pattern = f"{{ {pattern}\n}}" if nested else pattern
        self._projection = " ".join(f"?{name}" for name in variables) or "*"
        self._order = " ".join(f"?{name}" for name in dict.fromkeys([*([key] if key else []), *variables]))
        self._key = key

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request; none if no key can be sent.

        A pattern without a key is fetched whole; each page of it is a request and has the timeout.
        """
        if self._key is None:
            return [row for page in self._pages(timeout) for row in page if row is not None]
        sendable = [key for key in keys if is_term(key)]
        if not sendable:
            return []
        values = f"VALUES ?{self._key} {{ {' '.join(sendable)} }}"
        rows = self._select(f"SELECT {self._projection} WHERE {{ {values} {self._pattern} }}", timeout)
        return [row for row in rows if row is not None]

    def load(self, timeout: float) -> Iterator[list[Solution]]:
        """Return all solutions in pages, in an order that leaves no gap between them; a key's are on one page.

        Without a key all are on one.
        """
        if self._key is None:
            yield self.fetch([], timeout)
            return
        held: list[Solution] = []
        for rows in self._pages(timeout):
            held += [row for row in rows if row is not None]
            last = held[-1].get(self._key) if held else None
            yield [row for row in held if row.get(self._key) != last]
            held = [row for row in held if row.get(self._key) == last]
        yield held

    def _pages(self, timeout: float) -> Iterator[list[Solution | None]]:
        offset = 0
        while rows := self._select(self._page(offset), timeout):
            yield rows
            offset += len(rows)

    def _page(self, offset: int) -> str:
        order = f"ORDER BY {self._order} " if self._order else ""
        select = f"SELECT {self._projection} WHERE {{ {self._pattern} }}"
        return f"{select} {order}LIMIT {PAGE_SIZE} OFFSET {offset}"

    def _select(self, query: str, timeout: float) -> list[Solution | None]:
        """Return a query's solutions, None for those that cannot be used."""
        wrapper = SPARQLWrapper(self.endpoint, returnFormat=JSON)
        wrapper.setMethod(POST)
        wrapper.setTimeout(timeout)  # type: ignore[arg-type]  # any number will do; only its annotation says int
        wrapper.setQuery(query)
        try:
            results = json.loads(_read(wrapper.query().response, time.monotonic() + timeout))
            return [_solution(row) for row in results["results"]["bindings"]]
        except (SPARQLWrapperException, HTTPException, OSError) as error:
            raise RemoteError(f"the SPARQL endpoint {self.endpoint} failed: {_cause(error)}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"the SPARQL endpoint {self.endpoint} sent something that is not SPARQL Results JSON"
            raise RemoteError(message) from error


def _read(response: Any, deadline: float) -> bytes:
    """Read a response to its end; the socket's own timeout only bounds each piece of it."""
    pieces = []
    while piece := response.read1(1 << 16):
        pieces.append(piece)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer took too long")
    return b"".join(pieces)


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
