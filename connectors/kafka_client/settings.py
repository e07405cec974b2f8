"""Settings of a client of Kafka: the brokers' addresses, TLS and SASL, with secrets kept apart."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from connectors import ConnectorError

SCHEMES = {"kafka": False, "kafkas": True}
"""Schemes of addresses, and whether they mean TLS."""
USER, PASSWORD = "ACQUATOP_KAFKA_USER", "ACQUATOP_KAFKA_PASSWORD"
SETTINGS = "ACQUATOP_KAFKA_SETTINGS"
_PORT = 9092
_FORM = "write kafka://HOST[:PORT][,HOST…], or kafkas:// for TLS"
_OWN = ("bootstrap.servers", "transactional.id", "enable.auto.commit", "isolation.level")
_TLS = ("PLAINTEXT", "SSL")


@dataclass(frozen=True)
class Brokers:
    """Addresses of a cluster's brokers, and where the secrets for them are.

    ``settings_file`` is a file of ``NAME=VALUE`` lines with settings of librdkafka. The user and
    the password are read from environment variables whenever a client is made.
    """

    servers: str
    tls: bool = False
    settings_file: str | None = None
    user_variable: str = USER
    password_variable: str = PASSWORD

    def __str__(self) -> str:
        return self.servers

    def client(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings of a client; raise :class:`~connectors.ConnectorError` for bad ones.

        With a user the mechanism is PLAIN unless the file says another.

        >>> Brokers("b:9092", tls=True).client({USER: "ann", PASSWORD: "xyzzy"})["sasl.mechanism"]
        'PLAIN'
        """
        file = self.settings_file or environment.get(SETTINGS)
        settings = {} if not file else _read(Path(file))
        user = environment.get(self.user_variable)
        settings.setdefault("security.protocol", f"{'SASL_' if user else ''}{_TLS[self.tls]}")
        if user:
            settings.setdefault("sasl.mechanism", "PLAIN")
            settings["sasl.username"] = user
            settings["sasl.password"] = environment.get(self.password_variable, "")
        return {**settings, "bootstrap.servers": self.servers}


def brokers(url: str, **more: str | None) -> Brokers:
    """Return the brokers that an address names.

    Raises :class:`~connectors.ConnectorError` for an address that names none.

    >>> brokers("kafkas://a:9093,b").servers
    'a:9093,b:9092'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConnectorError(f"the address of Kafka cannot be read\n  hint: {_FORM}") from None
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ConnectorError(f"the address of Kafka has more than brokers\n  hint: {_FORM}")
    return brokers_of(parts, **more)


def brokers_of(parts: SplitResult, **more: str | None) -> Brokers:
    """Return the brokers that an address names, which may go on behind them."""
    if "@" in parts.netloc:
        raise ConnectorError(
            "the address of Kafka holds no user and no password\n"
            f"  hint: set {USER} and {PASSWORD} in the environment"
        )
    servers = [_with_port(each) for each in parts.netloc.split(",") if each]
    if parts.scheme not in SCHEMES or not servers:
        raise ConnectorError(f"the address of Kafka names no broker\n  hint: {_FORM}")
    given = {name: value for name, value in more.items() if value}
    return Brokers(",".join(servers), SCHEMES[parts.scheme], **given)


def _with_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return f"{host}:{_PORT}"
    if not name or not port.isdigit():
        raise ConnectorError(f'"{host}" is no broker of Kafka\n  hint: {_FORM}')
    return host


def _read(path: Path) -> dict[str, str]:
    """Return the settings in a file; comments begin with ``#``."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectorError(f"the settings of Kafka cannot be read: {error}") from None
    found = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            # The line may be a secret.
            raise ConnectorError(f"a line of {path} is not NAME=VALUE\n  hint: # begins a comment")
        found[name.strip()] = value.strip()
    if fixed := sorted(found.keys() & set(_OWN)):
        raise ConnectorError(f"{path} must not set {fixed[0]}: the connector does")
    return found
