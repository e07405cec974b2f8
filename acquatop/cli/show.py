"""Answers on a terminal: as a table for people, as one line of JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from rdflib import Literal
from rdflib.term import Identifier
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from acquatop.answer import Answer, Row, Status

_STYLES = {Status.EXACT: "bold green", Status.CERTIFIED: "green", Status.APPROXIMATE: "yellow"}


def shower(*, as_json: bool) -> Callable[[Answer], None]:
    """Return what prints an answer to the standard output, flushed at once."""
    if as_json:
        return _print_json
    console = _Console(highlight=False)
    return lambda answer: console.print(render(answer))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def render(answer: Answer) -> Group:
    """Return an answer as a table with a line about how it came to be."""
    table = Table(title=_title(answer), title_justify="left", title_style="bold", expand=False)
    table.add_column("rank", justify="right")
    names = [name for name in (answer.rows[0].bindings if answer.rows else {}) if name != answer.score_variable]
    for name in names:
        table.add_column(escape(f"?{name}"))
    table.add_column("score", justify="right")
    table.add_column("remote value")
    for row in answer.rows:
        cells = [escape(_short(row.bindings[name])) if name in row.bindings else "" for name in names]
        table.add_row(str(row.rank), *cells, f"{row.score:.4f}", _freshness(row))
    return Group(table, _summary(answer), Text())


def _print_json(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer.to_json(), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _title(answer: Answer) -> str:
    opens, closes = (_clock(time) for time in (answer.opens_ms, answer.closes_ms))
    return f"window {answer.window}  ({opens}, {closes}]" + ("" if answer.rows else "  no results")


def _clock(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def _short(term: Identifier) -> str:
    """Return a term as people read it: the last part of an IRI, the text of a literal."""
    # What comes from elsewhere must not steer the terminal.
    text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(term))
    if isinstance(term, Literal):
        return text
    return text.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] or text


def _latency(answer: Answer) -> str:
    here = f"{1000 * answer.latency_seconds:.0f} ms"
    since_close = answer.emitted_ms - answer.closes_ms
    # On a live stream event time is about the wall clock's; in a replay the difference says nothing.
    return f"out {since_close} ms after the close, {here} here" if 0 <= since_close < 60_000 else f"answered in {here}"


def _freshness(row: Row) -> Text:
    return Text("refreshed", "green") if row.refreshed else Text(f"{row.age_seconds:.1f} s old", "dim")


def _summary(answer: Answer) -> Text:
    spent, allowed = answer.spending, answer.budget
    line = Text()
    line.append(str(answer.status), _STYLES[answer.status])
    line.append(f" · {answer.reason}" if answer.reason else "")
    line.append(
        f" · asked for {spent.items} of {allowed.items} items in {spent.requests} of {allowed.requests} requests"
    )
    line.append(f" · {answer.counts.events} events")
    for count, meaning in (
        (answer.counts.late, "late"),
        (sum(answer.counts.bad.values()), "bad"),
        (answer.counts.unscored, "without a score"),
        (answer.counts.skipped, "empty windows skipped"),
    ):
        line.append(f", {count} {meaning}" if count else "")
    line.append(f" · {_latency(answer)}")
    if answer.refreshed:
        line.append("\nrefreshed: " + ", ".join(_short(term) for term in answer.refreshed), "dim")
    if answer.failure:
        line.append(f"\n{answer.failure}; the last known values were used", "red")
    return line
