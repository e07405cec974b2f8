"""``acquatop run --state s3://…``: what users are told, and what they are never told."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from acquatop.app.cli import main
from acquatop.engine.state.place import open_state
from tests.support.s3.running import BUCKET, KEY, SECRET, held, new_place

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":mentioned"]
connector = "lines"
arrivals = "latest"
options = { path = "mentions.ndjson" }
[streams.":mentioned".mapping]
subject = "http://example.org/user/{user}"
time = "t"
properties = { ":mentions" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """
PREFIX : <http://example.org/>
REGISTER STREAM most AS SELECT ?user ?n
FROM NAMED WINDOW :w ON :mentioned [RANGE 6s STEP 3s]
WHERE { WINDOW :w { ?user :mentions ?n } } ORDER BY DESC(?n) LIMIT 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "most.rspql").write_text(QUERY)
    lines = (f'{{"t": {time}000, "user": "u{time}", "n": {time}}}\n' for time in range(1, 9))
    (tmp_path / "mentions.ndjson").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(state: str, *more: str) -> int:
    fixed = ["--catalog", "catalog.toml", "--runtime", "local", "--until-end", "--json"]
    return main(["run", "most.rspql", *fixed, "--state", state, *more])


@pytest.mark.usefixtures("s3")
def test_a_run_in_a_bucket_and_one_too_many(
    folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place, out = new_place("9s"), new_place()
    state = open_state(place, {})
    told = []
    assert run(f"{place}?lease=1s", "--log", "log.ndjson", "--debug") == 1
    told += [*capfd.readouterr()]
    assert "is in use by process" in told[-1]
    state.close()
    to = [f"{kind}:{out}/{kind}" for kind in ("csv", "ndjson", "parquet")]
    targets = [text for target in to for text in ("--to", target)]
    assert run(f"{place}?lease=1s", *targets, "--log", "log.ndjson") == 0
    told += [*capfd.readouterr()]
    answers = held(out.address)
    csv = {name.rpartition("/")[2]: each for name, each in answers.items() if "csv/" in name}
    assert sorted(csv) == [f"19700101T0000{close}.000Z.csv" for close in ("03", "06", "09", "12")]
    assert len(answers) == 3 * len(csv)
    assert csv["19700101T000003.000Z.csv"].startswith(b"user,n\r\nhttp://example.org/user/u")
    # Again: nothing is left to do, and the last answer is given again.
    assert run(f"{place}?lease=1s", *targets) == 0
    told += [*capfd.readouterr(), caplog.text, (folder / "log.ndjson").read_text()]
    assert held(out.address) == answers
    told += map(repr, held(place.address).values())
    assert not [each for each in told if SECRET in each or KEY in each]


@pytest.mark.usefixtures("s3", "folder")
@pytest.mark.parametrize(
    ("state", "more", "code", "said"),
    [
        ("s3://nobody-has-this/state", [], 1, "404 Not Found NoSuchBucket"),
        (f"s3://{BUCKET}/", [], 2, "it needs a bucket and a prefix"),
        (f"s3://key:xyzzy@{BUCKET}/x", [], 2, "an address holds no key and no password"),
        (f"s3://{BUCKET}/x?lease=soon", [], 2, "such as lease=15s"),
        ("hdfs://user@name/state", [], 2, "an address holds no key and no password"),
        ("webhdfs://name/state", [], 2, "write hdfs://"),
        ("state", ["--to", "csv:gs://bucket/x"], 2, "csv: with s3://BUCKET/PREFIX"),
    ],
)
def test_a_place_that_cannot_be_used_is_said_with_a_remedy(
    state: str, more: list[str], code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(state, *more) == code
    told = capfd.readouterr().err
    assert said in told
    assert "hint: " in told
    assert "xyzzy" not in told or "key" in state


@pytest.mark.usefixtures("folder")
def test_without_keys_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A machine of a cloud has keys at an address of its own, which nobody has named here."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    assert run("s3://bucket/state") == 1
    assert "there are no keys for s3://bucket/state" in capfd.readouterr().err


@pytest.mark.usefixtures("s3")
def test_files_that_must_be_local_are_refused(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    late = CATALOG.replace("options =", 'late = "s3://bucket/late"\noptions =')
    (folder / "catalog.toml").write_text(late)
    assert run(str(new_place())) == 2
    assert '"late" is a file or a folder, and cannot be s3://' in capfd.readouterr().err
