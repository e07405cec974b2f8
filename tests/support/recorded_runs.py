"""Runs that are recorded, and their replays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.lab.record.full_snapshots import SnapshotBudget
from acquatop.lab.record.recording import CATALOG as FILE
from acquatop.lab.record.recording import QUERY, Recording
from examples.oxigraph import OxigraphServer
from tests.support.worlds import NS, Event, catalog_text, query_text, user_term

USERS = [f"u{number}" for number in range(6)]


SLIDE = 60_000
"""So long that an evaluation waits for its requests:
at most for half of it, and for the deadline.
"""


def set_followers(server: OxigraphServer, followers: dict[str, int]) -> None:
    triples = " ".join(
        f"{user_term(user)} <{NS}followers> {count} ." for user, count in followers.items()
    )
    server.update(f"CLEAR ALL; INSERT DATA {{ {triples} }}")


def append(folder: Path, events: Sequence[Event]) -> None:
    with (folder / "events").open("ab") as file:
        file.write(b"".join(event.line() + b"\n" for event in events))


def catalog_of(folder: Path, server: OxigraphServer, **changes: object) -> Catalog:
    text = catalog_text(endpoint=server.query_url, **{"start": "start_ms = 0", **changes})
    (folder / "catalog.toml").write_text(text, "utf-8")
    return Catalog.load(folder / "catalog.toml")


def shown(answer: Answer) -> tuple[object, ...]:
    return (
        answer.closes_ms,
        answer.status,
        [(row.score, row.bindings) for row in answer.rows],
        answer.spending.items,
    )


def replayed(folder: Path) -> list[Answer]:
    with Engine.from_catalog(folder / FILE, runtime="local", until_end=True) as engine:
        return list(engine.register((folder / QUERY).read_text("utf-8")))


class Run:
    """A query that is recorded while a real server's values change between its windows."""

    def __init__(
        self, folder: Path, server: OxigraphServer, seed: int, windows: int, **settings: object
    ) -> None:
        random = Random(seed)
        self.truth: dict[int, dict[str, int]] = {}
        self.answers: list[Answer] = []
        self.out = folder / "out"
        followers = {user: random.randint(0, 9) for user in USERS}
        set_followers(server, followers)
        snapshots, runtime = settings.pop("snapshots", None), settings.pop("runtime", "local")
        assert snapshots is None or isinstance(snapshots, SnapshotBudget)
        catalog = catalog_of(folder, server, deadline="30s", **settings)
        query = query_text(width=SLIDE, slide=SLIDE)
        (folder / "events").touch()
        self.recording = Recording.open(self.out, catalog, query, file="q", snapshots=snapshots)
        engine = Engine(
            catalog,
            runtime=str(runtime),
            state=self.recording.state,
            autostart=False,
            recording=self.recording,
        )
        with engine:
            answers = iter(engine.register(query))
            engine.start()
            for window in range(1, windows + 1):
                closes = window * SLIDE
                times = [closes - 2, closes - 1, closes]
                append(
                    folder,
                    [Event(each, random.choice(USERS), random.randint(0, 5)) for each in times],
                )
                self.truth[closes] = dict(followers)
                append(folder, [Event(closes + 1, random.choice(USERS), 1)])
                self.answers.append(next(answers))
                followers = {
                    user: random.randint(0, 9) if random.random() < 0.5 else n
                    for user, n in followers.items()
                }
                if window > 1 and random.random() < 0.3:
                    followers.pop(random.choice(USERS), None)
                set_followers(server, followers)
        self.recording.close()


def events(first: int, count: int) -> Iterator[Event]:
    return (Event(at, USERS[at % len(USERS)], at % 5) for at in range(first, first + count))
