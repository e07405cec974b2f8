"""Access control: host, origin, token and rate of requests; security headers of responses."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acquatop.app.serve.access import Tokens, needed_role
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import Problem
from acquatop.app.serve.rate_limits import Rates
from acquatop.app.serve.refusals import Refusals, address_of, note_limit
from acquatop.app.serve.responses import problem_response
from replica.clocks import Clock

OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})
"""Paths without a token: they show nothing about queries. The page's files need none, either."""
PAGE = "/page/"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Security headers of every response."""

_LOCAL = frozenset({"localhost", "localhost."})
_CHANGES = frozenset({"POST", "DELETE", "PUT", "PATCH"})


def is_loopback(host: str) -> bool:
    """Return True if a host is reachable from this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0")]
    [True, True, True, False]
    """
    if host in _LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware that checks every request before the application gets it.

    ``hosts`` are names that the service may be addressed by, besides addresses and ``localhost``.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        hosts: Collection[str],
        limits: Limits,
        meters: Meters,
        refusals: Refusals,
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._limits = limits
        self._refusals = refusals
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts) | _LOCAL
        self._meters = meters
        self._clock = clock
        self._reads = Rates(limits.read_rate, limits.read_burst, clock=clock)
        self._works = Rates(limits.work_rate, limits.work_burst, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        started, status = self._clock(), 0

        async def give(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *_ENCODED]}
            await send(message)

        try:
            self._check(scope)
        except Problem as problem:
            note_limit(self._refusals, problem, scope)
            await problem_response(problem)(scope, receive, give)
        else:
            await self._app(scope, receive, give)
        finally:
            route = _route(scope)
            self._meters.requests.labels(_method(scope), route, str(status)).inc()
            if not route.endswith("events"):
                self._meters.duration.labels(route).observe(self._clock() - started)

    def _check(self, scope: Scope) -> None:
        headers = _headers(scope)
        self._check_host(headers)
        self._check_origin(scope["method"], headers)
        self._check_rate(scope)
        self._check_length(headers)
        if self._tokens and not _is_open(scope["path"]):
            self._check_token(scope, headers)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse an unknown host name: another site's name may resolve to here (DNS rebinding)."""
        host = _host(headers.get("host", ""))
        if host is None or not (host in self._hosts or _is_address(host)):
            raise Problem("unknown-host", "name the hosts that may be asked for with --host")

    def _check_origin(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse requests of pages of other sites; only a link may lead here from there."""
        origin = headers.get("origin")
        foreign = (
            origin is not None
            and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
        )
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            is_link = headers.get("sec-fetch-mode") == "navigate" and origin is None
            if is_link and method not in _CHANGES:
                return
            raise Problem("foreign-origin", "a page of another site cannot use this service")

    def _check_length(self, headers: Mapping[str, str]) -> None:
        """Refuse a body that is announced as too long, before any of it is read."""
        most = self._limits.text_bytes
        if int(headers.get("content-length", 0)) > most:
            raise Problem("too-large", f"a body may have {most} bytes")

    def _check_token(self, scope: Scope, headers: Mapping[str, str]) -> None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        role = self._tokens.role_of(given.strip())
        if kind.lower() != "bearer" or role is None:
            raise Problem("unauthorised", "send the token as: Authorization: Bearer TOKEN")
        needed = needed_role(scope["method"], scope["path"])
        if role < needed:
            allowed, wanted = role.name.lower(), needed.name.lower()
            raise Problem("forbidden", f"this token is for {allowed}, and {wanted} is needed")

    def _check_rate(self, scope: Scope) -> None:
        rates = self._works if scope["method"] in _CHANGES else self._reads
        seconds = rates.wait(address_of(scope))
        if seconds:
            raise Problem(
                "too-many-requests", f"try again in {math.ceil(seconds)} s", retry_after=seconds
            )


_ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_METHODS = _CHANGES | {"GET", "HEAD", "OPTIONS"}


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _host(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(PAGE)


def _route(scope: Scope) -> str:
    """Return the name of the handler: there are few, however many addresses are tried."""
    return getattr(scope.get("endpoint"), "__name__", "none")


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"
