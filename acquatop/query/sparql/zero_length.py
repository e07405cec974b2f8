"""Paths of length zero from a term that the graph does not have.

In SPARQL 1.1 (section 18.4) a path that may be of length zero leads from a constant to itself in
any graph. The SPARQL engine says so of the graph's own terms alone.
"""

from __future__ import annotations

from typing import TypeGuard

from rspql import ast
from rspql.ast import rewritten
from rspql.paths import may_be_empty


def with_zero_lengths(query: ast.Query) -> ast.Query:
    """Return a query whose paths find their constant in graphs without it, too.

    ``<c> path ?x`` becomes itself or, if the graph does not have ``<c>``, ``?x = <c>``. Unchanged
    are patterns of remotes, of graphs with a variable (the engine would not bind it), and beside
    blank nodes, whose labels may not stand on both sides of a UNION.

    >>> path = ast.RepeatedPath(ast.Iri("urn:friend"), "*")
    >>> triple = ast.TriplePattern(ast.Iri("urn:ann"), path, ast.Variable("x"))
    >>> changed = with_zero_lengths(ast.Query(ast.Ask(), ast.Group((triple,))))
    >>> [type(each).__name__ for each in changed.where.elements]
    ['UnionPattern']
    """
    return rewritten(query, _changed, opaque=_is_left_alone)


def _is_left_alone(node: ast.Node) -> bool:
    match node:
        case ast.ServicePattern():
            return True
        case ast.GraphPattern(graph=name) | ast.WindowPattern(window=name):
            return isinstance(name, ast.Variable)
        case _:
            return False


def _changed(node: ast.Node) -> ast.Node:
    if not isinstance(node, ast.Group) or any(map(_has_blank, node.elements)):
        return node
    elements = tuple(map(_either, node.elements))
    return node if elements == node.elements else ast.Group(elements, span=node.span)


def _has_blank(pattern: ast.Pattern) -> bool:
    return isinstance(pattern, ast.TriplePattern) and (
        isinstance(pattern.subject, ast.BlankNode) or isinstance(pattern.object, ast.BlankNode)
    )


def _either(pattern: ast.Pattern) -> ast.Pattern:
    """Return a pattern with a path as a UNION with its zero length, if it may have one."""
    if not isinstance(pattern, ast.TriplePattern) or not may_be_empty(pattern.predicate):
        return pattern
    constant = pattern.subject if _is_constant(pattern.subject) else pattern.object
    other = pattern.object if constant is pattern.subject else pattern.subject
    if not _is_constant(constant) or (_is_constant(other) and other != constant):
        return pattern
    itself = ast.TriplePattern(constant, pattern.predicate, constant)
    is_elsewhere = ast.Filter(ast.Exists(ast.Group((itself,)), negated=True))
    zero: tuple[ast.Pattern, ...] = (is_elsewhere,)
    if isinstance(other, ast.Variable):
        zero = (ast.Values((other,), ((constant,),)), is_elsewhere)
    return ast.UnionPattern((ast.Group((pattern,)), ast.Group(zero)))


def _is_constant(term: ast.Term) -> TypeGuard[ast.Iri | ast.Literal]:
    return isinstance(term, ast.Iri | ast.Literal)
