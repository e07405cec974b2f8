"""``acquatop why``: say why a key is in an answer, or is not."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import write_line
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.instants import instant_ms

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer
    from acquatop.answer.why import Why


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("why", help="say why a key is in an answer, or is not")
    parser.add_argument(
        "query", metavar="QUERY", help="a file with an RSP-QL query; with --url the query's id"
    )
    parser.add_argument("key", metavar="KEY", help="an IRI, its last part, a term or a text")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", metavar="URL", help="the address of a service that has answered")
    where.add_argument(
        "--catalog",
        type=Path,
        metavar="FILE",
        help="what the query's IRIs stand for: run it on what the streams hold now",
    )
    parser.add_argument(
        "--window",
        type=_window,
        metavar="TIME",
        help="when the answer's window closes, such as 2026-01-31T12:00:00Z or in ms (the newest)",
    )
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the explanation."""
    found = _of_service(options) if options.url else _of_run(options)
    if options.json:
        write_line(json.dumps(found, ensure_ascii=False))
        return
    write_line(f"{found['query']}, window that closes at {found['closes']}: {found['status']}")
    for line in found["text"]:
        write_line(line)


def _of_service(options: argparse.Namespace) -> dict[str, Any]:
    import requests

    from acquatop.app.serve.client import Client, ServiceError

    with Client(options.url, token=os.environ.get("ACQUATOP_TOKEN")) as service:
        try:
            return service.why(options.query, options.key, options.window)
        except ServiceError as error:
            raise UserError(str(error)) from error
        except requests.RequestException as error:
            raise EnvironmentProblem(f"{options.url} cannot be reached: {error}") from error


def _of_run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the query, and explain one of its answers as it comes."""
    from acquatop.answer.sinks.callback import CallbackSink
    from acquatop.app.cli.queries import read_queries
    from acquatop.catalog.catalog import Catalog
    from acquatop.engine.engine import Engine

    catalog = Catalog.load(options.catalog)
    (query,) = read_queries([options.query], catalog)
    wanted = _Wanted(options.key, options.window)
    with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
        sinks = [CallbackSink(wanted.take)]
        engine.register(query.text, name=query.name, file=query.file, sinks=sinks)
        engine.start()
        for answer in engine.answers():
            if wanted.is_past(answer):
                break
        why = wanted.explained()
    if why is None:
        raise UserError("there is no such answer\n  hint: acquatop run prints when windows close")
    return why.to_json()


class _Wanted:
    """Last answer of a run, or the one of a window, explained while its evidence is kept."""

    def __init__(self, key: str, closes_ms: int | None) -> None:
        self._key = key
        self._closes_ms = closes_ms
        self._last: Answer | None = None
        self._why: Why | None = None

    def take(self, answer: Answer) -> None:
        """Keep the last answer; explain the one that is wanted at once."""
        self._last = answer
        if answer.closes_ms == self._closes_ms:
            self._why = answer.why(self._key)

    def is_past(self, answer: Answer) -> bool:
        """Return True if no wanted answer follows."""
        return self._closes_ms is not None and answer.closes_ms > self._closes_ms

    def explained(self) -> Why | None:
        """Return the explanation; None if there was no such answer."""
        if self._closes_ms is not None or self._last is None:
            return self._why
        return self._last.why(self._key)


def _window(text: str) -> int:
    try:
        return int(text) if text.lstrip("-").isdigit() else instant_ms(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time") from None
