"""Sinks of answers: one file per kind of sink, one contract, one set of tests.

No large library is imported before a sink needs it.
"""

from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.sinks.contract import Sink
from acquatop.answer.sinks.ndjson import NdjsonSink
from acquatop.answer.sinks.registry import open_sink
from acquatop.answer.sinks.stdout import StdoutSink

__all__ = ["CallbackSink", "NdjsonSink", "Sink", "StdoutSink", "open_sink"]
