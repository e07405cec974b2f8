"""The demo: whom to contact now, answered every two seconds from a stream and a SPARQL server that keep changing.

It starts a real SPARQL server on a free loopback port, loads it with users, lets their numbers
of followers change, writes a stream of mentions, and runs the query on the engine.
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
    parser = argparse.ArgumentParser(prog="run demo", description=__doc__.splitlines()[0])
    add_run_options(parser, windows=10)
    parser.add_argument(
        "--port", type=_port, default=0, metavar="P", help="the SPARQL server's port (any that is free)"
    )
    parser.add_argument("--seed", type=int, default=7, metavar="S", help="of the simulated network (%(default)s)")
    options = parser.parse_args()
    return guarded(lambda: demo(options), debug=options.debug)


def demo(options: argparse.Namespace) -> None:
    """Set the scene, run the query, clear the scene."""
    # Imported only here, where a Ctrl-C while they load ends the demo as it should.
    from acquatop.cli.show import shower
    from acquatop.engine import Engine
    from examples.oxigraph import OxigraphServer
    from examples.social_media.world import Driver, SocialNetwork, store_followers

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine, whatever proxy leads out of it
    network = SocialNetwork(options.seed)
    query_file = HERE / "query.rspql"
    with ExitStack() as scene:
        folder = Path(scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-")))
        _say("starting a SPARQL server …")
        server = scene.enter_context(OxigraphServer(options.port))
        store_followers(server, network.followers.items())
        _say(f"{len(network.followers)} users are at {server.query_url}; starting the engine on {options.runtime} …")
        variables = {"MENTIONS": str(folder), "FOLLOWERS": server.query_url}
        engine = scene.enter_context(
            Engine.from_catalog(HERE / "catalog.toml", runtime=options.runtime, variables=variables)
        )
        query = engine.register(query_file.read_text("utf-8"), file=str(query_file))
        driver = Driver(network, server, folder)
        scene.callback(driver.stop)
        driver.start()
        _say("mentions are streaming in; an answer follows at every window close (Ctrl-C ends it)\n")
        show = shower(as_json=options.json)
        for answer in query.answers(limit=options.windows):
            show(answer)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
