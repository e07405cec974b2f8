"""Filtered stream as a live source: connects, watches the connection, reconnects."""

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
from connectors.live_source import LiveSource
from connectors.log.writer import Remembered
from connectors.source_status import Link
from connectors.x_api.api import URL, RefusedError, UnreachableError, XApi
from connectors.x_api.backoff import Backoff
from connectors.x_api.connection import Connection
from connectors.x_api.line_splitter import LineSplitter
from connectors.x_api.messages import NO_ID, ApiProblem, Messages
from connectors.x_api.recent_ids import RecentIds
from connectors.x_api.rules import Rule, change_of
from connectors.x_api.token import VARIABLE, Token

SILENCE_SECONDS = 25.0
"""Maximum silence; X sends a sign of life every 20 s, sometimes somewhat late."""
MOST_BACKFILL_MINUTES = 5
DELIVERY_SECONDS = 30.0
"""Maximum delay of a post's delivery; requests for missed posts reach back so much further."""
FIELDS = ("author_id", "created_at", "entities", "public_metrics")
ESTABLISHED_SECONDS = 1.0
"""Duration after which a connection counts as good, so that X is retried at once after its end."""
_NOT_ALLOWED = (400, 403)
"""Statuses with which X may refuse a request beyond the app's access."""
_MEMORY = struct.Struct(">d")
_STORED = ">u8"
_HINTS = {
    401: "put the bearer token of your X app into the environment variable {}",
    403: "see which access your X app has, and whether it includes the filtered stream",
    409: "say with the option rules which posts are wanted",
    400: "check the option rules; how rules are built says X's documentation",
}
_HINT = "see that the network is there; attempts go on by themselves"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """Settings of the stream: address, access, rules and fields."""

    url: str = URL
    token_variable: str = VARIABLE
    rules: Sequence[Rule] = ()
    """The rules that X shall have; empty to keep those that it has."""
    fields: Sequence[str] = FIELDS
    backfill_minutes: int = 0


class FilteredStream(LiveSource):
    """Source of posts as X sends them, a line of JSON each; repeated posts are left out.

    A post is known by its id: the newest ids are remembered (see
    :class:`~connectors.x_api.recent_ids.RecentIds`), also across restarts. A line that is neither a
    post nor a message about the stream is passed on, and counted as bad by the decoder. ``clock``
    is monotonic, ``now`` is the time of day, and ``pause`` waits.
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
        self.link = Link(
            "X",
            what="post",
            silence_hint="see that posts match the rules of the stream (rules)",
            wall_clock=now,
        )
        self._backoff = Backoff()
        self._recent = RecentIds()
        self._connection: Connection | None = None
        self._lines = LineSplitter()
        self._has_rules = not settings.rules
        self._takes_backfill = settings.backfill_minutes > 0
        self._was_connected = self._is_alive = self._is_quiet = False
        self._try_at = -math.inf
        self._connected_at = self._heard_at = 0.0
        self._last_heard: float | None = None
        """Time of day of the last received data, even before a restart."""
        self.counts: Counter[str] = Counter()
        """Counts of events: ``connected``, and posts ``again``, ``unreadable`` or ``cut off``."""

    # Interface for the receiver ---------------------------------------------------------------

    def open(self, remembered: Remembered) -> None:
        """Load the memory of earlier posts; :meth:`receive` connects."""
        if remembered.memory:
            self._last_heard = _MEMORY.unpack_from(remembered.memory)[0] or None
            self._recent.add(
                np.frombuffer(remembered.memory, _STORED, offset=_MEMORY.size).astype(np.uint64)
            )
        for batch in remembered.since:
            self._new(Messages.of(batch.column("value")))
            self._last_heard = batch.column("received")[-1].as_py().timestamp()
        self.counts.clear()

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the posts received since; connect if not connected and an attempt is due."""
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
            posts, problems = (
                pa.concat_arrays([posts, self._new(last)]),
                [*problems, *last.problems],
            )
        elif self._clock() - self._heard_at > SILENCE_SECONDS:
            end = f"X has said nothing for more than {SILENCE_SECONDS:.0f} s"
        if end is not None or problems:
            self._leave("; ".join(map(str, problems)) or str(end), problems)
        return self._records(posts)

    def acknowledge(self) -> None:
        """Do nothing: X requires no acknowledgement."""

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._api.close()

    def is_caught_up(self) -> bool:
        """Return True if nothing came lately over an open connection."""
        return self._is_quiet

    def memory(self) -> bytes:
        """Return the time of the last received data, and the newest posts' ids."""
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
            self.link.made()
            self._lines = LineSplitter()
            self.counts["connected"] += 1

    def _set_rules(self) -> None:
        """Give X the wanted rules, and no others."""
        if not self._has_rules:
            change = change_of(self._api.rules(), self._settings.rules)
            if change:
                self._api.change_rules(change)
            self._has_rules = True

    def _backfill(self) -> Mapping[str, str]:
        """Return the request for missed posts, in whole minutes; warn if it cannot cover all."""
        if self._last_heard is None:
            return {}
        silent = self._now() - self._last_heard
        most = self._settings.backfill_minutes if self._takes_backfill else 0
        if silent > 60 * most:
            _log.warning(
                "posts of %.0f s may be missing: so much more was missed than is asked for",
                silent - 60 * most,
            )
        minutes = min(most, math.ceil((silent + DELIVERY_SECONDS) / 60))
        return {"backfill_minutes": str(minutes)} if minutes > 0 else {}

    def _give_way(self, refusal: RefusedError, asked_for_more: bool) -> None:
        """Handle a refused request: wait, ask for less, or give up."""
        if refusal.is_limit:
            self._try_later(str(refusal), self._backoff.rate_limited(refusal.until_reset))
        elif refusal.status in _NOT_ALLOWED and asked_for_more:
            self._takes_backfill = False
            self._try_later(f"{refusal}; asking without backfill_minutes", 0.0)
        elif refusal.is_final and not self._was_connected:
            hint = _HINTS.get(refusal.status, "check the options of the stream").format(
                self._settings.token_variable
            )
            raise ConnectorError(f"X refuses the stream: {refusal}\n  hint: {hint}")
        else:
            # The rules may have been deleted by others.
            self._has_rules = not self._settings.rules
            self._try_later(str(refusal), self._backoff.http())

    def _leave(self, reason: str, problems: Sequence[ApiProblem]) -> None:
        """Close a connection, and schedule the next attempt: at once if this one was good."""
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
        said = self._token.hidden_in(reason)
        self.link.failed(said, _HINT)
        _log.warning("%s; trying again in %.2f s", said, wait)
        self._try_at = self._clock() + wait

    # Posts ------------------------------------------------------------------------------------

    def _new(self, messages: Messages) -> pa.BinaryArray:
        """Return the new posts; lines without an id count as new."""
        has_id = messages.ids != NO_ID
        is_new = ~has_id
        is_new[has_id] = self._recent.add(messages.ids[has_id])
        self.counts["again"] += len(is_new) - int(is_new.sum())
        self.counts["unreadable"] += len(is_new) - int(has_id.sum())
        return messages.posts if is_new.all() else messages.posts.filter(pa.array(is_new))

    def _last_line(self) -> Messages:
        """Return the connection's last line if it is complete; else it is lost, or comes again."""
        rest = Messages.of(self._lines.feed(b"\n"))
        self.counts["cut off"] += int((rest.ids == NO_ID).sum())
        return rest.readable()

    def _records(self, posts: pa.BinaryArray) -> pa.RecordBatch | None:
        if not len(posts):
            return None
        received = pa.scalar(int(self._now() * 1_000_000), self.schema.field("received").type)
        return pa.record_batch([posts, pa.repeat(received, len(posts))], schema=self.schema)
