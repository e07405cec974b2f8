"""``acquatop serve``: let clients register queries and read answers over HTTP."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acquatop import __version__
from acquatop.app.cli.evaluation_options import add_evaluation_options, load_catalog
from acquatop.app.cli.hangup import Hangup
from acquatop.app.cli.run_observers import add_log_options, address, open_log, say_end
from acquatop.app.cli.spark_options import add_spark_options, spark_settings
from acquatop.app.cli.tell import tell
from acquatop.app.cli.unusable import Unusable
from acquatop.app.cli.weight_options import add_weight_option
from acquatop.app.watch.address import ListenAddress
from acquatop.errors import AcquaTopError

if TYPE_CHECKING:
    from acquatop.app.serve.registrations import Registrations
    from acquatop.app.serve.server import Server
    from acquatop.app.serve.service import QueryService
    from acquatop.app.watch.log import Log
    from acquatop.engine.state.place import StatePlace

ADDRESS = ListenAddress("127.0.0.1", 8322)


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    from acquatop.app.cli.run import positive
    from acquatop.runtime import RUNTIMES

    parser = verbs.add_parser(
        "serve", help="let others register queries and read answers over HTTP"
    )
    parser.add_argument(
        "query", nargs="*", metavar="QUERY", help="a file with a query to begin with"
    )
    parser.add_argument(
        "--catalog",
        type=Path,
        required=True,
        metavar="FILE",
        help="what the queries' IRIs stand for",
    )
    parser.add_argument(
        "--listen",
        type=address,
        default=ADDRESS,
        metavar="[HOST:]PORT",
        help="where to listen (%(default)s)",
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that it is asked by, besides addresses",
    )
    parser.add_argument(
        "--tls-certificate",
        type=Path,
        metavar="FILE",
        help="a certificate, with its chain, to speak HTTPS (PEM)",
    )
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="its key, if that is in a file of its own"
    )
    parser.add_argument(
        "--runtime", choices=RUNTIMES, default="spark", help="what carries the events (%(default)s)"
    )
    add_spark_options(parser)
    add_evaluation_options(parser)
    parser.add_argument(
        "--state",
        metavar="PLACE",
        help="where to keep queries, and what they need to go on: a folder, or s3://BUCKET/PREFIX",
    )
    parser.add_argument(
        "--queries", type=positive, default=200, metavar="N", help="so many at most (%(default)s)"
    )
    parser.add_argument(
        "--answers",
        type=positive,
        default=100,
        metavar="N",
        help="kept of each query at most (%(default)s)",
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a limit of what clients may do, in place of its default",
    )
    add_weight_option(parser)
    add_log_options(parser)
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    _need_packages()
    since = time.monotonic()
    with ExitStack() as made:
        log = open_log(options, made)
        error: BaseException | None = None
        try:
            with Unusable(at_first=True, silent=options.log == "-") as unusable:
                _serve(options, log, unusable, made)
        except BaseException as raised:
            error = raised
            raise
        finally:
            if log is not None:
                say_end(log, since, error)


def _need_packages() -> None:
    from importlib.util import find_spec

    from acquatop.errors import EnvironmentProblem

    missing = [name for name in ("httptools", "starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            f"acquatop serve needs packages that are not here: {', '.join(missing)}\n"
            f"  hint: pip install {' '.join(missing)}"
        )


def _serve(
    options: argparse.Namespace, log: Log | None, unusable: Unusable, made: ExitStack
) -> None:
    from acquatop.app.cli.lost_state import LostState
    from acquatop.app.cli.progress import LoadingProgress
    from acquatop.app.cli.shutdown import Shutdown
    from acquatop.app.cli.waiting_report import WaitingReport
    from acquatop.app.serve.access import Tokens
    from acquatop.app.serve.files import allow_files
    from acquatop.app.serve.http_metrics import Meters
    from acquatop.app.serve.limits import Limits
    from acquatop.app.serve.server import Server
    from acquatop.app.serve.service import QueryService
    from acquatop.app.serve.tls import TlsFiles
    from acquatop.app.watch.prometheus import Metrics
    from acquatop.engine.engine import Engine
    from acquatop.engine.observer import Observer, Several
    from acquatop.engine.state.place import RemotePlace, state_place

    place = None if options.state is None else state_place(options.state)
    limits = Limits(queries=options.queries, answers=options.answers).with_texts(options.limit)
    allow_files(limits.connections)
    metrics, progress, settings = Metrics(), LoadingProgress(), spark_settings(options)
    waiting = made.enter_context(
        WaitingReport(only_trouble=True, silent=options.log == "-", log=log)
    )
    lost = LostState()
    watching: list[Observer] = [metrics, waiting, *([] if log is None else [log])]
    watching += [lost] if isinstance(place, RemotePlace) else []

    def make_engine(ending: Observer) -> Engine:
        engine = Engine(
            load_catalog(options),
            runtime=options.runtime,
            spark=settings,
            progress=progress,
            observer=Several([*watching, ending]),
            state=place and place / "engine",
            autostart=False,
        )
        metrics.watch(engine.waiting)
        lost.watch(engine)
        waiting.watch(engine)
        return engine

    service = QueryService(
        make_engine,
        registrations=_registrations(place),
        limits=limits,
        intake=unusable.intake,
        load_catalog=lambda: load_catalog(options),
    )
    server = Server(
        service,
        Meters(metrics.registry),
        options.listen,
        tokens=Tokens.from_variables(),
        hosts=options.host,
        tls=TlsFiles.of(options.tls_certificate, options.tls_key),
    )
    server.start()

    def stop() -> None:
        service.stop()
        server.close()

    def told() -> None:
        if log is not None:
            _say(log, "stopping")

    with Shutdown(stop, told=told) as ending, Hangup(lambda: _reload(service, server, log)):
        with progress:
            service.start()
            names = _begin(service, options.query, options.weight)
        _collect_seldom()
        ending.gently()
        if log is not None:
            _say(
                log,
                "started",
                version=__version__,
                runtime=options.runtime,
                queries=names,
                url=server.url,
            )
        tell(f"serving {len(service.queries())} queries at {server.url}; Ctrl-C ends it")
        lost.then(ending.end)
        server.wait()
    lost.raise_error()


def _registrations(place: StatePlace | None) -> Registrations | None:
    """Return the storage of registered queries at the state's place; None to keep nothing."""
    from acquatop.app.serve.registrations import InFolder
    from acquatop.app.serve.registrations_in_store import InStore
    from acquatop.engine.state.place import open_store

    if place is None:
        return None
    if isinstance(place, Path):
        return InFolder(place / "queries")
    return InStore(open_store(place / "queries"), place / "queries")


def _begin(service: QueryService, files: Sequence[str], weights: Sequence[str]) -> list[str]:
    """Register the queries of files, except names that a former run left; return all names."""
    from acquatop.app.cli.queries import read_weighted

    known = {each.registration.name for each in service.queries()}
    for query in read_weighted(files, weights, service.catalog):
        if query.name not in known:
            service.register(query.text, query.name, query.weight)
    return [each.registration.name for each in service.queries()]


def _reload(service: QueryService, server: Server, log: Log | None) -> None:
    """Read the catalog and the certificate again, and say what came of it; raise nothing."""
    said, reason = "reloaded", ""
    try:
        server.reload_certificate()
        service.reload()
    except Exception as error:  # the next signal is to be heard, whatever this one led to
        known = isinstance(error, AcquaTopError)
        said, reason = "not reloaded", str(error) if known else f"a defect: {type(error).__name__}"
    tell(f"{said}: {reason}" if reason else said)
    if log is not None:
        _say(log, said, **({"reason": reason} if reason else {}))


def _collect_seldom() -> None:
    """Make full garbage collections rare: freeze present objects, and collect a tenth as often.

    A full collection stops all threads. With a thousand readers, which make long-lived objects at
    every answer, that is a quarter of a second every few seconds. The process belongs to this
    command alone.
    """
    gc.collect()
    gc.freeze()
    youngest, middle, oldest = gc.get_threshold()
    gc.set_threshold(youngest, middle, 10 * oldest)


def _say(log: Log, event: str, **facts: Any) -> None:
    from acquatop.app.watch.log import Level

    log.say(Level.INFO, event, **facts)
