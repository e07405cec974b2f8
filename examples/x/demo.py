"""The demo: whom to contact now, from the posts of a server that stands in for X and its lookup of users.

It starts the server on a free loopback port, lets users mention each other in posts and their numbers of followers
change, and runs the query on the engine, which follows the stream and asks for the followers.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from examples.command import run, say, show_answers

HERE = Path(__file__).parent


def main() -> int:
    """Run the demo and return its exit code."""
    return run(demo, "x", __doc__.splitlines()[0], seeded="network")


def demo(options: argparse.Namespace) -> None:
    """Set the scene, run the query, clear the scene."""
    # Imported only here, where a Ctrl-C while they load ends the demo as it should.
    from examples.x.server import XServer
    from examples.x.world import PostingNetwork

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine, whatever proxy leads out of it
    token = os.environ["X_BEARER_TOKEN"] = secrets.token_urlsafe(32)
    with ExitStack() as scene:
        folder = scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-"))
        server = scene.enter_context(XServer(token=token, keep_alive=5.0))
        say(f"a server that stands in for X is at {server.url}; starting the engine on {options.runtime} …")
        network = PostingNetwork(server, options.seed)
        scene.callback(network.stop)

        def start() -> str:
            network.start()
            return "posts are streaming in"

        variables = {"X_URL": server.url, "X_LOG": folder, "X_BEARER_TOKEN": token, "LATENESS": "1s"}
        show_answers(options, HERE, variables, start)


if __name__ == "__main__":
    sys.exit(main())
