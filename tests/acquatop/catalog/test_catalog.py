from __future__ import annotations

from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.catalog.services import policies
from connectors.columns import ColumnsMapping
from connectors.mapping import IRI, Property, Template
from connectors.ntriples import NTriplesMapping
from replica.budget import Budget
from replica.rankers import DEFAULT_RANKERS
from tests.support.worlds import catalog_text

FILE = Path("plant/catalog.toml")
XSD = "http://www.w3.org/2001/XMLSchema#"


def load(text: str, **variables: str) -> Catalog:
    return Catalog.parse(text, file=FILE, variables=variables)


def problems(text: str, **variables: str) -> str:
    with pytest.raises(CatalogError) as caught:
        load(text, **variables)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_catalog_says_all_that_an_engine_needs() -> None:
    catalog = load(catalog_text())
    stream = catalog.streams["http://example.org/stream"]
    service = catalog.services["http://example.org/people"]
    assert (stream.connector, stream.arrivals, stream.lateness_ms, stream.start_ms) == (
        "lines",
        "latest",
        0,
        None,
    )
    assert stream.options == {"path": str(Path("plant/events").absolute())}
    assert service.refresh.budget == Budget(items=3, requests=3, seconds=1.0)
    assert (service.load, service.block_size, service.timeout_seconds) == (True, 100, 10.0)
    assert (service.solutions, catalog.graphs) == ("many", {})


def test_a_static_graph_is_a_file_beside_the_catalog_that_is_not_read_yet() -> None:
    graphs = '[prefixes]\n"" = "http://example.org/"\n[graphs.":g"]\npath = "people.TTL"\n'
    (graph,) = load(graphs + catalog_text()).graphs.values()
    assert (graph.iri, graph.path) == (
        "http://example.org/g",
        str(Path("plant/people.TTL").absolute()),
    )


def stream_text(mapping: str, connector: str = "lines", more: str = "") -> str:
    return (
        f'[prefixes]\n"" = "http://example.org/"\n[streams.":s"]\nconnector = "{connector}"\n'
        f"{more}\n"
        f'[streams.":s".options]\npath = "events"\n[streams.":s".mapping]\n{mapping}\n'
    )


NTRIPLES = (
    'format = "ntriples"\ntime = ":at"\n'
    'properties = { ":n" = { datatype = "xsd:integer" }, ":p" = { datatype = "iri" } }'
)
COLUMNS = (
    'subject = ":user/{u}"\ntime = "t"\nproperties = { ":n" = '
    '{ field = "n", datatype = "xsd:double" } }'
)


def test_statements_are_kept_together() -> None:
    (stream,) = load(stream_text(NTRIPLES)).streams.values()
    ns = "http://example.org/"
    properties = {ns + "n": Property(ns + "n", XSD + "integer"), ns + "p": Property(ns + "p", IRI)}
    assert stream.mapping == NTriplesMapping(ns + "at", properties, several=True)
    assert stream.options["together"] == "subject"
    (stream,) = load(
        stream_text(NTRIPLES.replace(":at", "urn:t:{ms}"), more='arrivals = "distinct"')
    ).streams.values()
    assert stream.mapping == NTriplesMapping(
        Template("urn:t:", "ms", ""), properties, several=False
    )
    assert stream.options["together"] == "subject and graph"


def test_only_the_columns_that_are_needed_are_read() -> None:
    (stream,) = load(stream_text(COLUMNS, "parquet")).streams.values()
    properties = {"http://example.org/n": Property("n", XSD + "double")}
    assert stream.mapping == ColumnsMapping(
        Template("http://example.org/user/", "u", ""), "t", properties, several=True
    )
    assert stream.options["columns"] == '{"n": "double", "u": "string", "t": "bigint"}'


def test_what_happens_when_nothing_comes_or_comes_late() -> None:
    (stream,) = load(stream_text(NTRIPLES)).streams.values()
    assert (stream.idle_ms, stream.late_path) == (None, None)
    (stream,) = load(
        stream_text(NTRIPLES, more='idle = "30s"\nlate = "late.jsonl"')
    ).streams.values()
    assert (stream.idle_ms, stream.late_path) == (30_000, str(Path("plant/late.jsonl").absolute()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            stream_text('format = "turtle"\n' + COLUMNS),
            "known are json, csv, columns, ntriples, rdf",
        ),
        (
            stream_text('format = "columns"\n' + COLUMNS),
            'the connector "lines" has no rows of the format "columns"',
        ),
        (stream_text(NTRIPLES, "parquet"), "hint: it reads columns"),
        (
            stream_text('time_as = "days"\n' + COLUMNS[COLUMNS.index("subject") :]),
            'unknown time_as "days"',
        ),
        (
            stream_text('format = "csv"\ndelimiter = ""\n' + COLUMNS[COLUMNS.index("subject") :]),
            "one ASCII character",
        ),
        (
            stream_text(COLUMNS.replace('"t"', '"@arrival"'), "parquet"),
            "does not say when its rows came",
        ),
        (stream_text(COLUMNS.replace("{u}", "{}"), "spark"), "does not say where its rows stand"),
        (stream_text(NTRIPLES, more='late = "x"\ndead_letters = "x"'), "have the same file"),
        (stream_text(NTRIPLES + '\nsubject = "urn:{x}"'), 'unknown key "subject"'),
        (stream_text(NTRIPLES.replace('"iri"', '"iri", field = "x"')), 'unknown key "field"'),
        (stream_text(NTRIPLES.replace('"iri"', '"uri"')), '"uri" is not an IRI'),
        (stream_text(NTRIPLES.replace(":at", "at")), '"at" is not an IRI'),
        (stream_text(NTRIPLES.replace(":at", "urn:{a}{b}")), "must have one {field}"),
        (stream_text(NTRIPLES.replace(":at", "urn: {a}")), "does not make IRIs"),
        (stream_text(NTRIPLES.replace('time = ":at"', "")), '"time" is missing'),
        (stream_text(NTRIPLES, more='idle = "0s"'), "not longer than nothing"),
        (
            stream_text(COLUMNS.replace("{u}", "{@topic.1}")),
            'from the connector "lines" have no topic for "@topic.1"',
        ),
        (stream_text(COLUMNS.replace('"n",', '"@topic",'), "mqtt"), '"@topic" is a text'),
        (stream_text(COLUMNS.replace('"t"', '"@topic.2"'), "mqtt"), '"@topic.2" is a text'),
    ],
)
def test_mistakes_in_mappings_are_named(text: str, said: str) -> None:
    assert said in problems(text)


def test_prefixes_and_variables_are_expanded() -> None:
    text = catalog_text(endpoint="http://${HOST}/query").replace(
        '[streams."http://example.org/stream"', '[streams.":stream"'
    )
    catalog = load('[prefixes]\n"" = "http://example.org/"\n' + text, HOST="127.0.0.1:7878")
    assert "http://example.org/stream" in catalog.streams
    assert (
        catalog.services["http://example.org/people"].source.address.url
        == "http://127.0.0.1:7878/query"
    )


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("n = 2", "m = 2", ':18: unknown key "m"'),
        ("items = 3", "itmes = 3", 'hint: did you mean "items"?'),
        ("items = 3", "", '"items" is missing'),
        ("items = 3", 'items = "3"', '"items" must be a whole number'),
        ("items = 3", "items = true", '"items" must be a whole number'),
        ("items = 3", "items = -1", '"items" must be at least 0'),
        ("items = 3", 'items = 3\ndeadline = "5 parsecs"', 'unknown unit "parsecs"'),
        ("items = 3", 'items = 3\npolicy = "AT-TMS"', 'unknown policy "AT-TMS"'),
        ("items = 3", 'items = 3\npolicy = "AT-TMS"', 'did you mean "AT-TSM"?'),
        ('connector = "lines"', 'connector = "mtqq"', "known are lines"),
        ('connector = "lines"', "", '"connector" is missing'),
        ('arrivals = "latest"', 'arrivals = "newest"', 'unknown arrivals "newest"'),
        ("user/{user}", "user/", "must have one {field}"),
        ("xsd:integer", "xsd:hour", 'the datatype "xsd:hour" is not supported'),
        (
            'endpoint = "http://127.0.0.1:9/query"',
            'endpoint = "ftp://x/"',
            "not an http or https address",
        ),
        (
            'endpoint = "http://127.0.0.1:9/query"',
            'endpoint = "${NOWHERE}"',
            "variable NOWHERE is not set",
        ),
        ('time = "t"', "", '"time" is missing'),
        ('path = "events"', 'pth = "events"', 'needs the option "path"'),
        (
            'path = "events"',
            'path = "events"\nmaxBytesPerBach = 3',
            'did you mean "maxBytesPerBatch"?',
        ),
        ('path = "events"', 'path = "events"\nmaxBytesPerBatch = "10MB"', "must be a whole number"),
        ('path = "events"', 'path = "events"\nmaxBytesPerBatch = -5', "must be at least 1"),
        ("http://example.org/user/{user}", "http://{user", "must have one {field}"),
        ("http://example.org/user/{user}", "http://a b/{user}", "does not make IRIs"),
        ('endpoint = "http://127.0.0.1:9/query"', 'endpoint = ""', "not an http or https address"),
        ("items = 3", "items = 3\ndeadline = 5", '"deadline" must be a text'),
        ('endpoint = "http', 'timeout = "0s"\nendpoint = "http', "not longer than nothing"),
        ("[services", "[servces", 'unknown key "servces"'),
        ('[services."http://example.org/people"]', "[services.people]", '"people" is not an IRI'),
        ('endpoint = "http', 'solutions = "several"\nendpoint = "http', "known are one, many"),
        (
            '[services."http://example.org/people"]',
            '[graphs."http://example.org/g"]\n{}',
            '"path" is missing',
        ),
        (
            '[services."http://example.org/people"]',
            '[graphs."http://x/g"]\npath = "a.csv"\n{}',
            "known are .ttl, .nt",
        ),
        (
            '[services."http://example.org/people"]',
            '[graphs."http://x/g"]\npath = "a.trig"\n{}',
            "with one graph",
        ),
        (
            '[services."http://example.org/people"]',
            '[graphs."http://x/g"]\nfile = "a.ttl"\n{}',
            'unknown key "file"',
        ),
        ("[streams", "[streams", ""),
    ],
)
def test_mistakes_are_named_with_place_and_remedy(written: str, instead: str, said: str) -> None:
    text = catalog_text()
    assert written in text
    if said:
        message = problems(text.replace(written, instead.replace("{}", written), 1))
        assert said in message
        assert message.startswith(str(FILE))
    else:
        load(text)


def test_the_line_of_a_mistake_is_that_of_the_key() -> None:
    text = catalog_text(policy="AT-TSM")
    line = text.splitlines().index('policy = "AT-TSM"') + 1
    assert problems(text.replace("AT-TSM", "AT-XXX")).startswith(f"{FILE}:{line}: ")


def test_all_mistakes_are_said_at_once() -> None:
    text = catalog_text().replace("items = 3", "itmes = 3").replace('"lines"', '"mqqt"')
    assert len([line for line in problems(text).splitlines() if not line.startswith("  hint")]) == 3


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r"missing\.toml: the catalog cannot be read: No such file"
    ):
        Catalog.load(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("a = \n")
    with pytest.raises(CatalogError, match=r"bad\.toml: this is not TOML: .*line 1"):
        Catalog.load(tmp_path / "bad.toml")


def test_every_ranker_can_be_named() -> None:
    assert {policy.partition("-")[2] for policy in policies()} == set(DEFAULT_RANKERS)
