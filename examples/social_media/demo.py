"""The demo: emerging users, every two seconds, from a stream and a changing SPARQL server.

It starts a real SPARQL server on a free loopback port, loads it with users, changes their numbers
of followers, writes a stream of mentions, and runs the query on the engine.
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
    """Start the server, run the query, stop the server."""
    # Imported only here, so that a Ctrl-C during the import ends the demo properly.
    from ..oxigraph import OxigraphServer
    from .world import Driver, SocialNetwork, store_followers

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine: no proxy
    network = SocialNetwork(options.seed)
    with ExitStack() as scene:
        folder = Path(scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-")))
        say("starting a SPARQL server …")
        server = scene.enter_context(OxigraphServer())
        store_followers(server, network.followers.items())
        say(
            f"{len(network.followers)} users are at {server.query_url}; starting the engine "
            f"on {options.runtime} …"
        )
        driver = Driver(network, server, folder)
        scene.callback(driver.stop)

        def start() -> str:
            driver.start()
            return "followers change, and mentions stream in once it is seen who gains"

        variables = {"MENTIONS": str(folder), "FOLLOWERS": server.query_url}
        show_answers(options, HERE, variables, start)


if __name__ == "__main__":
    sys.exit(main(["demo", "social_media", *sys.argv[1:]]))
