"""Stream of lines from a TCP server: this end connects, the other one sends lines.

In plain PySpark::

    from connectors.tcp import TcpDataSource

    spark.dataSource.register(TcpDataSource)
    lines = (
        spark.readStream.format("tcp_lines")
        .option("address", "127.0.0.1:9999")
        .option("log", "received/")
        .load()
    )

A row is a line: its bytes, the time at which it was ``received``, and its ``position`` among all
received lines. Lines are written to a durable log before they are read (see
:mod:`connectors.live`): a logged line is read once, whatever is killed. TCP has no acknowledgement
of durable data, so data on its way is lost if this process is killed or the connection breaks. A
lost connection is made anew; the line at which it broke is taken as it is.

Options:

- ``address``: ``HOST:PORT``.
- ``log``, ``maxLogBytes``, ``maxBytesPerBatch``, ``maxPartitions``, ``commits``: see
  :func:`connectors.live.log_options`.
- ``messageId``, ``duplicateWindow``: to drop lines or messages that come again, see there.
- ``maxLineBytes``: maximum length of a line, 8 MiB by default. Of a longer one only the beginning
  is kept, which is a bad line.
- ``patience``: seconds within which the first connection must succeed, 30 by default; later ones
  are retried for ever.
"""

from __future__ import annotations

import functools
import select
import socket
from dataclasses import dataclass
from typing import Any

from connectors import ConnectorError
from connectors.line_buffer import COLUMNS, LONGEST_LINE, LineBuffer
from connectors.live import LiveReader, log_options
from connectors.reconnecting import ReconnectingSource
from connectors.source_status import Link
from connectors.spark_classes import DataSource

_CHUNK = 1 << 20
_MOST_BYTES = 4 << 20
"""Approximate maximum number of bytes received at once, to be made durable together."""
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class TcpAddress:
    """A host and a port."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> TcpAddress:
        """Return the address in a text.

        >>> TcpAddress.parse("[::1]:9999")
        TcpAddress(host='::1', port=9999)
        """
        host, _, port = text.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ConnectorError(f'"{text}" is no address of the connector "tcp": write HOST:PORT')
        return TcpAddress(host.removeprefix("[").removesuffix("]"), int(port))


class TcpDataSource(DataSource):
    """The data source ``tcp_lines``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tcp_lines"

    def schema(self) -> str:
        """Return the columns of a row."""
        return COLUMNS

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; it connects when first asked for new data."""
        address = self.options.get("address")
        if not address:
            raise ConnectorError('the connector "tcp" needs the option address: HOST:PORT')
        log = log_options("tcp", self.options)
        longest = int(self.options.get("maxLineBytes", LONGEST_LINE))
        patience = float(self.options.get("patience", "30"))
        return LiveReader(
            functools.partial(TcpSource, TcpAddress.parse(address), longest, patience), log
        )


class TcpSource(ReconnectingSource):
    """Receiving end of a TCP connection."""

    def __init__(self, address: TcpAddress, longest: int, patience: float) -> None:
        super().__init__(f"{address.host}:{address.port}", patience)
        self.link = Link(
            f"{address.host}:{address.port}",
            silence_hint="see that the server sends whole lines, each with a line break",
        )
        self._address = address
        self._lines = LineBuffer(longest)
        self._socket: socket.socket | None = None

    @property
    def is_connected(self) -> bool:
        """True if there is a connection to read from."""
        return self._socket is not None

    def _connect(self) -> None:
        place = (self._address.host, self._address.port)
        self._socket = socket.create_connection(place, timeout=_CONNECT_SECONDS)
        self._socket.setblocking(False)

    def _read(self, seconds: float) -> list[bytes]:
        """Return the received lines; if the connection is lost, also the unfinished last one."""
        assert self._socket is not None
        if not select.select([self._socket], [], [], seconds)[0]:
            return []
        lines: list[bytes] = []
        size = 0
        try:
            while size < _MOST_BYTES and (data := self._socket.recv(_CHUNK)):
                size += len(data)
                lines += self._lines.add(data)
            if size < _MOST_BYTES:
                raise ConnectionError("the other end has closed it")
        except BlockingIOError:
            pass  # no more data for now
        except OSError as error:
            self._lost(error)
            lines += self._lines.rest()
        return lines

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
