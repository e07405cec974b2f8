"""A small simulated plant: vibrating machines, and an ERP that knows the instruments on them."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Iterator, Mapping

import requests
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from ..oxigraph import OxigraphServer

NS = "http://example.org/plant#"
PLANT = "http://example.org/plant/"
MACHINES = [
    f"{kind}-{number}" for kind in ("press", "lathe", "mill", "saw") for number in range(1, 9)
]
INSTRUMENTS = {
    f"{tool}-of-{machine}": machine for machine in MACHINES for tool in ("die", "jig", "gauge")
}
PRODUCTS = ["gear", "shaft", "valve", "flange", "bearing", "rotor"]

STEP_SECONDS = 0.1
READINGS = 12
"""Number of readings per step."""
MAINTENANCE_SECONDS = 1.0


class Plant:
    """Random vibration and maintenance; now and then one machine vibrates more."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._rest = {machine: self._random.uniform(2, 12) for machine in MACHINES}
        self._rough, self._rough_until = MACHINES[0], 0
        self.days = {instrument: self._random.randrange(365) for instrument in INSTRUMENTS}
        self.products = {instrument: self._random.choice(PRODUCTS) for instrument in INSTRUMENTS}

    def readings(self, now_ms: int, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield some readings as messages: topic and payload."""
        if now_ms >= self._rough_until:
            self._rough, self._rough_until = self._random.choice(MACHINES), now_ms + 8_000
        for machine in self._random.choices(MACHINES, k=count):
            level = self._rest[machine] * math.exp(self._random.gauss(0, 0.2)) + (
                25 if machine == self._rough else 0
            )
            reading = {"time_ms": now_ms, "vibration": round(level, 2)}
            yield f"plant/{machine}/vibration", json.dumps(reading).encode()

    def maintain(self, count: int) -> Mapping[str, int]:
        """Maintain some instruments and age others; return the days since maintenance."""
        changed = self._random.sample(list(INSTRUMENTS), count)
        for instrument in changed:
            self.days[instrument] = (
                0 if self._random.random() < 0.3 else min(365, self.days[instrument] + 30)
            )
        return {instrument: self.days[instrument] for instrument in changed}


def store(server: OxigraphServer, plant: Plant) -> None:
    """Store each instrument's machine, product and days since maintenance in the ERP."""
    rows = (
        (
            f"<{PLANT}instrument/{each}> <{NS}mountedOn> <{PLANT}machine/{machine}> ; "
            f'<{NS}makes> "{plant.products[each]}" ; '
            f"<{NS}daysSinceMaintenance> {plant.days[each]} ."
        )
        for each, machine in INSTRUMENTS.items()
    )
    server.update(f"INSERT DATA {{ {' '.join(rows)} }}")


def update(server: OxigraphServer, days: Mapping[str, int]) -> None:
    """Store new days since maintenance in the ERP."""
    days_of = f"<{NS}daysSinceMaintenance>"
    rows = " ".join(f"(<{PLANT}instrument/{each}> {count})" for each, count in days.items())
    server.update(
        f"DELETE {{ ?i {days_of} ?old }} INSERT {{ ?i {days_of} ?new }} "
        f"WHERE {{ VALUES (?i ?new) {{ {rows} }} ?i {days_of} ?old }}"
    )


class Driver:
    """Simulation of the plant until it is stopped: sensors publish, and the ERP changes."""

    def __init__(self, plant: Plant, server: OxigraphServer, broker_port: int) -> None:
        self._plant = plant
        self._server = server
        self._stopping = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.connect("127.0.0.1", broker_port)
        self._thread = threading.Thread(target=self._run, name="plant", daemon=True)

    def start(self) -> None:
        """Start."""
        self._client.loop_start()
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()

    def _run(self) -> None:
        maintained = time.monotonic()
        while not self._stopping.wait(STEP_SECONDS):
            for topic, reading in self._plant.readings(int(time.time() * 1000), READINGS):
                self._client.publish(topic, reading, qos=1)
            if time.monotonic() - maintained >= MAINTENANCE_SECONDS:
                maintained = time.monotonic()
                try:
                    update(self._server, self._plant.maintain(6))
                except requests.RequestException:
                    return  # the server has been stopped, so stop as well
