"""Real MQTT broker on loopback with three ports: an open one, one with passwords, one with TLS."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

from examples.mosquitto import PLACES
from examples.server_process import ATTEMPTS, free_ports, is_taken
from tests.support.certificate import CERTIFICATE
from tests.support.programs import PATIENCE

MOSQUITTO = shutil.which("mosquitto", path=PLACES)
PASSWD = shutil.which("mosquitto_passwd", path=PLACES)
USER, PASSWORD = "ann", "xyzzy-plugh"


class Mosquitto:
    """Broker that can be killed, frozen and restarted on the same ports, without persistence.

    ``settings`` may add persistence. ``log`` names the kind of messages to log. ``tls`` has
    settings for the port with TLS.
    """

    def __init__(self, folder: Path, settings: str = "", log: str = "all", tls: str = "") -> None:
        self._configuration = folder / "mosquitto.conf"
        self._settings = f"log_type {log}\n{settings}\n"
        self._tls = tls
        self._make_accounts(folder)
        for _ in range(ATTEMPTS):
            self.port, self.guarded_port, self.tls_port = ports = free_ports(3)
            self._configure(folder)
            try:
                self.start()
            except AssertionError:
                self.kill()
                if any(map(is_taken, ports)):
                    continue  # by another process, between the choice and the start
                raise
            return
        raise AssertionError("the broker's ports are taken again and again")

    def _make_accounts(self, folder: Path) -> None:
        passwords, access = folder / "passwords", folder / "access"
        passwords.touch(0o600)
        subprocess.run(
            [str(PASSWD), "-b", str(passwords), USER, PASSWORD], check=True, capture_output=True
        )
        access.write_text(f"user {USER}\ntopic write answers/#\n")
        access.chmod(0o600)

    def _configure(self, folder: Path) -> None:
        passwords, access = folder / "passwords", folder / "access"
        self._configuration.write_text(
            f"user root\nper_listener_settings true\nlog_dest stderr\n{self._settings}"
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
            f"listener {self.guarded_port} 127.0.0.1\nallow_anonymous false\n"
            f"password_file {passwords}\nacl_file {access}\n"
            f"listener {self.tls_port} 127.0.0.1\nallow_anonymous true\ncertfile {CERTIFICATE}\n"
            f"keyfile {CERTIFICATE}\n"
            f"{self._tls}\n"
        )

    def start(self) -> None:
        command = [str(MOSQUITTO), "-c", str(self._configuration)]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self.wait_for(" running")

    def wait_for(self, text: str) -> None:
        """Return when the broker has logged a text."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if text in line:
                return
        raise AssertionError(f"the broker has ended without a word of {text!r}")

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def save(self) -> None:
        """Tell it to write down what it is to keep."""
        self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """Let it end by itself, which keeps what it is to keep."""
        self._process.terminate()
        self._process.wait(PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
