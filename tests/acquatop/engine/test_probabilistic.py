"""A share of the answers that may miss a result, as the catalog accepts; the guard keeps to it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from acquatop import Answer, Engine
from acquatop.answer.notebook import to_arrow
from acquatop.app.cli import print_answers
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.plan.check import check_query, structure_of
from acquatop.topk.papers.sliding.hybrid import Hybrid, guarded
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.strategies import OWN, Family
from rspql.explain import explain, render

N, K, ERROR = 40, 2, 0.05
QUERY = f"""PREFIX : <http://example.org/>
REGISTER QUERY :best AS
SELECT ?e ?v FROM NAMED WINDOW :w ON :s [ELEMENTS {N} STEP 1]
WHERE {{ WINDOW :w {{ ?e :v ?v }} }} ORDER BY DESC(?v) LIMIT {K}"""


def catalog(folder: Path, more: str) -> Catalog:
    text = f"""
        [prefixes]
        "" = "http://example.org/"
        [streams.":s"]
        connector = "lines"
        arrivals = "distinct"
        {more}
        options = {{ path = "{folder}/events", maxBytesPerBatch = 4000 }}
        [streams.":s".mapping]
        subject = "http://example.org/e/{{id}}"
        time = "t"
        properties = {{ ":v" = {{ field = "v", datatype = "xsd:integer" }} }}
    """
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def falling(count: int) -> list[bytes]:
    """Return events that are worse and worse, but for some: PA loses what comes then."""
    random = Random(3)
    values = [2 * count - at + random.choice([0, 0, 30]) for at in range(count)]
    lines = ({"t": at + 1, "id": at, "v": value} for at, value in enumerate(values))
    return [json.dumps(line).encode() + b"\n" for line in lines]


def answered(found: Catalog, *texts: str, **more: Any) -> list[Answer]:
    with Engine(found, runtime="local", until_end=True, autostart=False, **more) as engine:
        queries = [engine.register(text) for text in texts]
        engine.start()
        return list(queries[-1])


ACCEPTED = f"approximate = {{ error = {ERROR} }}"


def shown(answers: list[Answer]) -> list[dict[str, object]]:
    return [answer.canonical() for answer in answers]


def test_a_share_of_the_answers_says_that_a_result_is_missing_and_the_others_are_right(
    tmp_path: Path,
) -> None:
    (tmp_path / "events").write_bytes(b"".join(falling(400)))
    right = answered(catalog(tmp_path, ""), QUERY)
    found = answered(catalog(tmp_path, ACCEPTED), QUERY)
    statuses = Counter(str(answer.status) for answer in found)
    assert 1 <= statuses["probabilistic"] <= ERROR * len(found)
    assert statuses["exact"] == len(found) - statuses["probabilistic"]
    for this, that in zip(found, right, strict=True):
        if this.status == "exact":
            assert this.canonical() == that.canonical()
            continue
        missing = {row.score for row in that.rows} - {row.score for row in this.rows}
        assert this.bound is not None
        assert all(score is not None and score <= this.bound for score in missing)
        assert "in at most 0.05 of the answers" in str(this.reason)
        assert this.to_json()["status"] == "probabilistic"
        assert "probabilistic" in this._repr_html_()
        assert to_arrow([this])["status"].to_pylist() == ["probabilistic"] * len(this.rows)
        with (console := print_answers.output_console()).capture() as said:
            console.print(print_answers.render(this))
        assert "probabilistic" in said.get()


def test_queries_that_read_such_answers_are_worth_no_more(tmp_path: Path) -> None:
    (tmp_path / "events").write_bytes(b"".join(falling(400)))
    reader = """PREFIX : <http://example.org/>
        SELECT ?e (SUM(?v) AS ?sum) FROM NAMED WINDOW :w ON :best [RANGE 20ms STEP 20ms]
        WHERE { WINDOW :w { ?a :e ?e ; :v ?v } } GROUP BY ?e ORDER BY DESC(?sum) LIMIT 2"""
    made = QUERY.replace("SELECT ?e ?v", "CONSTRUCT ISTREAM { [] :e ?e ; :v ?v }")
    found = answered(catalog(tmp_path, ACCEPTED), made, reader)
    said = {str(each.reason) for each in found if each.status == "probabilistic"}
    assert said
    assert all("is probabilistic: by chance a result is missing" in each for each in said)


def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    events = falling(300)
    (tmp_path / "events").write_bytes(b"".join(events))
    right = shown(answered(catalog(tmp_path, ACCEPTED), QUERY))
    (tmp_path / "events").write_bytes(b"".join(events[:150]))
    found, state = catalog(tmp_path, ACCEPTED), tmp_path / "state"
    said = shown(answered(found, QUERY, state=state))
    (tmp_path / "events").write_bytes(b"".join(events))
    rest = shown(answered(found, QUERY, state=state))
    assert said == right[:150]
    # The last answers before the end may be given again.
    assert rest == right[-len(rest) :]
    assert len(rest) >= 150
    assert {"probabilistic"} <= {each["status"] for each in rest}


def test_an_explanation_says_what_is_accepted_and_a_hint_overrides_it(tmp_path: Path) -> None:
    named = [name for name, each in OWN.items() if each.family is Family.ELEMENTS]
    hinted = [(f'{ACCEPTED}\nstrategy = "{name}"', name) for name in named]
    for more, name in ((ACCEPTED, "PA"), *hinted):
        found = catalog(tmp_path, more)
        analysis = check_query(QUERY, catalog=found)
        structure = structure_of(analysis, found)
        assert structure is not None
        said = render(explain(analysis, structure=structure))
        assert f"structure: {name}, because" in said
        assert ("exact, but for up to 0.05 of the answers" in said) == (name == "PA")
    with pytest.raises(CatalogError, match='"error" must be between 0 and 1'):
        catalog(tmp_path, "approximate = { error = 1 }")
    with pytest.raises(CatalogError, match="needs a stream whose arrivals are distinct"):
        Catalog.parse(
            '[streams."urn:s"]\nconnector = "lines"\noptions = { path = "e" }\n'
            "approximate = { error = 0.1 }\n"
            '[streams."urn:s".mapping]\nsubject = "urn:{id}"\ntime = "t"\n'
            'properties = { "urn:v" = { field = "v" } }\n',
            file=tmp_path / "catalog.toml",
            variables={},
        )


# The structure over long streams --------------------------------------------------------------


STREAMS = {
    "in random order": lambda random, size: random.random(size),
    "falling": lambda random, size: -np.arange(size) + 40 * random.random(size),
    "of days": lambda random, size: np.sin(np.arange(size) / 900) + 0.1 * random.random(size),
    "in steps": lambda random, size: (
        np.repeat(random.random(size // 500), 500) + 1e-3 * random.random(size)
    ),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("step", [1, 7])
def test_the_measured_error_stays_below_the_accepted_one(stream: str, step: int) -> None:
    n, k, error, size = 500, 5, 1e-2, 30_000
    merits = STREAMS[stream](np.random.default_rng(5), size)
    held, exact = guarded(k, n, error, step), BlockSkyline(k, n)
    best: dict[int, float] = {}
    wrong, doubted = 0, set()
    for start in range(0, size, 1_000):
        changes = held.add(merits[start : start + 1_000])
        doubted |= {at for at, _ in held.take_doubts()}
        at = 0
        for position in range(start, start + 1_000):
            exact.add(merits[position : position + 1])
            while at < len(changes) and changes.after[at] <= position:
                best.pop(int(changes.left[at]), None)
                if changes.entered[at] >= 0:
                    best[int(changes.entered[at])] = float(changes.merits[at])
                at += 1
            if (position + 1) % step == 0:
                is_right = set(best) == set(exact.top().positions.tolist())
                assert is_right or position in doubted
                wrong += not is_right
    assert wrong == held.uncertain == len(doubted)
    assert wrong <= error * (size // step)


@pytest.mark.parametrize("at", [1, 700, 2_900])
def test_a_copy_goes_on_as_the_structure_does(at: int) -> None:
    merits = STREAMS["in steps"](np.random.default_rng(5), 3_000)
    held = guarded(3, 100, 0.02)
    held.add(merits[:at])
    copy: Hybrid = guarded(3, 100, 0.02)
    copy.resume(held.snapshot())
    held._check()
    copy._check()
    for start in range(at, 3_000, 50):
        these, those = (each.add(merits[start : start + 50]) for each in (held, copy))
        assert [*map(list, zip(these.after, these.entered, these.left, strict=True))] == [
            *map(list, zip(those.after, those.entered, those.left, strict=True))
        ]
        assert held.take_doubts() == copy.take_doubts()
        assert held.top().positions.tolist() == copy.top().positions.tolist()
