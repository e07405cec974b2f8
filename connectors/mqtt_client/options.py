"""Options of a stream of MQTT messages: broker, subscription and client."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from connectors import ConnectorError

PORTS = {"mqtt": 1883, "mqtts": 8883}
"""Schemes of brokers' addresses, with their usual ports."""
VERSIONS = ("5", "3.1.1")
SESSIONS = ("persistent", "clean")
USER, PASSWORD = "ACQUATOP_MQTT_USER", "ACQUATOP_MQTT_PASSWORD"
"""Default environment variables of the user and the password."""
_URL = "write mqtt://HOST[:PORT], or mqtts://HOST[:PORT] for TLS"
_TOPICS = (
    "write filters with commas between them, such as plant/+/vibration, or a JSON list; # stands "
    "at the end"
)
_SHARED = re.compile(r"\$share/[^/+#]+/.+")


@dataclass(frozen=True)
class Will:
    """Message that the broker sends to others when this client is lost."""

    topic: str
    message: str
    qos: int
    retain: bool


@dataclass(frozen=True)
class MqttOptions:
    """A broker, a subscription, and a session.

    Holds no secrets, only the names of the variables and files that hold them.
    """

    host: str
    port: int
    tls: bool
    topics: tuple[str, ...]
    qos: int = 1
    version: str = "5"
    client_id: str | None = None
    session: str = "persistent"
    session_expiry: int = 86_400
    receive_maximum: int = 2_000
    keep_alive: int = 30
    patience: int = 30
    quiet_ms: int = 1_000
    max_message_bytes: int = 8 << 20
    user_variable: str = USER
    password_variable: str = PASSWORD
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    will: Will | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def read_options(options: Mapping[str, str]) -> MqttOptions:
    """Return the parsed options; raise :class:`~connectors.ConnectorError` for invalid ones.

    >>> read_options(
    ...     {"url": "mqtts://broker.example", "topics": "plant/+/vibration, $share/acquatop/erp/#"}
    ... ).topics
    ('plant/+/vibration', '$share/acquatop/erp/#')
    """
    for name, hint in (("url", _URL), ("topics", _TOPICS)):
        if not options.get(name):
            raise ConnectorError(f'the connector "mqtt" needs the option {name}\n  hint: {hint}')
    host, port, tls = _address(options["url"])
    return MqttOptions(
        host=host,
        port=port,
        tls=tls,
        topics=_topics(options["topics"]),
        qos=_number(options, "qos", MqttOptions.qos, 0, 2),
        version=_choice(options, "version", VERSIONS),
        client_id=options.get("clientId"),
        session=_choice(options, "session", SESSIONS),
        session_expiry=_number(options, "sessionExpiry", MqttOptions.session_expiry, 0, 2**32 - 1),
        receive_maximum=_number(options, "receiveMaximum", MqttOptions.receive_maximum, 1, 65_535),
        keep_alive=_number(options, "keepAlive", MqttOptions.keep_alive, 1, 65_535),
        patience=_number(options, "patience", MqttOptions.patience, 0),
        quiet_ms=_number(options, "quietMs", MqttOptions.quiet_ms, 0),
        max_message_bytes=_number(options, "maxMessageBytes", MqttOptions.max_message_bytes, 1),
        user_variable=options.get("userVariable", USER),
        password_variable=options.get("passwordVariable", PASSWORD),
        ca_file=options.get("caFile"),
        certificate_file=options.get("certificateFile"),
        key_file=options.get("keyFile"),
        will=_will(options),
    )


def _address(url: str) -> tuple[str, int, bool]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConnectorError(
            f'the option url of the connector "mqtt" cannot be read\n  hint: {_URL}'
        ) from None
    if parts.username is not None or parts.password is not None:
        hint = f"set {USER} and {PASSWORD} in the environment"
        raise ConnectorError(
            f'the option url of the connector "mqtt" holds no user and no password\n  hint: {hint}'
        )
    if parts.scheme not in PORTS or not host or parts.path.strip("/") or parts.query:
        raise ConnectorError(
            f'the option url of the connector "mqtt" names no broker\n  hint: {_URL}'
        )
    return host, port or PORTS[parts.scheme], parts.scheme == "mqtts"


def _topics(text: str) -> tuple[str, ...]:
    """Return the filters in a text: separated by commas, or a JSON list."""
    try:
        written = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
        topics = tuple(str(each).strip() for each in written)
    except ValueError:
        topics = ("",)
    for topic in topics:
        if not _is_filter(topic):
            shown = f'"{topic}" is no topic filter'
            raise ConnectorError(
                f'in the option topics of the connector "mqtt" {shown}\n  hint: {_TOPICS}'
            )
    return topics


def _is_filter(topic: str) -> bool:
    if topic.startswith("$share/"):
        if not _SHARED.fullmatch(topic):
            return False
        topic = topic.split("/", 2)[2]
    levels = topic.split("/")
    alone = all(level in "+#" or not set(level) & {"+", "#", "\0"} for level in levels)
    return bool(topic) and alone and "#" not in levels[:-1]


def _number(
    options: Mapping[str, str], name: str, default: int, least: int, most: int | None = None
) -> int:
    written = options.get(name)
    if written is None:
        return default
    if not re.fullmatch(r"\d{1,10}", written) or not least <= int(written) <= (most or 2**62):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ConnectorError(
            f'the option {name} of the connector "mqtt" is a whole number {limits}, not "{written}"'
        )
    return int(written)


def _choice(options: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    value = options.get(name, known[0])
    if value not in known:
        raise ConnectorError(
            f'the option {name} of the connector "mqtt" is {" or ".join(known)}, not "{value}"'
        )
    return value


def _will(options: Mapping[str, str]) -> Will | None:
    topic = options.get("willTopic")
    if topic is None:
        return None
    if not topic or set(topic) & {"+", "#", "\0"}:
        raise ConnectorError(
            f'the option willTopic of the connector "mqtt" is a topic, not "{topic}"'
        )
    retain = options.get("willRetain", "false").lower() == "true"
    return Will(topic, options.get("willMessage", ""), _number(options, "willQos", 0, 0, 2), retain)
