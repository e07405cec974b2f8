"""Remotes of the soak benchmark: a function, and a SPARQL endpoint in a process of its own."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote_plus

_CALLS = itertools.count()
_USER = re.compile(r"<http://example\.org/user/(u[0-9]+)>")
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def followers(ids: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Return the followers of users; each number grows with the number of calls."""
    grown = next(_CALLS) // 100
    return {id: {"followers": int(id[1:]) * 7919 % 1_000 + grown} for id in ids}


class _Endpoint(BaseHTTPRequestHandler):
    """SPARQL endpoint that has followers of every user in a VALUES block."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a query."""
        size = int(self.headers["Content-Length"])
        users = _USER.findall(unquote_plus(self.rfile.read(size).decode()))
        rows = [
            {
                "user": {"type": "uri", "value": f"http://example.org/user/{user}"},
                "followers": {"type": "literal", "value": str(found), "datatype": _INTEGER},
            }
            for user in users
            for found in followers([user])[user].values()
        ]
        body = json.dumps(
            {"head": {"vars": ["user", "followers"]}, "results": {"bindings": rows}}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until killed; print the port first."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
