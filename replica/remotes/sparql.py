"""A SPARQL 1.1 endpoint as a remote: many keys per request, as a VALUES block."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cached_property

from SPARQLWrapper import GET, JSON, POST, SPARQLWrapper

from replica.http.client import HttpClient, Request
from replica.http.messages import shown
from replica.http.reply import Reply
from replica.key_tuples import key_text, terms_in
from replica.remotes import MayAsk, RemoteError, always
from replica.remotes.records import NOT_ASKED_FOR
from replica.remotes.sparql_results import Binding, NotResultsError, read_rows
from replica.store import Solution
from replica.terms import can_be_asked, from_json

PAGE_SIZE = 10_000
"""Rows per request while loading."""
MOST_SOLUTIONS = 200_000
"""Most rows per reply: freeing them takes time in which no other thread runs."""
_ROWS_BESIDES = 1_000
MOST_LOADED = 100_000_000
"""Most rows of a load: a server with more might never end."""
LONGEST_ADDRESS = 2_000
"""Most characters of a GET address; longer requests are POSTed."""
_FAR = (1 << 31) - 1
"""Offset beyond all rows."""
_METHODS = {"post": POST, "get": GET}


class _Asks:
    """Permission to send requests; remembers whether one was refused."""

    def __init__(self, may_ask: MayAsk) -> None:
        self._may_ask = may_ask
        self.was_refused = False

    def __call__(self) -> bool:
        self.was_refused = not self._may_ask()
        return not self.was_refused


class SparqlRemote:
    """Remote that asks an endpoint for the solutions of a graph pattern.

    ``pattern`` is the inside of a group graph pattern, ``key`` the variable that requests bind, or
    the text of several (:func:`replica.key_tuples.key_text`), whose keys are tuples of terms. A
    pattern without a key is fetched whole, as one item. ``nested`` patterns are sent as a group of
    their own: needed unless the VALUES block may stand before the pattern as well as after it, as
    with triple patterns. ``base`` is the base that its calls of IRI resolve against. A request
    is a POST, or a GET if its address is short enough and
    ``method`` says so. It carries at most ``block_size`` keys and is sent by ``client``.

    Keys that are not a single IRI or literal are never sent. Rows are ``rejected`` if their key is
    missing, is a blank node, or was not asked for, or if they have a term that is invalid or too
    long. Other blank nodes become IRIs (:func:`replica.terms.blank_iri`). A reply may have
    ``most_per_key`` rows for each key asked for, and a thousand more, or it is refused. ``name``
    names the remote in messages.
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
        base: str | None = None,
        method: str = "post",
        most_per_key: int | None = None,
        client: HttpClient | None = None,
        name: str | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.rejected: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._most_per_key = most_per_key if key is not None else None
        self.block_size = block_size
        self._name = name or f"the SPARQL endpoint {shown(endpoint)}"
        self._method = _METHODS[method]
        # A line break of its own, as the pattern's last line may be a comment.
        self._pattern = f"{{ {pattern}\n}}" if nested else pattern
        self._prologue = "" if base is None else f"BASE <{base}> "
        self._keys = terms_in(key) if key else []
        self._wanted = dict.fromkeys([*self._keys, *variables])
        self._projection = " ".join(f"?{name}" for name in variables) or "*"
        self._order = " ".join(f"?{name}" for name in self._wanted)
        self._key = key
        if client is not None:
            self._client = client

    @cached_property
    def _client(self) -> HttpClient:
        return HttpClient(name=self._name)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request; none if no key can be sent.

        A pattern without a key is fetched whole, also with one request.
        """
        sendable = dict.fromkeys(key for key in keys if all(map(can_be_asked, terms_in(key))))
        if self._key is not None and not sendable:
            return []
        values = self._values(list(sendable)) if self._key is not None else ""
        asked = None if self._key is None else sendable
        query = f"{self._prologue}SELECT {self._projection} WHERE {{ {values}{self._pattern} }}"
        rows = self._select(query, timeout, asked, self._most_rows(len(sendable)))
        return [row for row in rows if row is not None]

    def _values(self, keys: Sequence[str]) -> str:
        if len(self._keys) == 1:
            return f"VALUES ?{self._key} {{ {' '.join(keys)} }} "
        names = " ".join(f"?{name}" for name in self._keys)
        rows = " ".join(f"({' '.join(terms_in(key))})" for key in keys)
        return f"VALUES ({names}) {{ {rows} }} "

    def _most_rows(self, keys: int) -> int:
        per_key = self._most_per_key
        return (
            MOST_SOLUTIONS
            if per_key is None
            else min(MOST_SOLUTIONS, _ROWS_BESIDES + per_key * keys)
        )

    def ordered(self, order: str, count: int, timeout: float) -> list[Solution | None]:
        """Return the first ``count`` rows in an order, with one request; None for unusable ones."""
        select = f"{self._prologue}SELECT {self._projection} WHERE {{ {self._pattern} }}"
        return self._select(f"{select} {order} LIMIT {count}", timeout)

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all solutions in pages without gaps; the solutions of a key are on one page.

        Without a key all are on one page. Each page is a request with the full timeout. Servers may
        return fewer rows than requested, so only an empty page is the last: one request more than
        there are pages. Blank node labels are assumed to be equal on all pages. If not all pages
        may be requested, a pattern without a key yields nothing.
        """
        asks = _Asks(may_ask)
        if self._key is None:
            whole = [row for page in self._pages(timeout, asks) for row in page if row is not None]
            if not asks.was_refused:
                yield whole
            return
        held: list[Solution] = []
        for rows in self._pages(timeout, asks):
            held += [row for row in rows if row is not None]
            last = held[-1].get(self._key) if held else None
            yield [row for row in held if row.get(self._key) != last]
            held = [row for row in held if row.get(self._key) == last]
        if not asks.was_refused:
            yield held

    def _pages(self, timeout: float, asks: _Asks) -> Iterator[list[Solution | None]]:
        offset, before, is_paged = 0, None, False
        while asks() and (rows := self._select(self._page(offset), timeout)):
            # A repeated page has only equal rows, or comes from a server that ignores OFFSET.
            if rows == before and not is_paged:
                if not asks():
                    return
                is_paged = not self._select(self._page(_FAR), timeout)
                if not is_paged:
                    self._check_whole(rows)
                    return
            yield rows
            before, offset = rows, offset + len(rows)
            if offset > MOST_LOADED:
                raise RemoteError(f"{self._name} failed: it has more than {MOST_LOADED} rows")

    def _check_whole(self, rows: Sequence[Solution | None]) -> None:
        """Accept one page as the whole, from a server without paging, unless it is full."""
        if len(rows) == PAGE_SIZE:
            raise RemoteError(
                f"{self._name} failed: it gives the same page whatever OFFSET asks for"
            )

    def _page(self, offset: int) -> str:
        order = f"ORDER BY {self._order} " if self._order else ""
        select = f"{self._prologue}SELECT {self._projection} WHERE {{ {self._pattern} }}"
        return f"{select} {order}LIMIT {PAGE_SIZE} OFFSET {offset}"

    def _select(
        self,
        query: str,
        timeout: float,
        asked: Container[str] | None = None,
        most: int | None = None,
    ) -> list[Solution | None]:
        """Return a query's solutions for the keys asked for, None for unusable ones."""
        with self._client.send(self._request(query), timeout) as reply:
            try:
                return list(self._solutions(reply, asked, MOST_SOLUTIONS if most is None else most))
            except NotResultsError as error:
                message = f"{self._name} sent something that is not SPARQL Results JSON: {error}"
                raise RemoteError(message) from error

    def _request(self, query: str) -> Request:
        """Return a query as a request of the SPARQL protocol."""
        request = self._composed(query, self._method)
        if len(request.url) > LONGEST_ADDRESS and self._method == GET:
            return self._composed(query, POST)
        return request

    def _composed(self, query: str, method: str) -> Request:
        place, mark, _ = self.endpoint.partition("?")
        wrapper = SPARQLWrapper(place, returnFormat=JSON, agent="AcquaTop")
        wrapper.setMethod(method)
        wrapper.setQuery(query)
        composed = wrapper._createRequest()  # The request it would send, not public.
        parameters = composed.full_url[len(place) + 1 :]
        url = f"{self.endpoint}{'&' if mark else '?'}{parameters}" if parameters else self.endpoint
        assert composed.data is None or isinstance(composed.data, bytes)
        return Request(composed.get_method(), url, dict(composed.header_items()), composed.data)

    def _solutions(
        self, reply: Reply, asked: Container[str] | None, most: int
    ) -> Iterator[Solution | None]:
        question = f"{self.endpoint} {self._prologue}{self._pattern}"
        faults: Counter[str] = Counter()
        for count, row in enumerate(read_rows(reply, self._wanted)):
            if count == most:
                raise RemoteError(
                    f"{self._name} failed: it sent more than {most} rows", too_large=True
                )
            found = self._solution(row, asked, question)
            if not isinstance(found, str):
                yield found
                continue
            faults[found] += 1
            if asked is None:
                yield None
        with self._lock:
            self.rejected.update(faults)

    def _solution(
        self, row: dict[str, Binding], asked: Container[str] | None, question: str
    ) -> Solution | str:
        """Return the solution of a row, or what is wrong with it."""
        solution = _solution(row, self._keys, question)
        if asked is None or isinstance(solution, str) or self._key is None:
            return solution
        return solution if solution[self._key] in asked else NOT_ASKED_FOR


def _solution(row: dict[str, Binding], keys: Sequence[str], question: str) -> Solution | str:
    owners = [term for name in keys if (term := from_json(row.get(name, {}))) is not None]
    if len(owners) < len(keys):
        return "no usable key"
    owner = key_text(owners)
    # Labels belong to the question: other questions have other labels, or the same for other nodes.
    terms = {name: from_json(binding, f"{question} {owner}") for name, binding in row.items()}
    if any(term is None for term in terms.values()):
        return "a term that is invalid or too long"
    found = {name: term for name, term in terms.items() if term is not None}
    return found if len(keys) < 2 else {**found, key_text(keys): owner}
