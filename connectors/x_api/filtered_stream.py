"""The filtered stream as a source that says everything once: connected, watched, connected again."""

from __future__ import annotations

import logging
import math
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from connectors import ConnectorError
from connectors.live import LiveSource
from connectors.log.writer import Remembered
from connectors.x_api.api import URL, RefusedError, UnreachableError, XApi
from connectors.x_api.backoff import Backoff
from connectors.x_api.connection import Connection
from connectors.x_api.framing import LineBuffer
from connectors.x_api.messages import NO_ID, Messages, Problem
from connectors.x_api.recent import RecentIds
from connectors.x_api.rules import Rule, change_of
from connectors.x_api.token import VARIABLE, Token

SILENCE_SECONDS = 25.0
"""X gives a sign of life every 20 s, sometimes somewhat late."""
MOST_BACKFILL_MINUTES = 5
DELIVERY_SECONDS = 30.0
"""How long before it comes a post may have been made: so much further back posts are asked for once more."""
FIELDS = ("author_id", "created_at", "entities", "public_metrics")
ESTABLISHED_SECONDS = 1.0
"""From when on a connection is taken for a good one, after whose end X is tried again at once."""
_NOT_ALLOWED = (400, 403)
"""What X may answer to one who asks for more than his access includes."""
_MEMORY = struct.Struct(">d")
_STORED = ">u8"
_HINTS = {
    401: "put the bearer token of your X app into the environment variable {}",
    403: "see which access your X app has, and whether it includes the filtered stream",
    409: "say with the option rules which posts are wanted",
    400: "check the option rules; how rules are built says X's documentation",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How to reach the stream, and what it is to bring."""

    url: str = URL
    token_variable: str = VARIABLE
    rules: Sequence[Rule] = ()
    """The rules that X shall have; none if those that it has are to stay."""
    fields: Sequence[str] = FIELDS
    backfill_minutes: int = 0


class FilteredStream(LiveSource):
    """Posts as X sends them, a line of JSON each; those that it sends again are left out.

    A post is known by its id: the newest are remembered (see :class:`~connectors.x_api.recent.RecentIds`), also by one
    who begins where another was killed. What is no post, and nothing that X says of the stream itself, is passed on:
    whoever decodes it counts it. ``clock`` measures, ``now`` is the time of day, and ``pause`` waits.
    """

    schema = pa.schema([("value", pa.binary()), ("received", pa.timestamp("us", "UTC"))])

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._settings = settings
        self._clock, self._now, self._pause = clock, now, pause
        self._token = Token.of(settings.token_variable)
        self._api = XApi(self._token, settings.url, now=now)
        self._backoff = Backoff()
        self._recent = RecentIds()
        self._connection: Connection | None = None
        self._lines = LineBuffer()
        self._has_rules = not settings.rules
        self._takes_backfill = settings.backfill_minutes > 0
        self._was_connected = self._is_alive = self._is_quiet = False
        self._try_at = -math.inf
        self._connected_at = self._heard_at = 0.0
        self._last_heard: float | None = None
        """The time of day when something came last, be it before a restart."""
        self.counts: Counter[str] = Counter()
        """How often it was ``connected``; how many posts came ``again``, were ``unreadable`` or ``cut off``."""

    # What a receiver asks ---------------------------------------------------------------------

    def open(self, remembered: Remembered) -> None:
        """Learn what has come before; X is reached by :meth:`receive`."""
        if remembered.memory:
            self._last_heard = _MEMORY.unpack_from(remembered.memory)[0] or None
            self._recent.add(np.frombuffer(remembered.memory, _STORED, offset=_MEMORY.size).astype(np.uint64))
        for batch in remembered.since:
            self._new(Messages.of(batch.column("value")))
            self._last_heard = batch.column("received")[-1].as_py().timestamp()
        self.counts.clear()

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the posts that have come since; connect if there is no connection, once that may be tried."""
        self._is_quiet = False
        if self._connection is None:
            self._connect_or_wait(wait_seconds)
            return None
        piece = self._connection.take(wait_seconds)
        messages = Messages.of(self._lines.feed(piece))
        self._is_quiet = not piece
        if piece:
            self._heard_at, self._last_heard = self._clock(), self._now()
            self._is_alive |= not messages.problems
        posts, problems, end = self._new(messages), messages.problems, self._connection.end
        if end is not None:
            last = self._last_line()
            posts, problems = pa.concat_arrays([posts, self._new(last)]), [*problems, *last.problems]
        elif self._clock() - self._heard_at > SILENCE_SECONDS:
            end = f"X has said nothing for more than {SILENCE_SECONDS:.0f} s"
        if end is not None or problems:
            self._leave("; ".join(map(str, problems)) or str(end), problems)
        return self._records(posts)

    def acknowledge(self) -> None:
        """Do nothing: X asks for no acknowledgement."""

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
        self._api.close()

    def is_caught_up(self) -> bool:
        """Say whether nothing has come of late over a connection that is there."""
        return self._is_quiet

    def memory(self) -> bytes:
        """Return when something came last, and the newest posts' ids."""
        return _MEMORY.pack(self._last_heard or 0.0) + self._recent.ids().astype(_STORED).tobytes()

    # Connecting -------------------------------------------------------------------------------

    def _connect_or_wait(self, wait_seconds: float) -> None:
        left = self._try_at - self._clock()
        if left > 0:
            self._pause(min(left, wait_seconds))
            return
        parameters = {"tweet.fields": ",".join(self._settings.fields), **self._backfill()}
        try:
            self._set_rules()
            self._connection = self._api.connect(parameters)
        except UnreachableError as error:
            self._try_later(f"X cannot be reached: {error}", self._backoff.network())
        except RefusedError as refusal:
            self._give_way(refusal, "backfill_minutes" in parameters)
        else:
            self._connected_at = self._heard_at = self._clock()
            self._was_connected, self._is_alive = True, False
            self._lines = LineBuffer()
            self.counts["connected"] += 1

    def _set_rules(self) -> None:
        """Let X have the rules that are wanted, and no others."""
        if not self._has_rules:
            change = change_of(self._api.rules(), self._settings.rules)
            if change:
                self._api.change_rules(change)
            self._has_rules = True

    def _backfill(self) -> Mapping[str, str]:
        """Return how to ask for what was missed, in whole minutes; say if more was missed than can be asked for."""
        if self._last_heard is None:
            return {}
        silent = self._now() - self._last_heard
        most = self._settings.backfill_minutes if self._takes_backfill else 0
        if silent > 60 * most:
            _log.warning(
                "posts of %.0f s may be missing: so much more was missed than is asked for", silent - 60 * most
            )
        minutes = min(most, math.ceil((silent + DELIVERY_SECONDS) / 60))
        return {"backfill_minutes": str(minutes)} if minutes > 0 else {}

    def _give_way(self, refusal: RefusedError, asked_for_more: bool) -> None:
        """Decide what to do about a request that was refused: wait, ask for less, or give up."""
        if refusal.is_limit:
            self._try_later(str(refusal), self._backoff.rate_limited(refusal.until_reset))
        elif refusal.status in _NOT_ALLOWED and asked_for_more:
            self._takes_backfill = False
            self._try_later(f"{refusal}; asking without backfill_minutes", 0.0)
        elif refusal.is_final and not self._was_connected:
            hint = _HINTS.get(refusal.status, "check the options of the stream").format(self._settings.token_variable)
            raise ConnectorError(f"X refuses the stream: {refusal}\n  hint: {hint}")
        else:
            # Somebody else may have deleted the rules.
            self._has_rules = not self._settings.rules
            self._try_later(str(refusal), self._backoff.http())

    def _leave(self, reason: str, problems: Sequence[Problem]) -> None:
        """End a connection, and decide when to try again: at once, if this one was good for anything."""
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        if any(each.is_limit for each in problems):
            wait = self._backoff.rate_limited()
        elif self._is_alive and self._clock() - self._connected_at >= ESTABLISHED_SECONDS:
            self._backoff.established()
            wait = 0.0
        else:
            wait = self._backoff.http() if problems else self._backoff.network()
        self._try_later(reason, wait)

    def _try_later(self, reason: str, wait: float) -> None:
        _log.warning("%s; trying again in %.2f s", self._token.hidden_in(reason), wait)
        self._try_at = self._clock() + wait

    # Posts ------------------------------------------------------------------------------------

    def _new(self, messages: Messages) -> pa.BinaryArray:
        """Return what has not come before; what has no id cannot be told, and is."""
        has_id = messages.ids != NO_ID
        is_new = ~has_id
        is_new[has_id] = self._recent.add(messages.ids[has_id])
        self.counts["again"] += len(is_new) - int(is_new.sum())
        self.counts["unreadable"] += len(is_new) - int(has_id.sum())
        return messages.posts if is_new.all() else messages.posts.filter(pa.array(is_new))

    def _last_line(self) -> Messages:
        """Return the line that a connection has ended in, if it is whole; else it is lost, or comes again."""
        rest = Messages.of(self._lines.feed(b"\n"))
        self.counts["cut off"] += int((rest.ids == NO_ID).sum())
        return rest.readable()

    def _records(self, posts: pa.BinaryArray) -> pa.RecordBatch | None:
        if not len(posts):
            return None
        received = pa.scalar(int(self._now() * 1_000_000), self.schema.field("received").type)
        return pa.record_batch([posts, pa.repeat(received, len(posts))], schema=self.schema)
