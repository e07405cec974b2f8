"""Answers on the standard output, as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.durable import explained
from acquatop.answer.sinks.json_line import json_line


class StdoutSink:
    """A line of JSON per answer on the standard output, or another stream of text, flushed at every call.

    At least once: what was written cannot be taken back, so after a crash the last answers come again.
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
        """Do nothing: the stream is its owner's."""
