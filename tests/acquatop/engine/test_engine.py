"""The engine's life: who waits for whom, what ends what.

In process, with a SPARQL server that counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from acquatop import DEFAULT_FUNCTIONS, Answer, Engine, Status, UserError, scoring_function
from acquatop.catalog.catalog import Catalog
from acquatop.engine import handle as registered_query
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.engine.observer import BatchSeen, Observer, Silent
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_settings import StreamSettings
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.reduce.records import Records
from acquatop.query.contract import Tick
from acquatop.runtime import Batch
from acquatop.windows import Windows
from connectors import ConnectorError
from examples.oxigraph import OxigraphServer
from replica.remotes.sparql import SparqlRemote
from tests.support.waiting import until
from tests.support.worlds import NS, Event, catalog_text, query_text, user_term

pytestmark = pytest.mark.server


class Taken(Silent):
    """Observer that notes the newest times that batches have brought."""

    def __init__(self) -> None:
        self.watermarks: list[int | None] = []

    def batch(self, seen: BatchSeen) -> None:
        self.watermarks.append(None if seen.watermark_ms is None else seen.watermark_ms + 1)


class World:
    """A folder with a stream, a server, and engines that end with the test."""

    def __init__(self, folder: Path, server: OxigraphServer) -> None:
        self.folder = folder
        self.server = server
        self.stream = folder / "events"
        self.engines: list[Engine] = []
        server.update(f"INSERT DATA {{ {user_term('ann')} <{NS}followers> 5 }}")

    def engine(
        self, *, until_end: bool, observer: Observer | None = None, **changes: object
    ) -> Engine:
        values = {
            "path": self.stream,
            "endpoint": self.server.query_url,
            "start": "start_ms = 0",
            **changes,
        }
        catalog = Catalog.parse(
            catalog_text(**values), file=self.folder / "catalog.toml", variables={}
        )
        self.engines.append(
            Engine(catalog, runtime="local", until_end=until_end, observer=observer)
        )
        return self.engines[-1]

    def write(self, *times: int) -> None:
        with self.stream.open("ab") as stream:
            stream.writelines(Event(time, "ann", 1).line() + b"\n" for time in times)


@pytest.fixture
def world(tmp_path: Path, server: OxigraphServer) -> Iterator[World]:
    world = World(tmp_path, server)
    yield world
    for engine in world.engines:
        engine.stop()


def test_queries_of_a_recording_may_be_read_one_after_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_query, "BACKLOG", 50)
    world.write(*range(1, 3 * 150))
    engine = world.engine(until_end=True)
    first, second = engine.register(query_text()), engine.register(query_text())
    one, two = list(first), list(second)
    assert len(one) > registered_query.BACKLOG
    assert [answer.canonical()["results"] for answer in one] == [
        answer.canonical()["results"] for answer in two
    ]


@pytest.mark.parametrize("optional", [False, True])
def test_functions_of_one_s_own_score_in_both_evaluations(world: World, optional: bool) -> None:
    world.write(1)
    text = query_text(score="halved(?followers) + <urn:tenfold>(?mentions)")
    service = "SERVICE :people { ?user :followers ?followers }"
    if optional:
        text = text.replace(service, f"OPTIONAL {{ {service} }}")
    functions = DEFAULT_FUNCTIONS.with_function(
        "Halved", scoring_function(lambda x: x / 2, directions=(1,))
    )
    functions = functions.with_function(
        "urn:tenfold", scoring_function(lambda x: 10 * x, directions=(1,))
    )
    engine = Engine(
        world.engine(until_end=True).catalog, runtime="local", until_end=True, functions=functions
    )
    world.engines.append(engine)
    (answer, *_) = engine.register(text)
    assert [row.score for row in answer.rows] == [12.5]


def test_no_query_of_a_group_is_called_exact_where_one_of_several_values_was_chosen(
    world: World,
) -> None:
    world.server.update(f"INSERT DATA {{ {user_term('ann')} <{NS}followers> 6 }}")
    world.write(1)
    engine = world.engine(until_end=True, service='solutions = "one"')
    queries = [engine.register(query_text(k=k), name=f"best {k}") for k in (1, 2)]
    for query in queries:
        (answer, *_) = query
        assert answer.to_json()["ambiguous"] == 1
        assert (answer.status, [row.score for row in answer.rows]) == (Status.CERTIFIED, [7.0])


@pytest.mark.parametrize("followers", ["?followers", "0 + ?followers"])
def test_a_filter_for_the_remote_keeps_the_base_that_iri_resolves_against(
    world: World, followers: str
) -> None:
    world.server.update(f"INSERT DATA {{ {user_term('ann')} <{NS}at> <{NS}a/home> , <urn:home> }}")
    world.write(1)
    asked = (
        'SERVICE :people { ?user :followers ?followers ; :at ?place } FILTER(?place = IRI("home"))'
    )
    text = query_text(score=f"?mentions + {followers}").replace(
        "SERVICE :people { ?user :followers ?followers }", asked
    )
    engine = world.engine(until_end=True)
    (answer, *_) = engine.register(f"BASE <{NS}a/> {text}")
    assert [row.score for row in answer.rows] == [6.0]
    assert answer.counts.ambiguous == 0
    (nothing, *_) = engine.register(text)
    assert nothing.rows == ()


def test_a_recording_can_be_asked_again_when_it_has_ended(world: World) -> None:
    world.write(1, 5, 9)
    engine = world.engine(until_end=True)
    first = [answer.canonical() for answer in engine.register(query_text())]
    again = [answer.canonical() for answer in engine.register(query_text())]
    assert again == first != []


def test_a_reader_who_has_gone_does_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_query, "BACKLOG", 5)
    world.write(1)
    engine = world.engine(until_end=False)
    gone, reader = engine.register(query_text()), engine.register(query_text())
    world.write(*range(20, 100, 10))
    assert next(iter(gone)).window >= 0
    last = 0
    for answer in reader:
        last = answer.closes_ms
        if last >= 80:
            break
    assert gone.missed > 0


def test_a_stopped_query_asks_the_remote_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    fetch = SparqlRemote.fetch
    monkeypatch.setattr(
        SparqlRemote, "fetch", lambda *arguments: asked.append(1) or fetch(*arguments)
    )
    world.write(*range(1, 3000))
    engine = world.engine(until_end=True)
    query = engine.register(query_text())
    assert len(list(query.answers(limit=2))) == 2
    query.stop()
    assert list(query) == []
    engine.stop()
    assert len(asked) < 900


def test_one_query_stops_and_the_others_go_on(world: World) -> None:
    world.write(1)
    engine = world.engine(until_end=False)
    first, second = engine.register(query_text()), engine.register(query_text())
    first.stop()
    world.write(20)
    assert next(iter(second)).closes_ms >= 9
    assert list(first) == []


def test_a_query_that_joins_a_running_stream_begins_with_a_window_that_is_wholly_its_own(
    world: World,
) -> None:
    engine = world.engine(until_end=False, items=9)
    world.write(1_000, 20_000)
    first = engine.register(query_text(width=9_000, slide=3_000))
    assert next(iter(first)).closes_ms == 9_000
    late = engine.register(query_text(width=9_000, slide=3_000))
    world.write(22_000, 25_000, 60_000)
    answer = next(iter(late))
    assert answer.opens_ms >= 20_000
    assert answer.status is Status.EXACT
    assert answer.rows


def test_a_query_that_comes_when_others_have_gone_knows_how_far_the_stream_is(
    world: World,
) -> None:
    taken = Taken()
    engine = world.engine(until_end=False, observer=taken, items=9)
    world.write(1_000, 20_000)
    first = engine.register(query_text(width=9_000, slide=3_000))
    assert next(iter(first)).closes_ms == 9_000
    first.stop()
    world.write(24_000)  # while no query reads the stream
    until(lambda: 24_000 in taken.watermarks)
    late = engine.register(query_text(width=9_000, slide=3_000))
    world.write(26_000, 60_000)
    answer = next(iter(late))
    assert answer.opens_ms >= 24_000
    assert answer.status is Status.EXACT


def test_queries_on_a_stream_share_the_wait_for_their_remotes(world: World) -> None:
    waits: list[float] = []

    class Waiting:
        names = ()

        def __init__(self, slide: int) -> None:
            self.slide_ms = slide

        def reducers(self, stream: str) -> Sequence[Records]:
            return [Records()]

        def windows(self, stream: str) -> Sequence[tuple[Windows, int | None]]:
            return ()

        def add(self, stream: str, parts: object, names: object) -> None:
            pass

        def advance(self, tick: Tick) -> Iterator[Answer]:
            waits.append(tick.longest_wait)
            return iter(())

    engine = world.engine(until_end=False)
    (stream,) = engine.catalog.streams.values()
    lines = pa.record_batch([pa.array([Event(1, "ann", 1).line()], pa.binary())], ["value"])
    for live in (True, False):
        operator = StreamOperator(stream, StreamSettings(lambda: 0.0, live=live))
        for slide in (300, 300, 900):
            slot = EvaluationSlot(str(slide), Waiting(slide))  # type: ignore[arg-type]
            slot.add(RegisteredQuery("q", [stream.iri], live=live, news=AnswerSignal()))
            operator.attach_resumed(slot)
        batch = Batch({"batch": 0}, [list(operator.job()([lines]))])
        assert list(operator.take(batch, 0.0)) == []
    assert waits[:3] == pytest.approx([0.05] * 3)
    assert waits[3:] == [math.inf] * 3


def test_what_a_source_refuses_is_raised_and_the_next_query_is_not_lost(world: World) -> None:
    engine = world.engine(until_end=True)
    with pytest.raises(ConnectorError, match="there is no file or folder"):
        list(engine.register(query_text()))
    world.write(1)
    assert list(engine.register(query_text()))


def test_mistakes_are_said_before_anything_is_started(world: World) -> None:
    with pytest.raises(UserError, match="spark or local"):
        Engine(Catalog({}, {}, {}), runtime="flink")
    engine = world.engine(until_end=True, endpoint="http://127.0.0.1:1/query")
    with pytest.raises(EnvironmentProblem, match="refused"):
        engine.register(query_text())


def test_a_service_with_nothing_to_offer_is_warned_about(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write(1)
    engine = world.engine(until_end=True)
    answers = list(engine.register(query_text().replace(":followers", ":folowers")))
    assert "has nothing that matches" in caplog.text
    assert answers[0].counts.unscored == 1
