"""HTTP client for one remote: deadlines, no redirects, and errors with a reason."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
from urllib3 import BaseHTTPResponse

from replica.http.auth import Auth, Secret
from replica.http.error_causes import FAILURES, cause
from replica.http.messages import Redactor, printable, shown
from replica.http.reply import Reply
from replica.http.retry import retry_after, until_reset
from replica.http.transport import Transport
from replica.remotes import RemoteError

_LONGEST_ERROR = 4096
"""Most bytes read of an error reply's body."""
_AGENT = "AcquaTop"
_UNAUTHORIZED = 401
_TOO_LARGE = (413, 414, 431)
_ADDRESS = re.compile(r"https?://[!-~]+", re.IGNORECASE)


@dataclass(frozen=True)
class Request:
    """Request to send: an http or https address without user and password."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class HttpClient:
    """Client that sends requests and returns replies; threads may share it.

    ``name`` names the remote in messages. Up to ``connections`` are kept open for reuse. A request
    is sent once, over a connection that appears to be open; with ``auth`` it is authenticated.
    ``headers`` are sent with every request; ``user_agent`` says who sends them. Neither the former
    nor the ``secrets``, which are parts of addresses, appear in messages. Replies of
    more than ``longest_reply`` bytes are refused. Certificates are verified, against the file
    ``authorities`` if given. ``now`` is the wall clock, for dates in replies. ``used_up`` is called
    with the number of seconds if a reply says that no requests are left for that time.
    """

    def __init__(
        self,
        *,
        name: str,
        connections: int = 4,
        auth: Auth | None = None,
        secrets: Sequence[Secret] = (),
        headers: Mapping[str, Secret] | None = None,
        user_agent: str = "",
        longest_reply: int = 16 << 20,
        authorities: Path | None = None,
        now: Callable[[], float] = time.time,
        used_up: Callable[[float], None] | None = None,
    ) -> None:
        self._name, self._auth, self._longest, self._now = name, auth, longest_reply, now
        self._used_up = used_up
        self._headers = dict(headers or {})
        self._agent = f"{user_agent} {_AGENT}" if user_agent else _AGENT
        self._secrets = tuple(secret.reveal() for secret in (*secrets, *self._headers.values()))
        self._redactor: tuple[tuple[str, ...], Redactor] = ((), Redactor(()))
        self._transport = Transport(connections, authorities)

    @contextmanager
    def send(self, request: Request, timeout: float) -> Iterator[Reply]:
        """Send a request and yield the successful reply (2xx), to be read within the context.

        ``timeout`` covers everything, from the name lookup to the last byte. Raises
        :class:`RemoteError`, at the latest then. Leaving the context before the reply's end closes
        the connection.
        """
        raw = self._open(request, time.monotonic() + timeout)
        try:
            wait = self._wait_said(raw)
            if wait and self._used_up:
                self._used_up(wait)
            self._check(request, raw)
            yield Reply(raw, longest=self._longest, failed=self._failed, too_long=self._too_long)
        finally:
            raw.close()

    def close(self) -> None:
        """Close idle connections; those in use end with their requests."""
        self._transport.close()

    @property
    def _redacted(self) -> Redactor:
        """The filter for messages; secrets of an authentication may change."""
        secrets = (*(self._auth.secrets() if self._auth else ()), *self._secrets)
        known, redactor = self._redactor
        if known != secrets:
            redactor = Redactor(secrets)
            self._redactor = secrets, redactor
        return redactor

    def _open(self, request: Request, deadline: float) -> BaseHTTPResponse:
        self._check_address(request.url)
        headers = {"User-Agent": self._agent, **request.headers, "Accept-Encoding": "identity"}
        try:
            prepared = requests.Request(
                request.method, request.url, headers=headers, data=request.body
            ).prepare()
            # Not in local variables, which a printed traceback might show.
            prepared.headers.update({name: text.reveal() for name, text in self._headers.items()})
            if self._auth:
                prepared.headers["Authorization"] = self._auth.header(deadline)
            return self._transport.open(prepared, deadline)
        except FAILURES as error:
            failure = self._failed(error)
        # Raised here, so that the library's error and its quotes are not attached.
        raise failure

    def _check_address(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            valid = _ADDRESS.fullmatch(url) is not None and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise RemoteError(self._said(f"{shown(url)} is not an http or https address"))
        if "@" in parts.netloc:
            raise RemoteError(
                self._said("its address has a user or a password in it, which belong elsewhere")
            )

    def _check(self, request: Request, raw: BaseHTTPResponse) -> None:
        """Raise unless a reply is successful, short enough, and not compressed."""
        if not 200 <= raw.status < 300:
            raise self._refusal(request, raw)
        encoding = raw.headers.get("Content-Encoding", "").strip()
        if encoding.lower() not in ("", "identity"):
            raise RemoteError(
                self._said(
                    f"the answer is encoded as {self._redacted.line(encoding)}, which was "
                    "not asked for"
                )
            )
        if raw.length_remaining is not None and raw.length_remaining > self._longest:
            raise self._too_long()

    def _refusal(self, request: Request, raw: BaseHTTPResponse) -> RemoteError:
        place = raw.headers.get("Location")
        if 300 <= raw.status < 400 and place is not None:
            target = self._redacted.line(shown(_joined(request.url, place)))
            return RemoteError(
                f"{self._name} redirects to {target}; if that is right, write it in the catalog"
            )
        if raw.status == _UNAUTHORIZED and self._auth:
            self._auth.refused()
        reason = self._redacted.line(raw.reason or "")
        remark = self._remark(raw)
        # Not only with 429 and 503: there are servers that refuse so with 403 and 405.
        wait = self._asked_to_wait(raw)
        status = f"HTTP {raw.status} {reason}".rstrip()
        return RemoteError(
            self._said(f"{status}: {remark}" if remark else status),
            retry_after=wait,
            too_large=raw.status in _TOO_LARGE,
            status=raw.status,
        )

    def _wait_said(self, raw: BaseHTTPResponse) -> float | None:
        """Return the wait that a reply says is in order; a refusal's own is with its error."""
        is_good = 200 <= raw.status < 300
        return self._asked_to_wait(raw) if is_good else until_reset(raw.headers, self._now())

    def _asked_to_wait(self, raw: BaseHTTPResponse) -> float | None:
        wait = retry_after(raw.headers.get("Retry-After"), self._now())
        return until_reset(raw.headers, self._now()) if wait is None else wait

    def _remark(self, raw: BaseHTTPResponse) -> str:
        """Return the body of an error reply, or its beginning."""
        try:
            # One piece only: a slow sender is not read to the end.
            said = raw.read1(_LONGEST_ERROR, decode_content=False)
        except FAILURES:
            return ""
        return self._redacted.line(self._redacted.end(said.decode(errors="replace")))

    def _failed(self, error: BaseException) -> RemoteError:
        words, is_slow = cause(error)
        return RemoteError(
            self._said(self._redacted.line(words)), too_large=is_slow, timed_out=is_slow
        )

    def _too_long(self) -> RemoteError:
        return RemoteError(
            self._said(f"the answer has more than {self._longest} bytes"), too_large=True
        )

    def _said(self, words: str) -> str:
        return f"{self._name} failed: {self._redacted(printable(words))}"


def _joined(url: str, place: str) -> str:
    try:
        return urljoin(url, place)
    except ValueError:
        return place
