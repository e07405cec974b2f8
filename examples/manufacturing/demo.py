"""The plant: products made with the least maintained instruments on the most vibrating machines.

It starts a real MQTT broker and a real SPARQL server (the ERP) on free loopback ports, simulates
sensors that publish and instruments that are maintained, and runs the query on the engine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from acquatop.app.cli import main

from ..command import say, show_answers

HERE = Path(__file__).parent


def demo(options: argparse.Namespace) -> None:
    """Start the servers, run the query, stop the servers."""
    # Imported only here, so that a Ctrl-C during the import ends the demo properly.
    from ..mosquitto import MosquittoBroker
    from ..oxigraph import OxigraphServer
    from .plant import INSTRUMENTS, Driver, Plant, store

    os.environ["no_proxy"] = "127.0.0.1"  # the servers are on this machine: no proxy
    plant = Plant(options.seed)
    with ExitStack() as scene:
        folder = scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-plant-"))
        say("starting an MQTT broker and a SPARQL server …")
        broker = scene.enter_context(MosquittoBroker())
        server = scene.enter_context(OxigraphServer())
        store(server, plant)
        say(
            f"{len(INSTRUMENTS)} instruments are at {server.query_url}; starting the engine "
            f"on {options.runtime} …"
        )
        driver = Driver(plant, server, broker.port)
        scene.callback(driver.stop)

        def start() -> str:
            driver.start()
            return f"sensors publish to {broker.url}"

        variables = {
            "BROKER": broker.url,
            "RECEIVED": f"{folder}/received",
            "ERP": server.query_url,
        }
        show_answers(options, HERE, variables, start)


if __name__ == "__main__":
    sys.exit(main(["demo", "manufacturing", *sys.argv[1:]]))
