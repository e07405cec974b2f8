"""Calls of the X API v2 that a filtered stream needs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import requests

from connectors import ConnectorError
from connectors.x_api.connection import FAILURES, Connection, words_of
from connectors.x_api.messages import ApiProblem
from connectors.x_api.rules import Change, Rule
from connectors.x_api.token import Token

URL = "https://api.x.com"
_STREAM = "/2/tweets/search/stream"
_RULES = "/2/tweets/search/stream/rules"
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 30.0
_RULES_PER_PAGE = 1000
_LONGEST_WAIT = 3600.0
"""Maximum number of seconds to wait for a limit's reset; guards against a wrong time from X."""
_LONGEST_REMARK = 300
_LARGEST_REPLY = 16 << 20
_TOO_MANY = 429
_PASSING = (408, 425)
"""Status codes of errors that may be gone when the request is sent again."""
DUPLICATE = "DuplicateRule"


class UnreachableError(Exception):
    """Error: there was no answer, because something below HTTP failed."""


class RefusedError(Exception):
    """Error reply of X: its status, its problems, and the seconds until a limit is reset."""

    def __init__(
        self, status: int, problems: Sequence[ApiProblem], until_reset: float = 0.0
    ) -> None:
        said = "; ".join(map(str, problems))[:_LONGEST_REMARK]
        super().__init__(f"HTTP {status}: {said}" if said else f"HTTP {status}")
        self.status = status
        self.problems = problems
        self.until_reset = until_reset

    @property
    def is_limit(self) -> bool:
        """True if there were too many requests or connections."""
        return self.status == _TOO_MANY or any(each.is_limit for each in self.problems)

    @property
    def is_final(self) -> bool:
        """True if waiting cannot help: the request, or the app's access, has to change."""
        return not self.is_limit and self.status < 500 and self.status not in _PASSING


class XApi:
    """Client that sends requests to X as an app; ``url`` is the address of X or a substitute.

    Redirects are not followed, and nothing is compressed, so that data arrives as soon as it is
    sent. ``now`` is the wall clock, for replies without a date.
    """

    def __init__(
        self, token: Token, url: str = URL, *, now: Callable[[], float] = time.time
    ) -> None:
        self._token = token
        self._url = url.rstrip("/")
        self._now = now
        self._session = requests.Session()
        self._session.auth = token
        self._session.headers.update({"User-Agent": "AcquaTop", "Accept-Encoding": "identity"})
        # There is no proxy to this machine itself.
        self._session.trust_env = not _is_here(url)

    def connect(self, parameters: Mapping[str, str]) -> Connection:
        """Open the stream."""
        connection = Connection(self._sent("GET", _STREAM, parameters=parameters))
        connection.start()
        return connection

    def rules(self) -> Mapping[str, Rule]:
        """Return the rules that X has for the app, by their ids."""
        found: dict[str, Rule] = {}
        parameters = {"max_results": str(_RULES_PER_PAGE)}
        while True:
            reply = self._read(self._sent("GET", _RULES, parameters=parameters))
            for each in reply.get("data") or []:
                found[str(each["id"])] = Rule(
                    str(each.get("value", "")), str(each.get("tag") or "")
                )
            following = (reply.get("meta") or {}).get("next_token")
            if not following:
                return found
            parameters["pagination_token"] = str(following)

    def change_rules(self, change: Change) -> None:
        """Delete rules and add others; X checks the new ones before any is deleted."""
        added = {"add": [rule.written() for rule in change.add]}
        if change.add and change.delete:
            self._post(added, {"dry_run": "true"})
        if change.delete:
            self._post({"delete": {"ids": list(change.delete)}})
        if change.add:
            self._post(added)

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()

    def _post(self, body: Mapping[str, Any], parameters: Mapping[str, str] | None = None) -> None:
        response = self._sent("POST", _RULES, parameters=parameters or {}, body=body)
        problems = [
            each for each in self._problems(self._read(response)) if each.title != DUPLICATE
        ]
        if problems:
            raise RefusedError(response.status_code, problems)

    def _sent(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> requests.Response:
        """Send a request; return the reply if its status is a success."""
        # Requests are few. Reusing a connection that X has closed meanwhile would look like a
        # failure.
        self._session.close()
        try:
            response = self._session.request(
                method,
                self._url + path,
                params=dict(parameters),
                json=body,
                stream=True,
                allow_redirects=False,
                timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS),
            )
        except FAILURES as error:
            failure = UnreachableError(words_of(error))
        else:
            if 200 <= response.status_code < 300:
                return response
            raise self._refusal(response)
        # Raised here, so that the library's error with all that it quotes is not part of it.
        raise failure

    def _refusal(self, response: requests.Response) -> RefusedError:
        try:
            problems = self._problems(self._read(response))
        except (UnreachableError, ConnectorError):
            problems = []
        return RefusedError(response.status_code, problems, self._until_reset(response.headers))

    def _read(self, response: requests.Response) -> dict[str, Any]:
        """Return a reply's JSON object."""
        try:
            with response:
                said = response.raw.read(_LARGEST_REPLY, decode_content=False)
            value = json.loads(said)
        except ValueError:
            value = None
        except FAILURES as error:
            raise UnreachableError(words_of(error)) from None
        if not isinstance(value, dict):
            raise UnreachableError("the answer is not a JSON object")
        return value

    def _problems(self, reply: Mapping[str, Any]) -> Sequence[ApiProblem]:
        hidden = self._token.hidden_in
        said = ApiProblem.all_of(reply)
        return [
            ApiProblem(hidden(each.title), hidden(each.detail), each.issue, hidden(each.value))
            for each in said
        ]

    def _until_reset(self, headers: Mapping[str, str]) -> float:
        """Return the seconds until an exhausted limit is reset, by X's clock if it is known."""
        reset, left = (
            headers.get("x-rate-limit-reset", ""),
            headers.get("x-rate-limit-remaining", "0"),
        )
        if not reset.isdecimal() or left.strip("0"):
            return 0.0
        return min(max(float(reset) - self._date(headers), 0.0), _LONGEST_WAIT)

    def _date(self, headers: Mapping[str, str]) -> float:
        try:
            return parsedate_to_datetime(headers["Date"]).timestamp()
        except (KeyError, ValueError, TypeError):
            return self._now()


def check_url(url: str) -> str:
    """Return an address that a token may be sent to; raise ConnectorError for others."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in url or parts.query or parts.fragment:
        raise ConnectorError(f"the option url is the address of a server, such as {URL}")
    if parts.scheme == "http" and not _is_here(url):
        raise ConnectorError(
            "the option url must begin with https: the token would be sent for all to read"
        )
    return url


def _is_here(url: str) -> bool:
    """Return True if an address belongs to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
