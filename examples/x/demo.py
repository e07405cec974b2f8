"""The demo: emerging users, from the posts of a mock X server and its user lookup.

It starts the server on a free loopback port, simulates users that mention each other in posts and
whose numbers of followers change, and runs the query on the engine, which follows the stream and
asks for the followers.
"""

from __future__ import annotations

import argparse
import os
import secrets
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
    from .server import XServer
    from .world import PostingNetwork

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine: no proxy
    token = os.environ["X_BEARER_TOKEN"] = secrets.token_urlsafe(32)
    with ExitStack() as scene:
        folder = scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-"))
        server = scene.enter_context(XServer(token=token, keep_alive=5.0))
        say(
            f"a server that stands in for X is at {server.url}; starting the engine on "
            f"{options.runtime} …"
        )
        network = PostingNetwork(server, options.seed)
        scene.callback(network.stop)

        def start() -> str:
            network.start()
            return "posts are streaming in"

        variables = {
            "X_URL": server.url,
            "X_LOG": folder,
            "X_BEARER_TOKEN": token,
            "LATENESS": "1s",
        }
        show_answers(options, HERE, variables, start)


if __name__ == "__main__":
    sys.exit(main(["demo", "x", *sys.argv[1:]]))
