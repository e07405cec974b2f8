"""Sink of answers on the standard output, as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.durable import explained
from acquatop.answer.sinks.json_line import json_line


class StdoutSink:
    """Sink that writes a line of JSON per answer to the standard output, or to another text stream.

    The stream is flushed at every call. At least once: written lines cannot be taken back, so after
    a crash the last answers come again.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def write(self, answers: Sequence[Answer]) -> None:
        """Write a line per answer."""
        stream = self._stream or sys.stdout
        text = b"".join(json_line(answer.to_json()) for answer in answers).decode()
        with explained("the standard output"):
            stream.write(text)
            stream.flush()

    def close(self) -> None:
        """Do nothing: the caller owns the stream."""
