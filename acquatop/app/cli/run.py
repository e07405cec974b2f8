"""``acquatop run``: run queries and show their answers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.evaluation_options import add_evaluation_options, load_catalog
from acquatop.app.cli.run_observers import Watching, add_watch_options
from acquatop.app.cli.spark_options import add_spark_options, spark_settings
from acquatop.app.cli.weight_options import add_weight_option

if TYPE_CHECKING:
    from acquatop.answer.sinks import Sink
    from acquatop.engine.engine import Engine


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("run", help="run queries and show an answer at every window close")
    parser.add_argument(
        "query",
        nargs="+",
        metavar="QUERY",
        help="a file with an RSP-QL query, - for standard input",
    )
    parser.add_argument(
        "--catalog",
        type=Path,
        required=True,
        metavar="FILE",
        help="what the queries' IRIs stand for",
    )
    add_run_options(parser, windows=None)
    add_spark_options(parser)
    add_evaluation_options(parser)
    parser.add_argument(
        "--until-end",
        action="store_true",
        help="read what the streams hold now, close all windows, and stop",
    )
    parser.add_argument(
        "--state",
        metavar="PLACE",
        help="where to keep what is needed to go on after a stop: a folder, or s3://BUCKET/PREFIX",
    )
    parser.add_argument(
        "--to",
        action="append",
        metavar="TARGET",
        help="where answers go; may be given several times",
    )
    parser.add_argument(
        "--show-list",
        action="store_true",
        help="show the candidates held of each open window, its K-list and N-list, with answers",
    )
    add_weight_option(parser)
    add_watch_options(parser)
    parser.set_defaults(execute=execute)


def add_run_options(
    parser: argparse.ArgumentParser, *, windows: int | None, unless: str | None = None
) -> None:
    """Add the options of every command that runs a query.

    ``unless`` is the help text for the end of a run without ``--windows``.
    """
    from acquatop.runtime import RUNTIMES

    parser.add_argument(
        "--runtime", choices=RUNTIMES, default="spark", help="what carries the events (%(default)s)"
    )
    some = unless or ("until stopped" if windows is None else "%(default)s")
    parser.add_argument(
        "--windows",
        type=positive,
        default=windows,
        metavar="N",
        help=f"stop after N answers ({some})",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per answer instead of tables"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def execute(options: argparse.Namespace) -> None:
    """Run the queries of the options until they end, or a signal comes."""
    from acquatop.app.cli.progress import LoadingProgress
    from acquatop.app.cli.shutdown import Shutdown
    from acquatop.engine.engine import Engine

    progress, settings = LoadingProgress(), spark_settings(options)
    with (
        Watching(options, several=len(options.query) > 1) as watching,
        opened_sinks(options.to) as sinks,
    ):
        engine = Engine(
            load_catalog(options),
            runtime=options.runtime,
            spark=settings,
            until_end=options.until_end,
            progress=progress,
            observer=watching.observer,
            state=options.state,
            autostart=False,
            show_lists=options.show_list,
        )
        watching.watch(engine)
        with Shutdown(engine.stop, told=watching.stopping) as ending:
            with progress:
                names = _register(engine, options, sinks)
                engine.start()
            ending.gently()
            watching.started(runtime=options.runtime, queries=names, state=options.state)
            with watching.answers() as show:
                for answer in engine.answers(limit=options.windows):
                    show(answer)
        watching.check()


def _register(engine: Engine, options: argparse.Namespace, sinks: Sequence[Sink]) -> list[str]:
    """Register every query with the same sinks, and return the queries' names."""
    from acquatop.app.cli.queries import read_weighted

    queries = read_weighted(options.query, options.weight, engine.catalog)
    for query in queries:
        engine.register(
            query.text, name=query.name, file=query.file, sinks=sinks, weight=query.weight
        )
    return [query.name for query in queries]


@contextmanager
def opened_sinks(targets: Sequence[str] | None) -> Iterator[list[Sink]]:
    """Open the sinks of some targets, and close them at the end."""
    if not targets:
        yield []
        return
    from acquatop.answer.sinks import open_sink

    with ExitStack() as opened:
        sinks: list[Sink] = []
        for target in targets:
            sinks.append(open_sink(target))
            opened.callback(sinks[-1].close)
        yield sinks


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number
