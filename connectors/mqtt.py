"""Stream of messages from an MQTT broker: with QoS 1 none is lost, and none is seen twice.

In plain PySpark::

    from connectors.mqtt import MqttDataSource

    spark.dataSource.register(MqttDataSource)
    messages = (
        spark.readStream.format("mqtt")
        .option("url", "mqtt://127.0.0.1:1883")
        .option("topics", "plant/+/vibration")
        .option("log", "received/")
        .load()
    )

A row is a message: its content (``value``), its ``topic``, the time at which it was ``received``,
its ``qos``, ``retain`` (true if the broker had retained it), the broker's number for it
(``packet``, 0 with QoS 0), the content's ``size``, and its ``position`` among all received
messages.

Messages are written to a durable log first (see :mod:`connectors.live`) and acknowledged after
that. With QoS 1 and 2 and a persistent session the broker sends again, marked as such, every
message whose acknowledgement it does not have. A message that came before is recognised by the
broker's number, the topic and the content, and skipped
(:class:`connectors.mqtt_client.seen_messages.SeenMessages`). With QoS 2 that holds while the
broker lives. A broker that was restored from an older copy sends messages again as new ones: then
only the option ``messageId`` tells. With QoS 0 a broker keeps nothing for clients that are away or
slow.

Options:

- ``url``: the broker, ``mqtt://HOST[:PORT]`` or ``mqtts://HOST[:PORT]`` for TLS.
- ``topics``: topic filters separated by commas, or a JSON list of them; with ``+`` and ``#``, and
  ``$share/GROUP/FILTER`` for subscriptions that several clients share.
- ``qos``: 0, 1 or 2, 1 by default.
- ``log``: a folder for this log alone on a local disk, which executors see under the same path.
- ``maxLogBytes``: maximum size of the log, 1 GiB by default. A full log receives nothing.
- ``maxBytesPerBatch``: maximum size of one batch, 64 MiB by default.
- ``maxPartitions``: maximum number of partitions, of 4 MiB at least, of a batch, one per core by
  default.
- ``commits``: ``batch`` if Spark's commit of a batch releases its records, ``owner`` if only a
  request does.
- ``messageId``: what tells a repeated message from a new one, to drop it: ``payload`` for topic
  and content, ``field:NAME`` for a field of JSON; by default only what the broker says counts.
- ``duplicateWindow``: seconds for which messages are remembered for that, 3600 by default.
- ``version``: ``5`` or ``3.1.1``, 5 by default.
- ``clientId``: this client's name, made up once per log by default.
- ``session``: ``persistent``, or ``clean`` to receive nothing that was sent meanwhile.
- ``sessionExpiry``: seconds for which the broker keeps a session (MQTT 5), a day by default.
- ``receiveMaximum``: maximum number of unacknowledged messages (MQTT 5), 2000 by default.
- ``keepAlive``: seconds of silence after which a connection is probed, 30 by default.
- ``patience``: seconds within which the first connection must succeed, 30 by default; later ones
  are retried for ever.
- ``quietMs``: with ``Trigger.AvailableNow``, milliseconds without a message after which the stream
  ends, 1000 by default.
- ``maxMessageBytes``: maximum length of a message, 8 MiB by default. Of a longer one only the
  beginning is kept; ``size`` has its full length.
- ``userVariable``: the environment variable with the user, ``ACQUATOP_MQTT_USER`` by default.
- ``passwordVariable``: the environment variable with the password, ``ACQUATOP_MQTT_PASSWORD`` by
  default.
- ``caFile``: the certificates to trust with TLS, the system's by default.
- ``certificateFile``: this client's certificate, if the broker requires one.
- ``keyFile``: its key, if it is not in the same file.
- ``willTopic``: the topic of the message that the broker sends when this client is lost; none by
  default.
- ``willMessage``: that message's content, empty by default.
- ``willQos``: its quality of service, 0 by default.
- ``willRetain``: ``true`` if the broker retains it.
"""

from __future__ import annotations

import functools
from typing import Any

from connectors.live import LiveReader, log_options
from connectors.live_source import LiveSource
from connectors.log.folder import LogFolder
from connectors.mqtt_client.options import MqttOptions, read_options
from connectors.spark_classes import DataSource


class MqttDataSource(DataSource):
    """The data source ``mqtt``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "mqtt"

    def schema(self) -> str:
        """Return the columns of a row."""
        return (
            "value binary, topic string, received timestamp, qos int, retain boolean, packet "
            "int, size bigint, "
            "position bigint"
        )

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; it connects when first asked for new data."""
        log = log_options("mqtt", self.options)
        return LiveReader(
            functools.partial(_source, read_options(self.options), LogFolder(log.path)), log
        )


def _source(options: MqttOptions, folder: LogFolder) -> LiveSource:
    from connectors.mqtt_client.source import MqttSource

    # The session belongs to the log, which may hold messages that are not acknowledged yet.
    return MqttSource(options, options.client_id or f"acquatop-{folder.log}")
