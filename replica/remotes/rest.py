"""A JSON-over-HTTP lookup as a remote: a GET with the ids of many keys, or of one, in its address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from replica.http.client import HttpClient, Request
from replica.http.reply import Reply
from replica.remotes import RemoteError
from replica.remotes.json_records import JsonRecords, NotRecordsError
from replica.remotes.records import RecordMapping, RecordReader, Star
from replica.store import Solution

UNSENDABLE = "an id that cannot be sent"
_DOTS = re.compile(r"(?:^|[/\\])\.\.?(?:[/\\]|$)")


class Address:
    """An address with a place for ids: ``{keys}`` for many, separated by commas, or ``{key}`` for one.

    Ids are percent-encoded, all but letters, digits and ``-._~``. What a server could still take for something else
    is never sent: dots that lead to another folder, and among many ids one with a comma. The place stands in the path
    or in the query: where a request goes is not for ids to say. ValueError for addresses that are none of this.

    >>> users = Address("https://api.example.org/users?ids={keys}&fields=name")
    >>> users.of(["7", "a&b=c"])
    'https://api.example.org/users?ids=7,a%26b%3Dc&fields=name'
    >>> users.takes("7"), users.takes("7,8"), users.takes("../admin")
    (True, False, False)
    """

    def __init__(self, template: str) -> None:
        match = re.fullmatch(r"(https?://[^/?#{}\s]+[/?][^#{}\s]*)\{(keys?)\}([^#{}\s]*)", template)
        if match is None:
            raise ValueError(f'"{template}" is not an http or https address with {{keys}} or {{key}} behind its host')
        self._before, self._after = match[1], match[3]
        self.takes_many = match[2] == "keys"
        self.name = template.partition("?")[0]
        """The address for messages: a query may hold what is secret."""

    def takes(self, id_: str) -> bool:
        """Say whether an id can be sent."""
        if _DOTS.search(id_) or any("\ud800" <= each <= "\udfff" for each in id_):
            return False
        return not (self.takes_many and "," in id_)

    def of(self, ids: Sequence[str]) -> str:
        """Return the address that asks for some ids."""
        return f"{self._before}{','.join(quote(id_, safe='') for id_ in ids)}{self._after}"


class RestRemote:
    """Looks keys up with GET requests that JSON answers.

    ``address`` has ``{keys}`` in it for at most ``block_size`` ids, or ``{key}`` for one per request (see
    :class:`Address`). ``items`` is the dotted path to the list of records in the reply, or to the only one; empty
    for the reply itself. Where there is nothing, not even null, the reply must have ``errors`` that say why, or it
    is no answer; ``errors`` besides records are no failure: who is not there is absent. With ``{key}`` a record
    without an id is that of the key, and 404 says that there is none. Keys that do not match the mapping, or whose
    ids cannot be sent, are not asked for.
    """

    def __init__(
        self,
        address: str,
        *,
        mapping: RecordMapping,
        star: Star,
        client: HttpClient,
        items: str = "",
        block_size: int = 100,
    ) -> None:
        self._address = Address(address)
        self.block_size = block_size if self._address.takes_many else 1
        self._reader = RecordReader(mapping, star)
        self.rejected = self._reader.rejected
        self._client = client
        self._items = items

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request; none if no key can be asked for."""
        ids = self._sendable(keys)
        if len(ids) > self.block_size:
            raise RemoteError(f"{self._address.name} takes {self.block_size} keys per request", too_large=True)
        if not ids:
            return []
        request = Request("GET", self._address.of(list(ids)), {"Accept": "application/json"}, None)
        try:
            with self._client.send(request, timeout) as reply:
                return self._solutions(reply, list(ids.values()))
        except RemoteError as error:
            if self._address.takes_many or error.status != 404:
                raise
            return []

    def load(self, timeout: float) -> Iterator[list[Solution]]:
        """Return nothing: a lookup cannot say what there is."""
        yield from ()

    def _sendable(self, keys: Sequence[str]) -> dict[str, str]:
        ids = self._reader.ids(keys)
        sendable = {id_: key for id_, key in ids.items() if self._address.takes(id_)}
        if len(ids) > len(sendable):
            self._reader.reject({UNSENDABLE: len(ids) - len(sendable)})
        return sendable

    def _solutions(self, reply: Reply, asked: list[str]) -> list[Solution]:
        owner = None if self._address.takes_many else asked[0]
        records = JsonRecords(reply.read, self._items)
        try:
            solutions = self._reader.solutions(((record, owner) for record in records), asked)
        except NotRecordsError as error:
            raise RemoteError(f"{self._address.name} sent something that is not an answer: {error}") from error
        if not records.has_items and not records.has_errors:
            raise RemoteError(f'{self._address.name} sent an answer without "{self._items}"')
        return solutions
