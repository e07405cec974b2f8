"""Successful reply of a server, read as it arrives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from urllib3 import BaseHTTPResponse

from replica.http.error_causes import FAILURES
from replica.remotes import RemoteError

_PIECE = 1 << 16
_AT_ONCE = 1 << 18
"""Bytes that are read at full speed."""
_THEN, _PAUSE = 1 << 12, 0.0002
"""Bytes per read after that, and seconds of pause in between for other threads."""


class Reply:
    """Reply to a request, like a file of bytes that is read once, from one thread.

    Reading raises :class:`RemoteError` if the request's time is over, if there are more than
    ``longest`` bytes, and if the reply is truncated.

    Python runs one thread at a time. A thread that yields for a moment, as an evaluation does
    hundreds of times, gets its turn back only if the others yield too. So long replies are read in
    small pieces.
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
        """Status of success: 200 to 299."""
        return self._raw.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers; their names are case-insensitive."""
        return self._raw.headers

    def read(self, n: int = -1) -> bytes:
        """Return the next bytes, one to ``n``, nothing at the end; all if ``n`` is negative."""
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
        # Raised here, so that the library's error and its quotes are not attached.
        raise failure
