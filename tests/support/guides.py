"""Runner of a documentation page: executes every snippet, in the page's order."""

from __future__ import annotations

import doctest
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from acquatop.app.cli import main
from tests.support.programs import PATIENCE, run

_SNIPPET = re.compile(
    r"(?:^<!-- (?:not run by the tests|run by a test of its own): (?P<why>[^\n]+) -->\n)?"
    r'^```(?P<language>\w+)(?: title="(?P<file>[^"]+)")?\n'
    r"(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Snippet:
    """A block of code in a page: a file that it names, or commands to run."""

    line: int
    language: str
    file: str | None
    text: str
    why_not_run: str | None


def snippets_of(page: Path) -> Iterator[Snippet]:
    text = page.read_text("utf-8")
    for found in _SNIPPET.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Snippet(line, found["language"], found["file"], found["text"], found["why"])


def follow(page: Path) -> None:
    """Write the files that a page shows, run its commands, and compare what they print.

    A block with a title is a file. In a ``console`` block what follows ``$`` is a command, and the
    lines below it are what it prints: ``...`` stands for anything, and no lines for whatever it
    prints. Marked blocks are left out: ``<!-- not run by the tests: REASON -->`` or
    ``<!-- run by a test of its own: REASON -->``.
    """
    for snippet in snippets_of(page):
        place = f"{page.name}:{snippet.line}"
        if snippet.why_not_run is not None:
            continue
        if snippet.file is not None:
            Path(snippet.file).parent.mkdir(parents=True, exist_ok=True)
            Path(snippet.file).write_text(snippet.text, "utf-8")
        elif snippet.language == "console":
            for command, expected in _commands(snippet.text):
                _check(place, command, expected, _printed(place, command))
        else:
            raise AssertionError(
                f"{place}: give it a title, make it a console block, or say why it is not run"
            )


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _printed(place: str, command: str) -> str:
    """Run a command and return what it prints: ours in this process,
    which saves the start of another. What pip installs is in a folder of its own.
    """
    program, *arguments = shlex.split(os.path.expandvars(command))
    said = io.StringIO()
    if program == "acquatop":
        with redirect_stdout(said):
            code = main(arguments)
        assert code == 0, f"{place}: {command} ended with {code}"
    elif program == "pip":
        subprocess.run(command, shell=True, check=True, timeout=PATIENCE)
        sys.path.insert(0, os.environ["PIP_TARGET"])
    elif program == "python":
        with redirect_stdout(said):
            runpy.run_path(arguments[0], run_name="__main__")
    else:
        done = run(["sh", "-c", command])
        assert done.returncode == 0, (
            f"{place}: {command} ended with {done.returncode}: {done.stderr}"
        )
        said.write(done.stdout)
    return said.getvalue()


def _check(place: str, command: str, expected: str, printed: str) -> None:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if expected.strip() and not doctest.OutputChecker().check_output(expected, printed, options):
        raise AssertionError(
            f"{place}: {command}\nis said to print\n{expected}\nand prints\n{printed}"
        )
