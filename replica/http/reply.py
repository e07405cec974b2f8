"""What a server answered with success, while it comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from urllib3 import BaseHTTPResponse

from replica.http.causes import FAILURES
from replica.remotes import RemoteError

_PIECE = 1 << 16


class Reply:
    """The answer to a request, like a file of bytes that is read once, from one thread.

    Reading raises :class:`RemoteError` when the request's time is over, when there are more than
    ``longest`` bytes, and when the answer ends before its end.
    """

    def __init__(
        self,
        raw: BaseHTTPResponse,
        *,
        longest: int,
        failed: Callable[[BaseException], RemoteError],
        too_long: Callable[[], RemoteError],
    ) -> None:
        self._raw, self._failed, self._too_long = raw, failed, too_long
        self._left = longest

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
        piece = self._read(n)
        self._left -= len(piece)
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
