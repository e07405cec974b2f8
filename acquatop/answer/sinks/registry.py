"""Registry of sinks by the text that names them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from acquatop.answer.sinks.contract import Sink
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.ndjson import ndjson_sink
from acquatop.answer.sinks.ntriples import ntriples_sink
from acquatop.answer.sinks.parquet import ParquetSink
from acquatop.answer.sinks.results_csv import results_csv_sink
from acquatop.answer.sinks.results_json import results_json_sink
from acquatop.answer.sinks.results_tsv import results_tsv_sink
from acquatop.answer.sinks.stdout import StdoutSink
from acquatop.answer.sinks.turtle import turtle_sink
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.plugins import SINKS
from connectors import ConnectorError
from connectors.kafka_client.settings import SCHEMES as KAFKA
from connectors.kafka_client.settings import brokers_of
from connectors.object_store.address import FORMS, StoreAddress, is_address
from replica.http.auth import Secret
from rspql.diagnostics import nearest

PATHS: Mapping[str, tuple[str, Callable[[FilePlace], Sink]]] = {
    "ndjson": ("PATH", ndjson_sink),
    "canonical": ("PATH", lambda path: ndjson_sink(path, canonical=True)),
    "srj": ("FOLDER", results_json_sink),
    "csv": ("FOLDER", results_csv_sink),
    "tsv": ("FOLDER", results_tsv_sink),
    "nt": ("FOLDER", ntriples_sink),
    "ttl": ("FOLDER", turtle_sink),
    "parquet": ("FOLDER", ParquetSink),
}
"""Kinds of sinks with a path: the kind of path, and the function that opens the sink."""
BROKERS = {"mqtt": 1883, "mqtts": 8883}
"""Kinds of brokers, and their usual ports."""
USER, PASSWORD = "ACQUATOP_MQTT_USER", "ACQUATOP_MQTT_PASSWORD"
TARGETS = (
    *(f"{kind}:{place}" for kind, (place, _) in PATHS.items()),
    "stdout",
    *(f"{kind}://HOST[:PORT]/PREFIX" for kind in BROKERS),
    *(f"{kind}://HOST[:PORT]/TOPIC" for kind in KAFKA),
)
"""Forms of a target."""


def open_sink(target: str, environment: Mapping[str, str] = os.environ) -> Sink:
    """Return the sink that a target names, ready to be written to.

    Raises :class:`~acquatop.errors.UserError` for a target that names none, and
    :class:`~acquatop.errors.EnvironmentProblem` if it cannot be written to.

    >>> open_sink("cvs:answers")
    Traceback (most recent call last):
    acquatop.errors.UserError: there is no kind of sink "cvs"
      hint: did you mean csv:FOLDER? The kinds are ndjson:PATH, canonical:PATH, srj:FOLDER,
      csv:FOLDER, tsv:FOLDER, nt:FOLDER, ttl:FOLDER, parquet:FOLDER, stdout,
      mqtt://HOST[:PORT]/PREFIX, mqtts://HOST[:PORT]/PREFIX, kafka://HOST[:PORT]/TOPIC,
      kafkas://HOST[:PORT]/TOPIC
    """
    kind, _, place = target.partition(":")
    if target == "stdout":
        return StdoutSink()
    if kind in PATHS:
        return _open_path(kind, place)
    if kind in BROKERS:
        return _open_broker(kind, target, environment)
    if kind in KAFKA:
        return _open_kafka(kind, target)
    if kind in SINKS:
        sink: Sink = SINKS[kind](place)
        return sink
    # Quote only the kind: the rest could hold a password.
    raise UserError(f'there is no kind of sink "{kind[:60]}"\n  hint: {_hint(kind)}')


def _open_path(kind: str, place: str) -> Sink:
    what, opened = PATHS[kind]
    if not place or "\0" in place:
        raise UserError(f"{kind} needs a path\n  hint: write {kind}:{what}")
    if not is_address(place):
        path = unquote(urlsplit(place).path) if place.startswith("file://") else place
        return opened(Path(path).expanduser())
    try:
        return opened(StoreAddress.parse(place))
    except ValueError as error:
        raise UserError(
            f"answers cannot go to {kind}:{place.partition('?')[0]}: {error}\n"
            f"  hint: write {kind}:{what} or {kind}: with {FORMS}"
        ) from None


def _open_broker(kind: str, target: str, environment: Mapping[str, str]) -> Sink:
    form = f"{kind}://HOST[:PORT]/PREFIX"
    try:
        parts = urlsplit(target)
        host, port = parts.hostname, parts.port or BROKERS[kind]
    except ValueError:
        raise UserError(
            f"this is no {kind} target: its host or port cannot be read\n  hint: write {form}"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise UserError(
            "a target holds no user and no password\n"
            f"  hint: set {USER} and {PASSWORD}, and write {form}"
        )
    prefix = unquote(parts.path).strip("/")
    if not host or not prefix or parts.query or parts.fragment:
        raise UserError(f"{kind} needs a host and a topic's beginning\n  hint: write {form}")
    if re.search(r"[+#\0\ud800-\udfff]", prefix) or prefix.startswith("$"):
        raise UserError(
            f'nothing can be published to "{prefix}"\n  hint: PREFIX is a topic, without + and #'
        )
    from acquatop.answer.sinks.mqtt import Broker, MqttSink

    user, password = (
        Secret(environment[name]) if environment.get(name) else None for name in (USER, PASSWORD)
    )
    return MqttSink(Broker(host, port, kind == "mqtts", user, password), prefix)


def _open_kafka(kind: str, target: str) -> Sink:
    form = f"{kind}://HOST[:PORT][,HOST…]/TOPIC[?writer=NAME]"
    try:
        parts = urlsplit(target)
        brokers = brokers_of(parts)
    except (ValueError, ConnectorError) as error:
        raise UserError(f"this is no {kind} target: {error}") from None
    topic, options = parts.path.strip("/"), parse_qs(parts.query)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or options.keys() - {"writer"}:
        raise UserError(f"{kind} needs brokers and a topic\n  hint: write {form}")
    try:
        from acquatop.answer.sinks.kafka import KafkaSink

        return KafkaSink(brokers, topic, writer=options.get("writer", [None])[0])
    except ModuleNotFoundError as missing:
        if missing.name != "confluent_kafka":
            raise
        raise EnvironmentProblem(
            'answers to Kafka need confluent-kafka\n  hint: pip install "acquatop[kafka]"'
        ) from None


def _hint(kind: str) -> str:
    known = (*TARGETS, *(f"{name}:…" for name in SINKS))
    listed = f"The kinds are {', '.join(known)}"
    named = Path(kind).suffix.removeprefix(".")
    if named in PATHS:
        return f"did you mean {named}:{kind}? {listed}"
    forms = {form.partition(":")[0]: form for form in known}
    near = nearest(kind.lower(), forms)
    return f"did you mean {forms[near]}? {listed}" if near else listed
