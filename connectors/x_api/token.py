"""Bearer token of an app: read from the environment, and sent only to X."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Never
from urllib.parse import quote, unquote

from requests import PreparedRequest
from requests.auth import AuthBase

from connectors import ConnectorError

VARIABLE = "X_BEARER_TOKEN"
"""Default environment variable of the token."""


class Token(AuthBase):
    """Authentication that adds a bearer token to requests; never shown and never pickled.

    >>> token = Token.of("X_BEARER_TOKEN", {"X_BEARER_TOKEN": "xyzzy"})
    >>> token, token.hidden_in("for xyzzy only")
    (Token('***'), 'for *** only')
    """

    def __init__(self, text: str) -> None:
        # In a closure, so that nothing that prints attributes finds it.
        self._reveal: Callable[[], str] = lambda: text

    @staticmethod
    def of(variable: str = VARIABLE, environment: Mapping[str, str] = os.environ) -> Token:
        """Return the token in an environment variable; raise ConnectorError if there is none."""
        text = environment.get(variable, "").strip()
        if not text:
            raise ConnectorError(
                f"the environment variable {variable} must have the bearer token of your X app"
            )
        if not re.fullmatch(r"[!-~]+", text):
            raise ConnectorError(
                f"the environment variable {variable} has characters that no token has"
            )
        return Token(text)

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the token to a request."""
        request.headers["Authorization"] = f"Bearer {self._reveal()}"
        return request

    def hidden_in(self, text: str) -> str:
        """Return a text with the token, plain or URL-encoded, replaced by ``***``."""
        token = self._reveal()
        for form in sorted({token, unquote(token), quote(token, safe="")}, key=len, reverse=True):
            text = text.replace(form, "***")
        return text

    def __repr__(self) -> str:
        return "Token('***')"

    def __reduce__(self) -> Never:
        raise TypeError("a token cannot be pickled")
