"""Authentication of requests, with secrets that cannot be shown by accident."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Never, Protocol, Self

_TOKEN = re.compile(r"[!-~]+")


class Secret:
    """Text that is never shown: only :meth:`reveal` returns it.

    It cannot be pickled; copies are the same object.

    >>> token = Secret("xyzzy")
    >>> token, f"{token} {token!s}", token.reveal(), Secret("xyzzy") == token
    (Secret('***'), '*** ***', 'xyzzy', True)
    """

    __slots__ = ("_reveal",)

    def __init__(self, text: str) -> None:
        # In a closure, so that no printing of attributes finds it.
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """Return the text."""
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, how: str) -> str:
        return format("***", how)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self.reveal()), _bytes(other.reveal()))

    def __hash__(self) -> int:
        return hash(self.reveal())

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Never:
        raise TypeError("a secret cannot be pickled")


@dataclass(frozen=True)
class BasicAuth:
    """User and password for HTTP basic authentication."""

    user: Secret
    password: Secret

    def __post_init__(self) -> None:
        if ":" in self.user.reveal():
            raise ValueError("the user of a basic authentication has a colon in it")

    def header(self, deadline: float) -> str:
        """Return the value of the header ``Authorization``."""
        return f"Basic {self._encoded()}"

    def refused(self) -> None:
        """Do nothing: there is no other."""

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        return self.user.reveal(), self.password.reveal(), self._encoded()

    def _encoded(self) -> str:
        return base64.b64encode(_bytes(f"{self.user.reveal()}:{self.password.reveal()}")).decode(
            "ascii"
        )


@dataclass(frozen=True)
class BearerAuth:
    """Bearer token."""

    token: Secret

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.token.reveal()):
            raise ValueError("the token is empty or has characters that no header can carry")

    def header(self, deadline: float) -> str:
        """Return the value of the header ``Authorization``."""
        return f"Bearer {self.token.reveal()}"

    def refused(self) -> None:
        """Do nothing: there is no other."""

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        return (self.token.reveal(),)


class Auth(Protocol):
    """Authentication of requests."""

    def header(self, deadline: float) -> str:
        """Return the value of the header ``Authorization``, at the latest at a steady time.

        Raises :class:`~replica.remotes.RemoteError` if there is none.
        """

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""

    def refused(self) -> None:
        """Note that a server does not accept the header."""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")
