"""What a server answered with success, while it comes in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from urllib3 import BaseHTTPResponse

from replica.http.causes import FAILURES
from replica.remotes import RemoteError

_PIECE = 1 << 16
_AT_ONCE = 1 << 18
"""How many bytes are read as fast as they come."""
_THEN, _PAUSE = 1 << 12, 0.0002
"""How many bytes more are read at a time, and for how many seconds others have their turn in between."""


class Reply:
    """The answer to a request, like a file of bytes that is read once, from one thread.

    Reading raises :class:`RemoteError` when the request's time is over, when there are more than
    ``longest`` bytes, and when the answer ends before its end.

    Python runs one thread at a time, and whoever gives way for a moment, as an answer being made does hundreds of
    times, gets its turn back only when the others give way, too. So what is long is read little by little.
    """

    def __init__(
        self,
        raw: BaseHTTPResponse,
        *,
        longest: int,
        failed: Callable[[BaseException], RemoteError],
        too_long: Callable[[], RemoteError],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._raw, self._failed, self._too_long, self._pause = raw, failed, too_long, pause
        self._left = longest
        self._at_once = _AT_ONCE

    @property
    def status(self) -> int:
        """Its status, one of success: 200 to 299."""
        return self._raw.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers; their names may be written in any case."""
        return self._raw.headers

    def read(self, n: int = -1) -> bytes:
        """Return what has come, from one byte to ``n``, or nothing at the end; all there is when negative."""
        if n < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        if n == 0:
            return b""
        if self._at_once <= 0:
            self._pause(_PAUSE)
            n = min(n, _THEN)
        piece = self._read(n)
        self._left -= len(piece)
        self._at_once -= len(piece)
        if self._left < 0:
            raise self._too_long()
        return piece

    def _read(self, n: int) -> bytes:
        try:
            return self._raw.read1(n, decode_content=False)
        except FAILURES as error:
            failure = self._failed(error)
        # Out here, where the library's error with all that it quotes is no part of it.
        raise failure
