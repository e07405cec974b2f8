"""Check that a window's pattern needs the records of one subject alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.check_growth import OF_RECORDS, check_growth, computed_in
from rspql.passes.check_names import calls_own
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, evaluable
from rspql.passes.recognise_topk import LARGEST
from rspql.scope import Names, certain, certain_in, used_in, visible
from rspql.scoring import FunctionRegistry, check_expression

_SEVERAL = "the pattern joins several records of a window"


def is_star(elements: Iterable[ast.Pattern]) -> bool:
    """Return True for triple patterns with plain predicates, and filters without patterns."""
    return all(map(_is_of_star, elements))


def check_record_pattern(group: ast.Group) -> None:
    """Raise unless each solution of a group comes from triples about one subject.

    Then a window's solutions are those of its subjects, each evaluated by itself.
    """
    _subject(group.elements, None)


def check_volatile(group: ast.Group) -> None:
    """Raise if an expression in a group has another value whenever it is computed."""
    for node in ast.walk(group):
        if isinstance(node, ast.Call) and node.function in VOLATILE:
            raise NotIncremental("an expression is computed at the window's close", node)
    check_growth(computed_in(ast.walk(group)), OF_RECORDS)


def as_evaluated(group: ast.Group, functions: FunctionRegistry) -> ast.Group:
    """Return a group in the SPARQL that an engine without own functions evaluates."""
    plain = evaluable(group, functions)
    for node in ast.walk(plain):
        if isinstance(node, ast.Call) and calls_own(node):
            raise NotIncremental("the WINDOW calls a function that SPARQL lacks", node)
    return plain


def _is_of_star(element: ast.Pattern) -> bool:
    if isinstance(element, ast.TriplePattern):
        terms = (element.subject, element.object)
        has_blank = any(isinstance(term, ast.BlankNode) for term in terms)
        return isinstance(element.predicate, ast.Iri) and not has_blank
    return isinstance(element, ast.Filter) and not any(
        isinstance(node, ast.Exists) for node in ast.walk(element)
    )


def _subject(elements: Iterable[ast.Pattern], subject: ast.Term | None) -> ast.Term | None:
    """Return the one subject of a group's patterns, which is ``subject`` if that is given.

    None if nothing in it has to match a triple, or if it is a UNION of different subjects.
    """
    found: ast.Term | None = None
    apart: ast.Pattern | None = None
    for element in elements:
        if isinstance(element, ast.Filter | ast.Assignment | ast.Values):
            continue
        about = _about(element, found, subject)
        if about is None and _is_union(element):
            apart = element
        elif about is not None and about != (found or subject or about):
            raise NotIncremental(_SEVERAL, element)
        found = found or about
    if apart is not None and (found or subject):
        # What is joined with it would be joined with the triples of other subjects.
        raise NotIncremental(_SEVERAL, apart)
    _check_exists(elements, found or subject)
    return found


def _about(
    element: ast.Pattern, found: ast.Term | None, subject: ast.Term | None
) -> ast.Term | None:
    """Return the subject of one element, behind others about ``found``."""
    match element:
        case ast.TriplePattern():
            return _subject_of(element)
        case ast.Group(inner):
            return _subject(inner, subject)
        case ast.UnionPattern(groups):
            return _of_branches(groups)
        case ast.OptionalPattern(group) | ast.MinusPattern(group):
            about = None if found is None else _subject(group.elements, found)
            if about is None:
                raise NotIncremental(_SEVERAL, element)
            return about
        case _:
            raise NotIncremental("a sub-query stands within another", element)


def _is_union(element: ast.Pattern) -> bool:
    return any(isinstance(node, ast.UnionPattern) for node in ast.walk(element))


def _of_branches(groups: Iterable[ast.Group]) -> ast.Term | None:
    """Return the subject of all branches of a UNION; None if they differ."""
    found = [_subject(group.elements, None) for group in groups]
    for each, group in zip(found, groups, strict=True):
        if each is None:
            raise NotIncremental("a branch of a UNION matches nothing", group)
    return found[0] if all(each == found[0] for each in found) else None


def _check_exists(elements: Iterable[ast.Pattern], subject: ast.Term | None) -> None:
    for element in elements:
        if not isinstance(element, ast.Filter | ast.Assignment):
            continue
        for node in ast.walk(element.expression):
            if isinstance(node, ast.Exists) and (
                subject is None or _subject(node.group.elements, subject) is None
            ):
                raise NotIncremental(_SEVERAL, node)


def _subject_of(triple: ast.TriplePattern) -> ast.Term:
    """Return the term that stands for the subject of the triple that a pattern matches."""
    match triple.predicate:
        case ast.InversePath(ast.Iri()):
            return triple.object
        case ast.Iri() | ast.Variable():
            return triple.subject
        case ast.AlternativePath(paths) if all(isinstance(each, ast.Iri) for each in paths):
            return triple.subject
        case ast.NegatedPath(choices) if all(isinstance(each, ast.Iri) for each in choices):
            return triple.subject
        case _:
            raise NotIncremental("a path of several steps joins several records", triple)


def with_binds(expression: ast.Expression, group: ast.Group) -> ast.Expression:
    """Return an expression with names that a group's BINDs give to arithmetic written out.

    A BIND computes with what the elements before it bind. What would be too large stays as it is:
    each name that is used twice doubles the size.
    """
    known: dict[str, ast.Expression] = {}
    sizes: dict[str, int] = {}
    sure: Names = {}

    def written(node: ast.Node) -> ast.Node:
        return known.get(node.name, node) if isinstance(node, ast.Variable) else node

    def size_of(node: ast.Node) -> int:
        nodes = ast.walk(node)
        return sum(
            sizes.get(each.name, 1) if isinstance(each, ast.Variable) else 1 for each in nodes
        )

    for element in group.elements:
        if isinstance(element, ast.Assignment) and size_of(element.expression) <= LARGEST:
            value = ast.rewritten(element.expression, written)
            problems: list[Diagnostic] = []
            check_expression(value, problems)
            if not problems and all(name in sure for name in used_in(value)):
                known[element.variable.name] = value
                sizes[element.variable.name] = size_of(value)
        sure |= certain_in(element)
    fits = bool(known) and size_of(expression) <= LARGEST
    return ast.rewritten(expression, written) if fits else expression


def check_bound(
    group: ast.Group,
    join: Collection[str],
    conditions: Iterable[ast.Expression],
    score: ast.Node,
    *,
    is_all: bool = False,
) -> None:
    """Raise if a join, a condition on both sides or a score needs what may be unbound.

    If the group ``is_all`` that is matched, arithmetic does without: an error is no score, unless
    COALESCE or IF takes another value.
    """
    computed = {node.variable.name for node in ast.walk(group) if isinstance(node, ast.Assignment)}
    uncertain = visible(group).keys() - certain(group).keys()
    for name in join:
        if name in uncertain:
            raise NotIncremental(f"?{name} may be unbound, and the SERVICE is joined on it", group)
    for condition in conditions:
        for name in used_in(condition):
            if name in uncertain:
                raise NotIncremental(f"?{name} may be unbound, and a filter needs it", condition)
    may_be_error = is_all and not join and not isinstance(score, ast.Variable)
    for name in used_in(score):
        if name in uncertain - computed and not may_be_error:
            raise NotIncremental(f"?{name} may be unbound, and the score needs it", score)
