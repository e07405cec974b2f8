"""``acquatop completion``: let a shell complete the command's verbs, options and files."""

from __future__ import annotations

import argparse
import os
from typing import Any

from acquatop.app.cli.query_files import write_line

SHELLS = ("bash", "zsh", "fish")
_ASKED = "_ARGCOMPLETE"
"""Environment variable by which a shell asks for what may come next."""


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "completion",
        help="print what makes a shell complete this command",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Put into the shell's start file:\n\n"
        '  bash, zsh: eval "$(acquatop completion bash)"\n'
        "  fish:      acquatop completion fish | source",
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    write_line(shellcode(["acquatop"], shell=options.shell).strip())


def complete(parser: argparse.ArgumentParser) -> None:
    """Tell a shell that asks what may come next, and exit; without one do nothing."""
    if _ASKED in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
