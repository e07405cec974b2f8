"""RSP-JS, an engine for RSP-QL in JavaScript, on the events of the latency test.

It is installed by npm from its lock file into a temporary folder the first time. It uses one core
only, and gives one answer at a time.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.spark_bench.child import ChildFailed, Told, run
from benchmarks.spark_bench.feed import Feed
from benchmarks.spark_bench.floor import Answers
from benchmarks.spark_bench.peers import FOLDER, job_file, place

PEER = FOLDER / "rspjs"


def measure(feed: Feed, tell: Told) -> dict[str, Any]:
    """Return RSP-JS's result; :class:`ChildFailed` says what is missing."""
    folder = _installed(tell)
    with job_file(feed) as file:
        result = run(["node", "peer.js", file], tell, folder)
    return {**result, "answers": list(parse(result["answers"], feed.shape.who).items())}


def parse(answers: list[tuple[int, list[dict[str, str]]]], who: str) -> Answers:
    """Return answers in the common form.

    >>> parse([(3000, [{"key": "http://example.org/key/7", "score": "12"}])], "key")
    {3000: [(7, 12.0)]}
    """
    return {
        close: [(int(row[who].rpartition("/")[2]), float(row["score"])) for row in rows]
        for close, rows in answers
    }


def _installed(tell: Told) -> Path:
    """Return RSP-JS's folder, installed by the versions and hashes of its lock file."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        raise ChildFailed(f"{' and '.join(missing)} missing: install Node.js to measure RSP-JS")
    folder = place("rspjs", PEER / "package-lock.json")
    for name in ("package.json", "package-lock.json", "peer.js"):
        shutil.copy(PEER / name, folder)
    ready = folder / ".ready"
    if not ready.exists():
        tell("npm installs it (once; a minute)")
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ChildFailed(f"npm cannot install it: {done.stderr.strip().splitlines()[-1:]}")
        ready.touch()
    return folder
