"""S3 server of the tests as a process of its own: ``server.py PORT``; moto, on loopback.

A lock makes each request atomic: moto checks the conditions of a PUT, and then stores it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "bucket"


class Quiet(WSGIRequestHandler):
    """Handler that logs nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class OneAtATime:
    """Application that answers one request at a time, after its body has come."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        import io

        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._lock:
            return [b"".join(self._application(environ, start_response))]


def main() -> None:
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(BUCKET, "us-east-1")
    application = OneAtATime(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
