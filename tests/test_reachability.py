"""Everything in the packages is used: by the command line, the public API, a connector,
or a documented extension.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("acquatop", "rspql", "replica", "connectors")
PAPERS = "acquatop.topk.papers"
"""Structures of the papers, kept to compare with."""

PUBLIC = {
    "acquatop.answer.sinks.frame": "DataFrames for Spark code of a user's own",
    "replica.rankers.battery": "tests for a ranker of a user's own",
    "acquatop.topk.battery": "tests for a strategy of a user's own",
}
"""Modules that only users import: documented, and reached by no verb."""

CONTRACTS = {"ManyTopK", "SlidingTopK"}
"""Protocols that structures keep and only type checkers read."""

DOTTED = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+(:\w+)?")


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def trees() -> dict[str, ast.Module]:
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {module_name(file): ast.parse(file.read_text("utf-8")) for file in files}


def names_in(module: str) -> set[str]:
    """Return the dotted names that a module imports or holds as text, as registries do."""
    found: set[str] = set()
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and DOTTED.fullmatch(node.value)
        ):
            found.add(node.value.partition(":")[0])
    return found


def modules_of(name: str) -> set[str]:
    """Return the modules that are imported for a dotted name:
    the module itself and its packages.
    """
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & set(trees())


@cache
def reached() -> frozenset[str]:
    seen: set[str] = set()
    waiting = {"acquatop", "acquatop.__main__"}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting |= {each for name in names_in(module) for each in modules_of(name)} - seen
    return frozenset(seen)


def test_every_module_is_reached_from_the_command_line_or_the_public_api() -> None:
    left = {each for each in set(trees()) - reached() if not each.startswith(PAPERS)}
    assert left == set(PUBLIC)


def test_modules_that_only_users_import_are_documented() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    for module in PUBLIC:
        assert module in pages or module.replace(".", "/") in pages, f"no page names {module}"


def test_every_function_and_class_of_a_module_is_used() -> None:
    used: Counter[str] = Counter()
    for module in reached() | set(PUBLIC):
        for node in ast.walk(trees()[module]):
            if isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.update(re.findall(r"\w+", node.value))
    unused = {
        f"{module}.{node.name}"
        for module in reached()
        for node in trees()[module].body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not used[node.name]
        and not node.name.startswith("__")
        and node.name not in CONTRACTS
    }
    assert not unused


def test_the_papers_folder_says_what_it_is_for() -> None:
    first = (ast.get_docstring(trees()[PAPERS]) or "").splitlines()[0]
    assert "papers" in first
