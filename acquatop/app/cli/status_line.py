"""Status line: one line at the bottom of a terminal that is updated in place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

_CLEAR = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))


class StatusLine:
    """Line on the standard error. Print other output inside :meth:`aside`: both may share a screen.

    ``is_shown`` is False if the standard error is no terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self.is_shown = self._console.is_terminal and not self._console.is_dumb_terminal
        self._drawing = threading.Lock()
        self._is_drawn = False

    def draw(self, text: str) -> bool:
        """Show a text, unless other output is being printed; an empty one removes the line.

        Return False if other output is being printed. That may block on a slow reader, for which
        nobody else must wait.
        """
        if not self.is_shown or not self._drawing.acquire(blocking=False):
            return False
        try:
            if text or self._is_drawn:
                self._console.control(_CLEAR)
            if text:
                self._console.print(Text(text), end="", no_wrap=True, overflow="ellipsis")
            self._is_drawn = bool(text)
        finally:
            self._drawing.release()
        return True

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while other output is printed; the next call draws it again."""
        with self._drawing:
            if self._is_drawn:
                self._console.control(_CLEAR)
                self._is_drawn = False
            yield
