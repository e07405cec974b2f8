"""From text to plan, by passes in order."""

from __future__ import annotations

from collections.abc import Mapping

from rspql.diagnostics import Diagnostic, QueryError
from rspql.parser import parse
from rspql.passes.recognise_topk import recognise_topk
from rspql.passes.split_sources import split_sources
from rspql.plan import TopKPlan


def compile_query(text: str, *, prefixes: Mapping[str, str] | None = None, file: str = "<query>") -> TopKPlan:
    """Return the plan of an RSP-QL query.

    ``prefixes`` are known without being declared (a catalog's), ``file`` names the text in
    messages. Raises :class:`~rspql.diagnostics.QueryError` with everything that is wrong.
    """
    found: list[Diagnostic] = []
    try:
        query = parse(text, prefixes=prefixes, file=file)
        sources = split_sources(query, found)
        plan = recognise_topk(query, sources, found) if sources else None
    except RecursionError:
        raise QueryError([Diagnostic("nesting", "the query is nested too deeply")], text, file) from None
    if found or plan is None:
        raise QueryError(found, text, file)
    return plan
