"""Shared parts of the demos: display of answers, on the terminal or on a live page."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path


def show_answers(
    options: argparse.Namespace, scene: Path, variables: Mapping[str, str], start: Callable[[], str]
) -> None:
    """Show the answers to a scene's query.

    ``start`` starts the simulation, and returns a message about it.
    """
    show = _on_a_page if options.ui else _on_the_terminal
    show(options, scene, variables, start)


def _on_the_terminal(
    options: argparse.Namespace, scene: Path, variables: Mapping[str, str], start: Callable[[], str]
) -> None:
    """Print answers as they arrive."""
    # Imported only here, so that a Ctrl-C during the import ends the demo properly.
    from acquatop.app.cli.print_answers import shower
    from acquatop.app.cli.unusable import Unusable
    from acquatop.engine.engine import Engine

    query_file, catalog = scene / "query.rspql", scene / "catalog.toml"
    with Unusable(at_first=True) as unusable:
        with Engine.from_catalog(
            catalog, runtime=options.runtime, variables=variables, observer=unusable.intake
        ) as engine:
            query = engine.register(query_file.read_text("utf-8"), file=str(query_file))
            say(f"{start()}; an answer follows at every window close (Ctrl-C ends it)\n")
            show = shower(as_json=options.json)
            for answer in query.answers(limit=options.windows):
                show(answer)
        unusable.check()


def _on_a_page(
    options: argparse.Namespace, scene: Path, variables: Mapping[str, str], start: Callable[[], str]
) -> None:
    """Serve answers on a live page, and open it."""
    from acquatop.app.serve.http_metrics import Meters
    from acquatop.app.serve.server import Server
    from acquatop.app.serve.service import QueryService
    from acquatop.app.watch.address import ListenAddress
    from acquatop.app.watch.prometheus import Metrics
    from acquatop.engine.engine import Engine
    from acquatop.engine.interruptible import wait_until
    from acquatop.engine.observer import AnswerSeen, Observer, Several, Silent

    enough = threading.Event()

    class Counting(Silent):
        count = 0

        def answer(self, seen: AnswerSeen) -> None:
            self.count += 1
            if self.count == options.windows:
                enough.set()

    metrics = Metrics()

    def make_engine(ending: Observer) -> Engine:
        observer = Several([metrics, Counting(), ending])
        return Engine.from_catalog(
            scene / "catalog.toml",
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
        service.register((scene / "query.rspql").read_text("utf-8"))
        say(f"{start()}; the live page is at {server.url} (Ctrl-C ends it)")
        if sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
            webbrowser.open(server.url)
        wait_until(enough.wait)


def say(message: str) -> None:
    """Print a message for the user."""
    print(message, file=sys.stderr, flush=True)
