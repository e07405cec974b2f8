"""Scenarios: streams, queries, services and faults, as a seed decides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.support.simulation.remote import PROFILES, ServiceSpec, Timeline, Value

NS = "http://example.org/"
USERS = ("u0", "u1", "u2", "u3", "u4", "u5")
START_MS = 1_000


@dataclass(frozen=True)
class Record:
    """Item of a stream: its bytes, when it comes, and its content; no time if it is bad."""

    line: bytes
    at: float
    t: int | None
    id: int
    user: str = ""
    p: int | None = None


@dataclass(frozen=True)
class StreamSpec:
    """Stream of a scenario."""

    name: str
    arrivals: str
    lateness_ms: int
    idle_ms: int | None
    records: tuple[Record, ...]
    strategy: str = ""
    side_outputs: bool = False

    @property
    def is_minimal(self) -> bool:
        """True if the catalog says nothing that has a default."""
        return (
            self.arrivals == "all"
            and not (self.lateness_ms or self.strategy or self.side_outputs)
            and self.idle_ms is None
        )

    def is_late(self, t: int, newest: int | None) -> bool:
        """Return True if a record comes after the watermark, which the newest before it moves."""
        return newest is not None and t < newest - self.lateness_ms

    @property
    def iri(self) -> str:
        """The stream's IRI."""
        return NS + self.name

    @property
    def is_orderly(self) -> bool:
        """True if no record can be late, however the stream is cut into batches."""
        newest = None
        for record in self.records:
            if record.t is not None:
                if self.is_late(record.t, newest):
                    return False
                newest = record.t if newest is None else max(newest, record.t)
        return True


@dataclass(frozen=True)
class QuerySpec:
    """Query of a scenario. ``kind`` decides its form, ``score`` its expression."""

    name: str
    kind: str
    streams: tuple[str, ...]
    width: int
    slide: int
    k: int = 0
    offset: int = 0
    descending: bool = True
    score: str = "plain"
    weight: int = 1
    service: str | None = None
    counts: bool = False
    output: str = "RSTREAM"
    twin: str | None = None
    """Query that is the same but for its output, which is RSTREAM."""
    from_start: bool = True
    fails: bool = False
    projection: tuple[str, ...] | None = None
    """Variables that it shows, if not all."""
    reads: str | None = None
    """Query whose answers it reads."""
    is_read: bool = False

    def merit(self, p: int, value: Value) -> float:
        """Return the score of a solution, or of a sum."""
        if self.score == "norm":
            assert value is not None, "a score needs the remote's value"
            return p + 10 * min(1.0, max(0.0, (value - 0) / (40 - 0)))
        return self.weight * p + (0 if self.service is None or value is None else value)


@dataclass(frozen=True)
class Kill:
    """Fault of one life: what happens, and at which of the steps of its kind."""

    kind: str
    nth: int


@dataclass(frozen=True)
class Scenario:
    """Everything that a seed decides beforehand.

    ``recording``: the streams are read to their end; else they are live. ``is_equal``: files must
    hold the same bytes as after a run without faults.
    """

    seed: int
    recording: bool
    durable: bool
    is_equal: bool
    streams: tuple[StreamSpec, ...]
    services: tuple[ServiceSpec, ...]
    queries: tuple[QuerySpec, ...]
    kills: tuple[Kill, ...]
    clock_jumps: bool
    moves_cuts: bool
    """True if each life cuts the streams into batches in its own way."""
    losses: float = 0.0
    """Share of the requests to the SPARQL engine that are lost."""
    losses_end_queries: bool = False
    """True if so many may be lost in a row that the query ends."""

    def stream(self, name: str) -> StreamSpec:
        """Return a stream."""
        return next(each for each in self.streams if each.name == name)

    def service(self, name: str | None) -> ServiceSpec | None:
        """Return a service."""
        return next((each for each in self.services if each.name == name), None)

    def without_faults(self) -> Scenario:
        """Return the same scenario without kills."""
        return replace(self, kills=())


DISK_KINDS = ("kill at disk", "power loss", "damage", "ENOSPC", "EIO")
SINK_KINDS = ("kill before sink", "kill within sink", "kill after sink", "sink ENOSPC")
KILL_KINDS = (*DISK_KINDS, *SINK_KINDS, "kill at batch", "kill at request")
_STEPS = {"kill at batch": 12, "kill at request": 12}


def scenario_of(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    random = Random(f"scenario {seed}")
    is_strict = random.random() < 0.25
    recording = not is_strict and random.random() < 0.5
    durable = random.random() < 0.6
    is_equal = recording and random.random() < 0.7
    streams = _streams(random, recording)
    services, queries = _queries(random, streams, recording, is_equal, is_strict)
    if random.random() < 0.2 and not durable and len(queries) > 1:
        queries = (*queries[:-1], replace(queries[-1], fails=True))
    queries = (*queries, *_twins(random, queries))
    whole = [query for query in queries if query.kind in ("whole", "pairs")]
    losses = random.choice([0.03, 0.2]) if whole and random.random() < 0.35 else 0.0
    streams = tuple(_with_fitting_strategy(stream, queries) for stream in streams)
    queries = _with_readers(Random(f"readers {seed}"), queries)
    orderly = all(stream.is_orderly for stream in streams)
    is_harsh = random.random() < (0.8 if is_strict else 0.25)
    durable = durable or (is_harsh and not any(query.fails for query in queries))
    kills = _kills(random, is_harsh=is_harsh, is_strict=is_strict) if durable else ()
    if is_equal and (losses or (len(streams) > 1 and not orderly)):
        is_equal = False
    return Scenario(
        seed,
        recording,
        durable,
        is_equal,
        streams,
        services,
        queries,
        kills,
        clock_jumps=random.random() < (0.5 if is_harsh else 0.25),
        # With a budget, the cut decides how certain an answer is.
        moves_cuts=orderly and not (is_equal and services),
        losses=losses,
        losses_end_queries=losses > 0 and random.random() < 0.15,
    )


def _twins(random: Random, queries: Sequence[QuerySpec]) -> Iterator[QuerySpec]:
    """Yield queries that give the changes of others; of equal remotes, as they ask together."""
    for query in queries:
        is_same = query.service is None or query.kind in ("top", "sums")
        if query.from_start and not query.fails and is_same and random.random() < 0.3:
            output = random.choice(["ISTREAM", "DSTREAM"])
            yield replace(query, name=f"{query.name}d", output=output, twin=query.name)


def _with_readers(random: Random, queries: tuple[QuerySpec, ...]) -> tuple[QuerySpec, ...]:
    """Return queries, sometimes with one that reads the answers of another."""
    sources = [
        query
        for query in queries
        if query.from_start and not (query.fails or query.counts) and query.output == "RSTREAM"
    ]
    if not sources or random.random() >= 0.3:
        return queries
    source = random.choice(sources)
    slide = random.choice([100, 200, 450])
    width = slide * random.choice([1, 2])
    reader = QuerySpec(f"{source.name}r", "behind", source.streams, width, slide, reads=source.name)
    read = tuple(replace(query, is_read=True) if query is source else query for query in queries)
    return (*read, reader)


def _with_fitting_strategy(stream: StreamSpec, queries: Sequence[QuerySpec]) -> StreamSpec:
    """Return a stream without a strategy that a query on it cannot have."""
    fits = all(
        query.kind == "top" and query.service is None
        for query in queries
        if stream.name in query.streams
    )
    return stream if fits else replace(stream, strategy="")


def _kills(random: Random, *, is_harsh: bool, is_strict: bool) -> tuple[Kill, ...]:
    """Return the faults of the lives; in a harsh world they are many, but of few kinds."""
    kinds: Sequence[str] = KILL_KINDS
    count = random.choice([0, 1, 1, 2, 3])
    if is_harsh:
        kinds, count = random.sample(KILL_KINDS, random.choice([1, 2, 4])), random.choice([3, 5])
    if is_harsh and is_strict:
        kinds = [*kinds, "kill at request"]
    kills = []
    for _ in range(count):
        kind = random.choice(kinds)
        most = _STEPS.get(kind, random.choice([30, 120]) if kind in DISK_KINDS else 6)
        kills.append(Kill(kind, random.randint(1, most)))
    return tuple(kills)


# Streams ------------------------------------------------------------------------------------------


def _streams(random: Random, recording: bool) -> tuple[StreamSpec, ...]:
    names = ["a", "b"] if random.random() < 0.3 else ["a"]
    return tuple(_stream(name, random, recording) for name in names)


def _stream(name: str, random: Random, recording: bool) -> StreamSpec:
    if random.random() < 0.4:
        return StreamSpec(name, "all", 0, None, _records(random, 0, calm=random.random() < 0.4))
    lateness = random.choice([0, 0, 50, 200])
    idle = None if recording or random.random() < 0.5 else random.choice([150, 400])
    arrivals = random.choice(["all", "latest", "distinct"])
    records = _records(random, lateness, calm=random.random() < 0.4)
    strategy = (
        random.choice(["", "shared-skyline", "pane-dominance"]) if arrivals == "distinct" else ""
    )
    return StreamSpec(
        name, arrivals, lateness, idle, records, strategy, side_outputs=random.random() < 0.7
    )


def _records(random: Random, lateness: int, *, calm: bool) -> tuple[Record, ...]:
    """Return records in the order of their coming; calm ones are never late or bad."""
    records, t = [], START_MS
    for number in range(random.randint(6, 14) if random.random() < 0.6 else random.randint(15, 32)):
        t += random.choice([0, 1, 10, 25, 40, 60, 100, 100 if calm else 700])
        jitter = random.choice([0.0, 0.0, 0.01, max(0, lateness - 1) / 1000])
        if not calm and random.random() < 0.12:
            jitter += random.uniform(0.05, 0.6)
        # Bursts come together.
        at = (t if random.random() < 0.7 else t - t % 200 + 200) / 1000 + jitter
        if not calm and random.random() < 0.08:
            records.append(Record(_bad(random, t), at, None, number))
            continue
        user, p = random.choice(USERS), random.randrange(20)
        mentions = None if random.random() < 0.1 else p
        records.append(Record(_line(t, number, user, mentions), at, t, number, user, mentions))
    if calm:
        return tuple(sorted(records, key=lambda each: (each.t, each.id)))
    return tuple(sorted(records, key=lambda each: (each.at, each.id)))


def _line(t: int, number: int, user: str, p: int | None) -> bytes:
    fields = {"t": t, "id": number, "user": user, "who": f"{NS}user/{user}", "p": p}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def _bad(random: Random, t: int) -> bytes:
    return random.choice(
        [
            b"{",
            b"\xff\xfe",
            json.dumps({"t": 10**16, "id": 1, "user": "u0"}).encode(),
            json.dumps({"id": 1, "user": "u0", "p": 3}).encode(),
            json.dumps({"t": t, "id": 1, "user": "u0", "p": "many"}).encode(),
        ]
    )


# Queries ------------------------------------------------------------------------------------------


def _queries(
    random: Random,
    streams: Sequence[StreamSpec],
    recording: bool,
    is_equal: bool,
    is_strict: bool,
) -> tuple[tuple[ServiceSpec, ...], tuple[QuerySpec, ...]]:
    services: list[ServiceSpec] = []
    queries: list[QuerySpec] = []
    for number in range(random.choice([1, 1, 2, 3])):
        stream = random.choice(streams)
        kinds = ["top", "top", "top", "sums", "whole"]
        if stream.idle_ms is None and len(streams) == 1:
            kinds += ["elements", "elements", "counted"]
        if len(streams) > 1:
            kinds += ["pairs", "pairs"]
        kind = random.choice(kinds)
        service = None
        if kind in ("top", "sums", "whole") and random.random() < (0.9 if is_strict else 0.6):
            service = f"s{number}"
            services.append(_service(service, random, is_equal, is_strict))
        slide = random.choice([100, 150, 200, 300])
        query = QuerySpec(
            f"q{number}",
            kind,
            (stream.name,),
            slide * random.choice([1, 2, 3]) + random.choice([0, 0, 50]),
            slide,
            k=random.choice([1, 2, 3, 5]),
            # What OFFSET hides cannot be told from what is not there.
            offset=random.choice([0, 0, 1]) if service is None else 0,
            descending=random.random() < 0.75,
            score=random.choice(["plain", "plain", "norm"])
            if service and kind == "top"
            else "plain",
            weight=random.choice([1, 2, -1]),
            service=service,
        )
        if kind in ("elements", "counted"):
            query = replace(
                query,
                kind="whole" if kind == "counted" else kind,
                width=random.choice([3, 5]),
                slide=random.choice([1, 2, 5]),
                counts=True,
            )
        if kind == "pairs":
            query = replace(query, streams=("a", "b"))
        if not (recording or query.counts) and number and random.random() < 0.3:
            query = replace(query, from_start=False)
        queries.append(query)
    return tuple(services), tuple(queries)


_Limits = tuple[tuple[int, str, float], ...]
_LIMITS: Sequence[_Limits] = (
    (),
    (),
    ((3, "requests", 1.0),),
    ((5, "items", 0.5), (4, "requests", 2.0)),
)
_LONG_LIMITS: Sequence[_Limits] = (
    (),
    ((3, "requests", 1.0),),
    ((3, "requests", 10.0),),
    ((12, "items", 20.0), (4, "requests", 2.0)),
)
"""Limits that hold over restarts: some are longer than several lives."""


def _service(name: str, random: Random, is_equal: bool, is_strict: bool) -> ServiceSpec:
    changes = 0 if is_equal or random.random() < 0.3 else random.choice([2, 8])
    timeline = {user: _values(random, changes) for user in USERS if random.random() < 0.9}
    # The default policy goes by the time of day: no two lives ask in the same order.
    if not (is_equal or is_strict) and random.random() < 0.6:
        spec = _minimal(name, timeline, random)
        is_push = random.random() < 0.15
        return replace(spec, is_push=is_push, has_feed=is_push)
    spec = ServiceSpec(
        name,
        timeline,
        items=random.choice([1, 2, 4, 20]),
        requests=random.choice([1, 2, 4]),
        block_size=random.choice([1, 2, 10]),
        concurrency=random.choice([1, 2]),
        deadline=random.choice([0.05, 0.2]),
        strict=is_strict,
    )
    if is_equal:
        # A life that follows a strict one spends less, and its answers may say so.
        return replace(spec, deadline=60.0, is_instant=True, strict=False)
    profiles = _profiles(random)
    limits = random.choice(_LONG_LIMITS if spec.strict else _LIMITS)
    return replace(
        spec,
        profiles=profiles,
        limits=limits,
        has_feed=random.random() < 0.3,
        bank=random.choice([(0, 0), (0, 0), (3, 2)]),
        policy=random.choice(["ANY-IMP", "AT-TSM", "WSJ-LRU", "AT-WST"]),
        capacity=random.choice([None, None, None, 2, 4]),
    )


def _profiles(random: Random) -> tuple[tuple[float, str], ...]:
    """Return the manners of a remote, and since when it has them."""
    times = sorted(random.uniform(0, 5) for _ in range(random.choice([0, 1, 2, 4])))
    return (0.0, "well"), *((at, random.choice(PROFILES)) for at in times)


def _minimal(name: str, timeline: Timeline, random: Random) -> ServiceSpec:
    """Return a service of which the catalog says only what it must."""
    profiles, items = _profiles(random), random.choice([1, 2, 4, 20])
    return ServiceSpec(
        name,
        timeline,
        profiles=profiles,
        items=items,
        requests=items,
        block_size=100,
        concurrency=4,
        deadline=1.0,
        policy="ANY-IMP",
        is_minimal=True,
    )


def _values(random: Random, changes: int) -> tuple[tuple[float, Value], ...]:
    times = sorted(round(random.uniform(0.5, 5.0), 4) for _ in range(random.randint(0, changes)))
    return tuple(
        (at, None if random.random() < 0.1 else random.randrange(40)) for at in (0.0, *times)
    )


# Texts --------------------------------------------------------------------------------------------

_PROPERTIES = (
    f'"{NS}user" = {{ field = "who", datatype = "iri" }}, '
    f'"{NS}p" = {{ field = "p", datatype = "xsd:integer" }}'
)


def catalog_text(scenario: Scenario, folder: str) -> str:
    """Return the catalog of a scenario, with files in a folder."""
    parts = [f'[prefixes]\n"" = "{NS}"\n']
    for stream in scenario.streams:
        subject = "event/{id}" if stream.arrivals == "distinct" else "user/{user}"
        parts.append(
            f'[streams."{stream.iri}"]\nconnector = "lines"\n'
            f'options = {{ path = "{folder}/in/{stream.name}" }}\n'
        )
        if stream.arrivals != "all":
            parts.append(f'arrivals = "{stream.arrivals}"\n')
        if stream.lateness_ms:
            parts.append(f'lateness = "{stream.lateness_ms}ms"\n')
        if stream.idle_ms is not None:
            parts.append(f'idle = "{stream.idle_ms}ms"\n')
        if stream.strategy:
            parts.append(f'strategy = "{stream.strategy}"\n')
        if stream.side_outputs:
            parts.append(f'late = "{folder}/side/{stream.name}.late"\n')
            parts.append(f'dead_letters = "{folder}/side/{stream.name}.bad"\n')
        parts.append(
            f'[streams."{stream.iri}".mapping]\nsubject = "{NS}{subject}"\ntime = "t"\n'
            f"properties = {{ {_PROPERTIES} }}\n"
        )
    parts += [_service_text(spec, folder) for spec in scenario.services]
    return "".join(parts)


def _service_text(spec: ServiceSpec, folder: str) -> str:
    mapping = (
        f'mapping = {{ key = "{NS}user/{{id}}", properties = {{ "{NS}n" = '
        '{ field = "n", datatype = "xsd:integer" } } }\n'
    )
    feed = f'feed = {{ kind = "lines", path = "{folder}/{spec.name}.feed" }}\n'
    text = f'[services."{NS}{spec.name}"]\nremote = "{"push" if spec.is_push else "python"}"\n'
    text += mapping
    if spec.is_push:
        return text + feed + f"refresh = {{ items = {spec.items} }}\n"
    text += f'function = "tests.support.simulation.remote:{spec.name}"\n'
    if spec.is_minimal:
        return text + f"refresh = {{ items = {spec.items} }}\n"
    limits = ", ".join(
        f'"{count} {unit} per {round(seconds * 1000)}ms"' for count, unit, seconds in spec.limits
    )
    text += (
        f'block_size = {spec.block_size}\nconcurrency = {spec.concurrency}\ntimeout = "2s"\n'
        f"limits = [{limits}]\n"
    )
    if spec.capacity is not None:
        text += f"capacity = {spec.capacity}\n"
    if spec.has_feed:
        text += feed
    return text + (
        f'[services."{NS}{spec.name}".refresh]\npolicy = "{spec.policy}"\nn = 2\n'
        f"items = {spec.items}\nrequests = {spec.requests}\n"
        f'deadline = "{round(spec.deadline * 1000)}ms"\nstrict = {str(spec.strict).lower()}\n'
        + (f'ledger = "{folder}/ledger.sqlite"\n' if spec.strict else "")
        + f"bank = {{ items = {spec.bank[0]}, requests = {spec.bank[1]} }}\n"
    )


def query_text(query: QuerySpec, streams: Mapping[str, StreamSpec]) -> str:
    """Return a query's text."""
    unit = f"[ELEMENTS {query.width} STEP {query.slide}]"
    if not query.counts:
        unit = f"[RANGE {query.width}ms STEP {query.slide}ms]"
    distinct = streams[query.streams[0]].arrivals == "distinct"
    window = f"FROM NAMED WINDOW :w ON :{query.streams[0]} {unit}"
    pattern = "?e :user ?s ; :p ?p" if distinct else "?s :p ?p"
    service = f"SERVICE :{query.service} {{ ?s :n ?v }}" if query.service else ""
    shown = ("?e " if distinct else "") + "?s ?p" + (" ?v" if service else "")
    order = "DESC(?score)" if query.descending else "ASC(?score)"
    limit = f"LIMIT {query.k}" + (f" OFFSET {query.offset}" if query.offset else "")
    head = f"PREFIX : <{NS}>\n"
    if query.reads is not None:
        window = f"FROM NAMED WINDOW :w ON :{query.reads} {unit}"
        return head + f"SELECT ?row ?s {window} WHERE {{ WINDOW :w {{ ?row :s ?s }} }}"
    if query.output != "RSTREAM" or query.is_read:
        head += f"REGISTER {query.output} :{query.name} AS "
    if query.kind in ("top", "elements"):
        score = f"{query.weight} * ?p"
        if query.score == "norm":
            score = "?p + 10 * norm(?v, 0, 40)"
        elif service:
            score += " + ?v"
        return head + (
            f"SELECT {shown} ({score} AS ?score) {window} WHERE {{ WINDOW :w {{ {pattern} }} "
            f"{service} }} ORDER BY {order} {limit}"
        )
    if query.kind == "sums":
        score = f"{query.weight} * ?sum" + (" + ?v" if service else "")
        return head + (
            f"SELECT ?s ?count{' ?v' if service else ''} ({score} AS ?score) {window} "
            "WHERE { WINDOW :w { SELECT ?s (COUNT(*) AS ?count) (SUM(?p) AS ?sum) "
            f"{{ {pattern} }} GROUP BY ?s }} {service} }} ORDER BY {order} {limit}"
        )
    if query.kind == "whole":
        return head + f"SELECT {shown} {window} WHERE {{ WINDOW :w {{ {pattern} }} {service} }}"
    second = streams[query.streams[1]].arrivals == "distinct"
    other = "?f :user ?s ; :p ?q" if second else "?s :p ?q"
    return head + (
        f"SELECT ?s ?p ?q {window} FROM NAMED WINDOW :x ON :{query.streams[1]} {unit} "
        f"WHERE {{ WINDOW :w {{ {pattern} }} WINDOW :x {{ {other} }} }}"
    )
