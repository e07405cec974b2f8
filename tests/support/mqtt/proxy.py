"""Proxy between a client and a broker that breaks the connection at a given byte."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum


class Way(Enum):
    TO_CLIENT = "to the client"
    TO_BROKER = "to the broker"


class Proxy:
    """Proxy that carries bytes both ways; :meth:`at` sets an action after some bytes of one way."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._left: dict[Way, tuple[int, Callable[[], None]]] = {}
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.happened = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def at(self, way: Way, count: int, action: Callable[[], None]) -> None:
        """Do something when so many more bytes have gone one way,
        and let none after them through.
        """
        self.happened.clear()
        with self._lock:
            self._left[way] = (count, action)

    def cut(self) -> None:
        """Break all connections, as if the other side had gone."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in (end for pair in pairs for end in pair):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, broker))
            for way, source, target in (
                (Way.TO_BROKER, client, broker),
                (Way.TO_CLIENT, broker, client),
            ):
                threading.Thread(
                    target=self._carry, args=(way, source, target), daemon=True
                ).start()

    def _carry(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(4096):
                action = None
                with self._lock:
                    if way in self._left:
                        left, due = self._left[way]
                        if len(piece) >= left:
                            piece, action = piece[:left], due
                            del self._left[way]
                        else:
                            self._left[way] = (left - len(piece), due)
                target.sendall(piece)
                if action is not None:
                    action()
                    self.happened.set()
                    return
            target.shutdown(socket.SHUT_WR)
