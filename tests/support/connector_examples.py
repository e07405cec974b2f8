"""Example programs of the connectors' docstrings."""

from __future__ import annotations

import importlib
import re
import textwrap

from connectors.registry import CONNECTORS


def example_of(name: str) -> str:
    """Return the program in the docstring of a connector's module."""
    module = importlib.import_module(CONNECTORS[name].source.partition(":")[0])
    (program,) = re.findall(r"::\n\n((?: {4}.*\n|\n)+)", module.__doc__ or "")
    return textwrap.dedent(program)
