"""``acquatop record``: run a query, and record its stream and the values of its remotes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.evaluate import positive
from acquatop.app.cli.spark_options import add_spark_options, spark_settings

if TYPE_CHECKING:
    from acquatop.catalog.spark_settings import SparkSettings
    from acquatop.engine.observer import Observer
    from acquatop.lab.record.full_snapshots import SnapshotBudget
    from acquatop.lab.record.recording import Recording

SNAPSHOT_REQUESTS = 100


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    from acquatop.runtime import RUNTIMES

    parser = verbs.add_parser(
        "record", help="write down a query's stream and remote while it runs, to replay them"
    )
    parser.add_argument(
        "--catalog",
        type=Path,
        required=True,
        metavar="FILE",
        help="what the query's IRIs stand for",
    )
    parser.add_argument(
        "--query",
        required=True,
        metavar="FILE",
        help="a file with an RSP-QL query, - for standard input",
    )
    parser.add_argument(
        "--runtime", choices=RUNTIMES, default="local", help="what carries the events (%(default)s)"
    )
    add_spark_options(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the recording's folder"
    )
    parser.add_argument(
        "--for",
        dest="lasts_ms",
        type=duration,
        metavar="TIME",
        help="stop after so long, such as 10m",
    )
    parser.add_argument(
        "--events", type=positive, metavar="N", help="stop with the batch that brings the Nth event"
    )
    parser.add_argument(
        "--max-bytes", type=positive, metavar="N", help="stop with the batch that makes it N bytes"
    )
    parser.add_argument(
        "--snapshot-every",
        type=duration,
        metavar="TIME",
        help="ask for every key so often, in the stream's time",
    )
    parser.add_argument(
        "--snapshot-requests",
        type=positive,
        default=SNAPSHOT_REQUESTS,
        metavar="N",
        help="how many requests that may take each time (%(default)s)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what there is in the end as one JSON object"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Record until a limit of the options is reached, or a signal comes."""
    from contextlib import closing

    from acquatop.app.cli.query_files import read_text
    from acquatop.app.cli.unusable import Unusable
    from acquatop.catalog.catalog import Catalog
    from acquatop.lab.record.recording import Recording

    settings = spark_settings(options)
    catalog, query = Catalog.load(options.catalog), read_text(options.query)
    opened = Recording.open(
        options.out, catalog, query, file=options.query, snapshots=_snapshots(options)
    )
    with Unusable(at_first=True) as unusable, closing(opened) as recording:
        _record(options, settings, recording, query, unusable.intake)
        _say(recording, as_json=options.json)
        unusable.check()


def _snapshots(options: argparse.Namespace) -> SnapshotBudget | None:
    from acquatop.lab.record.full_snapshots import SnapshotBudget

    every_ms = options.snapshot_every
    return None if every_ms is None else SnapshotBudget(every_ms, options.snapshot_requests)


def _record(
    options: argparse.Namespace,
    settings: SparkSettings,
    recording: Recording,
    query: str,
    intake: Observer,
) -> None:
    from acquatop.app.cli.bounds import RecordingBounds
    from acquatop.app.cli.progress import LoadingProgress, RecordingProgress
    from acquatop.app.cli.shutdown import Shutdown
    from acquatop.app.cli.waiting_report import WaitingReport
    from acquatop.engine.engine import Engine
    from acquatop.engine.observer import Several

    bounds = RecordingBounds(recording, options.lasts_ms, options.events, options.max_bytes)
    loading = LoadingProgress()
    with RecordingProgress(lambda: _told(recording)) as progress, WaitingReport() as waiting:
        engine = Engine(
            recording.catalog,
            runtime=options.runtime,
            spark=settings,
            progress=loading,
            observer=Several([intake, waiting, progress, bounds]),
            state=recording.state,
            autostart=False,
            recording=recording,
        )
        waiting.watch(engine)
        with Shutdown(engine.stop) as ending:
            with loading:
                engine.register(query, file=options.query)
                engine.start()
            ending.gently()
            progress.begin()
            with bounds.watched(ending.end):
                for _ in engine.answers():
                    pass  # the answers themselves are not needed


def _told(recording: Recording) -> str:
    return (
        f"recorded {recording.events:,} events, {recording.values:,} values of "
        f"{recording.keys:,} keys, {recording.size:,} bytes in all"
    )


def _say(recording: Recording, *, as_json: bool) -> None:
    """Print the size of the recording, and warn of what is missing."""
    import json
    import logging

    from acquatop.app.cli.query_files import write_line

    for what, reasons in (
        ("values left out", recording.left_out),
        ("snapshots", recording.snapshot_failures),
    ):
        for reason, count in reasons.items():
            logging.getLogger("acquatop").warning("%s %s: %s", f"{count:,}", what, reason)
    if not as_json:
        write_line(f"{recording.folder}: {_told(recording)}")
        return
    said = {
        "folder": str(recording.folder),
        "events": recording.events,
        "values": recording.values,
        "keys": recording.keys,
        "bytes": recording.size,
        "snapshot_requests": recording.snapshot_requests,
        "snapshots_failed": dict(recording.snapshot_failures),
        "left_out": dict(recording.left_out),
    }
    write_line(json.dumps(said, ensure_ascii=False))


def duration(text: str) -> int:
    """Return a duration in milliseconds."""
    from rspql.durations import milliseconds

    try:
        return milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
