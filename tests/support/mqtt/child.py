"""Program that receives messages until it is killed.

``child.py FOLDER URL QOS VERSION [MESSAGE_ID]``.
"""

from __future__ import annotations

import sys
import threading

from connectors.mqtt import MqttDataSource
from connectors.read_limits import ReadAllAvailable

if __name__ == "__main__":
    folder, url, qos, version, *message_id = sys.argv[1:]
    options = {
        "url": url,
        "topics": "plant/#",
        "log": folder,
        "qos": qos,
        "version": version,
        "receiveMaximum": "50",
        **({"messageId": message_id[0]} if message_id else {}),
    }
    reader = MqttDataSource(options).streamReader(None)
    start = reader.initialOffset()
    while True:
        # What has gone wrong ends it.
        reader.latestOffset(start, ReadAllAvailable())
        threading.Event().wait(0.01)
