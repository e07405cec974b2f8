"""Completion of the command line, by real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acquatop.app.cli import main
from acquatop.app.cli.completion import SHELLS

_BASH = """
eval "$(acquatop completion bash)"
COMP_WORDS=(acquatop {words}) COMP_LINE="acquatop {words}" COMP_TYPE=9
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_POINT=${{#COMP_LINE}}
_python_argcomplete acquatop
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_FISH = 'acquatop completion fish | source; complete -C "acquatop {words}"'
# What zsh completes is what its line editor shows, so it gets a terminal.
_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -Uz compinit; compinit -u -d {folder}/dump
eval "$(acquatop completion zsh)"; print IS"READY"'
zpty -r shell seen '*ISREADY*'
zpty -n -w shell $'acquatop {words}\\t'
zpty -r shell seen '*{expected}*'
print -r -- "$seen"
"""


def completed(shell: str, words: str, expected: str, folder: Path) -> str:
    """Return what a shell shows for some words; ``expected`` ends the wait in a terminal."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"the shell {shell} is not installed")
    script = {"bash": _BASH, "fish": _FISH, "zsh": _ZSH}[shell]
    made = script.format(words=words, folder=folder, expected=expected)
    plain = {"bash": "--norc", "fish": "--no-config", "zsh": "-f"}[shell]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    surroundings = {"PATH": path, "HOME": str(folder), "TERM": "xterm"}
    done = subprocess.run(
        [program, plain, "-c", made], env=surroundings, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("words", "expected"), [("gen", "generate"), ("run --runtime l", "local")])
def test_a_shell_completes_verbs_and_values(
    shell: str, words: str, expected: str, tmp_path: Path
) -> None:
    assert expected in completed(shell, words, expected, tmp_path)


def test_other_shells_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "choose from" in capsys.readouterr().err
