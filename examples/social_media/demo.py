"""The demo: users to contact now, every two seconds, from a stream and a changing SPARQL server.

It starts a real SPARQL server on a free loopback port, loads it with users, changes their numbers
of followers, writes a stream of mentions, and runs the query on the engine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.app.cli.exit_codes import guarded
from acquatop.app.cli.run import add_run_options
from examples.command import say

if TYPE_CHECKING:
    from examples.social_media.world import Driver

HERE = Path(__file__).parent
QUERY = HERE / "query.rspql"
WINDOWS = 10


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="run demo", description=__doc__.splitlines()[0])
    add_run_options(parser, windows=None, unless=f"{WINDOWS}, with --ui until stopped")
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="P",
        help="the SPARQL server's port (any that is free)",
    )
    parser.add_argument(
        "--ui", action="store_true", help="show the answers on a live page in a browser"
    )
    parser.add_argument(
        "--seed", type=int, default=7, metavar="S", help="of the simulated network (%(default)s)"
    )
    options = parser.parse_args()
    return guarded(lambda: demo(options), debug=options.debug)


def demo(options: argparse.Namespace) -> None:
    """Start the server, run the query, stop the server."""
    # Imported only here, so that a Ctrl-C during the import ends the demo properly.
    from examples.oxigraph import OxigraphServer
    from examples.social_media.world import Driver, SocialNetwork, store_followers

    os.environ["no_proxy"] = "127.0.0.1"  # the server is on this machine: no proxy
    network = SocialNetwork(options.seed)
    with ExitStack() as scene:
        folder = Path(scene.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-demo-")))
        say("starting a SPARQL server …")
        server = scene.enter_context(OxigraphServer(options.port))
        store_followers(server, network.followers.items())
        say(
            f"{len(network.followers)} users are at {server.query_url}; starting the engine "
            f"on {options.runtime} …"
        )
        variables = {"MENTIONS": str(folder), "FOLLOWERS": server.query_url}
        driver = Driver(network, server, folder)
        scene.callback(driver.stop)
        if options.ui:
            _on_a_page(options, variables, driver)
        else:
            _on_the_terminal(options, variables, driver)


def _on_the_terminal(
    options: argparse.Namespace, variables: dict[str, str], driver: Driver
) -> None:
    """Print answers as they arrive."""
    from examples.command import show_answers

    def start() -> str:
        driver.start()
        return "mentions are streaming in"

    options.windows = options.windows or WINDOWS
    show_answers(options, HERE, variables, start)


def _on_a_page(options: argparse.Namespace, variables: dict[str, str], driver: Driver) -> None:
    """Serve answers on a live page, and open it."""
    from acquatop.app.serve.http_metrics import Meters
    from acquatop.app.serve.server import Server
    from acquatop.app.serve.service import QueryService
    from acquatop.app.watch.address import ListenAddress
    from acquatop.app.watch.prometheus import Metrics
    from acquatop.engine.engine import Engine
    from acquatop.engine.observer import AnswerSeen, Observer, Several, Silent

    enough = threading.Event()

    class Counting(Silent):
        count = 0

        def answer(self, seen: AnswerSeen) -> None:
            self.count += 1
            if self.count == options.windows:
                enough.set()

    metrics, catalog = Metrics(), HERE / "catalog.toml"

    def make_engine(ending: Observer) -> Engine:
        observer = Several([metrics, Counting(), ending])
        return Engine.from_catalog(
            catalog,
            runtime=options.runtime,
            variables=variables,
            observer=observer,
            autostart=False,
        )

    service = QueryService(make_engine)
    with ExitStack() as running:
        server = running.enter_context(
            Server(service, Meters(metrics.registry), ListenAddress("127.0.0.1", 0))
        )
        running.callback(service.stop)
        service.start()
        service.register(QUERY.read_text("utf-8"))
        driver.start()
        say(f"the live page is at {server.url} (Ctrl-C ends it)")
        if sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
            webbrowser.open(server.url)
        enough.wait()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
