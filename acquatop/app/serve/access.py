"""Tokens that open the service, and what each allows."""

from __future__ import annotations

import enum
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from acquatop.errors import UserError

TOKEN = "ACQUATOP_TOKEN"  # noqa: S105 (a variable's name)
SHORTEST = 16
"""Characters that a token must have."""


class Role(enum.IntEnum):
    """Role of a client; each may do what those before it may."""

    READ = 1
    """Read answers, plans and metrics, and check texts."""
    REGISTER = 2
    """Register, pause, resume and remove queries."""
    ADMIN = 3
    """Reload the catalog."""


VARIABLES: Mapping[str, Role] = {
    TOKEN: Role.ADMIN,
    "ACQUATOP_REGISTER_TOKENS": Role.REGISTER,
    "ACQUATOP_READ_TOKENS": Role.READ,
}
"""Environment variables that hold tokens, several with spaces between them."""

_ADMINISTERS = frozenset({"/reload"})
_STUDIES = frozenset({"/check", "/explain"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class Tokens:
    """Tokens and their roles; without any, everyone may do everything."""

    roles: Mapping[str, Role] = field(default_factory=dict, repr=False)

    @classmethod
    def from_variables(cls, variables: Mapping[str, str] = os.environ) -> Tokens:
        """Return the tokens in the environment; raises :class:`UserError` for a weak one.

        A token of several roles has the highest.
        """
        roles: dict[str, Role] = {}
        for variable, role in VARIABLES.items():
            for token in _several(variable, variables.get(variable, "")):
                roles[token] = max(role, roles.get(token, role))
        return cls(roles)

    def __bool__(self) -> bool:
        return bool(self.roles)

    def role_of(self, given: str) -> Role | None:
        """Return the role of a token; None for an unknown one.

        All are compared, each in the same time, so that the time tells nothing.
        """
        known = given.encode("latin-1", "replace")
        roles = [
            role for token, role in self.roles.items() if hmac.compare_digest(token.encode(), known)
        ]
        return max(roles, default=None)


def needed_role(method: str, path: str) -> Role:
    """Return the role that a request needs.

    >>> needed_role("GET", "/queries"), needed_role("DELETE", "/queries/q")
    (<Role.READ: 1>, <Role.REGISTER: 2>)
    """
    if path in _ADMINISTERS:
        return Role.ADMIN
    return Role.READ if method in _READS or path in _STUDIES else Role.REGISTER


def _several(variable: str, text: str) -> list[str]:
    # The first variable has one token, which may hold anything printable.
    tokens = [text] if variable == TOKEN else text.split()
    for token in filter(None, tokens):
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
            raise UserError(
                f"a token in {variable} must have {SHORTEST} printable characters or more\n"
                "  hint: make one with: openssl rand -hex 24"
            )
    return [token for token in tokens if token]
