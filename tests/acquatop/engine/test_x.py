"""Posts of X from the socket to answers.

An engine that is killed loses none and counts none twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.engine.engine import Engine
from connectors.x_api.token import VARIABLE
from examples.x.server import Record, XServer
from tests.support import programs
from tests.support.markers import THOROUGH

ROOT = Path(__file__).parents[3]
TOKEN = "AAAAxyzzy"
NS = "http://example.org/social#"
START = 1_700_000_000
PATIENCE = 240.0
PER_SECOND = 10
"""The number of posts per second of their own time."""
CATALOG = """
[prefixes]
"" = "http://example.org/social#"

[streams.":S"]
connector = "CONNECTOR"
arrivals = "distinct"
lateness = "1s"
options = OPTIONS

[streams.":S".mapping]
format = "x"
subject = "http://example.org/social/mention/{item}"
[streams.":S".mapping.properties.":of"]
field = "entities.mentions.id"
datatype = "http://example.org/social/user/{}"
"""
QUERY = """
PREFIX : <http://example.org/social#>
REGISTER STREAM :mentioned AS
SELECT ?user ?mentions (0 + ?mentions AS ?score) FROM NAMED WINDOW :w ON :S [RANGE 2s STEP 2s]
WHERE { WINDOW :w { SELECT ?user (COUNT(*) AS ?mentions) { ?mention :of ?user } GROUP BY ?user } }
ORDER BY DESC(?score) LIMIT 5
"""


def catalog_text(connector: str, options: dict[str, Any]) -> str:
    written = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    return CATALOG.replace("CONNECTOR", connector).replace("OPTIONS", f"{{ {written} }}")


def post(number: int) -> Record:
    """Return a post of which the number says all: when it was made, and whom it mentions."""
    made = datetime.fromtimestamp(START + number // PER_SECOND, UTC).strftime(
        "%Y-%m-%dT%H:%M:%S.000Z"
    )
    mentioned = [number % 3, *([3] if number % 5 == 0 else [])]
    mentions = [
        {"start": 0, "end": 2, "username": f"u{user}", "id": str(100 + user)} for user in mentioned
    ]
    about = {"id": str(10**18 + number), "text": "👋", "author_id": "7", "created_at": made}
    return {**about, "entities": {"mentions": mentions}}


def expected(count: int) -> dict[int, Counter[str]]:
    """Return how often who is mentioned in each window that so many posts close, by its close."""
    found: dict[int, Counter[str]] = {}
    for number in range(count):
        second = number // PER_SECOND
        closes = START + second + (second % 2)
        for mention in post(number)["entities"]["mentions"]:
            found.setdefault(closes, Counter())[mention["id"]] += 1
    watermark = (
        START + (count - 1) // PER_SECOND - 1
    )  # the lateness; of this very second more may come
    return {closes: counts for closes, counts in found.items() if closes < watermark}


def answers_in(file: Path) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    text = file.read_text("utf-8") if file.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        answer = json.loads(line)
        closes = round(datetime.fromisoformat(answer["window"]["closes"]).timestamp())
        assert closes not in found
        rows = [row["bindings"] for row in answer["results"]]
        found[closes] = Counter(
            {row["user"]["value"][-3:]: int(row["mentions"]["value"]) for row in rows}
        )
    return found


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that will happen."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if happened():
            return
        pause.wait(0.02)
    raise AssertionError("it has not happened")


class Program:
    """``acquatop run`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [
            "run",
            "query.rspql",
            "--catalog",
            "catalog.toml",
            "--runtime",
            "local",
            "--state",
            "state",
        ]
        self._errors = (folder / "errors.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "acquatop", *command, "--to", "ndjson:answers.ndjson"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: TOKEN},
            stderr=self._errors,
        )

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(PATIENCE)
        self._errors.close()


@THOROUGH
def test_an_engine_that_is_killed_goes_on_with_every_post_once(tmp_path: Path) -> None:
    # Whom the server takes for connected after a kill is so until it writes to him: hence two
    # connections.
    with XServer(token=TOKEN, connections=2, keep_alive=0.1) as x:
        options = {"url": x.url, "log": str(tmp_path / "log"), "backfillMinutes": 5}
        (tmp_path / "catalog.toml").write_text(catalog_text("x", options), "utf-8")
        (tmp_path / "query.rspql").write_text(QUERY, "utf-8")
        x.rules["1"] = {"value": "has:mentions", "tag": "all"}
        answers, published = tmp_path / "answers.ndjson", 0

        def publish(more: int) -> None:
            nonlocal published
            x.publish(post(number) for number in range(published, published + more))
            published += more

        program = Program(tmp_path)
        assert x.wait_for(streams=1, timeout=PATIENCE)
        publish(50)
        until(lambda: len(answers_in(answers)) >= len(expected(published)))
        publish(33)
        x.disconnect()
        publish(20)
        program.end(signal.SIGKILL)
        publish(40)
        program = Program(tmp_path)
        publish(17)
        until(lambda: len(answers_in(answers)) >= len(expected(published)))
        program.end(signal.SIGTERM)
        assert answers_in(answers) == expected(published)
        assert TOKEN not in (tmp_path / "errors.txt").read_text("utf-8")


def test_a_recording_of_the_stream_stands_in_for_it(tmp_path: Path) -> None:
    lines = [json.dumps({"data": post(number)}) for number in range(45)]
    (tmp_path / "posts.ndjson").write_text(
        "\n".join([*lines[:20], "{", "", *lines[20:]]) + "\n", "utf-8"
    )
    (tmp_path / "catalog.toml").write_text(catalog_text("lines", {"path": "posts.ndjson"}), "utf-8")
    with Engine.from_catalog(tmp_path / "catalog.toml", runtime="local", until_end=True) as engine:
        answers = list(engine.register(QUERY))
    counts = {
        answer.closes_ms // 1000: Counter(
            {
                str(row.bindings["user"])[-3:]: int(str(row.bindings["mentions"]))
                for row in answer.rows
            }
        )
        for answer in answers
    }
    want = expected(45)
    assert {closes: counts[closes] for closes in want} == want
    assert sum((Counter(answer.counts.bad) for answer in answers), Counter()) == {"not JSON": 1}


def test_the_example_is_a_good_catalog_whose_posts_have_what_is_asked_for() -> None:
    variables = {
        "X_URL": "https://api.x.com",
        "X_LOG": "received",
        "X_BEARER_TOKEN": "hush",
        "LATENESS": "10s",
    }
    catalog = Catalog.load(ROOT / "examples" / "x" / "catalog.toml", variables=variables)
    (stream,) = catalog.streams.values()
    assert json.loads(stream.options["rules"]) == {"mentions": "has:mentions"}
    assert stream.options["fields"] == "author_id,created_at,entities"
    assert "hush" not in repr(stream)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {'arrivals = "distinct"': 'arrivals = "latest"', "{item}": "{id}"},
            "must not share a subject",
        ),
        ({"{item}": "{entities.mentions.username}"}, "must not share a subject"),
        ({"{item}": "{entities.hashtags.tag}"}, "fields of one list may be used"),
        ({"{item}": "{item"}, "must have one {field} in it"),
    ],
)
def test_what_is_wrong_in_a_mapping_of_posts_is_said(
    change: dict[str, str], message: str, tmp_path: Path
) -> None:
    text = catalog_text("lines", {"path": "posts.ndjson"})
    for old, new in change.items():
        text = text.replace(old, new)
    with pytest.raises(CatalogError, match=message):
        Catalog.parse(text, file=tmp_path / "catalog.toml", variables={})


@THOROUGH
def test_the_demo_shows_answers_from_posts_and_lookups() -> None:
    command = [
        sys.executable,
        "-m",
        "examples.x.demo",
        "--runtime",
        "local",
        "--windows",
        "6",
        "--json",
    ]
    done = programs.run(command, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 6
    assert sum(answer["spent"]["items"] for answer in answers) > 0
    # Growth is known once followers have been seen for some seconds.
    assert any(answer["results"] for answer in answers)
