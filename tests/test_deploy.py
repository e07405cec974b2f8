"""Files that deploy the service: their commands, the dashboard, and what they name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest

from acquatop.app.cli import build_parser
from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
STATEFUL = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))


def unit() -> Mapping[str, Sequence[str]]:
    """Return the settings of the systemd unit."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "acquatop.service").read_text("utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def image_commands() -> Iterator[list[str]]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    yield json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0])


def commands() -> Iterator[list[str]]:
    """Yield what is said to ``acquatop`` in each file."""
    yield from image_commands()
    yield COMPOSE["services"]["acquatop"]["command"]
    (container,) = STATEFUL[1]["spec"]["template"]["spec"]["containers"]
    yield container["args"]
    yield shlex.split(unit()["ExecStart"][0])[1:]


@pytest.mark.parametrize(
    "command", list(commands()), ids=["image", "compose", "kubernetes", "systemd"]
)
def test_every_command_is_one(command: list[str]) -> None:
    options = build_parser().parse_args(command)
    assert options.runtime == "local"
    assert options.state.startswith(("/state", "/var/lib/acquatop"))


def test_the_dashboard_asks_for_what_the_service_measures() -> None:
    observer = Metrics(process=False)
    exposed = generate_latest(observer.registry).decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", exposed, re.MULTILINE))
    series = {
        f"{name}{end}"
        for name, type_ in types.items()
        for end in (("_bucket", "_sum", "_count") if type_ == "histogram" else ("",))
    }
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for each in asked for name in re.findall(r"\bacquatop_\w+", each)}
    assert len(named) > 20
    assert named - series == set()
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    source = yaml.safe_load((DEPLOY / "grafana" / "provisioning.yaml").read_text("utf-8"))
    uids = {panel["datasource"]["uid"] for panel in dashboard["panels"]}
    assert uids == {each["uid"] for each in source["datasources"]}


def test_compose_names_what_is_there() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service.get("volumes", ()):
            place = volume.partition(":")[0]
            there = (
                (DEPLOY / place).exists() if place.startswith(".") else place in COMPOSE["volumes"]
            )
            assert there, place
    build = services["acquatop"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8"))
    (job,) = scraped["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["acquatop:8322"]}]
    variables = {name: str(value) for name, value in services["acquatop"]["environment"].items()}
    catalog = Catalog.load(
        ROOT / "examples" / "manufacturing" / "catalog.toml", variables=variables
    )
    (stream,) = catalog.streams.values()
    assert stream.options["url"] == "mqtt://mosquitto:1883"


def test_the_manifests_belong_together() -> None:
    service, stateful = STATEFUL
    pod = stateful["spec"]["template"]
    assert service["spec"]["selector"] == stateful["spec"]["selector"]["matchLabels"]
    assert pod["metadata"]["labels"] == service["spec"]["selector"]
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]
    (container,) = pod["spec"]["containers"]
    claims = [each["metadata"]["name"] for each in stateful["spec"]["volumeClaimTemplates"]]
    volumes = {each["name"] for each in pod["spec"]["volumes"]} | set(claims)
    assert {each["name"] for each in container["volumeMounts"]} == volumes
    assert stateful["spec"]["replicas"] == 1


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_the_unit_is_one(tmp_path: Path) -> None:
    text = (DEPLOY / "acquatop.service").read_text("utf-8")
    file = tmp_path / "acquatop.service"
    file.write_text(text.replace("/opt/acquatop/bin/acquatop", sys.executable))
    done: Any = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False
    )
    assert "acquatop.service" not in done.stderr, done.stderr
