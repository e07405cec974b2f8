"""Messages on the current standard error, which a live table replaces while it is shown."""

from __future__ import annotations

import sys

_CLEAR = "\r\x1b[2K"


def tell(message: str) -> None:
    """Print a message; do nothing if there is no standard error.

    On a terminal it replaces the status line.
    """
    if sys.stderr is not None:
        clear = _CLEAR if sys.stderr.isatty() else ""
        print(f"{clear}acquatop: {message}", file=sys.stderr, flush=True)  # noqa: T201
