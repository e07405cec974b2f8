"""OAuth 2 tokens for a client that acts for itself (the grant ``client_credentials``)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from urllib.parse import quote_plus, urlencode

from replica.clocks import Clock
from replica.http.auth import BasicAuth, BearerAuth, Secret
from replica.http.client import HttpClient, Request
from replica.remotes import RemoteError

_MARGIN = 0.1
"""Share of a token's life in which a new one is asked for."""
_USUAL_LIFE = 3600.0
"""Seconds that a token lives if its server does not say so."""
_LONGEST_ANSWER = 1 << 16
_HEADERS = {
    "Accept": "application/json",
    "Content-Type": "application/x-www-form-urlencoded",
}


class ClientCredentials:
    """Authentication by tokens, which a server gives for an id and a secret.

    One is asked for before the first request, when it has nearly expired, and after it was refused.
    Threads that need it meanwhile wait for it.
    """

    def __init__(
        self,
        endpoint: str,
        client_id: Secret,
        client_secret: Secret,
        *,
        scope: str = "",
        clock: Clock = time.monotonic,
        client: Callable[..., HttpClient] = HttpClient,
    ) -> None:
        self._endpoint = endpoint
        form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        self._form = urlencode(form).encode()
        # As its specification says: encoded like a form, then as user and password.
        encoded = (Secret(quote_plus(each.reveal())) for each in (client_id, client_secret))
        self._auth = BasicAuth(*encoded)
        self._own = (client_id.reveal(), client_secret.reveal())
        self._clock = clock
        self._client = client(
            name=f"the token server {endpoint}",
            auth=self._auth,
            secrets=(client_id, client_secret),
            longest_reply=_LONGEST_ANSWER,
        )
        self._lock = threading.Lock()
        self._token: BearerAuth | None = None
        self._until = 0.0

    def header(self, deadline: float) -> str:
        """Return the value of the header ``Authorization``, with a token that is good."""
        if not self._lock.acquire(timeout=_left(deadline)):
            raise RemoteError(f"the token server {self._endpoint} did not answer in time")
        try:
            token = self._token
            if token is None or self._clock() >= self._until:
                self._token = token = self._asked(deadline)
        finally:
            self._lock.release()
        return token.header(deadline)

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        token = self._token
        return (*self._auth.secrets(), *self._own, *(token.secrets() if token else ()))

    def refused(self) -> None:
        """Forget the token."""
        self._until = 0.0

    def _asked(self, deadline: float) -> BearerAuth:
        request = Request("POST", self._endpoint, _HEADERS, self._form)
        with self._client.send(request, _left(deadline)) as reply:
            said = reply.read()
        try:
            answer = json.loads(said)
            token = BearerAuth(Secret(str(answer["access_token"])))
            life = float(answer.get("expires_in", _USUAL_LIFE))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise RemoteError(f"the token server {self._endpoint} gave no token") from None
        self._until = self._clock() + life * (1 - _MARGIN)
        return token


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
