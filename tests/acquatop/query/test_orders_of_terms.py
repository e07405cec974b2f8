"""Random queries that order first by terms of any kind: each answer as a SPARQL engine gives it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from acquatop import Status
from acquatop.query.topk import retained
from tests.support.markers import THOROUGH
from tests.support.queries.shaped import Judged, ShapedQuery, World, run

CITIES = ["Como", "como", "Barletta", "Barletto", "Barlett", "", "Über", "Como\n", "Como \\ x", "a"]
NUMBERS = [
    *(
        '"7"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"-2"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ),
    *(
        '"6.99"^^<http://www.w3.org/2001/XMLSchema#decimal>',
        '"7.0E0"^^<http://www.w3.org/2001/XMLSchema#double>',
    ),
    *(
        '"INF"^^<http://www.w3.org/2001/XMLSchema#double>',
        '"NaN"^^<http://www.w3.org/2001/XMLSchema#float>',
    ),
    *(
        '"-INF"^^<http://www.w3.org/2001/XMLSchema#float>',
        '"-0.5"^^<http://www.w3.org/2001/XMLSchema#float>',
    ),
]
TEXTS = ['"Como"', '"Como"@en', '"como"@it', '"Comoda"^^<urn:own>', "<urn:a>", "<urn:ab>", '"b"']
PRICES = ["0.1", "0.10000000000001", "0.100000000000001", "-3", "12345678901.5", "12345678901.25"]
INSTANTS = [
    *("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+02:00", "2026-01-31T12:00:00.0005Z"),
    *("1969-12-31T23:59:59.999Z", "-0044-03-15T00:00:00Z", "2026-01-31T12:00:00.001Z"),
]
DAYS = ["2026-01-31Z", "2026-02-01Z", "2025-12-31Z", "0999-01-01Z"]
DURATIONS = ["PT1H", "PT59M59.5S", "P1D", "-P2D", "PT0S", "-PT0.5S", "P10000D"]
LINKS = ["http://example.org/a", "http://example.org/b", "urn:c", "http://example.org/ab"]
ARRIVALS = st.sampled_from([None, None, "distinct", "latest"])
TIMED = ["RANGE 10ms STEP 4ms", "RANGE 6ms STEP 6ms", "RANGE 60ms STEP 20ms"]
WINDOWS = st.sampled_from([*TIMED, "ELEMENTS 6 STEP 2"])
SAID = {
    "city": CITIES, "price": PRICES, "at": INSTANTS, "day": DAYS, "took": DURATIONS, "link": LINKS
}  # fmt: skip


def posts(arrivals: str | None, *, any_: Sequence[str] = TEXTS) -> Any:
    """Return what a stream says; some records lack some properties."""
    ids = st.integers(0, 999) if arrivals == "distinct" else st.integers(0, 5)
    fields = {name: st.sampled_from([*several, None]) for name, several in SAID.items()}
    record = st.fixed_dictionaries(
        {
            **fields,
            "id": ids.map("p{}".format),
            "by": st.sampled_from("abcd"),
            "n": st.integers(-2, 5),
            "any": st.sampled_from(any_),
        }
    ).map(lambda each: {name: value for name, value in each.items() if value is not None})
    unique = (lambda each: each["id"]) if arrivals == "distinct" else None
    found = st.lists(record, min_size=1, max_size=25, unique_by=unique)
    return found.map(lambda some: [{"t": 1 + 2 * at, **each} for at, each in enumerate(some)])


PEOPLE = st.fixed_dictionaries({name: st.sampled_from(["Como", "Bari"]) for name in "abc"}).map(
    lambda homes: [{"user": name, "followers": 3, "home": home} for name, home in homes.items()]
)


def judge(world: World, *queries: ShapedQuery, **options: Any) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        judged = run(world, queries, Path(folder), **options)
    assert judged.problems == []
    return judged


OF_TERMS = (
    *(
        "?city",
        "LCASE(?city)",
        "?post",
        "SUBSTR(?city, 3)",
        "?by",
        "?at",
        "?day",
        "?price",
        "?took",
    ),
    *("?link", "?any", "STR(?link)", "IF(?n > 1, ?city, ?any)", "COALESCE(?link, ?city)", "?n > 2"),
    *("YEAR(?at)", "STRDT(?city, :own)", "STRLANG(?city, 'en')"),
)
MORE = ("DESC(?n)", "?city", "DESC(?post)", "STRLEN(?city)", "?by")


@st.composite
def ordered(draw: st.DrawFn, keys: Sequence[str] = OF_TERMS) -> ShapedQuery:
    term = draw(st.sampled_from(keys))
    names = ("city", "at", "day", "price", "took", "link", "any")
    used = [each for each in names if f"?{each}" in term]
    certain = draw(st.booleans()) or "?city" in term
    pattern = " ".join(
        f"?post :{each} ?{each} ." if certain else f"OPTIONAL {{ ?post :{each} ?{each} }}"
        for each in used
    )
    form = draw(st.sampled_from(["named", "plain", "BIND"]))
    shown = "?post ?n ?by " + " ".join(f"?{each}" for each in used)
    if form == "named" and not term.startswith("?"):
        shown += f" ({term} AS ?low)"
    inside = f"?post :n ?n ; :by ?by . {pattern}"
    if form == "BIND" and not term.startswith("?"):
        inside += f" BIND({term} AS ?made)"
    key = draw(st.sampled_from(["ASC({})", "DESC({})"])).format(
        "?made" if "?made" in inside else "?low" if "?low" in shown else term
    )
    more = draw(st.lists(st.sampled_from([m for m in MORE if "city" not in m or "city" in used])))
    return ShapedQuery(
        shown,
        f"WINDOW :w {{ {inside} }}" + draw(st.sampled_from(["", " FILTER(?n < 4)"])),
        (key, *more[:2]),
        k=draw(st.integers(1, 4)),
        offset=draw(st.sampled_from([0, 0, 2])),
        window=draw(WINDOWS),
        per=draw(st.sampled_from([(), (), ("by",), ("n",)])),
        ties=draw(st.sampled_from([False, False, True])),
        may_lack=re.fullmatch(r"\?\w+", term) is not None,
    )


@THOROUGH
@settings(max_examples=60)
@given(st.data(), ARRIVALS)
def test_terms_of_the_stream(data: st.DataObject, arrivals: str | None) -> None:
    world = World(data.draw(posts(arrivals)), arrivals=arrivals)
    judged = judge(world, *data.draw(st.lists(ordered(), min_size=1, max_size=3)))
    assert all(judged.incremental)
    assert set(judged.statuses) <= {Status.EXACT}


@settings(max_examples=30)
@given(st.data(), st.sampled_from([None, "distinct"]))
def test_what_others_outlive_is_dropped_and_never_missed(
    data: st.DataObject, arrivals: str | None
) -> None:
    world = World(data.draw(posts(arrivals)), arrivals=arrivals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retained, "THINNED_FROM", 2)
        judged = judge(world, *data.draw(st.lists(ordered(), min_size=1, max_size=3)))
    assert all(judged.incremental)


@settings(max_examples=15)
@given(st.data(), ARRIVALS)
def test_numbers_of_several_datatypes(data: st.DataObject, arrivals: str | None) -> None:
    world = World(data.draw(posts(arrivals, any_=NUMBERS)), arrivals=arrivals)
    judged = judge(world, data.draw(ordered(["?any"])))
    assert all(judged.incremental)
    assert set(judged.statuses) <= {Status.EXACT}


BESIDE = (
    "SERVICE :people { ?user :home ?home }",
    "SERVICE :people { ?user :home ?home ; :followers ?f } FILTER(?f > ?n)",
    "OPTIONAL { SERVICE :people { ?user :home ?home } }",
    "SERVICE :people { ?user :home ?home } BIND(UCASE(?home) AS ?made)",
)
OF_BOTH = (
    *("?city", "LCASE(?city)", "?home", "LCASE(?home)", "?user", "?post", "?price", "?made"),
    *("CONCAT(?city, ?home)", "COALESCE(?home, ?city)", "IF(?n > 1, ?home, ?city)"),
)


@st.composite
def joined(draw: st.DrawFn) -> ShapedQuery:
    beside = draw(st.sampled_from(BESIDE))
    term = draw(st.sampled_from([each for each in OF_BOTH if each != "?made"]))
    term = draw(st.sampled_from([term, "?made" if "?made" in beside else term]))
    # What a BIND computes is no result if that is an error.
    is_variable = re.fullmatch(r"\?\w+", term) is not None
    return ShapedQuery(
        "?post ?n ?user ?city ?home",
        f"WINDOW :w {{ ?post :n ?n ; :by ?user ; :city ?city ; :price ?price }} {beside}",
        (
            draw(st.sampled_from(["ASC({})", "DESC({})"])).format(term),
            *draw(st.lists(st.sampled_from(["?n", "DESC(?post)", "?home"]), max_size=2)),
        ),
        k=draw(st.integers(1, 4)),
        offset=draw(st.sampled_from([0, 0, 1])),
        window=draw(st.sampled_from(TIMED)),
        per=draw(st.sampled_from([(), (), ("city",), ("home",)])),
        may_lack=is_variable and term != "?made",
    )


@THOROUGH
@settings(max_examples=50)
@given(st.data(), ARRIVALS, st.sampled_from([1000, 1000, 2]))
def test_terms_beside_and_of_a_service(
    data: st.DataObject, arrivals: str | None, items: int
) -> None:
    world = World(data.draw(posts(arrivals)), data.draw(PEOPLE), arrivals, items)
    judged = judge(world, *data.draw(st.lists(joined(), min_size=1, max_size=3)))
    assert all(judged.incremental)
    assert items < 1000 or set(judged.statuses) <= {Status.EXACT}


@st.composite
def of_groups(draw: st.DrawFn) -> ShapedQuery:
    service = "SERVICE :people { ?by :home ?home }"
    names, beside = draw(
        st.sampled_from(
            [("?by", ""), ("?city ?by", ""), ("?home", service), ("?home ?by", service)]
        )
    )
    keys = [
        *(["?by", "DESC(STR(?by))"] if "?by" in names else []),
        *(["?home", "DESC(LCASE(?home))"] if "?home" in names else []),
        *(["?city"] if "?city" in names else []),
    ]
    return ShapedQuery(
        f"{names} (COUNT(*) AS ?a) (MAX(?n) AS ?m)",
        f"WINDOW :w {{ ?post :by ?by ; :n ?n ; :city ?city }} {beside}",
        (draw(st.sampled_from(keys)), *draw(st.sampled_from([(), ("DESC(?a)",), ("?m",)]))),
        k=draw(st.integers(1, 3)),
        window=draw(st.sampled_from(TIMED)),
        group=f"GROUP BY {names}",
    )


@THOROUGH
@settings(max_examples=30)
@given(st.data(), ARRIVALS)
def test_groups_in_the_order_of_their_keys(data: st.DataObject, arrivals: str | None) -> None:
    world = World(data.draw(posts(arrivals)), data.draw(PEOPLE), arrivals)
    judged = judge(world, *data.draw(st.lists(of_groups(), min_size=1, max_size=3)))
    assert all(judged.incremental)
    assert set(judged.statuses) <= {Status.EXACT}


def test_terms_order_on_spark_too(tmp_path: Path, spark: SparkSession) -> None:
    said = [
        {"t": 1 + 2 * at, "id": f"p{at % 8}", "by": "abcd"[at * at % 4], "n": at % 5 - 1,
         **{name: several[at % len(several)] for name, several in SAID.items()}}
        for at in range(14)
    ]  # fmt: skip
    people = [{"user": each, "followers": 3, "home": "xy"[each > "b"]} for each in "abc"]
    stream = "WINDOW :w { ?post :by ?by ; :n ?n ; :city ?city ; :at ?at ; :price ?price }"
    queries = [
        ShapedQuery("?post ?city ?at", f"{stream} {beside}", keys, window="RANGE 10ms STEP 4ms")
        for beside, keys in (
            ("", ("?city", "?post")),
            ("", ("DESC(?at)",)),
            ("", ("DESC(?price)", "?by")),
            ("SERVICE :people { ?by :home ?home }", ("LCASE(?home)", "?city")),
        )
    ]
    judged = run(World(said, people), queries, tmp_path, runtime="spark", spark=spark)
    assert judged.problems == []
    assert all(judged.incremental)
    assert set(judged.statuses) == {Status.EXACT}
