"""The JSON Schema of catalogs, compared with what reads them."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest

from acquatop.app.cli import main
from acquatop.catalog.catalog import read_catalog
from acquatop.catalog.schema import catalog_schema
from acquatop.catalog.section import CatalogError, Document, Section
from acquatop.plugins import RANKERS
from tests.support.guides import snippets_of

ROOT = Path(__file__).parents[3]
Data = dict[str, Any]
EXTENDED = ("extend.md", "ranker.md", "strategy.md", "connector.md")
"""Pages whose catalogs name extensions that are not installed here."""


@cache
def validator() -> Any:
    return jsonschema_rs.Draft7Validator(catalog_schema())


def catalogs() -> Iterator[tuple[str, Data]]:
    """Yield the catalogs of the examples and of the how-to pages."""
    for file in sorted((ROOT / "examples").rglob("*.toml")):
        data = tomllib.loads(file.read_text("utf-8"))
        if "streams" in data:
            yield str(file.relative_to(ROOT)), data
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for snippet in snippets_of(page):
            if page.name in EXTENDED:
                continue
            if snippet.language == "toml" and snippet.file and "[streams" in snippet.text:
                yield f"{page.name}:{snippet.line}", tomllib.loads(snippet.text)


CATALOGS = dict(catalogs())


class AllVariables(dict[str, str]):
    """An environment in which every variable is set."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return "kafka://h:1" if name == "KAFKA" else "http://127.0.0.1:9/"


def is_read(data: Data) -> bool:
    """Say whether a catalog is read without a problem."""
    document = Document(ROOT / "examples" / "catalog.toml", "", AllVariables())
    read_catalog(Section(document, data, ()), RANKERS)
    try:
        document.raise_problems()
    except CatalogError:
        return False
    return True


@pytest.mark.parametrize("name", CATALOGS)
def test_the_catalogs_that_are_shown_fit(name: str) -> None:
    assert [error.message for error in validator().iter_errors(CATALOGS[name])] == []


def tables_of(data: Data) -> Iterator[Data]:
    yield data
    for each in data.values():
        if isinstance(each, dict):
            yield from tables_of(each)


VALUES = ["text", "kafka", "1s", 0, 3, 1.5, True, [], ["a"], [1], {}, {"a": 1}, "${NAME}"]
KEYS = """connector options mapping arrivals lateness idle keys remote endpoint auth feed kind path
topic url format time properties field value datatype language type token user password refresh
items n policy target bank limits load method driver query table ids key load time_as delimiter
columns syntax strict ledger deadline strategy load master conf call directions range""".split()


def changed(data: Data, random: Random) -> Data:
    """Return a catalog with a key removed, added, renamed, or with another value."""
    data = copy.deepcopy(data)
    table = random.choice(list(tables_of(data)))
    key = random.choice([*table, random.choice(KEYS)])
    match random.randrange(4):
        case 0:
            table.pop(key, None)
        case 1:
            table[random.choice(KEYS)] = random.choice(VALUES)
        case 2 if key in table:
            table[f"{key}x"] = table.pop(key)
        case _:
            others = [
                each[key] for other in CATALOGS.values() for each in tables_of(other) if key in each
            ]
            table[key] = copy.deepcopy(random.choice([*others, random.choice(VALUES)]))
    return data


def test_nothing_is_marked_that_is_read() -> None:
    random, marked, wrong = Random(5), 0, 0
    for _ in range(300):
        data = random.choice(list(CATALOGS.values()))
        for _ in range(random.randrange(1, 3)):
            data = changed(data, random)
        if is_read(data):
            errors = [error.message for error in validator().iter_errors(data)]
            assert errors == [], data
        else:
            wrong += 1
            marked += not validator().is_valid(data)
    # What cannot be said in a schema are relations between values, and what stands in texts.
    assert marked > 0.6 * wrong, (marked, wrong)


STREAM = {
    "connector": "lines",
    "options": {"path": "x"},
    "mapping": {"subject": "urn:{a}", "time": "t", "properties": {}},
}
SERVICE = {"endpoint": "http://h/", "refresh": {"items": 3}}


@pytest.mark.parametrize(
    ("stream", "service", "place"),
    [
        ({"conector": "lines"}, {}, ""),
        ({"connector": "linse"}, {}, "connector"),
        ({"lateness": 5}, {}, "lateness"),
        ({"options": {}}, {}, "options"),
        ({"options": {"path": "x", "topics": ["a"]}}, {}, "options"),
        ({"connector": "mqtt"}, {}, "options"),
        (
            {"mapping": {**STREAM["mapping"], "format": "json", "delimiter": ";"}},
            {},
            "mapping/delimiter",
        ),
        ({"mapping": {**STREAM["mapping"], "format": "yaml"}}, {}, "mapping/format"),
        ({}, {"remote": "sql"}, "endpoint"),
        ({}, {"remote": "push"}, ""),
        ({}, {"refresh": {}}, "refresh"),
        ({}, {"refresh": {"items": -1}}, "refresh/items"),
        ({}, {"refresh": {"items": 1, "policy": "WSJ-LUR"}}, "refresh/policy"),
        ({}, {"auth": {"type": "bearer", "token": "plain"}}, "auth/token"),
        ({}, {"auth": {"type": "basic", "token": "${T}"}}, "auth"),
    ],
)
def test_mistakes_are_marked_at_their_place(stream: Data, service: Data, place: str) -> None:
    part = "streams" if stream else "services"
    data = {
        "streams": {"urn:s": {**STREAM, **stream}},
        "services": {"urn:r": {**SERVICE, **service}},
    }
    assert not is_read(data)
    places = {
        "/".join(map(str, error.instance_path[2:]))
        for error in validator().iter_errors(data)
        if error.instance_path[:1] == [part]
    }
    assert place in places, places


def test_every_key_of_a_catalog_is_documented() -> None:
    text = (ROOT / "docs" / "catalog.md").read_text("utf-8")
    keys = set(re.findall(r'"(\w+)": \{', json.dumps(own_keys(catalog_schema()))))
    assert sorted(key for key in keys if f"`{key}`" not in text and f"{key} =" not in text) == []


def own_keys(schema: Data) -> Data:
    """Return the properties of a schema, without those of connectors."""
    properties = {
        key: own_keys(each)
        for key, each in schema.get("properties", {}).items()
        if isinstance(each, dict) and key != "options"
    }
    more = schema.get("additionalProperties")
    return {**properties, **(own_keys(more) if isinstance(more, dict) else {})}


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(catalog_schema()))
