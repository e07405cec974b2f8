"""A SPARQL 1.1 endpoint as a remote: many keys per request, as a VALUES block."""

from __future__ import annotations

import ast
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
from replica.terms import from_json, is_blank, is_term

PAGE_SIZE = 10_000
"""How many rows one request of a loading asks for."""
_LONGEST_REMARK = 200


class SparqlRemote:
    """Asks an endpoint for a graph pattern's solutions.

    ``pattern`` is the inside of a group graph pattern, ``key`` the variable that requests bind; a
    pattern without one is fetched whole, as one item. ``nested`` patterns are asked
    for within a group of their own: needed unless what joins with the keys may as well stand
    before the pattern as after it, as it may with triple patterns. A request is POSTed and carries
    at most ``block_size`` keys. Keys that are not a single IRI or literal are never sent. Rows
    whose key is a blank node, or which have none, are left out; other blank nodes become IRIs
    (:func:`replica.terms.blank_iri`).
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

        A pattern without a key is fetched whole, with one request too.
        """
        sendable = [key for key in keys if is_term(key) and not is_blank(key)]
        if self._key is not None and not sendable:
            return []
        values = f"VALUES ?{self._key} {{ {' '.join(sendable)} }} " if self._key is not None else ""
        rows = self._select(f"SELECT {self._projection} WHERE {{ {values}{self._pattern} }}", timeout)
        return [row for row in rows if row is not None]

    def load(self, timeout: float) -> Iterator[list[Solution]]:
        """Return all solutions in pages, in an order that leaves no gap between them; a key's are on one page.

        Without a key all are on one. Each page is a request and has the timeout; one that is not
        full is the last. The labels of blank nodes are taken to be the same from page to page.
        """
        if self._key is None:
            yield [row for page in self._pages(timeout) for row in page if row is not None]
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
        while True:
            rows = self._select(self._page(offset), timeout)
            yield rows
            offset += len(rows)
            if len(rows) < PAGE_SIZE:
                return

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
            question = f"{self.endpoint} {self._pattern}"
            return [_solution(row, self._key, question) for row in results["results"]["bindings"]]
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


def _solution(row: dict[str, Any], key: str | None, question: str) -> Solution | None:
    owner = "" if key is None else from_json(row.get(key, {}))
    if owner is None:
        return None
    # What is asked belongs to it: other questions are answered with other labels, or with the same for other nodes.
    terms = {name: from_json(binding, f"{question} {owner}") for name, binding in row.items()}
    if any(term is None for term in terms.values()):
        return None
    return {name: term for name, term in terms.items() if term is not None}


def _cause(error: Exception) -> str:
    # SPARQLWrapper raises errors of its own for some of HTTP's, while it handles these.
    http = error if isinstance(error, urllib.error.HTTPError) else error.__context__
    if isinstance(http, urllib.error.HTTPError):
        remark = _remark(_body(error))
        return f"HTTP {http.code} {_printable(str(http.reason))}" + (f": {remark}" if remark else "")
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _body(error: Exception) -> bytes:
    """Return what a server said with an error, or the beginning of it."""
    try:
        if isinstance(error, urllib.error.HTTPError):
            # One piece, as the timeout bounds each: whoever drips need not be heard to the end.
            return bytes(error.fp.read1(4096))  # type: ignore[attr-defined]  # it is an HTTPResponse
        # SPARQLWrapper has read it all, and keeps it within its message only.
        return bytes(ast.literal_eval(str(error).partition("Response:\n")[2]))
    except (HTTPException, OSError, SyntaxError, ValueError, AttributeError, TypeError):
        return b""


def _remark(body: bytes) -> str:
    """Return the first line of a text that says something, as far as it is worth reading."""
    lines = (_printable(line).strip() for line in body.decode(errors="replace").splitlines())
    return next(filter(None, lines), "")[:_LONGEST_REMARK]


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())
