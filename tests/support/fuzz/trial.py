"""One trial: a seed decides connector, format, items, queries and sinks; plain Python judges."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.sinks.registry import open_sink
from acquatop.catalog.catalog import Catalog
from acquatop.engine.observer import BatchSeen, Silent
from connectors.registry import CONNECTORS, SPARK
from tests.support.fuzz.columns import columns_mapping, table_of
from tests.support.fuzz.encoding import FORMATS, IN_A_LINE, SYNTAXES, Sent, encode
from tests.support.fuzz.feeds import (
    CUT_AT_LINES,
    ELSEWHERE,
    IN_FILES,
    LIVE,
    PATIENCE,
    Feed,
    parquet,
)
from tests.support.fuzz.items import PROPERTIES, Item, items_of
from tests.support.fuzz.queries import Query, all_items, some
from tests.support.fuzz.reading_back import FORMS
from tests.support.fuzz.times import CLUSTERS, FORMS_OF_TIME
from tests.support.fuzz.values import NS

IN_PROCESS = tuple(name for name in CONNECTORS if name not in (SPARK.name, *ELSEWHERE))
"""Connectors that are fed here, and can be read without Spark."""


@dataclass(frozen=True)
class Plan:
    """What a seed decides."""

    seed: int
    connector: str
    about: str
    mapping: str
    sent: Sequence[Sent]
    queries: Sequence[Query]
    sinks: Sequence[str]
    restarts: bool
    feed: AbstractContextManager[Feed]

    @property
    def is_live(self) -> bool:
        """True if the connector's data comes over a connection."""
        return self.connector in LIVE


@dataclass
class Outcome:
    """What an engine has given out and said."""

    answers: dict[str, list[Answer]]
    events: int = 0
    late: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Seen(Silent):
    """Counts what an engine has read, and notes what has failed."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._changed = threading.Condition()

    def batch(self, seen: BatchSeen) -> None:
        """Count the items of a batch."""
        with self._changed:
            self._outcome.events += seen.events
            self._outcome.late += seen.late
            self._outcome.bad.update(seen.bad)
            self._changed.notify_all()

    def failed(self, where: str, error: BaseException) -> None:
        """Note an error."""
        with self._changed:
            self._outcome.failures.append(f"{where}: {error!r:.500}")
            self._changed.notify_all()

    def wait_for(self, events: int) -> None:
        """Return once so many items have been read, or something has failed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._outcome.events >= events or bool(self._outcome.failures), PATIENCE
            )


def plan_of(seed: int, folder: Path, connectors: Sequence[str] = IN_PROCESS) -> Plan:
    """Return the plan of a seed for an empty folder."""
    random = Random(f"fuzz {seed}")
    connector = random.choice(connectors)
    formats = CONNECTORS[connector].formats
    format_ = random.choice([each for each in formats if each != "columns" or len(formats) == 1])
    variant = random.choice(IN_A_LINE if connector in CUT_AT_LINES else SYNTAXES)
    time_as = random.choice(FORMATS[format_].times if format_ in FORMATS else FORMS_OF_TIME)
    wild = random.random() < 0.2
    clusters = random.sample(CLUSTERS, random.choice((1, 2)))
    count = random.choice((1, 5, 30, 80))
    items = items_of(random, count, clusters, time_as, wild=wild)
    if format_ == "columns":
        table, sent = table_of(items, time_as, random)
        mapping, feed = columns_mapping(time_as), parquet(table, folder, random)
    else:
        sent = _encoded(items, format_, variant, connector, random)
        mapping = FORMATS[format_].mapping(variant if format_ == "rdf" else time_as)
        feed = {**IN_FILES, **LIVE}[connector]([each.payload for each in sent], folder, random)
    known = PROPERTIES if format_ == "columns" else FORMATS[format_].fields
    fields = list(known)
    queries = [all_items()] if wild else some(random, fields)
    about = f"{connector} {format_} {time_as} {variant} {[each.name for each in queries]}"
    return Plan(
        seed,
        connector,
        about,
        mapping,
        sent,
        queries,
        random.sample(list(FORMS), 3),
        restarts=connector not in LIVE and random.random() < 0.3,
        feed=feed,
    )


def _encoded(
    items: Sequence[Item], format_: str, variant: str, connector: str, random: Random
) -> list[Sent]:
    """Return items in a format, framed as a connector wants them."""
    sent = [encode(FORMATS[format_], item, variant, random) for item in items]
    if format_ == "ntriples":
        # A comment is no item; an empty line ends a record.
        sent = [each for each in sent if not each.payload.strip().startswith(b"#")]
        return [replace(each, payload=each.payload + b"\n") for each in sent]
    if connector == SPARK.name:
        sent = [each for each in sent if _is_text(each.payload)]
    if connector in CUT_AT_LINES:
        return [replace(each, payload=each.payload.replace(b"\n", b" ")) for each in sent]
    return sent


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def run(plan: Plan, folder: Path, spark: SparkSession | None = None) -> Outcome:
    """Let an engine answer the queries of a plan until all items are read."""
    outcome = Outcome({query.name: [] for query in plan.queries})
    with plan.feed as feed:
        catalog = _catalog(plan, feed, folder)
        if plan.restarts:
            _live(plan, catalog, folder, outcome, feed, spark, stops=True)
        _live(plan, catalog, folder, outcome, feed, spark, stops=plan.is_live)
    return outcome


def _catalog(plan: Plan, feed: Feed, folder: Path) -> Catalog:
    options = "".join(f"{name} = {json.dumps(value)}\n" for name, value in feed.options.items())
    text = (
        f'[streams."{NS}s"]\nconnector = "{plan.connector}"\nahead = "off"\n'
        f'dead_letters = "{folder / "bad"}"\nlate = "{folder / "late"}"\n'
        f'[streams."{NS}s".options]\n{options}\n[streams."{NS}s".mapping]\n{plan.mapping}\n'
    )
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def _live(
    plan: Plan,
    catalog: Catalog,
    folder: Path,
    outcome: Outcome,
    feed: Feed,
    spark: SparkSession | None,
    *,
    stops: bool,
) -> None:
    """Let one engine work until the end of its stream, or until it ``stops`` behind all items."""
    seen = Seen(outcome)
    with Engine(
        catalog,
        runtime="local" if spark is None else "spark",
        spark=spark,
        until_end=not stops,
        observer=seen,
        autostart=False,
        state=folder / "state" if plan.restarts else None,
    ) as engine:
        for query in plan.queries:
            kinds = [kind for kind in plan.sinks if query.form in FORMS[kind]]
            sinks = [open_sink(f"{kind}:{folder / 'out' / kind / query.name}") for kind in kinds]
            engine.register(query.text, name=query.name, sinks=sinks, backlog=1 << 20)
        reader = threading.Thread(target=_read, args=(engine, outcome))
        reader.start()
        engine.start()
        feed.send()
        if stops:
            seen.wait_for(len(plan.sent))
            engine.stop()
        reader.join()


def _read(engine: Engine, outcome: Outcome) -> None:
    """Keep all answers; one that is repeated after a restart replaces the former."""
    try:
        for answer in engine.answers():
            known = outcome.answers[answer.query]
            key = (answer.closes_ms, answer.window)
            while known and (known[-1].closes_ms, known[-1].window) >= key:
                known.pop()
            known.append(answer)
    except Exception as error:
        outcome.failures.append(f"the answers end with {error!r:.500}")
