"""Where answers go: one file per kind of sink, one contract, one battery of tests.

Nothing heavy is imported before a sink needs it.
"""

from acquatop.sinks.callback import CallbackSink
from acquatop.sinks.contract import Sink
from acquatop.sinks.ndjson import NdjsonSink
from acquatop.sinks.registry import open_sink
from acquatop.sinks.stdout import StdoutSink

__all__ = ["CallbackSink", "NdjsonSink", "Sink", "StdoutSink", "open_sink"]
