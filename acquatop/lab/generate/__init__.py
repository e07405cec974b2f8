"""Traces like the AcquaTop paper's data, and harder ones: a kind of change or stream per file."""

from __future__ import annotations

from acquatop.lab.generate.kinds import KINDS, KindOfData
from acquatop.lab.generate.redrawn import Redrawn
from acquatop.lab.generate.trace import GeneratedTrace, generate

__all__ = ["KINDS", "GeneratedTrace", "KindOfData", "Redrawn", "generate"]
