"""One way of doing a job runs in a process of its own, so that each has a fresh JVM; it reports in lines of JSON."""

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
"""Called with how far a child has come."""


class ChildFailed(Exception):  # noqa: N818 (it says what has happened)
    """A child ended without a result; what it said last is the message."""


def told(progress: str) -> None:
    """Say how far this process has come, to the one that started it."""
    print(json.dumps({"progress": progress}), flush=True)


def hand_back(result: Mapping[str, Any]) -> None:
    """Give the result to the process that started this one."""
    print(json.dumps({"result": result}), flush=True)


def python(module: str, arguments: Sequence[str], tell: Told) -> dict[str, Any]:
    """Run a module of this benchmark, and return its result."""
    return run([sys.executable, "-m", f"benchmarks.spark_bench.{module}", *arguments], tell)


def run(command: Sequence[str], tell: Told, folder: Path = ROOT) -> dict[str, Any]:
    """Run a command, and return the result that it hands back; :class:`ChildFailed` when it has none."""
    result: dict[str, Any] | None = None
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=said, text=True)
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
            raise ChildFailed(f"it ended with code {code}: {' / '.join(lines[-1:]) or 'it did not say why'}")
    return result


def read(line: str) -> dict[str, Any]:
    """Return the message in a line; empty for what others print.

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
