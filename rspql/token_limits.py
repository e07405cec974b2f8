"""Limits on a query's tokens: refuse a text while it is read, before anything is built from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lark import Token

from rspql.limits import BRACKETS, TOKENS, SizeLimit

_OPENING = frozenset(("LBRACE", "LPAR", "LSQB"))
_CLOSING = frozenset(("RBRACE", "RPAR", "RSQB"))


class LimitExceededError(Exception):
    """Error: ``token`` is the first one beyond ``limit``."""

    def __init__(self, limit: SizeLimit, token: Token) -> None:
        super().__init__(limit.what)
        self.limit = limit
        self.token = token


def within_limits(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens unchanged; raise :class:`LimitExceededError` at the first beyond a limit.

    >>> [str(each) for each in within_limits([Token("LBRACE", "{"), Token("RBRACE", "}")])]
    ['{', '}']
    """
    depth = 0
    for count, token in enumerate(tokens, 1):
        if count > TOKENS.most:
            raise LimitExceededError(TOKENS, token)
        if token.type in _OPENING:
            depth += 1
            if depth > BRACKETS.most:
                raise LimitExceededError(BRACKETS, token)
        elif token.type in _CLOSING:
            depth -= 1
        yield token
