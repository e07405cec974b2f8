"""Live page: static files for a browser."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath
from typing import Self

from starlette.responses import Response

from acquatop.app.serve.problems import Problem

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Page:
    """The page's files by name, in memory; a request never reads another file."""

    contents: Mapping[str, bytes]

    @classmethod
    def load(cls) -> Self:
        """Read the files."""
        found = (
            each for each in files(__package__).iterdir() if PurePath(each.name).suffix in _TYPES
        )
        return cls({each.name: each.read_bytes() for each in found})

    def response(self, name: str, headers: Mapping[str, str]) -> Response:
        """Return a file, or 304 if the browser has it; raises :class:`Problem` if unknown."""
        content = self.contents.get(name)
        if content is None:
            raise Problem("not-found", "the page has no such file")
        kept = {
            "cache-control": "no-cache",
            "etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        }
        if headers.get("if-none-match") == kept["etag"]:
            return Response(status_code=304, headers=kept)
        return Response(content, headers=kept, media_type=_TYPES[PurePath(name).suffix])
