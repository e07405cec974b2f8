"""SPARQL engine in a process of its own: limits, deaths, and results like those in process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from acquatop.catalog.evaluation_limits import EvaluationLimits
from acquatop.errors import EvaluationError, EvaluationLost
from acquatop.query.sparql import quad_store
from acquatop.query.sparql.engine import Graphs, LocalEngine, SparqlEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.last_words import LastWords
from acquatop.query.sparql.quad_store import QuadStore
from acquatop.query.sparql.worker_engine import WorkerEngine
from rspql.parser import parse
from rspql.scoring import DEFAULT_FUNCTIONS, scoring_function
from tests.support.markers import THOROUGH
from tests.support.waiting import until

pytestmark = THOROUGH

WINDOW = "urn:w"
GRAPHS = Graphs((), (WINDOW,))
COUNT = "SELECT (COUNT(*) AS ?n) { GRAPH <urn:w> { ?s ?p ?o } }"
LINES = [f"<urn:s{at}> <urn:p> <urn:o{at % 7}> ." for at in range(300)]
ENDLESS = "SELECT (COUNT(*) AS ?n) { GRAPH <urn:w> { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } }"
DOUBLING = " ".join(f"BIND(CONCAT(?x{at}, ?x{at}) AS ?x{at + 1})" for at in range(61))
FEW = EvaluationLimits(memory_bytes=256 << 20, seconds=60.0)


@pytest.fixture
def opened() -> Iterator[Callable[..., QuadStore]]:
    """Return a function that opens a store whose queries run in a worker with some limits."""
    stores: list[QuadStore] = []

    def open_(limits: EvaluationLimits = FEW, **more: object) -> QuadStore:
        engine = partial(WorkerEngine, limits=limits)
        store = QuadStore(open_engine=engine, **more)  # type: ignore[arg-type]
        stores.append(store)
        store.change(WINDOW, [], LINES)
        return store

    yield open_
    for store in stores:
        store.close()


def count(engine: SparqlEngine) -> int:
    (row,) = Evaluator(parse(COUNT), engine, windows=[WINDOW]).evaluate({}, 0).rows
    return int(row["n"].value)


def worker_of(store: QuadStore) -> int:
    """Return the process number of a store's worker."""
    assert isinstance(store.engine, WorkerEngine)
    assert store.engine.process is not None
    return store.engine.process


def is_alive(process: int) -> bool:
    """Return True if any thread of a process runs: its files are open as long."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        threads = sum(1 for _ in Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return False
    return state != "Z" or threads > 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT * { GRAPH <urn:w> { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } } ORDER BY ?c ?f ?i",
            "memory",
        ),
        (f"SELECT ?x61 {{ BIND('xxxxxxxxxx' AS ?x0) {DOUBLING} }}", "memory"),
        (
            f"SELECT ?x {{ BIND('{'x' * 64}' AS ?a) BIND("
            + "REPLACE(" * 12
            + "?a"
            + ", 'x', 'xxxxxxxx')" * 12
            + " AS ?x) }",
            "memory",
        ),
        (f"SELECT {' '.join(f'({at} AS ?v{at})' for at in range(3000))} {{}}", "process"),
        (f"SELECT * {{ {' '.join(f'BIND({at} AS ?v{at})' for at in range(9000))} }}", "process"),
    ],
)
def test_a_query_that_would_end_the_process_costs_one_answer(
    opened: Callable[..., QuadStore], query: str, reason: str
) -> None:
    store = opened()
    with pytest.raises(EvaluationLost) as lost:
        store.engine.select(query, GRAPHS)
    assert lost.value.reason == reason, lost.value
    assert count(store.engine) == 300


def test_an_evaluation_that_takes_too_long_is_ended(opened: Callable[..., QuadStore]) -> None:
    store = opened(EvaluationLimits(seconds=0.5))
    with pytest.raises(EvaluationLost, match=r"took longer than the 0\.5 s") as lost:
        store.engine.select(ENDLESS, GRAPHS)
    assert lost.value.reason == "time"


def test_a_result_that_is_too_large_is_refused(opened: Callable[..., QuadStore]) -> None:
    store = opened(EvaluationLimits(result_bytes=10_000))
    with pytest.raises(EvaluationLost, match="more than the 10,000 that it may have") as lost:
        store.engine.select("SELECT * { GRAPH <urn:w> { ?s ?p ?o } }", GRAPHS)
    assert (lost.value.reason, count(store.engine)) == ("result", 300)


def test_content_that_is_too_large_costs_an_answer_and_no_more(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened(EvaluationLimits(memory_bytes=24 << 20))
    lines = [f"<urn:t{at}> <urn:p> <urn:o{at}> ." for at in range(300_000)]
    store.change(WINDOW, [], lines)
    for _ in range(3):
        with pytest.raises(EvaluationLost) as lost:
            count(store.engine)
        assert lost.value.reason == "memory", lost.value
    store.change(WINDOW, lines, [])
    assert count(store.engine) == 300


def test_a_description_that_is_too_large_is_refused(opened: Callable[..., QuadStore]) -> None:
    store = opened(EvaluationLimits(result_bytes=100))
    with pytest.raises(EvaluationLost, match="more than the 100 that it may have"):
        store.engine.describe(["<urn:s0>", "<urn:s1>", "<urn:s2>", "<urn:s3>", "<urn:s4>"])


def test_a_worker_that_is_killed_is_replaced_with_the_present_content(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened()
    assert count(store.engine) == 300
    worker = worker_of(store)
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_alive(worker))
    store.change(WINDOW, LINES[:100], [])
    assert count(store.engine) == 200


def test_results_are_those_of_an_engine_in_this_process(
    opened: Callable[..., QuadStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quad_store, "RENEWAL", 50)
    store, here = opened(), QuadStore()
    here.change(WINDOW, [], LINES)
    queries = [
        "SELECT * { GRAPH <urn:w> { ?s ?p ?o } } LIMIT 20 OFFSET 3",
        "SELECT ?o (COUNT(?s) AS ?n) (BNODE() AS ?b) { GRAPH <urn:w> { ?s ?p ?o } } GROUP BY ?o",
        "CONSTRUCT { ?o <urn:of> ?s } { GRAPH <urn:w> { ?s ?p ?o } } LIMIT 9",
        "DESCRIBE ?s { GRAPH <urn:w> { ?s ?p <urn:o3> } } LIMIT 4",
        "ASK { GRAPH <urn:w> { <urn:s0> ?p ?o } }",
        'SELECT ("\\t\\u0001é"@en AS ?text) (1e0/0 AS ?inf) (true AS ?yes) {}',
    ]
    pairs = [
        tuple(Evaluator(parse(text), each.engine, windows=[WINDOW]) for each in (store, here))
        for text in queries
    ]
    for at in range(0, 240, 60):
        for each in (store, here):
            each.change(WINDOW, LINES[at : at + 60], [])
        for one, other in pairs:
            assert one.evaluate({}, at) == other.evaluate({}, at)


def test_functions_of_one_s_own_are_sent_to_the_worker(opened: Callable[..., QuadStore]) -> None:
    factor = 3
    functions = DEFAULT_FUNCTIONS.with_function(
        "urn:times", scoring_function(lambda x: factor * x, (1,))
    )
    query = parse("SELECT (<urn:times>(14) AS ?x) {}")
    store = opened(functions=called_functions(query, functions))
    ((row,),) = (Evaluator(query, store.engine).evaluate({}, 0).rows,)
    assert row["x"].value == "42"


def test_a_function_that_cannot_be_sent_is_named(opened: Callable[..., QuadStore]) -> None:
    lock = threading.Lock()

    def locked(value: object) -> object:
        with lock:
            return value

    with pytest.raises(EvaluationError, match=r"<urn:locked> cannot be sent"):
        opened(functions={"urn:locked": locked})


def test_a_text_that_the_engine_refuses_is_an_error_of_the_query(
    opened: Callable[..., QuadStore],
) -> None:
    with pytest.raises(EvaluationError, match="custom function <urn:nobody>") as refused:
        opened().engine.select("SELECT (<urn:nobody>() AS ?x) {}", GRAPHS)
    assert not isinstance(refused.value, EvaluationLost)


def test_a_worker_that_is_killed_in_an_evaluation_costs_this_answer(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened()
    assert count(store.engine) == 300
    worker = worker_of(store)
    timer = threading.Timer(0.3, os.kill, (worker, signal.SIGKILL))
    timer.start()
    with pytest.raises(EvaluationLost, match="SIGKILL"):
        store.engine.select(ENDLESS, GRAPHS)
    assert count(store.engine) == 300


def test_a_worker_that_is_killed_before_an_evaluation_begins_costs_nothing(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened()
    assert count(store.engine) == 300
    worker = worker_of(store)
    os.kill(worker, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (worker, signal.SIGKILL)).start()
    assert count(store.engine) == 300
    assert worker_of(store) != worker


def test_the_limit_of_time_covers_what_a_worker_is_filled_with(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened(EvaluationLimits(seconds=5.0))
    count(store.engine)
    worker = worker_of(store)
    os.kill(worker, signal.SIGSTOP)
    store.change(WINDOW, [], [f"<urn:t{at}> <urn:p> <urn:o{at}> ." for at in range(100_000)])
    until(lambda: not is_alive(worker))


def test_what_functions_print_is_read_and_only_its_end_is_kept(
    opened: Callable[..., QuadStore],
) -> None:
    def talkative(value: object) -> object:
        os.write(1, b"x" * 10_000)
        return value

    before = _temporary_files()
    store = opened(functions={"urn:talkative": talkative})
    text = "SELECT (COUNT(<urn:talkative>(?s)) AS ?n) { GRAPH <urn:w> { ?s ?p ?o } }"
    assert b'"300"' in store.engine.select(text, GRAPHS)
    assert _temporary_files() == before


def test_the_end_of_what_was_printed_is_said() -> None:
    words = LastWords()
    with os.fdopen(words.writing, "wb", buffering=0) as printed:
        for _ in range(100):
            printed.write(b"x" * 1_000)
            words.read()
        printed.write(b"\nthe last\nwords")
    said = words.close()
    assert said.endswith("x the last words")
    assert len(said) == 300


def test_closing_ends_an_evaluation_under_way_and_the_worker(
    opened: Callable[..., QuadStore],
) -> None:
    store = opened()
    assert count(store.engine) == 300
    worker = worker_of(store)
    failures: list[BaseException] = []

    def evaluate() -> None:
        try:
            store.engine.select(ENDLESS, GRAPHS)
        except EvaluationError as error:
            failures.append(error)

    thread = threading.Thread(target=evaluate)
    thread.start()
    store.close()
    thread.join(30)
    assert not thread.is_alive()
    assert len(failures) == 1
    assert not is_alive(worker)
    with pytest.raises(EvaluationError, match="closed"):
        count(store.engine)


PARENT = """
import sys
from tests.acquatop.query.test_worker_engine import ENDLESS, GRAPHS, LINES, WINDOW
from acquatop.query.sparql.quad_store import QuadStore
from acquatop.query.sparql.worker_engine import WorkerEngine
store = QuadStore(open_engine=WorkerEngine)
store.change(WINDOW, [], LINES)
store.engine.select("ASK {}", GRAPHS)
print("ready", flush=True)
store.engine.select(ENDLESS, GRAPHS)
"""


def test_a_worker_ends_with_the_process_that_asked_even_in_an_evaluation() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    (worker,) = _children(parent.pid)
    until(lambda: _seconds_of(worker) > 0.5)
    parent.kill()
    parent.wait()
    until(lambda: not is_alive(worker))


def _temporary_files() -> set[str]:
    links = (str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_file())
    return {each for each in links if each.endswith("(deleted)")}


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(each) for each in listed.split()]


def _seconds_of(process: int) -> float:
    used = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def test_an_engine_in_this_process_is_renewed_from_its_content() -> None:
    store = QuadStore()
    store.change(WINDOW, [], LINES)
    store.engine.renew()
    assert isinstance(store.engine, LocalEngine)
    assert count(store.engine) == 300
