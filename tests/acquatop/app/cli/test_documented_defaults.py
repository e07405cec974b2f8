"""The defaults of options are those that ``docs/cli.md`` names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from acquatop.app.cli import advise, build_parser, evaluate
from acquatop.app.watch.address import ListenAddress
from acquatop.lab.generate import Redrawn

DOCUMENT = Path(__file__).parents[4] / "docs" / "cli.md"
INHERITED = {"serve": "run", "record": "run", "advise": "evaluate"}
"""Verbs whose sections say of some options that they are as in another."""
COMPUTED = {
    ("generate", "--changes"): (Redrawn().changes,),
    ("evaluate", "--policies"): evaluate.POLICIES,
    ("evaluate", "--budgets"): evaluate.BUDGETS,
    ("evaluate", "--seeds"): (1,),
}
"""Defaults that are not the parser's: options of experiments override a file's."""


REQUIRED = {
    "run": ["query", "--catalog", "file"],
    "serve": ["--catalog", "file"],
    "check": ["file"],
    "explain": ["file"],
    "fmt": ["file"],
    "connectors": [],
    "record": ["--query", "file", "--catalog", "file", "--out", "folder"],
    "generate": ["folder"],
    "evaluate": ["--trace", "folder", "--query", "file"],
    "advise": ["--trace", "folder", "--query", "file", "--target", "precision=0.9"],
}
"""Arguments that each verb needs."""


def rows(verb: str) -> dict[str, tuple[str, str]]:
    """Return the options in a section's table: what is written of values, and the meaning."""
    text = DOCUMENT.read_text("utf-8")
    (section,) = re.findall(rf"^## `acquatop {verb}\b.*?\n(.+?)(?=^## |\Z)", text, re.M | re.S)
    found = {}
    for cell, meaning in re.findall(r"^\| (`-.+?) \| (.+) \|$", section, re.M):
        for option, values in re.findall(r"`(--?[a-z-]+)(?: ([^`]+))?`", cell):
            found[option] = (values.replace("\\|", "|"), meaning)
    return found


def documented(verb: str, option: str) -> tuple[str, str]:
    while option not in rows(verb):
        verb = INHERITED[verb]
    return rows(verb)[option]


def defaults() -> Iterator[tuple[str, str, tuple[object, ...]]]:
    for verb, required in REQUIRED.items():
        given = vars(build_parser().parse_args([verb, *required]))
        for name, value in given.items():
            option = f"--{name.replace('_', '-')}"
            is_given = option in required or name in ("execute", "query", "files", "file", "folder")
            if not is_given and value not in (None, []) and value is not False:
                yield verb, option, (value,)
    for (verb, option), values in COMPUTED.items():
        yield verb, option, values


@pytest.mark.parametrize(("verb", "option", "default"), list(defaults()))
def test_an_option_s_default_is_documented(
    verb: str, option: str, default: tuple[object, ...]
) -> None:
    values, meaning = documented(verb, option)
    shown = [written(each) for each in default]
    if "(default)" in meaning:
        # The first of the values.
        assert [values.split("|")[0]] == shown
    else:
        said = re.findall(r"\(([^()]*)\)", meaning)
        assert any(named(each) == shown for each in said), (shown, meaning)


def named(said: str) -> list[str]:
    """Return what is listed in parentheses, behind a semicolon if there is one."""
    listed = said.rpartition(";")[2].replace("`", "")
    return [each.strip() for each in listed.split(",")]


def written(value: object) -> str:
    if isinstance(value, ListenAddress):
        return f"{value.host}:{value.port}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_options_without_a_default_are_off() -> None:
    """An option that is documented with a value in parentheses has that default."""
    known = {(verb, option) for verb, option, _ in defaults()}
    said = {
        (verb, option)
        for verb in REQUIRED
        for option, (_, meaning) in rows(verb).items()
        if "(default)" in meaning or re.search(r"\((?:[^()]*; )?`?[\d.:]+`?\)", meaning)
    }
    assert said <= known


def test_what_advise_tries_is_documented() -> None:
    _, meaning = documented("advise", "--policies")
    assert "six policies" in meaning
    assert len(advise.POLICIES) == 6
