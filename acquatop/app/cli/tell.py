"""Messages on the current standard error, which a live table replaces while it is shown."""

from __future__ import annotations

import sys


def tell(message: str) -> None:
    """Print a message; do nothing if there is no standard error."""
    if sys.stderr is not None:
        print(f"acquatop: {message}", file=sys.stderr, flush=True)  # noqa: T201
