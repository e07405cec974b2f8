"""How far long work has come, for people who wait at a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class LoadingProgress:
    """Shows on the standard error how many items of a service have been loaded so far; nothing where no one looks.

    Use it as a context manager around what loads, which calls it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._status: Status | None = None

    def __call__(self, service: str, count: int) -> None:
        """Show that so many items of a service are here."""
        if not self._console.is_terminal:
            return
        text = f"loading <{escape(service)}>: {count:,} items"
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        self._status.update(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
