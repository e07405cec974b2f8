"""Publisher that waits until the broker has every message."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion


class Publisher:
    def __init__(self, port: int) -> None:
        connected = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_connect = lambda *_: connected.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert connected.wait(60)

    def publish(
        self, messages: Sequence[tuple[str, bytes]], qos: int = 1, retain: bool = False
    ) -> None:
        """Publish messages, and return when the broker has all of them."""
        sent = [self._client.publish(topic, payload, qos, retain) for topic, payload in messages]
        for each in sent:
            each.wait_for_publish(60)
            assert each.is_published()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
