"""Parser from text to abstract syntax tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken, VisitError

from rspql import ast
from rspql.builder.queries import AstBuilder
from rspql.diagnostics import Diagnostic, QueryError, in_source_order
from rspql.grammar import grammar
from rspql.limits import BRACKETS, LENGTH
from rspql.passes.check_limits import check_limits
from rspql.passes.check_rules import check_rules
from rspql.recovery import syntax_errors
from rspql.source import Source
from rspql.token_limits import LimitExceededError, within_limits


def parse(
    text: str,
    *,
    prefixes: Mapping[str, str] | None = None,
    base: str = "",
    bare_unit: str | None = None,
    file: str = "<query>",
) -> ast.Query:
    """Return the abstract syntax tree of a query; raise :class:`QueryError` with its problems.

    A query that parses keeps all rules of the standard. ``prefixes`` are known without being
    declared, such as a catalog's. Relative IRIs are resolved against ``base``; without a base they
    stay relative. ``bare_unit`` (``"s"``, ``"ms"``) is the unit of durations written without one.

    Takes time proportional to the text's length, which is limited, as are its depth and its width
    (:mod:`rspql.limits`).

    >>> text = "SELECT ?u FROM NAMED WINDOW <http://w> ON <http://s> [RANGE 9m] WHERE { }"
    >>> parse(text).windows[0].slide
    540000
    """
    if len(text) > LENGTH.most:
        message = f"the query has {len(text)} {LENGTH.what}; at most {LENGTH.most} are supported"
        raise QueryError([Diagnostic("too-long", message, hint=LENGTH.remedy)], text, file)
    source = Source(text)
    if source.unknown:
        found = [
            Diagnostic("codepoint", "this escape stands for no character", span)
            for span in source.unknown
        ]
        raise QueryError(found, text, file)
    try:
        tree = _parse_tree(source.parsed)
    except UnexpectedInput as error:
        raise QueryError(syntax_errors(source, error, _parse_tree), text, file) from None
    except LimitExceededError as error:
        raise QueryError([_limit_diagnostic(error, source)], text, file) from None
    builder = AstBuilder(source, prefixes or {}, base, bare_unit)
    try:
        query = builder.transform(tree)
    except VisitError as error:
        raise error.orig_exc from error
    diagnostics = builder.diagnostics
    diagnostics += check_limits(query) or check_rules(query)
    if diagnostics:
        raise QueryError(in_source_order(diagnostics), text, file)
    return query


def _parse_tree(text: str) -> Tree[Token]:
    parser = grammar().parse_interactive(text)
    try:
        last = deque(within_limits(parser.iter_parse()), maxlen=1)
        tree: Tree[Token] = parser.feed_eof(*last)  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        # From this, lark finds what could have stood there.
        error.interactive_parser = parser
        raise
    return tree


def _limit_diagnostic(error: LimitExceededError, source: Source) -> Diagnostic:
    limit, token = error.limit, error.token
    span = source.span(token.start_pos or 0, token.end_pos or 0)
    if limit is BRACKETS:
        hint = f"at most {limit.most} {limit.what} are supported; {limit.remedy}"
        return Diagnostic("nesting", "the query is nested too deeply", span, hint)
    message = f"the query has more than {limit.most} {limit.what}"
    return Diagnostic("too-long", message, span, limit.remedy)
