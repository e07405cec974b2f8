"""A test's query in RSP-QL: it has a window, and its data are static graphs.

The window holds one record. The query has solutions only if the record is there, and then as many
as without it. A window is a named graph, too: ``GRAPH ?g`` leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rspql import ast
from rspql.ast import rewritten
from rspql.parser import parse
from rspql.printer import query_text
from tests.support.w3c.manifests import Case

BASE = "http://w3c.test/"
STREAM = ast.Iri("urn:w3c:stream")
TICK = ast.Iri("urn:w3c:tick")
WINDOW = ast.Iri("urn:w3c:window")
_MILLISECONDS = 10_000
_RECORD = ast.TriplePattern(ast.Variable("w3c_record"), TICK, ast.Variable("w3c_tick"))
_HAS_THE_RECORD = ast.Filter(
    ast.Exists(ast.Group((ast.WindowPattern(WINDOW, ast.Group((_RECORD,))),)))
)


@dataclass(frozen=True)
class Mapped:
    """A query of RSP-QL, as a tree and as text, and the files of the graphs that it names."""

    query: ast.Query
    text: str
    graphs: dict[str, Path]


def mapped(case: Case) -> Mapped:
    """Return a test's query in RSP-QL; raises ``QueryError`` if it is no query of the language."""
    assert case.query is not None
    plain = parse(f"BASE <{iri_of(case.query)}>\n{case.query.read_text('utf-8')}")
    default, named = plain.default_graphs, plain.named_graphs
    if not default and not named:
        default = tuple(ast.Iri(iri_of(each)) for each in case.default)
        named = tuple(ast.Iri(iri_of(each)) for each in case.named)
    plain = rewritten(plain, _without_the_window)
    elements = plain.where.elements if plain.where else ()
    query = replace(
        plain,
        where=ast.Group((*elements, _HAS_THE_RECORD)),
        windows=(ast.WindowClause(WINDOW, STREAM, _MILLISECONDS, _MILLISECONDS),),
        default_graphs=default,
        named_graphs=named,
        output="RSTREAM" if isinstance(plain.form, ast.Select | ast.Construct) else None,
    )
    near = {iri_of(each): each for each in case.query.parent.iterdir()}
    graphs = {each.value: near[each.value] for each in (*default, *named)}
    return Mapped(query, query_text(query), graphs)


def iri_of(file: Path) -> str:
    """Return the IRI of a file of the tests."""
    return f"{BASE}{file.parent.name}/{file.name}"


def _without_the_window(node: ast.Node) -> ast.Node:
    if not isinstance(node, ast.GraphPattern) or not isinstance(node.graph, ast.Variable):
        return node
    is_another = ast.Binary("!=", node.graph, WINDOW)
    return ast.Group((node, ast.Filter(is_another)))
