"""Messages for people, on the standard error of the moment: a live table takes its place for as long as it is shown."""

from __future__ import annotations

import sys


def tell(message: str) -> None:
    """Print a message; without a standard error there is nobody to read it."""
    if sys.stderr is not None:
        print(f"acquatop: {message}", file=sys.stderr, flush=True)  # noqa: T201
