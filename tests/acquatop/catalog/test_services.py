"""Services of a catalog: all kinds of remotes, budgets, credentials, and error messages."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog, CatalogError, Service
from acquatop.catalog.remotes import (
    FeedSource,
    PushSource,
    PythonSource,
    RestSource,
    SparqlSource,
    SqlSource,
    TableSource,
)
from replica.budget import NOTHING, Budget
from replica.http.auth import BasicAuth, BearerAuth, Secret
from replica.remotes.records import Field
from replica.spending.limit import Limit
from tests.support.worlds import NS

FILE = Path("plant/catalog.toml")
REFRESH = '[services.":people".refresh]\nitems = 3\n'
MAPPING = """[services.":people".mapping]
key = "http://example.org/user/{id}"
[services.":people".mapping.properties]
":followers" = { field = "metrics.followers", datatype = "xsd:integer" }
"""
SPARQL = 'endpoint = "http://127.0.0.1:9/query"\n'
SQL = 'remote = "sql"\ndriver = "psycopg"\nconnection = "${PG}"\n'
REST = 'remote = "rest"\nendpoint = "https://127.0.0.1:9/users?ids={keys}"\nitems = "data"\n'


def load(keys: str, *tables: str, **variables: str) -> Service:
    text = "\n".join(
        ['[prefixes]\n"" = "http://example.org/"\n[services.":people"]', keys, *tables]
    )
    return Catalog.parse(text, file=FILE, variables=variables).services[NS + "people"]


def problems(keys: str, *tables: str, **variables: str) -> str:
    with pytest.raises(CatalogError) as caught:
        load(keys, *tables, **variables)
    return str(caught.value)


def test_an_unset_variable_is_one_problem_whatever_follows_from_it() -> None:
    lacking = 'endpoint = "${HOST}${PATH}"'
    found = problems(lacking, REFRESH).splitlines()
    assert [re.sub(r"^.*?: | in \[.*$", "", each) for each in found] == [
        "the environment variable HOST is not set",
        "the environment variable PATH is not set",
    ]
    assert "not an http or https address" in problems(lacking, REFRESH, HOST="ftp://x", PATH="/q")


def test_a_sparql_service_needs_an_address_and_a_budget_only() -> None:
    service = load(SPARQL, REFRESH)
    assert isinstance(service.source, SparqlSource)
    assert (service.source.address.url, service.source.method) == (
        "http://127.0.0.1:9/query",
        "post",
    )
    assert (service.load, service.capacity, service.limits, service.feed) == (True, None, (), None)
    assert (service.concurrency, service.ask_absent_after, service.source.address.auth) == (
        4,
        0.0,
        None,
    )
    assert (service.refresh.bank, service.refresh.ledger) == (NOTHING, None)
    assert service.refresh.budget == Budget(items=3, requests=3, seconds=1.0)


def test_everything_that_can_be_said_is_read() -> None:
    keys = SPARQL + (
        'method = "get"\nconcurrency = 2\ncapacity = 1000\nmax_reply_bytes = 5000\n'
        'ask_absent_after = "1h"\n'
        'limits = ["15 requests per 15m", "1000 items per day"]\n'
    )
    refresh = REFRESH + (
        'policy = "WSJ-WBM"\nrequests = 2\ndeadline = "200ms"\nstrict = true\nledger = "spent.db"\n'
        "bank = { items = 9, requests = 1 }\n"
    )
    service = load(keys, refresh)
    assert isinstance(service.source, SparqlSource)
    assert (service.source.method, service.source.address.longest_reply) == ("get", 5000)
    assert (service.concurrency, service.capacity, service.ask_absent_after) == (2, 1000, 3600.0)
    assert service.limits == (Limit.parse("15 requests per 15m"), Limit.parse("1000 items per day"))
    assert (service.refresh.policy, service.refresh.budget) == ("WSJ-WBM", Budget(3, 2, 0.2))
    assert service.refresh.bank == Budget(9, 1, 0.0)
    assert service.refresh.ledger == str(Path("plant/spent.db").absolute())
    strict = load(SPARQL, REFRESH + "strict = true")
    assert strict.refresh.ledger == str(Path("plant/acquatop-spending.sqlite").absolute())


def test_services_of_records_have_a_mapping() -> None:
    rest = load(REST, MAPPING, REFRESH).source
    assert isinstance(rest, RestSource)
    assert rest.items == "data"
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    assert rest.mapping.properties == {NS + "followers": Field("metrics.followers", integer)}
    table = load('remote = "table"\npath = "people.csv"\ntime = "t"', MAPPING, REFRESH)
    assert isinstance(table.source, TableSource)
    assert (table.source.path, table.source.time) == (str(Path("plant/people.csv").absolute()), "t")
    assert table.load
    function = load('remote = "python"\nfunction = "people.lookup:find"', MAPPING, REFRESH)
    assert isinstance(function.source, PythonSource)
    assert (function.source.function, function.load) == ("people.lookup:find", False)


def test_a_database_has_a_driver_and_a_query_or_a_table() -> None:
    query = 'query = "SELECT id, n AS \\"metrics.followers\\" FROM t WHERE id IN ({keys})"'
    service = load(SQL + query, MAPPING, REFRESH, PG="postgresql://ann:hush@db/shop")
    assert isinstance(service.source, SqlSource)
    assert (service.source.driver, service.source.integers, service.load) == (
        *("psycopg", False, False),
    )
    assert service.source.target.reveal() == "postgresql://ann:hush@db/shop"
    assert [each.reveal() for each in service.source.secrets] == ["postgresql://ann:hush@db/shop"]
    assert "hush" not in f"{service!r}"
    arguments = '[services.":people".arguments]\npassword = "${PG}"\nport = 5432\n'
    plain = MAPPING.replace("metrics.followers", "followers")
    keyed = load(
        'remote = "sql"\ndriver = "pymysql"\ntable = "shop.people"\nids = "integer"\nload = true',
        *(arguments, plain, REFRESH),
        PG="hush",
    )
    assert isinstance(keyed.source, SqlSource)
    assert keyed.source.arguments == {"password": Secret("hush"), "port": 5432}
    assert (keyed.source.integers, keyed.load) == (True, True)
    file = load(
        'remote = "sql"\ndriver = "sqlite3"\nconnection = "p.db"\ntable = "t"', plain, REFRESH
    )
    assert isinstance(file.source, SqlSource)
    assert file.source.target.reveal() == str(Path("plant/p.db").absolute())


def test_a_feed_needs_a_mapping_too() -> None:
    feed = '[services.":people".feed]\nkind = "lines"\npath = "changes.jsonl"\n'
    service = load(SPARQL, feed, MAPPING, REFRESH)
    assert isinstance(service.feed, FeedSource)
    assert service.feed.path == str(Path("plant/changes.jsonl").absolute())
    pushed = load('remote = "push"', feed, MAPPING, REFRESH)
    assert isinstance(pushed.source, PushSource)
    http = feed.replace('"lines"', '"http"').replace('path = "changes.jsonl"', SPARQL)
    found = load('remote = "push"', http, MAPPING, REFRESH).feed
    assert found is not None
    assert found.address is not None
    assert 'the table "mapping" is missing' in problems(SPARQL, feed, REFRESH)
    assert "needs the table feed" in problems('remote = "push"', MAPPING, REFRESH)


def test_credentials_come_from_the_environment_and_are_not_shown() -> None:
    bearer = '[services.":people".auth]\ntype = "bearer"\ntoken = "${TOKEN}"\n'
    service = load(SPARQL, bearer, REFRESH, TOKEN="hush-hush")
    assert isinstance(service.source, SparqlSource)
    auth = service.source.address.auth
    assert isinstance(auth, BearerAuth)
    assert auth.token.reveal() == "hush-hush"
    assert "hush" not in f"{service!r} {service}"
    basic = '[services.":people".auth]\ntype = "basic"\nuser = "${NAME}"\npassword = "${WORD}"\n'
    source = load(SPARQL, basic, REFRESH, NAME="ann", WORD="hush").source
    assert isinstance(source, SparqlSource)
    assert isinstance(source.address.auth, BasicAuth)
    assert "the environment variable TOKEN is not set" in problems(SPARQL, bearer, REFRESH)
    written = problems(SPARQL, bearer.replace("${TOKEN}", "hush-hush"), REFRESH)
    assert '"token" must not stand in the catalog itself' in written
    assert 'write token = "${NAME}"' in written
    assert "hush" not in written
    with pytest.raises(Exception, match=r"(?i)secret"):
        pickle.dumps(auth.token)


def test_an_address_with_what_the_environment_holds_is_shown_as_it_is_written() -> None:
    service = load('endpoint = "http://127.0.0.1:9/query?key=${KEY}"', REFRESH, KEY="hush")
    assert isinstance(service.source, SparqlSource)
    assert (
        service.source.address.shown == "http://127.0.0.1:9/query?key=${KEY} (http://127.0.0.1:9)"
    )
    assert [secret.reveal() for secret in service.source.address.secrets] == ["hush"]
    whole = load('endpoint = "${PLACE}"', REFRESH, PLACE="http://127.0.0.1:9/query").source
    assert isinstance(whole, SparqlSource)
    assert (whole.address.shown, whole.address.secrets) == ("${PLACE} (http://127.0.0.1:9)", ())
    assert "hush" not in problems('endpoint = "ftp://x/${KEY}"', REFRESH, KEY="hush")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('remote = "soap"', 'unknown remote "soap"'),
        (SPARQL + 'function = "a:b"', 'unknown key "function"'),
        (SPARQL + 'limits = ["15 requests"]', "15 requests"),
        (SPARQL + "limits = [3]", '"limits" must be a list of texts'),
        (SPARQL + 'limits = "3 requests per 1m"', '"limits" must be a list of texts'),
        (SPARQL + "capacity = 0", '"capacity" must be at least 1'),
        (SPARQL + "concurrency = 0", '"concurrency" must be at least 1'),
        (SPARQL + 'method = "put"', 'unknown method "put"'),
        ('endpoint = "http://ann:hush@127.0.0.1/query"', "must not hold a name and a password"),
        (REST.replace("{keys}", "7"), "must have {keys} or {key} in it once"),
        (REST.replace("127.0.0.1:9/users?ids=", "a/#"), "must have {keys} or {key} in it once"),
        ('endpoint = "http://127.0.0.1:99999/query"', "is not an http or https address"),
        ('endpoint = "http://[::1/query"', "is not an http or https address"),
        (SPARQL + 'method = ""', 'unknown method ""'),
        (SPARQL + 'timeout = "99999999h"', "must be ten years at most"),
        ('remote = "table"\npath = "a\\u0000.csv"', '"path" cannot be a path'),
        ('remote = "table"\npath = "people.xls"', '"people.xls" does not end as tables do'),
        ('remote = "python"\nfunction = "people"', 'write "package.module:function"'),
        ('remote = "sql"\ndriver = "a b"\ntable = "t"', '"a b" does not name a module'),
        ('remote = "sql"\ndriver = "sqlite3"', "say one of them"),
        ('remote = "sql"\ndriver = "x"\nquery = "SELECT 1"', "must have {keys} in it once"),
        ('remote = "sql"\ndriver = "x"\nquery = "people"', 'set table = "people"'),
        ('remote = "sql"\ndriver = "x"\ntable = "t"', "is no plain name of a column"),
        ('remote = "sql"\ndriver = "x"\ntable = "t"\nids = "int"', 'unknown ids "int"'),
        ('remote = "python"\nfunction = "a:b"\nstrategy = "view"', 'unknown strategy "view"'),
        (
            'remote = "python"\nfunction = "a:b"\nstrategy = "materialised-view"',
            "a view needs the table feed",
        ),
    ],
)
def test_what_is_wrong_is_said(keys: str, said: str) -> None:
    assert said in problems(keys, *([] if "SPARQL" in keys else [MAPPING]), REFRESH)


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("items = 3", 'items = 3\nledger = "x.db"', '"ledger" is for strict = true alone'),
        ("items = 3", "items = 3\nbank = { itmes = 3 }", 'did you mean "items"?'),
        ("items = 3", 'items = 3\npolicy = "WSJ-XYZ"', 'unknown policy "WSJ-XYZ"'),
        ("items = 3", 'items = 3\npolicy = ""', 'unknown policy ""'),
        ("{id}", "id", "must have one {field}"),
        (
            "xsd:integer",
            "xsd:QName",
            'the datatype "http://www.w3.org/2001/XMLSchema#QName" is not supported',
        ),
        ('field = "metrics.followers", ', "", '"field" is missing'),
    ],
)
def test_what_is_wrong_in_its_tables_is_said(written: str, instead: str, said: str) -> None:
    assert said in problems(
        REST, MAPPING.replace(written, instead), REFRESH.replace(written, instead)
    )


PATTERN = """[services.":people".mapping.patterns."?pet :of ?user ; :age ?age"]
key = "user"
variables = { pet = { field = "pet", datatype = "iri" }, age = { field = "age" } }
"""


def test_records_may_be_solutions_of_a_pattern() -> None:
    source = load(REST, REFRESH, MAPPING, PATTERN).source
    assert isinstance(source, RestSource)
    ((text, pattern),) = source.mapping.patterns.items()
    assert text == f"?pet <{NS}of> ?user .\n?pet <{NS}age> ?age ."
    assert (pattern.key, list(pattern.variables)) == ("user", ["pet", "age"])


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('key = "user"', 'key = "who"', "the pattern has no variable ?who"),
        ("age = {", "years = {", "the pattern has no variable ?years"),
        ("?pet :of ?user", "?pet of ?user", "this is no pattern"),
        ("key =", "keys =", 'unknown key "keys"'),
    ],
)
def test_what_is_wrong_in_a_pattern_is_said(written: str, instead: str, said: str) -> None:
    with pytest.raises(CatalogError, match=re.escape(said)):
        load(REST, REFRESH, MAPPING, PATTERN.replace(written, instead))


def test_headers_a_contact_and_tokens_are_those_of_the_environment() -> None:
    more = 'headers = { X-Api-Key = "${KEY}" }\nuser_agent = "mine (mailto:a@b.c)"\n'
    oauth = (
        'auth = { type = "oauth2", token_endpoint = "http://127.0.0.1:9/t", '
        'client_id = "${ID}", client_secret = "${KEY}" }\n'
    )
    variables = {"KEY": "xyzzy", "ID": "ann"}
    source = load(SPARQL + more + oauth, REFRESH, **variables).source
    assert isinstance(source, SparqlSource)
    assert source.address.headers["X-Api-Key"].reveal() == "xyzzy"
    assert source.address.user_agent == "mine (mailto:a@b.c)"
    assert source.address.auth is not None
    assert "xyzzy" in source.address.auth.secrets()
    assert "xyzzy" not in repr(source)
    for wrong, said in (
        ('headers = { Host = "x" }\n', "no header that can be set"),
        ('headers = { X-A = "a\\nB: c" }\n', "printable ASCII"),
        ('user_agent = "é"\n', "printable ASCII"),
        (oauth.replace("http://127.0.0.1:9/t", "ftp://x"), "is not an http or https address"),
        (oauth.replace('"${ID}"', '"ann"'), "must not stand in the catalog itself"),
        (oauth.replace('"oauth2"', '"oauth"'), 'did you mean "oauth2"?'),
    ):
        assert said in problems(SPARQL + wrong, REFRESH, **variables)
