"""Parser of the grammar, built once and cached on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from importlib import resources
from pathlib import Path

import lark
from lark import Lark

_LARK_VERSION = lark.__version__


@functools.cache
def grammar() -> Lark:
    """Return the parser of ``grammar.lark``.

    Building its tables takes a third of a second, reading them a tenth of that. They are kept in
    the user's cache folder (``XDG_CACHE_HOME``), under a name that changes with everything they
    depend on. A cache that cannot be read or written costs time and nothing else.
    """
    source = resources.files("rspql").joinpath("grammar.lark").read_text("utf-8")
    file = _cache_file(source)
    # The grammar is right even if the cache is broken. A pickle is code, so only files of this user
    # are read.
    with suppress(Exception), file.open("rb") as stream:
        if os.fstat(stream.fileno()).st_uid == os.getuid():
            return Lark.load(stream)
    parser = Lark(
        source, parser="lalr", start="query", propagate_positions=True, maybe_placeholders=False
    )
    with suppress(OSError):
        _save(parser, file)
    return parser


def _cache_file(source: str) -> Path:
    fingerprint = hashlib.sha256(f"{_LARK_VERSION} {sys.version} {source}".encode()).hexdigest()[
        :32
    ]
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():  # as the XDG specification requires
        root = Path(os.path.expanduser("~/.cache"))  # noqa: PTH111 (expanduser never raises)
    return root / "acquatop" / f"grammar-{fingerprint}.pickle"


def _save(parser: Lark, file: Path) -> None:
    # Write a temporary file and rename it, so that a reader never sees half a file. Only the owner
    # may write in the folder.
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as stream:
        beside = Path(stream.name)
        try:
            parser.save(stream)
            stream.flush()
            beside.replace(file)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
