"""RSP-JS, an engine for RSP-QL in JavaScript, on the events of the latency test.

It is installed by npm from its lock file into a temporary folder the first time. Its input is
favourable: ready-made triples, in order of time, and one answer at a time. Its limits: it cannot
ask a SERVICE while it runs, so the weights are static data here; it takes no events out of order;
it uses one core only; it cannot continue after a crash.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.spark_bench.child import ChildFailed, Told, run
from benchmarks.spark_bench.data import TOP
from benchmarks.spark_bench.feed import INTEGER, NS, SLIDE_MS, WIDTH_MS, Event, Feed
from benchmarks.spark_bench.floor import Answers

PEER = Path(__file__).parents[1] / "peers" / "rspjs"
_QUERY = f"""\
PREFIX : <{NS}>
REGISTER RStream <output> AS
SELECT ?key (SUM(?value)%s AS ?score)
FROM NAMED WINDOW :w ON STREAM :stream [RANGE {WIDTH_MS} STEP {SLIDE_MS}]
WHERE {{
WINDOW :w {{ ?key :value ?value }}
%s
}}
GROUP BY ?key%s
ORDER BY DESC(?score)
LIMIT {TOP}
"""


def query(*, joined: bool) -> str:
    """Return the query, with the weights or without them."""
    return _QUERY % (
        (" * ?weight", "?key :weight ?weight .", " ?weight") if joined else ("", "", "")
    )


def measure(feed: Feed, tell: Told) -> dict[str, Any]:
    """Return RSP-JS's result; :class:`ChildFailed` says what is missing."""
    folder = _installed(tell)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_job(feed), file)
        file.flush()
        return run(["node", "peer.js", file.name], tell, folder)


def parse(answers: list[tuple[int, list[dict[str, str]]]]) -> Answers:
    """Return answers in the common form.

    >>> parse([(3000, [{"key": "http://example.org/key/7", "score": "12"}])])
    {3000: [(7, 12.0)]}
    """
    return {
        close: [(int(row["key"].rpartition("/")[2]), float(row["score"])) for row in rows]
        for close, rows in answers
    }


def _job(feed: Feed) -> dict[str, Any]:
    slides = [
        {
            "close": slide.close,
            "events": [_said(each) for each in slide.events],
            "closing": _said(slide.closing),
        }
        for slide in feed
    ]
    weights = enumerate(feed.weights if feed.joined else ())
    statics = [(f"{NS}key/{key}", f"{NS}weight", (weight, INTEGER)) for key, weight in weights]
    return {
        "query": query(joined=feed.joined),
        "stream": f"{NS}stream",
        "statics": statics,
        "slides": slides,
        "rows": TOP,
    }


def _said(event: Event) -> tuple[Any, ...]:
    moment, key, value = event
    return moment, f"{NS}key/{key}", f"{NS}value", (value, INTEGER)


def _installed(tell: Told) -> Path:
    """Return RSP-JS's folder, installed by the versions and hashes of its lock file."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        raise ChildFailed(f"{' and '.join(missing)} missing: install Node.js to measure RSP-JS")
    lock = hashlib.sha256((PEER / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"acquatop-bench-rspjs-{lock}"
    folder.mkdir(exist_ok=True)
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
