"""Answers as one table: a row per result, a column per variable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rdflib import BNode
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Row, term_json
from acquatop.answer.sinks.window_files import columns_of, utf8
from acquatop.ingest.terms import to_rdflib

if TYPE_CHECKING:
    import pyarrow as pa

FIXED = ("query", "window", "opens", "closes", "rank", "score", "status")
LAST = ("boolean", "terms", "facts")
_TRIPLE = re.compile(r"(<[^>]*>|_:\S+) (<[^>]*>) (.*) \.", re.DOTALL)
_PARTS = ("subject", "predicate", "object")


def answers_table(answers: Sequence[Answer], variables: Iterable[str] = ()) -> pa.Table:
    """Return answers as a table, with a column for each variable.

    The variables are those given and those that the answers have. A SELECT has a row per result; an
    ASK one row; a CONSTRUCT or DESCRIBE a row per triple, with the variables ``subject``,
    ``predicate`` and ``object``. The columns: ``query``, ``window`` (its number), ``opens`` and
    ``closes`` (timestamps, UTC), ``rank`` (from 1), ``score``, ``status``; a column of text per
    variable, null if it is unbound; ``boolean`` (of an ASK); ``terms``, a map from each bound
    variable to its ``type`` (uri, bnode, literal), ``datatype`` and ``lang``; ``facts``, the
    rest of the answer that depends on the data alone, as JSON. A variable whose name is that of
    another column, in upper or lower case, has ``_`` added.

    >>> answers_table([], ["user", "Score"]).column_names[5:]
    ['score', 'status', 'user', 'Score_', 'boolean', 'terms', 'facts']
    """
    import pyarrow as pa

    names = dict.fromkeys(
        (*variables, *(name for answer in answers for name in _variables(answer)))
    )
    columns = column_names(names)
    rows = [
        {**_record(answer, row, columns), "facts": facts}
        for answer, facts in ((answer, _facts(answer)) for answer in answers)
        for row in _rows(answer)
    ]
    return pa.Table.from_pylist(rows, schema=_schema(columns.values()))


def column_names(variables: Iterable[str]) -> dict[str, str]:
    """Return the column of each variable; no two columns differ only in upper and lower case.

    >>> column_names(["user", "User", "rank"])
    {'user': 'user', 'User': 'User_', 'rank': 'rank_'}
    """
    taken, columns = {*FIXED, *LAST}, {}
    for variable in variables:
        name = variable
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        columns[variable] = name
    return columns


def _schema(columns: Iterable[str]) -> pa.Schema:
    import pyarrow as pa

    instant = pa.timestamp("ms", tz="UTC")
    kinds = (pa.string(), pa.int64(), instant, instant, pa.int32(), pa.float64(), pa.string())
    term = pa.struct([(name, pa.string()) for name in ("type", "datatype", "lang")])
    texts = [(name, pa.string()) for name in columns]
    return pa.schema(
        [
            *zip(FIXED, kinds, strict=True),
            *texts,
            *zip(LAST, (pa.bool_(), pa.map_(pa.string(), term), pa.string()), strict=True),
        ]
    )


def _facts(answer: Answer) -> str:
    """Return the form, the reason, the bound and the windows of an answer, as JSON."""
    shown = ("form", "reason", "bound", "windows")
    document = answer.canonical()
    return json.dumps({name: document[name] for name in shown if name in document})


def _variables(answer: Answer) -> Sequence[str]:
    return _PARTS if answer.form in ("construct", "describe") else columns_of(answer)


def _rows(answer: Answer) -> Iterator[tuple[int | None, float | None, Mapping[str, Identifier]]]:
    """Yield each row's rank, score and bindings."""
    match answer.form:
        case "ask":
            yield None, None, {}
        case "construct" | "describe":
            for triple in answer.triples:
                yield None, None, dict(zip(_PARTS, _terms_of(triple), strict=True))
        case _:
            yield from map(_row, answer.rows)


def _row(row: Row) -> tuple[int, float | None, Mapping[str, Identifier]]:
    return row.rank, row.score, row.bindings


def _terms_of(triple: str) -> Iterator[Identifier]:
    parts = _TRIPLE.fullmatch(triple)
    if parts is None:
        raise ValueError(f"not a line of N-Triples: {triple}")
    return (
        BNode(part[2:]) if part.startswith("_:") else to_rdflib(part) for part in parts.groups()
    )


def _record(
    answer: Answer,
    row: tuple[int | None, float | None, Mapping[str, Identifier]],
    columns: Mapping[str, str],
) -> dict[str, Any]:
    rank, score, bindings = row
    written = {name: term_json(term) for name, term in bindings.items()}
    return {
        "query": utf8(answer.query).decode(),
        "window": answer.window,
        "opens": answer.opens_ms,
        "closes": answer.closes_ms,
        "rank": rank,
        "score": score,
        "status": str(answer.status),
        **{columns[name]: utf8(term["value"]).decode() for name, term in written.items()},
        "boolean": answer.boolean,
        "terms": [
            (
                name,
                {
                    "type": term["type"],
                    "datatype": term.get("datatype"),
                    "lang": term.get("xml:lang"),
                },
            )
            for name, term in written.items()
        ],
    }
