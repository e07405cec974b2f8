"""Prose in the code: a docstring begins with a verb or a noun, never with a relative clause."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("acquatop", "rspql", "replica", "connectors", "examples", "benchmarks")
RELATIVE = re.compile(
    r"(What|Which|How|Who|Whom|Whose|Whether|Where|When|That|Why|Whatever|Whichever|Whoever)\b"
)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring with its line, those of attributes too."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if said := ast.get_docstring(node):
            yield getattr(node, "lineno", 1), said
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield after.lineno, value.value


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_begins_with_a_relative_clause(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {said.splitlines()[0]}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, said in docstrings(ast.parse(file.read_text("utf-8")))
        if RELATIVE.match(said)
    ]
    assert found == []


def test_a_relative_clause_is_found_in_every_kind_of_docstring() -> None:
    text = '"""What it is."""\nX = 1\n"""How many."""\nclass A:\n    """Who."""\n'
    assert [line for line, said in docstrings(ast.parse(text)) if RELATIVE.match(said)] == [1, 3, 4]
