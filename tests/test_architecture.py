"""The arrows between the packages point one way, as ``docs/design.md`` says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house import ROOMS

ROOT = Path(__file__).parents[1]
OURS = ("rspql", "replica", "connectors", "acquatop")

FORBIDDEN = {
    "rspql": {
        "replica",
        "connectors",
        "acquatop",
        "examples",
        "pyspark",
        "pandas",
        "pyarrow",
        "SPARQLWrapper",
        "time",
    },
    "replica": {"rspql", "connectors", "acquatop", "examples", "pyspark", "pandas"},
    "connectors": {"rspql", "replica", "acquatop", "examples"},
    "acquatop": {"examples", "tests"},
    "acquatop/windows.py": {"pyspark", "pyarrow", "rspql", "replica", "connectors"},
    "acquatop/topk": {"pyspark", "pyarrow", "rspql", "replica", "connectors"},
    "acquatop/ingest": {"pyspark", "SPARQLWrapper"},
    "acquatop/query": {"pyspark", "SPARQLWrapper"},
    "acquatop/lab/record": {"pyspark"},
    "acquatop/answer/sinks": {
        "rspql.plan",
        "connectors.registry",
        "connectors.mapping",
        "connectors.contract",
    },
    "acquatop/engine/state": {
        "pyspark",
        "numpy",
        "rspql",
        "replica",
        "connectors.registry",
        "connectors.mapping",
    },
    "acquatop/app/serve": {
        "pyspark",
        "acquatop.ingest",
        "acquatop.query",
        "acquatop.runtime",
        "acquatop.app.cli",
    },
    "acquatop/app/serve/service.py": {
        "starlette",
        "uvicorn",
        "acquatop.app.serve.app",
        "acquatop.app.serve.guard",
    },
    "acquatop/app/serve/client.py": {
        "starlette",
        "uvicorn",
        "acquatop",
        "rspql",
        "replica",
        "connectors",
    },
    "acquatop/app/watch": {
        "pyspark",
        "rspql",
        "connectors",
        "acquatop.engine.engine",
        "acquatop.runtime",
    },
}

ALLOWED = {"acquatop/topk": {"replica.snapshot"}}
"""Exceptions: all state is saved by one codec, which knows nothing of replicas."""


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute here"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def files_under(place: str) -> list[Path]:
    path = ROOT / place
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


@pytest.mark.parametrize("place", FORBIDDEN)
def test_nothing_is_imported_that_must_not_be(place: str) -> None:
    files = files_under(place)
    assert files
    for file in files:
        for name in imports_of(file):
            broken = [
                each
                for each in FORBIDDEN[place]
                if is_within(name, each)
                and not any(is_within(name, allowed) for allowed in ALLOWED.get(place, ()))
            ]
            assert not broken, f"{file.relative_to(ROOT)} imports {name}"


def rooms_imported_by(room: str) -> dict[str, str]:
    """Return the other rooms that a room imports, each with one place where it does."""
    place = (
        f"acquatop/{room}.py" if (ROOT / f"acquatop/{room}.py").is_file() else f"acquatop/{room}"
    )
    found: dict[str, str] = {}
    for file in files_under(place):
        for name in imports_of(file):
            parts = name.split(".")
            if parts[0] == "acquatop" and len(parts) > 1 and parts[1] in ROOMS and parts[1] != room:
                found[parts[1]] = f"{file.relative_to(ROOT)} imports {name}"
    return found


def test_every_entry_of_the_package_is_a_room() -> None:
    entries = {each.stem for each in (ROOT / "acquatop").iterdir() if each.suffix in ("", ".py")}
    assert entries - {"__init__", "__main__", "__pycache__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_before_it(room: str) -> None:
    before = ROOMS[: ROOMS.index(room)]
    against = [place for other, place in rooms_imported_by(room).items() if other not in before]
    assert not against


def test_no_test_imports_another() -> None:
    against = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files_under("tests")
        for name in imports_of(file)
        if name.startswith("tests.") and not name.startswith("tests.support")
    ]
    assert against == []


def test_the_sparql_engine_stays_with_what_evaluates_windows_or_reads_and_writes_rdf() -> None:
    users = {
        str(file.relative_to(ROOT))
        for package in OURS
        for file in files_under(package)
        if any(name.split(".")[0] == "pyoxigraph" for name in imports_of(file))
    }
    assert {each for each in users if not each.startswith("acquatop/query/sparql/")} == {
        "acquatop/answer/sinks/turtle.py",
        "acquatop/catalog/graphs.py",
        "acquatop/ingest/computed_terms.py",
        "acquatop/ingest/constants.py",
        "acquatop/ingest/record_graphs.py",
        "acquatop/ingest/rows_as_graph.py",
        "acquatop/ingest/solutions_table.py",
        "acquatop/lab/replay/right_join.py",
        "acquatop/refresh/local_join.py",
        "connectors/graphs.py",
        "connectors/statements.py",
    }


def test_a_worker_process_loads_no_more_than_the_engine() -> None:
    code = "import sys, acquatop.query.sparql.worker; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numpy", "pandas", "pyarrow", "pyspark", "rdflib"}
    assert heavy.isdisjoint(loaded)


CONSTRUCTORS = {"__init__", "__new__", "__post_init__"}


def calls_in(function: ast.FunctionDef) -> Iterator[ast.Attribute]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func


def starts_in(methods: dict[str, ast.FunctionDef], name: str, seen: set[str]) -> bool:
    """Return True if a method, or another that it calls on itself, starts anything."""
    seen.add(name)
    for called in calls_in(methods[name]):
        receiver = called.value.id if isinstance(called.value, ast.Name) else None
        if called.attr == "start" and receiver != "match":  # the place of a match
            return True
        is_own = receiver in ("self", "cls") and called.attr in methods
        if is_own and called.attr not in seen and starts_in(methods, called.attr, seen):
            return True
    return False


def starting_constructors(tree: ast.AST) -> Iterator[str]:
    """Yield constructors and setters that start a thread, or anything else by that verb."""
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        own = [node for node in owner.body if isinstance(node, ast.FunctionDef)]
        setters = {
            each.name
            for each in own
            for mark in each.decorator_list
            if isinstance(mark, ast.Attribute) and mark.attr == "setter"
        }
        methods = {each.name: each for each in own}
        for name in sorted((CONSTRUCTORS | setters) & set(methods)):
            if starts_in(methods, name, set()):
                yield f"{owner.name}.{name}"


def test_no_constructor_or_setter_starts_a_thread() -> None:
    against = [
        f"{file.relative_to(ROOT)}: {name}"
        for package in OURS
        for file in files_under(package)
        for name in starting_constructors(ast.parse(file.read_text("utf-8")))
    ]
    assert against == []


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n def __init__(self): Thread(target=f).start()",
        "class A:\n def __init__(self): self._go()\n def _go(self): self._thread.start()",
        "class A:\n @x.setter\n def x(self, value): self._thread.start()",
    ],
)
def test_a_thread_is_found_wherever_a_constructor_starts_it(text: str) -> None:
    assert list(starting_constructors(ast.parse(text)))


def test_the_design_says_what_this_test_enforces() -> None:
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    for package in OURS:
        assert f"`{package}`" in text


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("rspql", ["pyspark", "pandas", "pyarrow", "rdflib", "SPARQLWrapper"]),
        ("acquatop", ["pyspark", "pandas", "pyarrow", "rdflib", "numpy", "pyoxigraph"]),
        (
            "acquatop.app.cli",
            ["pyspark", "pandas", "pyarrow", "pyoxigraph", "starlette", "uvicorn"],
        ),
        (
            "acquatop.app.serve.client",
            ["pyspark", "pandas", "pyarrow", "rdflib", "starlette", "acquatop.engine.engine"],
        ),
        ("acquatop.catalog.catalog", ["pyspark", "pandas"]),
        ("connectors.registry", ["pyspark", "pandas", "pyarrow", "numpy", "pyoxigraph"]),
        ("replica.maintainer", ["pyspark", "pandas", "rspql", "pyoxigraph"]),
        ("acquatop.runtime.java", ["pyspark", "numpy", "pyarrow"]),
    ],
)
def test_light_modules_stay_light(module: str, heavy: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
