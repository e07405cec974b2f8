"""Child processes: each way of a job runs in one, with a fresh JVM, and reports as JSON lines."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Told = Callable[[str], None]
"""Function called with a child's progress."""


class ChildFailed(Exception):  # noqa: N818 (it says what has happened)
    """Failure of a child that ended without a result; its last output is the message."""


def told(progress: str) -> None:
    """Report this process's progress to its parent."""
    print(json.dumps({"progress": progress}), flush=True)


def hand_back(result: Mapping[str, Any]) -> None:
    """Return the result to the parent process."""
    print(json.dumps({"result": result}), flush=True)


def python(module: str, arguments: Sequence[str], tell: Told) -> dict[str, Any]:
    """Run a module of this benchmark, and return its result."""
    return run([sys.executable, "-m", f"benchmarks.spark_bench.{module}", *arguments], tell)


def run(command: Sequence[str], tell: Told, folder: Path = ROOT) -> dict[str, Any]:
    """Run a command; return the result it reports, or raise :class:`ChildFailed`."""
    result: dict[str, Any] | None = None
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=said, text=True
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                message = read(line)
                if "progress" in message:
                    tell(str(message["progress"]))
                result = message.get("result", result)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.stdout.close()
            code = process.wait()
        if result is None:
            said.seek(0)
            lines = [line.strip() for line in said.read().splitlines() if line.strip()]
            raise ChildFailed(
                f"it ended with code {code}: {' / '.join(lines[-1:]) or 'it did not say why'}"
            )
    return result


def read(line: str) -> dict[str, Any]:
    """Return the message in a line; empty for other output.

    >>> read('{"progress": "3 of 4"}')
    {'progress': '3 of 4'}
    >>> read("WARN something")
    {}
    """
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
