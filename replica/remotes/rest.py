"""A JSON-over-HTTP lookup as a remote: GET requests with one or many ids in the address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replica.http.client import HttpClient, Request
from replica.http.reply import Reply
from replica.remotes import MayAsk, RemoteError, always
from replica.remotes.addresses import RestAddress
from replica.remotes.json_records import JsonRecords, NotRecordsError
from replica.remotes.records import RecordMapping, RecordReader, Star
from replica.store import Solution

UNSENDABLE = "an id that cannot be sent"


class RestRemote:
    """Remote for lookups of keys with GET requests and JSON replies.

    ``address`` contains ``{keys}`` for at most ``block_size`` ids, or ``{key}`` for one per request
    (see :class:`~replica.remotes.addresses.RestAddress`). ``items`` is the dotted path to the list
    of records in the reply, or to a single record; empty for the reply itself. If the path is
    missing (null does not count as missing), the reply must have ``errors`` that give the reason,
    or it is invalid. ``errors`` next to records are no failure: keys without a record are absent.
    With ``{key}``, a record without an id belongs to that key, and 404 means that there is none.
    Keys that do not match the mapping, or whose ids cannot be sent, are not asked for. ``name``
    names the remote in messages.
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
        name: str | None = None,
    ) -> None:
        self._address = RestAddress(address)
        self._name = name or self._address.name
        self.block_size = block_size if self._address.takes_many else 1
        self._reader = RecordReader(mapping, star)
        self.rejected = self._reader.rejected
        self._client = client
        self._items = items

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request; none if no key can be asked for."""
        ids = self._sendable(keys)
        if len(ids) > self.block_size:
            raise RemoteError(
                f"{self._name} takes {self.block_size} keys per request", too_large=True
            )
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

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield nothing: a lookup cannot list its keys."""
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
            raise RemoteError(
                f"{self._name} sent something that is not an answer: {error}"
            ) from error
        if not records.has_items and not records.has_errors:
            raise RemoteError(f'{self._name} sent an answer without "{self._items}"')
        return solutions
