"""Traces like the AcquaTop paper's data, with values that change in several ways: one file for each."""

from __future__ import annotations

from acquatop.lab.generate.redrawn import Redrawn
from acquatop.lab.generate.trace import KINDS, GeneratedTrace, generate

__all__ = ["KINDS", "GeneratedTrace", "Redrawn", "generate"]
