"""The plant: which products are made with the least recently maintained instruments on what vibrates most.

It starts a real MQTT broker and a real SPARQL server (the ERP) on free loopback ports, lets sensors publish and
instruments be maintained, and runs the query on the engine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from acquatop.cli.guard import guarded
from acquatop.cli.run import add_run_options

HERE = Path(__file__).parent


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="run demo manufacturing", description=__doc__.splitlines()[0])
    add_run_options(parser, windows=10)
    parser.add_argument("--seed", type=int, default=7, metavar="S", help="of the simulated plant (%(default)s)")
    options = parser.parse_args()
    return guarded(lambda: demo(options), debug=options.debug)


def demo(options: argparse.Namespace) -> None:
    """Set the scene, run the query, clear the scene."""
    # Imported only here, where a Ctrl-C while they load ends the demo as it should.
    from acquatop.cli.show import shower
    from acquatop.engine import Engine
    from examples.manufacturing.plant import INSTRUMENTS, Driver, Plant, store
    from examples.mosquitto import MosquittoBroker
    from examples.oxigraph import OxigraphServer

    os.environ["no_proxy"] = "127.0.0.1"  # the servers are on this machine, whatever proxy leads out of it
    plant, query_file = Plant(options.seed), HERE / "query.rspql"
    with ExitStack() as scene:
        folder = scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-plant-"))
        _say("starting an MQTT broker and a SPARQL server …")
        broker = scene.enter_context(MosquittoBroker())
        server = scene.enter_context(OxigraphServer())
        store(server, plant)
        _say(f"{len(INSTRUMENTS)} instruments are at {server.query_url}; starting the engine on {options.runtime} …")
        variables = {"BROKER": broker.url, "RECEIVED": f"{folder}/received", "ERP": server.query_url}
        engine = scene.enter_context(
            Engine.from_catalog(HERE / "catalog.toml", runtime=options.runtime, variables=variables)
        )
        query = engine.register(query_file.read_text("utf-8"), file=str(query_file))
        driver = Driver(plant, server, broker.port)
        scene.callback(driver.stop)
        driver.start()
        _say(f"sensors publish to {broker.url}; an answer follows at every window close (Ctrl-C ends it)\n")
        show = shower(as_json=options.json)
        for answer in query.answers(limit=options.windows):
            show(answer)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
