"""The engine with queries that are evaluated window by window:
several streams, joins with many, ends and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acquatop import Answer, Engine, Status
from acquatop.errors import EvaluationError, UserError
from acquatop.query.sparql.evaluation import SparqlEvaluation
from examples.oxigraph import OxigraphServer
from replica.remotes.sparql import SparqlRemote
from tests.support.windowed import PREFIX, Record, catalog
from tests.support.worlds import NS

pytestmark = pytest.mark.server

PAIRS = """SELECT ?s ?t ?p
FROM NAMED WINDOW :v ON :a [RANGE 10s] FROM NAMED WINDOW :w ON :b [RANGE 5s STEP 5s]
WHERE { WINDOW :v { ?s :p ?p } WINDOW :w { ?t :p ?p } }"""
FRIENDS = """SELECT ?s ?friend ?name FROM NAMED WINDOW :v ON :a [RANGE 10s STEP 5s]
WHERE { WINDOW :v { ?s :p ?p }
        SERVICE :people { ?s :friend ?friend FILTER(?friend != :nobody)
                          OPTIONAL { ?friend :name ?name } } }"""


class World:
    """A folder with two streams, a server, and engines that end with the test."""

    def __init__(self, folder: Path, server: OxigraphServer) -> None:
        self.folder = folder
        self.server = server
        self.engines: list[Engine] = []
        self.write("a")
        self.write("b")

    def engine(self, *, until_end: bool = True, **changes: object) -> Engine:
        values = {
            "folder": self.folder,
            "endpoint": self.server.query_url,
            "start": "start_ms = 0",
            **changes,
        }
        self.engines.append(Engine(catalog(**values), runtime="local", until_end=until_end))
        return self.engines[-1]

    def write(self, stream: str, *records: Record) -> None:
        with (self.folder / stream).open("ab") as file:
            file.writelines(record.line() + b"\n" for record in records)


@pytest.fixture
def world(tmp_path: Path, server: OxigraphServer) -> Iterator[World]:
    world = World(tmp_path, server)
    yield world
    for engine in world.engines:
        engine.stop()


def shown(answer: Answer) -> list[tuple[str, ...]]:
    return [
        tuple(str(term).removeprefix(NS) for term in row.bindings.values()) for row in answer.rows
    ]


def test_a_query_over_two_recordings_ends_with_the_last_of_them(world: World) -> None:
    world.write("a", Record(1_000, "k", 1), Record(8_000, "l", 2), Record(12_000, "m", 2))
    world.write("b", Record(2_000, "x", 1), Record(9_000, "y", 2), Record(11_000, "z", 2))
    query = world.engine().register(PREFIX + PAIRS)
    answers = list(query)
    assert [(answer.closes_ms, shown(answer)) for answer in answers] == [
        (5_000, []),
        (10_000, [("l", "y", "2")]),
        (15_000, [("l", "z", "2")]),
        (20_000, []),
    ]
    assert {answer.status for answer in answers} == {Status.EXACT}
    assert query.stopped


def test_a_query_over_two_live_streams_waits_for_the_one_that_lags(world: World) -> None:
    query = world.engine(until_end=False).register(PREFIX + PAIRS)
    world.write("a", Record(1_000, "k", 1), Record(30_000, "l", 2))
    world.write("b", Record(7_000, "x", 1), Record(14_000, "y", 2))
    answers = list(query.answers(limit=1))
    assert [(answer.closes_ms, shown(answer)) for answer in answers] == [
        (10_000, [("k", "x", "1")])
    ]
    world.write("b", Record(15_001, "y", 2))
    assert [answer.closes_ms for answer in query.answers(limit=1)] == [15_000]


def test_what_ends_one_stream_early_ends_the_query(world: World) -> None:
    world.write("a", Record(1_000, "k", 1), Record(30_000, "l", 2))
    world.write("b", Record(7_000, "x", 1), Record(30_000, "y", 2))
    engine = world.engine(until_end=False)
    both, other = engine.register(PREFIX + PAIRS), engine.register(PREFIX + FRIENDS)
    next(iter(both))
    world.write("a", Record(60_000, "l", 2))
    next(iter(other))
    (world.folder / "b").write_bytes(b"")
    with pytest.raises(Exception, match="has shrunk"):
        list(both)
    assert not other.stopped


def test_an_error_in_one_query_leaves_the_others_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = SparqlEvaluation.advance

    def fail(query: SparqlEvaluation, *arguments: object) -> Iterator[Answer]:
        if query.name == "broken":
            raise EvaluationError("no luck")
        return advance(query, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SparqlEvaluation, "advance", fail)
    world.write("a", Record(1_000, "k", 1))
    engine = world.engine(until_end=False)
    broken, other = (engine.register(PREFIX + FRIENDS, name=name) for name in ("broken", "other"))
    world.write("a", Record(30_000, "l", 2))
    with pytest.raises(EvaluationError, match="no luck"):
        list(broken)
    assert next(iter(other)).closes_ms >= 10_000


def test_all_solutions_of_the_remote_join_and_each_evaluation_asks_again(world: World) -> None:
    world.server.update(
        f'PREFIX : <{NS}> INSERT DATA {{ :k :friend :m , :n , :nobody . :n :name "N" , "Enn" . '
        f":l :friend :n }}"
    )
    world.write("a", Record(1_000, "k", 1))
    query = world.engine(until_end=False, start="").register(PREFIX + FRIENDS)
    world.write("a", Record(10_000, "x", 1), Record(10_001, "x", 1))
    first, second = query.answers(limit=2)
    assert [answer.closes_ms for answer in (first, second)] == [5_000, 10_000]
    assert shown(first) == [("k", "m"), ("k", "n", "Enn"), ("k", "n", "N")]
    assert (first.status, [row.refreshed for row in first.rows]) == (Status.EXACT, [True] * 3)
    world.server.update(
        f"PREFIX : <{NS}> DELETE DATA {{ :k :friend :n }} ; INSERT DATA {{ :x :friend :k }}"
    )
    world.write("a", Record(15_000, "x", 1), Record(15_001, "x", 1))
    (third,) = query.answers(limit=1)
    assert (shown(third), third.status) == ([("x", "k")], Status.EXACT)
    assert third.spending.items == 1


def test_rows_with_a_remote_s_blank_nodes_are_not_lost(world: World) -> None:
    world.server.update(
        f'PREFIX : <{NS}> INSERT DATA {{ :k :addr [ :city "c1" ] . :l :addr [ :city "c2" ] }}'
    )
    world.write("a", Record(1_000, "k", 1), Record(2_000, "l", 1))
    text = """SELECT ?s ?a ?c FROM NAMED WINDOW :v ON :a [RANGE 10s]
              WHERE { WINDOW :v { ?s :p ?p } SERVICE :people { ?s :addr ?a . ?a :city ?c } }"""
    (answer,) = world.engine().register(PREFIX + text)
    assert [(name, city) for name, _, city in shown(answer)] == [("k", "c1"), ("l", "c2")]
    assert {
        term["type"] for row in answer.to_json()["results"] for term in [row["bindings"]["a"]]
    } == {"bnode"}
    assert answer.status is Status.EXACT


ELSEWHERE = "http://example.com/a/b"


def test_iri_resolves_against_the_query_s_base_on_every_road(world: World) -> None:
    world.server.update(
        f"PREFIX : <{NS}> INSERT DATA {{ <http://example.com/a/x> :friend :m , "
        f"<http://example.com/n> , :o }}"
    )
    world.write("a", Record(1_000, "k", 1, r="x"))
    # The remote is asked for keys that IRI makes, and compares with IRIs that it makes itself.
    text = f"""BASE <http://example.com/> BASE <a/b> PREFIX : <{NS}>
        SELECT ?key ?f (IRI("iri") AS ?i) (URI(CONCAT("../", ?r)) AS ?u) (IRI(STR(<#it>)) AS ?same)
        FROM NAMED WINDOW :v ON :a [RANGE 10s]
        WHERE {{ WINDOW :v {{ ?s :r ?r }} BIND(IRI(?r) AS ?key)
                 SERVICE :people {{ ?key :friend ?f FILTER(?f = IRI("../n")) }} }}"""
    (answer,) = world.engine(load="load = false").register(text)
    assert [[str(term) for term in row.bindings.values()] for row in answer.rows] == [
        [f"http://example.com/{each}" for each in ("a/x", "n", "a/iri", "x", "a/b#it")]
    ]
    (described,) = world.engine(load="load = true").register(
        text.replace("SELECT ?key ?f", "SELECT DISTINCT ?f ?key")
    )
    assert [str(row.bindings["f"]) for row in described.rows] == ["http://example.com/n"]
    template = text[text.index("FROM") :]
    (made,) = world.engine().register(
        f"BASE <{ELSEWHERE}> PREFIX : <{NS}> CONSTRUCT {{ ?f :of ?made }} "
        + template.replace(
            "BIND(IRI(?r) AS ?key)", 'BIND(IRI(?r) AS ?key) BIND(IRI("?q") AS ?made)'
        )
    )
    assert made.triples == (f"<http://example.com/n> <{NS}of> <{ELSEWHERE}?q> .",)
    (without,) = world.engine().register(
        f"PREFIX : <{NS}> SELECT (IRI(?r) AS ?i) (IRI(STR(:x)) AS ?j) FROM NAMED "
        f"WINDOW :v ON :a [RANGE 10s] "
        "WHERE { WINDOW :v { ?s :r ?r } }"
    )
    assert [{name: str(term) for name, term in row.bindings.items()} for row in without.rows] == [
        {"j": f"{NS}x"}
    ]


def test_two_parts_of_a_query_share_the_budget_of_their_service(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = SparqlRemote.fetch

    def counted(remote: SparqlRemote, keys: list[str], timeout: float) -> object:
        asked.extend(keys)
        return fetch(remote, keys, timeout)

    monkeypatch.setattr(SparqlRemote, "fetch", counted)
    world.server.update(
        f"PREFIX : <{NS}> INSERT DATA {{ :k :friend :l ; :name 'K' . :l :friend :k ; :name 'L' }}"
    )
    world.write("a", Record(1_000, "k", 1), Record(2_000, "l", 2))
    text = """SELECT ?s ?f ?n FROM NAMED WINDOW :v ON :a [RANGE 20s STEP 5s]
              WHERE { WINDOW :v { ?s :p ?p }
                      SERVICE :people { ?s :friend ?f } SERVICE :people { ?s :name ?n } }"""
    answers = list(
        world.engine(start="", items=2, requests=1, load="load = false").register(PREFIX + text)
    )
    assert [answer.spending.items for answer in answers] == [2, 2, 2, 2]
    assert len(asked) == 8
    assert [answer.status for answer in answers] == [Status.APPROXIMATE, *[Status.CERTIFIED] * 3]
    assert shown(answers[1]) == [("k", "l", "K"), ("l", "k", "L")]
    assert answers[0].budget.items == 2


def test_what_is_wrong_with_a_static_graph_is_said_at_registration(world: World) -> None:
    (world.folder / "static.nt").write_text("<urn:a> <urn:b> <urn:c> .\n<urn:a> .\n")
    engine = world.engine(graphs=f'[graphs."{NS}static"]\npath = "{world.folder}/static.nt"')
    text = (
        "SELECT ?s FROM :static FROM NAMED WINDOW :v ON :a [RANGE 10s] WHERE { WINDOW :v "
        "{ ?s :p ?p } ?s ?x ?y }"
    )
    with pytest.raises(
        UserError, match=r"static\.nt:2: the graph <http://example\.org/static> cannot be read"
    ):
        engine.register(PREFIX + text)
