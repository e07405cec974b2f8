"""Where answers go: one file per kind of sink, one contract, one battery of tests.

Nothing heavy is imported before a sink needs it.
"""

from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.sinks.contract import Sink
from acquatop.answer.sinks.ndjson import NdjsonSink
from acquatop.answer.sinks.registry import open_sink
from acquatop.answer.sinks.stdout import StdoutSink

__all__ = ["CallbackSink", "NdjsonSink", "Sink", "StdoutSink", "open_sink"]
