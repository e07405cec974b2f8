"""Real HTTP server on loopback with answers from the test; it records its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """A reply: its body as a whole, or in pieces that are sent as they come."""

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def json(value: object, status: int = 200) -> Answer:
        return Answer(json.dumps(value).encode(), status)


@dataclass
class Asked:
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class JsonServer:
    url: str
    asked: list[Asked]


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[JsonServer]:
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            question = Asked(self.path, dict(self.headers), self.rfile.read(length))
            asked.append(question)
            reply = answer(question)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if isinstance(reply.body, bytes):
                if "Content-Length" not in reply.headers:
                    self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
            else:
                self._stream(reply.body)

        def _stream(self, pieces: Iterable[bytes]) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing: clients of tests may go whenever they like."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield JsonServer(f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
