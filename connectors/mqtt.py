"""Messages of an MQTT broker as a stream: with QoS 1 none is lost, and none seen twice.

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

A row is a message: its content (``value``), its ``topic``, when it was ``received``, its ``qos``, whether it had
been kept at its topic (``retain``), the broker's number for it (``packet``, 0 with QoS 0), the content's ``size``,
and its ``position`` among all that was received.

Messages are written to a durable log first (:mod:`connectors.live` says how) and acknowledged after that. With QoS 1
and 2 and a persistent session the broker sends again what it does not know to have come, marked as such; what has come
before is told by the broker's number, the topic and the content, and passed over
(:class:`connectors.mqtt_client.seen.SeenMessages`). With QoS 2 that holds as long as the broker lives. Of QoS 0 a
broker keeps nothing for clients that are away or slow.

Options:

- ``url``: the broker, ``mqtt://HOST[:PORT]`` or ``mqtts://HOST[:PORT]`` for TLS.
- ``topics``: topic filters with commas between them, or a JSON list of them; with ``+`` and ``#``, and
  ``$share/GROUP/FILTER`` for subscriptions that several clients share.
- ``qos``: 0, 1 or 2, 1 unless given.
- ``log``: a folder of its own on a local disk, which the executors see under the same path.
- ``maxLogBytes``: how much may wait there, 1 GiB unless given. Beyond that nothing is received.
- ``maxBytesPerBatch``: how much to read in one batch, 64 MiB unless given.
- ``maxPartitions``: into how many parts, of 4 MiB at least, to cut a batch, one per core unless given.
- ``commits``: ``batch`` if what a batch has read is let go when Spark commits it, ``owner`` if only on request.
- ``version``: ``5`` or ``3.1.1``, 5 unless given.
- ``clientId``: this client's name, made up once per log unless given.
- ``session``: ``persistent``, or ``clean`` to be sent nothing that came meanwhile.
- ``sessionExpiry``: for how many seconds the broker shall keep a session (MQTT 5), a day unless given.
- ``receiveMaximum``: how many messages may be under way (MQTT 5), 2000 unless given.
- ``keepAlive``: after how many seconds of silence a connection is probed, 30 unless given.
- ``patience``: within how many seconds the first connection must come about, 30 unless given; later ones are tried
  for ever.
- ``quietMs``: with ``Trigger.AvailableNow``, after how long without a message the stream ends, 1000 unless given.
- ``maxMessageBytes``: of a longer message (8 MiB unless given) only the beginning is kept; ``size`` says how long it
  was.
- ``userVariable``: the environment variable with the user, ``ACQUATOP_MQTT_USER`` unless given.
- ``passwordVariable``: the environment variable with the password, ``ACQUATOP_MQTT_PASSWORD`` unless given.
- ``caFile``: the certificates to trust with TLS, the system's unless given.
- ``certificateFile``: this client's certificate, if the broker asks for one.
- ``keyFile``: its key, where it is not in the same file.
- ``willTopic``: where the broker says that this client is lost, nowhere unless given.
- ``willMessage``: what it says, nothing unless given.
- ``willQos``: with which quality of service, 0 unless given.
- ``willRetain``: ``true`` if it is kept there.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark.sql.datasource import DataSource

from connectors.live import LiveReader, LiveSource, log_options
from connectors.log.folder import LogFolder
from connectors.mqtt_client.options import MqttOptions, read_options


class MqttDataSource(DataSource):
    """The data source ``mqtt``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "mqtt"

    def schema(self) -> str:
        """Return the columns of a row."""
        return (
            "value binary, topic string, received timestamp, qos int, retain boolean, packet int, size bigint, "
            "position bigint"
        )

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; nothing is connected before it is asked for something new."""
        log = log_options("mqtt", self.options)
        return LiveReader(functools.partial(_source, read_options(self.options), LogFolder(log.path)), log)


def _source(options: MqttOptions, folder: LogFolder) -> LiveSource:
    from connectors.mqtt_client.source import MqttSource

    # The session belongs to the log: what is not acknowledged may be in there.
    return MqttSource(options, options.client_id or f"acquatop-{folder.log}")
