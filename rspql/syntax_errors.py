"""Syntax errors: a description of the place at which the grammar cannot go on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from rspql.diagnostics import nearest
from rspql.dialects import not_supported
from rspql.draft import Edit
from rspql.grammar import grammar

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

_WORD = re.compile(r"[^\W\d]\w*|\S")
ORDER = "these come in the order GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET"
"""Remedy for clauses in another order."""


@dataclass(frozen=True)
class Stop:
    """Place at which the grammar cannot go on: the text, the offset, and what could follow."""

    text: str
    at: int
    expected: frozenset[str]
    """Names of the terminals that could stand here."""
    name: str | None = None
    """Bare name that was read as a function, and whose arguments are missing."""
    beyond: int = 0
    """Offset at which the grammar stopped: behind that name if there is one."""

    @classmethod
    def of(cls, error: UnexpectedInput, text: str) -> Stop:
        """Return the place of lark's error."""
        at = error.pos_in_stream if error.pos_in_stream is not None else len(text)
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            at = len(text.rstrip())
        (last,) = (getattr(error, "token_history", None) or [None])[-1:]
        if last is not None and last.type == "BARE_NAME":
            return cls(text, last.start_pos or 0, _expected(error), str(last), at)
        return cls(text, at, _expected(error), beyond=at)

    @property
    def found(self) -> str:
        """Word or sign at the place; empty at the end."""
        word = _WORD.match(self.text, self.at)
        return word[0] if word else ""

    @property
    def before(self) -> str:
        """Text before the place, as much as a mistake may concern."""
        return self.text[max(0, self.at - 400) : self.at]


@dataclass(frozen=True)
class Finding:
    """Description of a mistake, the characters it concerns, and the edits that would mend it."""

    code: str
    message: str
    start: int
    end: int
    hint: str | None = None
    fix: tuple[Edit, ...] = ()
    is_last: bool = False
    """True if the rest of the text is not worth reading."""


def unsupported(stop: Stop) -> Finding | None:
    """Return the construct of another dialect or language that stands at a place, or None."""
    for at in (stop.beyond, stop.at):
        reason = not_supported(stop.text, at)
        if reason is not None:
            word = _WORD.match(stop.text, at)
            end = word.end() if word else at + 1
            return Finding("unsupported", reason[0], at, end, reason[1], is_last=True)
    return None


def described(stop: Stop) -> Finding:
    """Return what is known of any other syntax error."""
    found, end = stop.found, stop.at + max(1, len(stop.found))
    message = f'unexpected "{found}"' if found else "the query ends too early"
    if stop.name is not None:
        # It was read as a function, but its arguments are missing: more likely it is a misspelt
        # keyword.
        keyword = nearest(stop.name.upper(), keywords())
        hint = (
            f"did you mean {keyword}?"
            if keyword
            else "a function needs its arguments in parentheses"
        )
        return Finding("syntax", f'unexpected "{stop.name}"', stop.at, end, hint)
    is_last = found in ("'", '"')
    return Finding("syntax", message, stop.at, end, _expectation(stop), is_last=is_last)


def _expected(error: UnexpectedInput) -> frozenset[str]:
    if isinstance(error, UnexpectedCharacters):
        return frozenset(error.allowed or ())
    if isinstance(error, UnexpectedToken):
        # Without a stack, what lark calls expected holds tokens that cannot follow.
        return frozenset(error.accepts or error.expected or ())
    return frozenset()


def keywords() -> list[str]:
    """Return the keywords of the language, in upper case."""
    return [
        terminal.name
        for terminal in grammar().terminals
        if re.match(terminal.name, terminal.pattern.value)
    ]


def _expectation(stop: Stop) -> str | None:
    found = stop.found
    expected = sorted({_FRIENDLY.get(name, name) for name in stop.expected})
    keyword = nearest(found.upper(), [name for name in expected if name.isupper()])
    if keyword and len(found) > 2 and keyword != found.upper():
        return f"did you mean {keyword}?"
    if found in ("'", '"'):
        return (
            "this string does not end; one that goes over several lines needs three quotes at "
            "each end"
        )
    if found.upper() in ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", ""):
        before = stop.text[: stop.at]
        if before.count("{") > before.count("}"):
            return "is there a } missing?"
        if found:
            return ORDER
    return f"expected {' or '.join(expected)}" if 0 < len(expected) <= 8 else None
