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

from acquatop.cli.guard import guarded
from acquatop.cli.run import add_run_options

HERE = Path(__file__).parent


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="run demo x", description=__doc__.splitlines()[0])
    add_run_options(parser, windows=10)
    parser.add_argument("--seed", type=int, default=7, metavar="S", help="of the simulated network (%(default)s)")
    options = parser.parse_args()
    return guarded(lambda: demo(options), debug=options.debug)


def demo(options: argparse.Namespace) -> None:
    """Set the scene, run the query, clear the scene."""
    # Imported only here, where a Ctrl-C while they load ends the demo as it should.
    from acquatop.cli.show import shower
    from acquatop.engine import Engine
    from examples.x.server import XServer
    from examples.x.world import PostingNetwork

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine, whatever proxy leads out of it
    token = os.environ["X_BEARER_TOKEN"] = secrets.token_urlsafe(32)
    query_file = HERE / "query.rspql"
    with ExitStack() as scene:
        folder = scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-"))
        server = scene.enter_context(XServer(token=token, keep_alive=5.0))
        _say(f"a server that stands in for X is at {server.url}; starting the engine on {options.runtime} …")
        variables = {"X_URL": server.url, "X_LOG": folder, "X_BEARER_TOKEN": token, "LATENESS": "1s"}
        engine = scene.enter_context(
            Engine.from_catalog(HERE / "catalog.toml", runtime=options.runtime, variables=variables)
        )
        network = PostingNetwork(server, options.seed)
        query = engine.register(query_file.read_text("utf-8"), file=str(query_file))
        scene.callback(network.stop)
        network.start()
        _say("posts are streaming in; an answer follows at every window close (Ctrl-C ends it)\n")
        show = shower(as_json=options.json)
        for answer in query.answers(limit=options.windows):
            show(answer)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
