"""Answers as notebooks show them: an HTML table, and data frames with typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

from rdflib import Literal
from rdflib.term import Identifier

from acquatop.instants import instant_text

if TYPE_CHECKING:
    import pyarrow as pa

    from acquatop.answer.answer import Answer

FIXED = ("query", "window", "opens", "closes", "status", "rank", "score")
"""Columns before those of the variables."""
_COLOURS = {
    "exact": "#1a7f37",
    "certified": "#0969da",
    "probabilistic": "#8250df",
    "approximate": "#9a6700",
}


def to_arrow(answers: Iterable[Answer]) -> pa.Table:
    """Return the rows of SELECT answers as a table with a column for each variable.

    A variable's column has numbers, truth values or timestamps if all its values are such; texts
    and IRIs are text. Further columns: ``query``, ``window``, ``opens``, ``closes``, ``status``,
    ``rank`` and ``score``; a variable of such a name has ``_`` added.
    """
    import pyarrow as pa

    listed = list(answers)
    names = dict.fromkeys(name for answer in listed for name in _variables(answer))
    pairs = [(answer, row) for answer in listed for row in answer.rows]
    instant = pa.timestamp("ms", tz="UTC")
    fixed = (
        pa.array([answer.query for answer, _ in pairs], pa.string()),
        pa.array([answer.window for answer, _ in pairs], pa.int64()),
        pa.array([answer.opens_ms for answer, _ in pairs], instant),
        pa.array([answer.closes_ms for answer, _ in pairs], instant),
        pa.array([str(answer.status) for answer, _ in pairs], pa.string()),
        pa.array([row.rank for _, row in pairs], pa.int32()),
        pa.array([row.score for _, row in pairs], pa.float64()),
    )
    variables = {
        name + "_" if name in FIXED else name: _column([row.bindings.get(name) for _, row in pairs])
        for name in names
    }
    return pa.table({**dict(zip(FIXED, fixed, strict=True)), **variables})


def to_pandas(answers: Iterable[Answer]) -> Any:
    """Return the rows of SELECT answers as a pandas DataFrame (:func:`to_arrow`)."""
    return to_arrow(answers).to_pandas()


def to_polars(answers: Iterable[Answer]) -> Any:
    """Return the rows of SELECT answers as a polars DataFrame (:func:`to_arrow`)."""
    import polars

    return polars.from_arrow(to_arrow(answers))


def html_of(answer: Answer) -> str:
    """Return an answer as a table with its window, and a line that says what it is worth."""
    heads = ("rank", *(f"?{name}" for name in answer.variables), *_score_head(answer))
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(_cells(answer, row))}</tr>" for row in answer.rows)
    if answer.form != "select":
        said = answer.boolean if answer.form == "ask" else "\n".join(answer.triples)
        head, body = "", f"<tr><td><pre>{escape(str(said))}</pre></td></tr>"
    times = f"({instant_text(answer.opens_ms)}, {instant_text(answer.closes_ms)}]"
    colour = _COLOURS.get(str(answer.status), "inherit")
    reason = f": {escape(answer.reason)}" if answer.reason else ""
    return (
        f"<table><caption>{escape(answer.query)} {times}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p><b style="color:{colour}">{answer.status}</b>{reason}{_expected(answer)}</p>'
    )


def _variables(answer: Answer) -> Sequence[str]:
    bound = (name for row in answer.rows for name in row.bindings)
    return tuple(dict.fromkeys((*answer.variables, *bound)))


def _score_head(answer: Answer) -> tuple[str, ...]:
    """Return the heading of the scores, unless a variable shows them."""
    has_scores = any(row.score is not None for row in answer.rows)
    return ("score",) if has_scores and answer.score_variable not in answer.variables else ()


def _cells(answer: Answer, row: Any) -> Iterator[str]:
    yield f"<td>{row.rank}</td>"
    for name in answer.variables:
        term = row.bindings.get(name)
        title = "" if term is None else f' title="{escape(str(term))}"'
        yield f"<td{title}>{'' if term is None else escape(_short(term))}</td>"
    if _score_head(answer):
        yield f"<td>{'' if row.score is None else f'{row.score:.4g}'}</td>"


def _short(term: Identifier) -> str:
    """Return a literal's text, and of an IRI what follows its last separator."""
    text = str(term)
    if isinstance(term, Literal):
        return text
    return text.rstrip("/#").replace("#", "/").rpartition("/")[2] or text


def _expected(answer: Answer) -> str:
    if answer.expected is None:
        return ""
    return f" · expected precision {answer.expected.precision:.2f}, nDCG {answer.expected.ndcg:.2f}"


def _column(terms: Sequence[Identifier | None]) -> pa.Array:
    """Return terms as values of one type, as text if there are several."""
    import pyarrow as pa

    values = [None if term is None else _value(term) for term in terms]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if term is None else str(term) for term in terms], pa.string())


def _value(term: Identifier) -> object:
    value = term.toPython() if isinstance(term, Literal) else str(term)
    if isinstance(value, Decimal):
        return float(value)
    # Languages and datatypes that Python has no type for are told by the answer itself.
    return str(term) if isinstance(value, Literal) else value
