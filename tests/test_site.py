"""Hooks of the documentation's site; mkdocs is needed, which `./run docs` installs."""

from __future__ import annotations

import doctest
import importlib.util
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HOOKS = Path(__file__).parents[1] / "docs" / "_site"


def hook(name: str) -> ModuleType:
    pytest.importorskip("mkdocs")
    pytest.importorskip("griffe")
    spec = importlib.util.spec_from_file_location(name, HOOKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> Any:
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


@pytest.mark.parametrize("name", ["docstrings", "repository"])
def test_the_examples_in_the_hooks_hold(name: str) -> None:
    done = doctest.testmod(hook(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted > 0
    assert done.failed == 0


def test_a_docstring_s_doctest_is_a_block_of_code() -> None:
    text = "It adds.\n\n>>> add(1, 1)\n2\n>>> add(1, 2)\n3\n\nO(1). :meth:`stop` ends it."
    expected = (
        "It adds.\n\n```pycon\n>>> add(1, 1)\n2\n>>> add(1, 2)\n3\n```\n\nO(1). `stop` ends it."
    )
    assert hook("docstrings").to_markdown(text) == expected


@pytest.mark.parametrize(
    ("origin", "link", "leads_to"),
    [
        ("howto/ranker.md", "../../replica/rankers/", "../source/replica/rankers.md"),
        ("topk.md", "../acquatop/topk/order.py", "source/acquatop/topk/order.py.md"),
        ("index.md", "docs/topk.md", "topk.md"),
        ("source/examples/x/README.md", "catalog.toml", "catalog.toml.md"),
        ("source/CONTRIBUTING.md", "docs/design.md", "../design.md"),
        ("topk.md", "kept.svg", "kept.svg"),
        ("topk.md", "../acquatop/nowhere.py", "../acquatop/nowhere.py"),
        ("topk.md", "https://example.org/a", "https://example.org/a"),
    ],
)
def test_links_lead_to_the_pages_made_of_what_they_name(
    origin: str, link: str, leads_to: str
) -> None:
    shown = hook("repository").on_page_markdown(f"[there]({link})", page(origin), None, None)
    assert shown == f"[there]({leads_to})"


@pytest.mark.parametrize(
    ("output", "warns"),
    [
        ('<script src="https://example.org/a.js"></script>', True),
        ("<img alt=x src=//example.org/a.png>", True),
        ('<link rel="stylesheet" href="http://example.org/a.css">', True),
        (
            '<a href="https://example.org/">there</a><script src="assets/a.js"></script><img '
            'src="kept.svg">',
            False,
        ),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_a_warning(
    output: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    module = hook("nothing_from_elsewhere")
    with caplog.at_level(logging.WARNING, "mkdocs"):
        assert module.on_post_page(output, page("index.md"), None) == output
    assert [record.levelname for record in caplog.records] == (["WARNING"] if warns else [])
