"""A real MQTT broker for examples: Mosquitto, on a free loopback port, without persistence."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from acquatop.errors import EnvironmentProblem
from replica.clocks import Clock

from .server_process import ServerProcess

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_SETTINGS = "user root\nallow_anonymous true\nmax_inflight_messages 2000\nlog_type error\n"
_REPLY_SECONDS = 5.0
_CONNECT = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00"
"""A CONNECT of MQTT 5 without a client's identifier: the broker makes one, for its CONNACK."""
_DISCONNECT = b"\xe0\x00"


class MosquittoBroker:
    """Broker that runs, and answers, while the context is open; ``places`` may have its program."""

    def __init__(self, *, clock: Clock = time.monotonic, places: str = PLACES) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="acquatop-mosquitto-")
        self._clock = clock
        self._places = places
        self._process: ServerProcess | None = None
        # It begins the identifiers that the broker makes: so it is known that it is ours.
        self._mark = secrets.token_hex(8)

    @property
    def port(self) -> int:
        """Port on which it listens."""
        return 0 if self._process is None else self._process.port

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"mqtt://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        program = shutil.which("mosquitto", path=self._places)
        if program is None:
            hint = "apt-get install mosquitto (Debian, Ubuntu), brew install mosquitto (macOS)"
            raise EnvironmentProblem(
                f"there is no MQTT broker: the program mosquitto is not installed\n  hint: {hint}"
            )
        settings = Path(self._folder.name) / "mosquitto.conf"

        def command(port: int) -> list[str]:
            listener = f"listener {port} 127.0.0.1\nauto_id_prefix {self._mark}\n"
            settings.write_text(f"{_SETTINGS}{listener}", "utf-8")
            return [program, "-c", str(settings)]

        self._process = ServerProcess("the MQTT broker", command, self._answers, clock=self._clock)
        self._process.start()

    def _answers(self, process: ServerProcess) -> bool:
        """Say whether this very broker lets clients in."""
        reply = b""
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", process.port), _REPLY_SECONDS) as client,
        ):
            client.sendall(_CONNECT)
            while self._mark.encode() not in reply and (more := client.recv(256)):
                reply += more
            client.sendall(_DISCONNECT)
        return self._mark.encode() in reply

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()
