"""Sinks by the text that names them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from acquatop.answer.sinks import StdoutSink, open_sink
from acquatop.answer.sinks.registry import PATHS, TARGETS
from acquatop.errors import EnvironmentProblem, UserError
from tests.support.sink_samples import answer, content_of

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("kind", PATHS)
def test_every_kind_of_path_opens_and_takes_an_answer(kind: str, tmp_path: Path) -> None:
    sink = open_sink(f"{kind}:{tmp_path}/a/b:c")
    sink.write([answer(2, form="construct" if kind in ("nt", "ttl") else "select")])
    sink.close()
    (name,) = content_of(tmp_path)
    assert name.startswith("a/b:c/")


def test_the_standard_output_has_a_name() -> None:
    assert isinstance(open_sink("stdout"), StdoutSink)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", 'no kind of sink ""'),
        ("cvs:x", "did you mean csv:FOLDER?"),
        ("Parquet:x", "did you mean parquet:FOLDER?"),
        ("answers.ndjson", "did you mean ndjson:answers.ndjson?"),
        ("amqp://x/y", f"hint: The kinds are {', '.join(TARGETS)}"),
        ("mqttt://ann:xyzzy@x/y", "did you mean mqtt://HOST[:PORT]/PREFIX?"),
        ("ndjson", "needs a path\n  hint: write ndjson:PATH"),
        ("csv:", "hint: write csv:FOLDER"),
        ("kafka://broker", "kafka needs brokers and a topic"),
        ("kafka://ann:xyzzy@broker/x", "set ACQUATOP_KAFKA_USER and ACQUATOP_KAFKA_PASSWORD"),
        ("kafkas://b:x/t", '"b:x" is no broker of Kafka'),
        ("mqtt:broker/x", "needs a host and a topic's beginning\n  hint: write mqtt://HOST"),
        ("mqtt://broker", "needs a host"),
        ("mqtt://broker/x?y=xyzzy", "needs a host"),
        ("mqtt://broker:one/x", "its host or port cannot be read"),
        ("mqtt://[broker/x", "its host or port cannot be read"),
        ("mqtt://ann:xyzzy@broker/x", "set ACQUATOP_MQTT_USER and ACQUATOP_MQTT_PASSWORD"),
        ("mqtt://broker/a/%23", 'nothing can be published to "a/#"'),
    ],
)
def test_wrong_targets_are_refused_without_repeating_secrets(target: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        open_sink(target, {})
    assert "xyzzy" not in str(refused.value)
    assert "hint: " in str(refused.value)


def test_a_folder_that_cannot_be_made_is_the_surroundings_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="Not a directory"):
        open_sink(f"csv:{tmp_path}/file/below")


def test_every_target_is_documented() -> None:
    text = (ROOT / "docs" / "sinks.md").read_text("utf-8")
    assert [target for target in TARGETS if f"`{target}`" not in text] == []


def test_importing_sinks_imports_nothing_heavy() -> None:
    heavy = ["pyspark", "pandas", "pyarrow", "paho", "pyoxigraph"]
    sinks = "acquatop.answer.sinks.mqtt, acquatop.answer.sinks.frame"
    code = f"import sys, {sinks}; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
