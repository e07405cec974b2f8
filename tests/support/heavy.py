"""Tests that use Spark, or run whole programs that may, told by the text of their files.

The process that gives out tests to workers collects none: it has no markers to go by.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

_HEAVY = re.compile(r"pytest\.mark\.(?:spark|slow)\b|\bspark: SparkSession\b")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_heavy(file: Path, test: str) -> bool:
    """Say whether a test, by its name without parameters, is heavy. ``THOROUGH`` ones are not."""
    return test in _heavy_in(file)


@functools.cache
def _heavy_in(file: Path) -> frozenset[str]:
    """Return the names of heavy tests and fixtures. O(text)."""
    if file.suffix != ".py":
        return frozenset()
    text = file.read_text("utf-8")
    if _HEAVY.search(text) is None:
        return frozenset()
    body = ast.parse(text).body
    named = {each.name: each for each in body if isinstance(each, _Function | ast.ClassDef)}
    lines = text.splitlines()
    if any(_HEAVY.search(mark) for mark in _marks_of_all(body, lines)):
        return frozenset(named)
    heavy = {name for name, each in named.items() if _HEAVY.search(_head(each, lines))}
    while more := {name for name, each in named.items() if _uses(each) & heavy} - heavy:
        heavy |= more
    return frozenset(heavy)


def _marks_of_all(body: list[ast.stmt], lines: list[str]) -> Iterator[str]:
    """Yield the text of the marks that all of a file's tests have."""
    for each in body:
        if isinstance(each, ast.Assign) and "pytestmark" in ast.unparse(each.targets[0]):
            yield "\n".join(lines[each.lineno - 1 : each.end_lineno])


def _head(of: _Function | ast.ClassDef, lines: list[str]) -> str:
    """Return the decorators and the signature of a function, or the whole of a class."""
    first = min(each.lineno for each in (*of.decorator_list, of))
    last = of.end_lineno if isinstance(of, ast.ClassDef) else of.body[0].lineno - 1
    return "\n".join(lines[first - 1 : max(of.lineno, last or 0)])


def _uses(of: _Function | ast.ClassDef) -> set[str]:
    """Return the names of the fixtures that a function may use."""
    return set() if isinstance(of, ast.ClassDef) else {each.arg for each in of.args.args}
