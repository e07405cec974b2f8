"""The two use cases of the AcquaTop paper: the demos' queries over traces of the simulated worlds.

Each answer is compared with brute force over the same trace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from acquatop import Answer, Engine, Status
from acquatop.catalog.catalog import Catalog
from examples.manufacturing import plant
from examples.oxigraph import OxigraphServer
from examples.social_media.world import LOOKS_BACK_SECONDS, SocialNetwork

EXAMPLES = Path(__file__).parents[1] / "examples"
BEGIN_MS, SECONDS = 1_000_000, 24


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def answers(scene: str, catalog: Catalog) -> Iterator[Answer]:
    with Engine(catalog, runtime="local", until_end=True) as engine:
        yield from engine.register((EXAMPLES / scene / "query.rspql").read_text("utf-8"))


# Social media -------------------------------------------------------------------------------------

NETWORK = """
[prefixes]
"" = "http://example.org/social#"

[streams.":S"]
connector = "lines"
arrivals = "latest"
options = { path = "mentions.ndjson" }

[streams.":S".mapping]
subject = "http://example.org/social/user/{user}"
time = "time_ms"
properties = { ":hasMentions" = { field = "mentions", datatype = "xsd:integer" } }

[services.":BKG"]
remote = "table"
path = "followers.jsonl"
time = "time_ms"

[services.":BKG".mapping]
key = "http://example.org/social/user/{user}"
properties = { ":hasFollowers" = { field = "followers", datatype = "xsd:integer" } }

[services.":BKG".refresh]
policy = "ALL-LRU"
items = 1000
deadline = "60s"
"""


class Trace:
    """Mentions and followers of a simulated network, and what follows from them at a close."""

    def __init__(self, seed: int) -> None:
        network = SocialNetwork(seed)
        self.mentions: list[dict[str, object]] = []
        self.followers: list[dict[str, object]] = []
        self._note(BEGIN_MS - 60_000, network.followers)
        for at in range(BEGIN_MS, BEGIN_MS + 1000 * SECONDS, 10):
            self.mentions += network.mentions(at, count=1)
            if at % 250 == 0:
                self._note(at, network.followers_change(count=10))

    def _note(self, at: int, counts: dict[str, int]) -> None:
        self.followers += (
            {"time_ms": at, "user": user, "followers": count} for user, count in counts.items()
        )

    def followers_at(self, at: int) -> dict[str, int]:
        return {
            str(row["user"]): int(str(row["followers"]))
            for row in self.followers
            if int(str(row["time_ms"])) <= at
        }

    def right(self, closes_ms: int, looks: Mapping[str, list[int]]) -> dict[str, float]:
        """Return the scores of the users of a window who are no influencers.

        ``looks`` says when each user was looked at: her value of before is the one last seen.
        """
        now = self.followers_at(closes_ms)
        then = closes_ms - round(1000 * LOOKS_BACK_SECONDS)
        before = {
            user: self.followers_at(max(at for at in looks[user] if at <= then))[user]
            for user in now
        }
        mentions = {
            str(row["user"]): int(str(row["mentions"]))
            for row in self.mentions
            if closes_ms - 6000 < int(str(row["time_ms"])) <= closes_ms
        }
        return {
            user: 0.5 * min(1, count / 40)
            + 0.5 * max(0, min(1, (now[user] - before[user]) / before[user]))
            for user, count in mentions.items()
            if now[user] < 50_000
        }


@pytest.mark.parametrize("seed", [1, 7])
def test_users_who_emerge_are_mentioned_most_and_grow_fastest(tmp_path: Path, seed: int) -> None:
    trace = Trace(seed)
    write(tmp_path / "mentions.ndjson", trace.mentions)
    write(tmp_path / "followers.jsonl", trace.followers)
    catalog = Catalog.parse(NETWORK, file=tmp_path / "catalog.toml", variables={})
    found = list(answers("social_media", catalog))
    assert len(found) >= SECONDS / 2
    first = found[0].closes_ms
    looks = {user: [first] for user in trace.followers_at(BEGIN_MS)}
    for answer in found:
        for term in answer.refreshed:
            looks[str(term).rpartition("/")[2]].append(answer.closes_ms)
        shown = {str(row.bindings["user"]).rpartition("/")[2]: row.score for row in answer.rows}
        if answer.closes_ms < first + 1000 * LOOKS_BACK_SECONDS:
            assert (answer.status, shown) == (Status.APPROXIMATE, {}), "no growth is known yet"
            continue
        right = trace.right(answer.closes_ms, looks)
        assert answer.status is Status.CERTIFIED
        assert list(shown.values()) == pytest.approx(sorted(right.values(), reverse=True)[:5])
        assert shown == pytest.approx({user: right[user] for user in shown})
    everyone = trace.followers_at(BEGIN_MS + 1000 * SECONDS)
    assert max(everyone.values()) >= 50_000, "there are influencers, and they are left out"


# Manufacturing ------------------------------------------------------------------------------------


@pytest.mark.server
def test_products_at_risk_are_made_with_instruments_on_machines_that_vibrate(
    tmp_path: Path, server: OxigraphServer
) -> None:
    """Each machine has three instruments, so the best rows are often of one machine."""
    world = plant.Plant(7)
    plant.store(server, world)
    readings: list[dict[str, object]] = []
    for at in range(BEGIN_MS, BEGIN_MS + 1000 * SECONDS, 10):
        for topic, payload in world.readings(at, count=1):
            readings.append({**json.loads(payload), "machine": topic.split("/")[1]})
    write(tmp_path / "readings.ndjson", readings)
    text = (EXAMPLES / "manufacturing" / "catalog.toml").read_text("utf-8")
    start, end = text.index("[streams."), text.index('[streams.":Sensors".mapping]')
    lines = """[streams.":Sensors"]
connector = "lines"
arrivals = "latest"
options = { path = "readings.ndjson" }

"""
    text = text[:start] + lines + text[end:].replace("{@topic.1}", "{machine}")
    text = text.replace("300ms", "60s")
    catalog = Catalog.parse(
        text, file=tmp_path / "catalog.toml", variables={**os.environ, "ERP": server.query_url}
    )
    found = list(answers("manufacturing", catalog))
    assert len(found) >= SECONDS / 2
    several = 0
    for answer in found:
        latest = {
            str(row["machine"]): float(str(row["vibration"]))
            for row in readings
            if answer.opens_ms < int(str(row["time_ms"])) <= answer.closes_ms
        }
        right = {
            instrument: 0.6 * min(1, latest[machine] / 50)
            + 0.4 * min(1, world.days[instrument] / 365)
            for instrument, machine in plant.INSTRUMENTS.items()
            if machine in latest
        }
        shown = {
            str(row.bindings["instrument"]).rpartition("/")[2]: row.score for row in answer.rows
        }
        assert answer.status is not Status.APPROXIMATE, "all was loaded, and nothing changes"
        assert list(shown.values()) == pytest.approx(sorted(right.values(), reverse=True)[:5])
        assert shown == pytest.approx({each: right[each] for each in shown})
        assert [str(row.bindings["product"]) for row in answer.rows] == [
            world.products[each] for each in shown
        ]
        several += len(shown) > len({plant.INSTRUMENTS[each] for each in shown})
    assert several, "a machine has several results"
