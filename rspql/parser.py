"""Parser from text to abstract syntax tree."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from rspql import ast
from rspql.builder import AstBuilder
from rspql.diagnostics import Diagnostic, QueryError, in_source_order, nearest
from rspql.dialects import not_supported
from rspql.grammar import grammar
from rspql.limits import BRACKETS, LENGTH
from rspql.passes.check_limits import check_limits
from rspql.passes.check_rules import check_rules
from rspql.source import Source
from rspql.token_limits import LimitExceededError, within_limits

_FRIENDLY = {
    "VAR": "a variable",
    "IRIREF": "an IRI",
    "PNAME_LN": "an IRI",
    "PNAME_NS": "an IRI",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "INTEGER_SIGNED": "a number",
    "DECIMAL_SIGNED": "a number",
    "DOUBLE_SIGNED": "a number",
    "STRING_LITERAL1": "a string",
    "STRING_LITERAL2": "a string",
    "STRING_LITERAL_LONG1": "a string",
    "STRING_LITERAL_LONG2": "a string",
    "BLANK_NODE_LABEL": "a blank node",
    "ANON": "a blank node",
    "NIL": "'()'",
    "BARE_NAME": "a function",
    "FUNCTION": "a function",
    "DURATION": "a duration such as 9m or PT9M",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "DOT": "'.'",
    "COMMA": "','",
    "SEMICOLON": "';'",
    "STAR": "'*'",
    "PLUS": "'+'",
    "MINUS_SIGN": "'-'",
    "SLASH": "'/'",
    "VBAR": "'|'",
    "BANG": "'!'",
    "CIRCUMFLEX": "'^'",
    "QUESTION": "'?'",
    "EQUAL": "'='",
    "RELATION": "a comparison",
    "LANGTAG": "a language tag",
    "A": "'a'",
    "$END": "the end of the query",
}


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
        tree = _parse_tree(source)
    except UnexpectedInput as error:
        raise QueryError([_syntax_diagnostic(error, source)], text, file) from None
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


def _parse_tree(source: Source) -> Tree[Token]:
    parser = grammar().parse_interactive(source.parsed)
    last = deque(within_limits(parser.iter_parse()), maxlen=1)
    tree: Tree[Token] = parser.feed_eof(*last)  # type: ignore[no-untyped-call]
    return tree


def _limit_diagnostic(error: LimitExceededError, source: Source) -> Diagnostic:
    limit, token = error.limit, error.token
    span = source.span(token.start_pos or 0, token.end_pos or 0)
    if limit is BRACKETS:
        hint = f"at most {limit.most} {limit.what} are supported; {limit.remedy}"
        return Diagnostic("nesting", "the query is nested too deeply", span, hint)
    message = f"the query has more than {limit.most} {limit.what}"
    return Diagnostic("too-long", message, span, limit.remedy)


def _syntax_diagnostic(error: UnexpectedInput, source: Source) -> Diagnostic:
    text = source.parsed
    start = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        start = len(text.rstrip())
    word = re.compile(r"[^\W\d]\w*|\S").match(text, start)
    found = word[0] if word else ""
    span = source.span(start, start + max(1, len(found)))
    reason = not_supported(text, start)
    if reason is not None:
        return Diagnostic("unsupported", *reason[:1], span, reason[1])
    names = set(
        error.allowed
        if isinstance(error, UnexpectedCharacters)
        else getattr(error, "expected", ()) or ()
    )
    (last,) = (getattr(error, "token_history", None) or [None])[-1:]
    if last is not None and last.type == "BARE_NAME":
        # A bare name was read as a function, but its arguments are missing. It is more likely a
        # misspelt keyword.
        keyword = nearest(last.upper(), _keywords())
        hint = (
            f"did you mean {keyword}?"
            if keyword
            else "a function needs its arguments in parentheses"
        )
        return Diagnostic(
            "syntax", f'unexpected "{last}"', source.span(last.start_pos, last.end_pos), hint
        )
    message = "the query ends too early" if not found else f'unexpected "{found}"'
    return Diagnostic("syntax", message, span, _expectation(found, text[:start], names))


def _keywords() -> list[str]:
    return [
        terminal.name
        for terminal in grammar().terminals
        if re.match(terminal.name, terminal.pattern.value)
    ]


def _expectation(found: str, before: str, names: set[str]) -> str | None:
    expected = sorted({_FRIENDLY.get(name, name) for name in names})
    keyword = nearest(found.upper(), [name for name in expected if name.isupper()])
    if keyword and len(found) > 2:
        return f"did you mean {keyword}?"
    if found in ("'", '"'):
        return (
            "this string does not end; one that goes over several lines needs three quotes at "
            "each end"
        )
    if found.upper() in ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", ""):
        if before.count("{") > before.count("}"):
            return "is there a } missing?"
        if found:
            return "these come in the order GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET"
    return f"expected {' or '.join(expected)}" if 0 < len(expected) <= 8 else None
