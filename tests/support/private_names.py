"""Private names that a test takes from code that is not its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

INVARIANTS = "_check"
"""The one private method that tests may call: it asserts a structure's invariants."""
PUBLIC_ALL_THE_SAME = {"_replace", "_asdict", "_fields", "_make", "_exit", "_repr_html_"}
"""Names of the standard library and of notebooks that are public in spite of their underscore."""
SETTERS = {"setattr", "getattr", "hasattr", "delattr", "object"}
"""Functions that take an attribute's name: of Python, ``monkeypatch`` and ``unittest.mock``."""


def private_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each use of a private name that the text does not define itself.

    >>> list(private_names("from a import _b\\nc._d = c._check()\\nself._e\\nsetattr(f, '_g', 1)"))
    [(1, '_b'), (2, '_d'), (4, '_g')]
    >>> list(private_names("class A:\\n    def __init__(self): self._b = 1\\nA()._b"))
    []
    """
    tree = ast.parse(text)
    own = set(_defined(tree))
    for node in ast.walk(tree):
        for name in _used(node):
            if _is_private(name) and name not in own:
                yield node.lineno, name  # type: ignore[attr-defined]


def _is_private(name: str) -> bool:
    is_private = name.startswith("_") and not name.startswith("__")
    return is_private and name != INVARIANTS and name not in PUBLIC_ALL_THE_SAME


def _is_own(node: ast.expr) -> bool:
    """Say whether an expression is ``self``, ``cls`` or ``super()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _used(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node takes from elsewhere."""
    if isinstance(node, ast.Attribute) and not _is_own(node.value):
        yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        function, name = node.func, node.args[1]
        called = function.attr if isinstance(function, ast.Attribute) else None
        called = function.id if isinstance(function, ast.Name) else called
        if called in SETTERS and isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, classes, and attributes that a text gives its own objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if _is_own(node.value):
                yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
