"""Options and settings of Kafka, without a broker and without the client library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connectors import ConnectorError
from connectors.kafka_client.options import read_options
from connectors.kafka_client.settings import PASSWORD, SETTINGS, USER, brokers

ROOT = Path(__file__).parents[3]
GIVEN = {"url": "kafka://127.0.0.1:9", "topics": "t"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": ""}, "needs the option url"),
        ({"topics": ""}, "needs the option topics"),
        ({"topics": "a b"}, '"a b" is no topic'),
        ({"url": "http://x"}, "names no broker"),
        ({"url": "kafka://"}, "names no broker"),
        ({"url": "kafka://x/t"}, "has more than brokers"),
        ({"url": "kafka://ann:xyzzy@x"}, "holds no user and no password"),
        ({"url": "kafka://x:y"}, '"x:y" is no broker'),
        ({"begin": "middle"}, "is earliest, latest, not"),
        ({"encoding": "avro"}, "go together"),
        ({"registry": "http://x"}, "go together"),
        ({"maxRowsPerBatch": "0"}, "a whole number from 1 on"),
    ],
)
def test_wrong_options_are_named_without_secrets(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectorError, match=message) as refused:
        read_options({**GIVEN, **changes})
    assert "xyzzy" not in str(refused.value)


def test_settings_come_from_a_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\nsasl.mechanism = SCRAM-SHA-512\nssl.ca.location=/ca.pem\n")
    environment = {USER: "ann", PASSWORD: "xyzzy", SETTINGS: str(file)}
    assert brokers("kafkas://a,b:1").client(environment) == {
        "bootstrap.servers": "a:9092,b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "xyzzy",
        "ssl.ca.location": "/ca.pem",
    }
    assert brokers("kafka://[::1]").client({})["bootstrap.servers"] == "[::1]:9092"
    for text, message in (("xyzzy", "is not NAME=VALUE"), ("transactional.id=a", "must not set")):
        file.write_text(text)
        with pytest.raises(ConnectorError, match=message) as refused:
            brokers("kafka://a").client(environment)
        assert "xyzzy" not in str(refused.value)


def test_without_the_client_library_it_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from connectors.kafka import KafkaDataSource\n"
        f"KafkaDataSource({GIVEN}).streamReader(None).initialOffset()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert 'hint: pip install "acquatop[kafka]"' in done.stderr
