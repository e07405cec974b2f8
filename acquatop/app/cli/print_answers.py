"""Answers on the standard output: a table for people, or one line of JSON for programs."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from decimal import Decimal

from rdflib import Literal
from rdflib.term import Identifier
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from acquatop.answer.answer import Answer, Row, Status
from acquatop.instants import span_texts
from replica.clocks import Clock

_STYLES = {
    Status.EXACT: "bold green",
    Status.CERTIFIED: "green",
    Status.PROBABILISTIC: "cyan",
    Status.APPROXIMATE: "yellow",
}


def shower(
    *, as_json: bool, named: bool = False, wall: Clock = time.time
) -> Callable[[Answer], None]:
    """Return a function that prints an answer and flushes; ``named`` adds the query to tables."""
    if as_json:
        return _print_json
    console = output_console()
    return lambda answer: console.print(render(answer, named=named, wall=wall), crop=False)


def output_console() -> Console:
    """Return the standard output as a console."""
    return _Console(highlight=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def render(answer: Answer, *, named: bool = False, wall: Clock = time.time) -> Group:
    """Return an answer as a table, or in the format of its query form, with a summary line.

    ``named`` puts the query's name before it, for several queries on one terminal. Times have a
    date if that is not the one of ``wall``.
    """
    return Group(
        _title(answer, round(1000 * wall()), named=named),
        _RESULTS[answer.form](answer),
        _summary(answer),
        Text("".join(f"{printable(each.to_text())}\n" for each in answer.lists or ()), "dim"),
    )


def _table(answer: Answer) -> Table:
    """Return the rows of a SELECT.

    Scores and freshness have columns if a row has or could have them.
    """
    table = Table(expand=False)
    table.add_column("rank", justify="right")
    names = _columns(answer)
    for name in names:
        table.add_column(escape(f"?{name}"))
    extras = _extra_columns(answer)
    for heading, justify, _ in extras:
        table.add_column(heading, justify=justify)
    for row in answer.rows:
        cells = [
            escape(_short(row.bindings[name])) if name in row.bindings else "" for name in names
        ]
        table.add_row(str(row.rank), *cells, *(cell(row) for _, _, cell in extras))
    return table


def _columns(answer: Answer) -> list[str]:
    """Return the variables with a column of their own: all but one whose values are the scores."""
    names = dict.fromkeys(
        (*answer.variables, *(name for row in answer.rows for name in row.bindings))
    )
    others = [
        row for row in answer.rows if row.score is None and answer.score_variable in row.bindings
    ]
    if _has_scores(answer) and not others:
        names.pop(answer.score_variable or "", None)
    return list(names)


def _has_scores(answer: Answer) -> bool:
    return _is_empty_ranking(answer) or any(row.score is not None for row in answer.rows)


def _is_empty_ranking(answer: Answer) -> bool:
    return not answer.rows and answer.score_variable is not None


def _extra_columns(answer: Answer) -> list[tuple[str, JustifyMethod, Callable[[Row], str | Text]]]:
    columns: list[tuple[str, JustifyMethod, Callable[[Row], str | Text]]] = []
    if _has_scores(answer):
        columns.append(
            ("score", "right", lambda row: "" if row.score is None else f"{row.score:.4f}")
        )
    if _is_empty_ranking(answer) or any(row.refreshed is not None for row in answer.rows):
        columns.append(("remote value", "left", _freshness))
    return columns


def _truth(answer: Answer) -> Text:
    return Text("true" if answer.boolean else "false", "bold")


def _triples(answer: Answer) -> Text:
    # One line per triple, even on a narrow terminal.
    return Text("\n".join(map(printable, answer.triples)), no_wrap=True, overflow="ignore")


_RESULTS: Mapping[str, Callable[[Answer], RenderableType]] = {
    "select": _table,
    "ask": _truth,
    "construct": _triples,
    "describe": _triples,
}


def _print_json(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer.to_json(), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _title(answer: Answer, now_ms: int, *, named: bool) -> Text:
    opens, closes = span_texts(answer.opens_ms, answer.closes_ms, now_ms)
    nothing = answer.form != "ask" and not answer.rows and not answer.triples
    window = f"window {answer.window}  ({opens}, {closes}]" + ("  no results" if nothing else "")
    return Text.assemble(
        (f"{printable(answer.query)}  " if named else "", "bold cyan"), (window, "bold")
    )


def _short(term: Identifier) -> str:
    """Return a term in short: the last part of an IRI, the text of a literal, a number with at most
    four digits after the point unless it is small.
    """
    text = printable(str(term))
    if isinstance(term, Literal):
        value, digits = term.value, text.partition(".")[2]
        is_long = isinstance(value, (Decimal, float)) and digits.isdigit() and len(digits) > 4
        return f"{value:.4f}" if is_long and abs(value) >= 0.001 else text
    return text.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] or text


def printable(text: str) -> str:
    """Return a foreign text without characters that could control the terminal."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def _latency(answer: Answer) -> str:
    here = f"{1000 * answer.latency_seconds:.0f} ms"
    since_close = answer.emitted_ms - answer.closes_ms
    # On a live stream, event time is close to the wall clock's. In a replay the difference means
    # nothing.
    return (
        f"out {since_close} ms after the close, {here} here"
        if 0 <= since_close < 60_000
        else f"answered in {here}"
    )


def _bad(reasons: Mapping[str, int]) -> str:
    """Return the words for bad events, with their commonest reason."""
    return f"bad{_why(reasons)}"


def _of_remotes(reasons: Mapping[str, int]) -> str:
    return f"records of remotes left out{_why(reasons)}"


def _why(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return ""
    reason = min(reasons, key=lambda each: (-reasons[each], each))
    return f" ({'mostly: ' if len(reasons) > 1 else ''}{printable(reason)})"


def _freshness(row: Row) -> Text:
    if row.refreshed:
        return Text("refreshed", "green")
    return Text("" if row.age_seconds is None else f"{row.age_seconds:.1f} s old", "dim")


def _summary(answer: Answer) -> Text:
    spent, allowed = answer.spending, answer.budget
    line = Text()
    line.append(str(answer.status), _STYLES[answer.status])
    line.append(f" · {answer.reason}" if answer.reason else "")
    beyond = answer.bound is not None and math.isfinite(answer.bound)
    line.append(f", scoring {answer.bound:.4f} at best" if beyond else "")
    if answer.expected is not None and answer.status is not Status.EXACT:
        line.append(
            f" · expected precision {answer.expected.precision:.2f}, nDCG "
            f"{answer.expected.ndcg:.2f}"
        )
    if answer.target is not None and answer.reaches_target is False:
        line.append(f" · below the target {answer.target.least:g}", "yellow")
    asked = (
        f" · asked for {spent.items} of {allowed.items} items in {spent.requests} of "
        f"{allowed.requests} requests"
        + (f" for {spent.shared_by} queries" if spent.shared_by > 1 else "")
    )
    line.append(asked if allowed.items else "")
    line.append(f" · {answer.counts.events} events")
    for count, meaning in (
        (answer.counts.late, "late"),
        (sum(answer.counts.bad.values()), _bad(answer.counts.bad)),
        (answer.counts.unscored, "without a score"),
        (answer.counts.skipped, "empty windows skipped"),
        (sum(answer.counts.rejected.values()), _of_remotes(answer.counts.rejected)),
    ):
        line.append(f", {count} {meaning}" if count else "")
    line.append(f" · {_latency(answer)}")
    if answer.refreshed:
        line.append("\nrefreshed: " + ", ".join(_short(term) for term in answer.refreshed), "dim")
    if answer.failure:
        line.append(f"\n{answer.failure}; the last known values were used", "red")
    return line
