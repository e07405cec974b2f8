"""A real MQTT broker for examples: Mosquitto, on a free loopback port, without persistence."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from acquatop.errors import EnvironmentProblem
from examples.oxigraph import free_port

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_PATIENCE_SECONDS = 30.0
_SETTINGS = "user root\nallow_anonymous true\nmax_inflight_messages 2000\nlog_type error\n"


class MosquittoBroker:
    """Broker that runs while the context is open."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="acquatop-mosquitto-")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = shutil.which("mosquitto", path=_PATH)
        if command is None:
            hint = "apt-get install mosquitto (Debian, Ubuntu), brew install mosquitto (macOS)"
            raise EnvironmentProblem(f"there is no MQTT broker: the program mosquitto is not installed\n  hint: {hint}")
        settings = Path(self._folder.name) / "mosquitto.conf"
        settings.write_text(f"listener {self.port} 127.0.0.1\n{_SETTINGS}", "utf-8")
        self._process = subprocess.Popen([command, "-c", str(settings)])  # noqa: S603
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE_SECONDS)
        self._folder.cleanup()
