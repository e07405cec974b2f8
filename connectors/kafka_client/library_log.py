"""Log of the client library: its words are for who looks for them, as errors are told otherwise."""

from __future__ import annotations

import logging
from typing import Any


class LibraryLog(logging.LoggerAdapter[logging.Logger]):
    """Logger of a client that logs everything at the level DEBUG."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger(__name__), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message, whatever its level."""
        super().log(logging.DEBUG, msg, *args, **kwargs)
