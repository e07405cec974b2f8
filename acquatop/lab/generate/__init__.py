"""Traces like the AcquaTop paper's data, with several kinds of changing values: one per file."""

from __future__ import annotations

from acquatop.lab.generate.redrawn import Redrawn
from acquatop.lab.generate.trace import KINDS, GeneratedTrace, generate

__all__ = ["KINDS", "GeneratedTrace", "Redrawn", "generate"]
