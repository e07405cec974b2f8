"""Formatter for queries: the same tokens and comments in one fixed layout.

Works on tokens alone, so names, literals and comments stay as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedInput

from rspql.grammar import grammar
from rspql.parser import parse
from rspql.source import Source
from rspql.token_limits import LimitExceededError, within_limits

_IRIS = frozenset("IRIREF PNAME_LN PNAME_NS".split())
_NUMBERS = frozenset("INTEGER DECIMAL DOUBLE INTEGER_SIGNED DECIMAL_SIGNED DOUBLE_SIGNED".split())
# Tokens distinguished by type; all others (keywords and signs) are distinguished by their text.
_TYPES = (
    _IRIS
    | _NUMBERS
    | frozenset(
        "A ANON BARE_NAME BLANK_NODE_LABEL DURATION FUNCTION LANGTAG NIL STRING_LITERAL1 "
        "STRING_LITERAL2 "
        "STRING_LITERAL_LONG1 STRING_LITERAL_LONG2 VAR".split()
    )
)
_AS_WRITTEN = frozenset("TRUE FALSE".split())
_CLAUSES = frozenset(
    (
        "BASE PREFIX REGISTER SELECT CONSTRUCT DESCRIBE ASK FROM WHERE GROUP HAVING ORDER LIMIT "
        "OFFSET VALUES"
    ).split()
)
_PATTERNS = frozenset("OPTIONAL MINUS GRAPH WINDOW SERVICE FILTER BIND VALUES".split())
_OF_ITEMS = frozenset("SELECT DESCRIBE GROUP HAVING ORDER".split())
_ITEM_ENDS = _IRIS | {"VAR", ")", "NIL"}
_OPERATORS = frozenset("|| && = != < > <= >= + - * /".split())
_CALLED = frozenset(
    "FUNCTION BARE_NAME BOUND COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT ASC DESC".split()
)
# Tokens after which a sign belongs to the operand that follows it.
_BEFORE_SIGN = _OPERATORS | frozenset("( , ! DISTINCT".split())

_GAP = re.compile(r"[ \t]+|(?P<end>\r\n|\r|\n)|(?P<comment>#[^\r\n]*)")


def format_query(text: str, *, file: str = "<query>") -> str:
    """Return a query in its fixed layout; raise :class:`QueryError` if the text is not a query.

    Keywords and built-in functions are in upper case. Clauses, patterns and triples have their own
    lines, indented by two spaces within braces. Everything else, and all comments, stay as written.
    For long lines, a line break stays between the items of a clause, between one variable's VALUES,
    after a comma and beside an operator. A blank line stays between blocks. Line ends are LF.
    Prefixes need no declaration, and rules beyond the grammar are not checked.

    The result has the same syntax tree as the text; formatting it again does not change it. Takes
    time proportional to the text's length.

    >>> text = "select ?x where{?x a :T;:p 5 optional{?x :q ?y}} # all\\nlimit 3"
    >>> print(format_query(text), end="")
    SELECT ?x
    WHERE {
      ?x a :T ;
        :p 5
      OPTIONAL {
        ?x :q ?y
      }
    } # all
    LIMIT 3
    """
    layout = _Layout()
    for piece in pieces(text, file=file):
        layout.add(piece)
    return layout.text()


# Tokens --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comment:
    """A comment, and the number of line ends before it."""

    text: str
    line_ends: int


@dataclass(frozen=True)
class Piece:
    """A token with the comments before it.

    ``line_ends`` counts the line ends between the last comment and the token. ``kind`` is the token
    itself for keywords and signs, its type for names and literals. The last piece is ``$END``.
    """

    kind: str
    text: str
    comments: tuple[Comment, ...] = ()
    line_ends: int = 0


def pieces(text: str, *, file: str = "<query>") -> Iterator[Piece]:
    """Yield a query's tokens with the comments before each.

    Raises :class:`QueryError` if the text is not a query.

    >>> [(piece.kind, piece.text, len(piece.comments)) for piece in pieces("ask # nothing\\n{}")]
    [('ASK', 'ASK', 0), ('{', '{', 1), ('}', '}', 0), ('$END', '', 0)]
    """
    source = Source(text)
    end = 0
    for token in _tokens(source, file):
        start = token.start_pos or 0
        comments, line_ends = _between(source, end, start)
        end = token.end_pos or start
        yield Piece(_kind(token), _text(source, token), comments, line_ends)
    yield Piece("$END", "", *_between(source, end, len(source.parsed)))


def _tokens(source: Source, file: str) -> list[Token]:
    if not source.unknown:
        parser = grammar().parse_interactive(source.parsed)
        try:
            found = list(within_limits(parser.iter_parse()))
            parser.feed_eof(found[-1] if found else None)  # type: ignore[no-untyped-call]
        except (UnexpectedInput, LimitExceededError):
            pass
        else:
            return found
    # The parser reports the problem.
    parse(source.written, file=file)
    raise AssertionError("what the grammar refuses does not parse")


def _between(source: Source, start: int, end: int) -> tuple[tuple[Comment, ...], int]:
    """Return the comments between two tokens, and the number of line ends after the last one."""
    comments = []
    line_ends = 0
    for match in _GAP.finditer(source.parsed, start, end):
        if match["comment"] is not None:
            comments.append(
                Comment(_written(source, match.start(), match.end()).rstrip(" \t"), line_ends)
            )
            line_ends = 0
        elif match["end"]:
            line_ends += 1
    return tuple(comments), line_ends


def _written(source: Source, start: int, end: int) -> str:
    span = source.span(start, end)
    return source.written[span.start : span.end]


def _kind(token: Token) -> str:
    return token.type if token.type in _TYPES else token.upper()


def _text(source: Source, token: Token) -> str:
    if token.type in ("NIL", "ANON"):
        return f"{token[0]}{token[-1]}"
    word = token.type == "FUNCTION" or (
        token.isidentifier() and token.type not in _TYPES | _AS_WRITTEN
    )
    return token.upper() if word else _written(source, token.start_pos or 0, token.end_pos or 0)


# Layout --------------------------------------------------------------------------------------


@dataclass
class _Frame:
    """An open query or pair of brackets, and the indentation of its lines.

    Braces hold a ``group``, a ``query`` (a sub-select), or the ``values`` of one variable or
    ``rows`` of several. Parentheses hold an ``expression``, a ``row`` or a ``node`` (a collection
    or path). Square brackets hold a ``node`` or a ``window``.
    """

    kind: str
    indent: int
    statement: str = ""
    """Keyword of the current clause or pattern; TRIPLES for triples."""
    ended: bool = True
    """True if a pattern has ended, so that the next token starts another."""

    @property
    def holds_expressions(self) -> bool:
        match self.kind:
            case "query":
                return self.statement not in ("DESCRIBE", "VALUES")
            case "group":
                return self.statement in ("FILTER", "BIND")
            case kind:
                return kind == "expression"


@dataclass(frozen=True)
class _Gap:
    """Separator between two pieces: nothing, a space or a line end.

    ``indent`` is that of the next line, if there is one.
    """

    separator: str
    indent: int
    may_be_blank: bool = False


class _Layout:
    """Builder of the text: appends pieces, given the open brackets and the piece before."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._frames = [_Frame("query", 0)]
        self._before = ""
        self._binds = False
        """True if the piece before binds to the next one, as a prefix operator does."""
        self._indent = 0

    def text(self) -> str:
        return "".join([*self._parts, "\n"])

    def add(self, piece: Piece) -> None:
        gap = self._gap(piece)
        for comment in piece.comments:
            self._add_comment(comment, gap, piece)
        if piece.kind != "$END":
            if gap.separator == "\n" or piece.comments:
                blank = piece.line_ends > 1 and gap.may_be_blank and piece.kind != "}"
                self._new_line(gap.indent, blank)
            else:
                self._parts.append(gap.separator)
            self._parts.append(piece.text)
            self._advance(piece.kind)

    def _add_comment(self, comment: Comment, gap: _Gap, piece: Piece) -> None:
        if comment.line_ends == 0 and self._parts:
            self._parts.append(f" {comment.text}")
        else:
            inside = 1 if piece.kind == "}" else 0
            self._new_line(gap.indent + inside, comment.line_ends > 1 and gap.may_be_blank)
            self._parts.append(comment.text)

    def _new_line(self, indent: int, blank: bool) -> None:
        if self._parts:
            self._parts.append("\n\n" if blank else "\n")
        self._parts.append("  " * indent)
        self._indent = indent

    # The gap before a piece

    def _gap(self, piece: Piece) -> _Gap:
        frame = self._frames[-1]
        if not self._before or piece.kind == "$END":
            return _Gap("\n" if self._before else "", 0, may_be_blank=True)
        if piece.kind == "}":
            return self._gap_before_brace(piece, frame)
        if self._before == "{":
            breaks = frame.kind != "values" or piece.line_ends > 0
            return _Gap("\n" if breaks else " ", frame.indent)
        if frame.kind == "group":
            return self._gap_in_group(piece, frame)
        if frame.kind == "query":
            return self._gap_in_query(piece, frame)
        if frame.kind == "rows":
            return _Gap("\n", frame.indent)
        return self._gap_in_line(
            piece, frame.indent if frame.kind == "values" else frame.indent + 1
        )

    def _gap_before_brace(self, piece: Piece, frame: _Frame) -> _Gap:
        breaks = self._before != "{" and (frame.kind != "values" or piece.line_ends > 0)
        return _Gap("\n" if breaks else " ", frame.indent - 1, may_be_blank=self._before != "{")

    def _gap_in_group(self, piece: Piece, frame: _Frame) -> _Gap:
        if piece.kind in (".", ";"):
            return _Gap(" ", frame.indent + 1)
        if piece.kind == "UNION":
            return _Gap(" ", frame.indent)
        if _starts_pattern(piece.kind, frame):
            return _Gap("\n", frame.indent, may_be_blank=True)
        if self._before == ";":
            return _Gap("\n", frame.indent + 1)
        return self._gap_in_line(piece, frame.indent if piece.kind == "{" else frame.indent + 2)

    def _gap_in_query(self, piece: Piece, frame: _Frame) -> _Gap:
        goes_on = piece.kind == "WHERE" and self._before == "CONSTRUCT"
        if piece.kind in _CLAUSES and not goes_on:
            return _Gap("\n", frame.indent, may_be_blank=True)
        return self._gap_in_line(piece, frame.indent if piece.kind == "{" else frame.indent + 1)

    def _gap_in_line(self, piece: Piece, indent: int) -> _Gap:
        frame = self._frames[-1]
        separator = self._separator(piece.kind, frame)
        if separator == " " and piece.line_ends and self._may_break(piece.kind, frame):
            separator = "\n"
        return _Gap(separator, indent)

    def _may_break(self, kind: str, frame: _Frame) -> bool:
        """Return True if a line break of the source may stay before a piece."""
        match frame.kind:
            case "values":
                return True
            case "query":
                item = frame.statement in _OF_ITEMS and self._before in _ITEM_ENDS
                return item and kind not in ("AS", "{")
            case "expression":
                beside = kind in _OPERATORS or self._before in _OPERATORS
                return self._before == "," or (beside and not self._binds)
            case _:
                return self._before in (",", ";")

    def _separator(self, kind: str, frame: _Frame) -> str:
        if kind in (")", ",", "^^", "LANGTAG") or self._before in ("(", "^^"):
            return ""
        if self._binds:
            # Without a space, a sign before a number would become part of it.
            return " " if kind in _NUMBERS and self._before in ("+", "-") else ""
        if frame.kind == "window" and (kind == "]" or self._before == "["):
            return ""
        if kind in ("(", "NIL") and self._is_called(frame):
            return ""
        if not frame.holds_expressions and (
            kind in ("/", "|", "?", "*", "+") or self._before in ("/", "|", "^")
        ):
            return "" if frame.kind in ("group", "node") else " "
        return "" if (self._before, kind) == ("SEPARATOR", "=") else " "

    def _is_called(self, frame: _Frame) -> bool:
        return self._before in _CALLED or (self._before in _IRIS and frame.holds_expressions)

    # State changes after a piece

    def _advance(self, kind: str) -> None:
        frame = self._frames[-1]
        self._follow_statement(kind, frame)
        sign = kind in ("+", "-") and self._before in _BEFORE_SIGN and frame.holds_expressions
        self._binds = sign or kind == "!" or (self._before, kind) == ("SEPARATOR", "=")
        if kind in ("{", "(", "["):
            self._open(kind, frame)
        elif kind in ("}", ")", "]"):
            self._close(kind)
        self._before = kind

    def _follow_statement(self, kind: str, frame: _Frame) -> None:
        if self._before == "{" and kind == "SELECT":
            frame.kind = "query"
        if frame.kind == "query" and kind in _CLAUSES:
            frame.statement = kind
        elif frame.kind == "group" and kind != "}":
            self._follow_pattern(kind, frame)

    def _follow_pattern(self, kind: str, frame: _Frame) -> None:
        if kind == ".":
            frame.ended = True
        elif kind == "UNION" or _starts_pattern(kind, frame):
            frame.statement = kind if kind in _PATTERNS or kind in ("{", "UNION") else "TRIPLES"
            frame.ended = False
        elif kind == "NIL" and frame.statement == "FILTER":
            frame.ended = True

    def _open(self, kind: str, frame: _Frame) -> None:
        match kind:
            case "{":
                opened = _Frame(self._in_braces(frame), self._indent + 1)
            case "[":
                opened = _Frame("window" if frame.kind == "query" else "node", frame.indent)
            case _:
                opened = _Frame(_in_parentheses(frame), frame.indent)
        self._frames.append(opened)

    def _in_braces(self, frame: _Frame) -> str:
        if frame.statement != "VALUES":
            return "group"
        return "values" if self._before == "VAR" else "rows"

    def _close(self, kind: str) -> None:
        self._frames.pop()
        frame = self._frames[-1]
        if kind == "}" or (kind == ")" and frame.kind == "group" and frame.holds_expressions):
            frame.ended = True


def _starts_pattern(kind: str, frame: _Frame) -> bool:
    return frame.ended or kind in _PATTERNS or (kind == "{" and frame.statement == "TRIPLES")


def _in_parentheses(frame: _Frame) -> str:
    if frame.statement == "VALUES" or frame.kind == "rows":
        return "row"
    return "expression" if frame.holds_expressions else "node"
