"""Sources of a catalog's services: one kind of remote each, with the keys that describe it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from acquatop.catalog.mapped_patterns import mapped_patterns
from acquatop.catalog.section import Section
from acquatop.plugins import FEEDS, OWN_FEEDS
from connectors import ConnectorError
from connectors.kafka_client.settings import Brokers, brokers
from replica.http.auth import Auth, BasicAuth, BearerAuth, Secret
from replica.remotes.addresses import RestAddress
from replica.remotes.records import Field, KeyTemplate, RecordMapping
from replica.remotes.sql_statement import SqlStatement, is_column
from replica.remotes.values import term_maker
from replica.terms import is_language

METHODS = ("post", "get")
OAUTH = "oauth2"
AUTH = {
    "basic": ("user", "password"),
    "bearer": ("token",),
    OAUTH: ("client_id", "client_secret"),
}
"""Types of authentication, and the secrets of each."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")
_OWN_HEADERS = ("accept-encoding", "content-length", "host", "transfer-encoding", "user-agent")
_LONGEST_REPLY = 16 * 2**20


@dataclass(frozen=True)
class Address:
    """HTTP address, the credentials and headers for it, and the maximum size of a reply.

    ``shown`` is the address for messages: if the catalog takes parts of it from the environment,
    the address as written there, and the host. ``secrets`` are those values, unless they are
    addresses or in the host.
    """

    url: str
    shown: str
    auth: Auth | None = None
    longest_reply: int = _LONGEST_REPLY
    secrets: tuple[Secret, ...] = ()
    headers: Mapping[str, Secret] = field(default_factory=dict)
    user_agent: str = ""


@dataclass(frozen=True)
class SparqlSource:
    """SPARQL endpoint."""

    address: Address
    method: str = "post"


@dataclass(frozen=True)
class RestSource:
    """HTTP address with ``{keys}`` or ``{key}``; its reply has records at the path ``items``."""

    address: Address
    mapping: RecordMapping
    items: str


@dataclass(frozen=True)
class SqlSource:
    """SQL database, asked by a statement or for a table; ``driver`` is a module of the DB-API.

    ``target`` and ``arguments`` are for the driver's ``connect``. ``secrets`` are the values of
    environment variables in them. With ``integers`` the key is a whole number in the database.
    """

    driver: str
    target: Secret
    arguments: Mapping[str, Secret | int | float]
    statement: str
    integers: bool
    mapping: RecordMapping
    secrets: tuple[Secret, ...] = ()


@dataclass(frozen=True)
class TableSource:
    """File of records; with a ``time`` field, each record holds from its time on."""

    path: str
    mapping: RecordMapping
    time: str | None


@dataclass(frozen=True)
class PythonSource:
    """Python function that is called with ids and returns records."""

    function: str
    mapping: RecordMapping


@dataclass(frozen=True)
class PushSource:
    """Remote that cannot be asked: all its values come from the feed."""

    mapping: RecordMapping


@dataclass(frozen=True)
class InstalledSource:
    """Remote of another distribution: what opens it, and the options for that."""

    name: str
    options: Mapping[str, str | int | float] = field(repr=False)
    mapping: RecordMapping


Source = (
    SparqlSource
    | RestSource
    | SqlSource
    | TableSource
    | PythonSource
    | PushSource
    | InstalledSource
)


@dataclass(frozen=True)
class FeedSource:
    """Feed of a remote's changes: a growing file, an endless HTTP reply, or a topic of Kafka's."""

    kind: str
    path: str
    address: Address | None
    mapping: RecordMapping
    brokers: Brokers | None = None
    topic: str = ""
    options: Mapping[str, str | int | float] = field(default_factory=dict, repr=False)
    """Options of a feed of another distribution."""


def read_source(kind: str, section: Section, prefixes: Mapping[str, str]) -> Source:
    """Return the source of a service of some kind."""
    if kind not in _KINDS:
        return InstalledSource(kind, _options(section), _mapping(section, prefixes))
    return _KINDS[kind].read(section, prefixes)


def can_load(kind: str, section: Section) -> bool:
    """Return True if a service can list its keys, so that a replica can be filled at the start."""
    return "load" in keys_of(kind) and not (kind == "sql" and "query" in section)


def keys_of(kind: str) -> tuple[str, ...]:
    """Return the catalog keys of one kind of remote."""
    return _KINDS[kind].keys if kind in _KINDS else ("options",)


def read_feed(section: Section, prefixes: Mapping[str, str]) -> FeedSource | None:
    """Return the feed of a service; None if it has none."""
    if "feed" not in section:
        return None
    feed = section.section("feed")
    feed.allow(
        "kind", "path", "endpoint", "auth", "headers", "user_agent", "url", "topic", "options"
    )
    kind = feed.choice("kind", tuple(FEEDS))
    return FeedSource(
        kind=kind,
        path=feed.path("path") if kind == "lines" else "",
        address=_address(feed) if kind == "http" else None,
        mapping=_mapping(section, prefixes),
        brokers=_brokers(feed) if kind == "kafka" else None,
        topic=feed.text("topic") if kind == "kafka" else "",
        options=_options(feed) if kind not in OWN_FEEDS else {},
    )


def _options(section: Section) -> Mapping[str, str | int | float]:
    options = section.section("options")
    return {name: options.value(name) for name in options}


def _brokers(section: Section) -> Brokers | None:
    url = section.text("url")
    try:
        return brokers(url) if url else None
    except ConnectorError as error:
        message, _, hint = str(error).partition("\n  hint: ")
        section.problem(message, "url", hint)
        return None


def _sparql(section: Section, prefixes: Mapping[str, str]) -> Source:
    section.section("mapping")  # only a feed needs it, but a table it must be
    return SparqlSource(_address(section), section.choice("method", METHODS, default="post"))


def _rest(section: Section, prefixes: Mapping[str, str]) -> Source:
    address = _address(section)
    try:
        RestAddress(address.url)
    except ValueError:
        if "endpoint" in section:
            message = (
                "the address must have {keys} or {key} in it once, behind its host, in whose "
                "place the ids stand"
            )
            section.problem(message, "endpoint")
    return RestSource(address, _mapping(section, prefixes), section.text("items", default=""))


def _sql(section: Section, prefixes: Mapping[str, str]) -> Source:
    mapping = _mapping(section, prefixes)
    driver = section.text("driver")
    if "driver" in section and not re.fullmatch(r"\w+(\.\w+)*", driver):
        section.problem(f'"{driver}" does not name a module', "driver", 'such as "psycopg"')
    arguments = section.section("arguments")
    return SqlSource(
        driver=driver,
        target=Secret(_target(driver, section)),
        arguments={
            name: Secret(value) if isinstance(value := arguments.value(name), str) else value
            for name in arguments
        },
        statement=_statement(section, mapping),
        integers=section.choice("ids", IDS, default="text") == "integer",
        mapping=mapping,
        secrets=tuple(
            Secret(value)
            for value in (
                *section.values_in("connection"),
                *(
                    value
                    for name in arguments
                    if isinstance(arguments.value(name), str)
                    for value in arguments.values_in(name)
                ),
            )
        ),
    )


def _target(driver: str, section: Section) -> str:
    """Return the text for a driver's ``connect``: for databases in files a path."""
    text = section.text("connection", default="")
    is_file = driver in ("sqlite3", "duckdb") and text and not text.startswith(("file:", ":"))
    return section.path("connection") if is_file else text


def _statement(section: Section, mapping: RecordMapping) -> str:
    """Return a service's query, or the name of its table."""
    if ("query" in section) == ("table" in section):
        section.problem('a database is asked by a "query" or for a "table": say one of them')
        return ""
    key = "query" if "query" in section else "table"
    text = section.text(key)
    try:
        statement = SqlStatement(text, mapping.key.path, style="qmark")
    except ValueError as error:
        section.problem(str(error), key)
        return text
    if key == "query" and statement.is_table:
        section.problem(f'"{text}" is no query', key, f'set table = "{text}"')
    columns = (mapping.key.path, *(each.path for each in mapping.fields))
    odd = [each for each in columns if not is_column(each)] if statement.is_table else []
    if odd:
        hint = f'set a query in place of the table, with … AS "{odd[0]}" in it'
        section.problem(f'"{odd[0]}" is no plain name of a column', "table", hint)
    return text


def _table(section: Section, prefixes: Mapping[str, str]) -> Source:
    path = section.path("path")
    time = section.text("time") if "time" in section else None
    if "path" in section and Path(path).suffix.lower() not in TABLES:
        section.problem(
            f'"{Path(path).name}" does not end as tables do',
            "path",
            f"known are {', '.join(TABLES)}",
        )
    return TableSource(path, _mapping(section, prefixes), time)


def _python(section: Section, prefixes: Mapping[str, str]) -> Source:
    function = section.text("function")
    if "function" in section and not re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", function):
        section.problem(
            f'"{function}" does not name a function', "function", 'write "package.module:function"'
        )
    return PythonSource(function, _mapping(section, prefixes))


def _push(section: Section, prefixes: Mapping[str, str]) -> Source:
    section.need("feed", "a remote that only tells of changes itself needs the table feed")
    return PushSource(_mapping(section, prefixes))


@dataclass(frozen=True)
class _Kind:
    read: Callable[[Section, Mapping[str, str]], Source]
    keys: tuple[str, ...] = field(default=())


_HTTP = ("endpoint", "auth", "headers", "user_agent", "max_reply_bytes")
_KINDS = {
    "sparql": _Kind(_sparql, (*_HTTP, "method", "load")),
    "rest": _Kind(_rest, (*_HTTP, "items")),
    "table": _Kind(_table, ("path", "time", "load")),
    "sql": _Kind(_sql, ("driver", "connection", "arguments", "query", "table", "ids", "load")),
    "python": _Kind(_python, ("function",)),
    "push": _Kind(_push),
}
KINDS = tuple(_KINDS)
"""Kinds of remotes, by the names that catalogs use."""
IDS = ("text", "integer")
"""Types that a database has for the key's field."""
TABLES = (".csv", ".jsonl", ".parquet")


# Addresses ----------------------------------------------------------------------------------------


def _address(section: Section) -> Address:
    url = section.text("endpoint")
    if "endpoint" in section:
        _check_address(url, section)
    longest = section.whole("max_reply_bytes", default=_LONGEST_REPLY, least=1)
    values = section.values_in("endpoint")
    secrets = tuple(
        Secret(value)
        for value in values
        if value and "://" not in value and value not in _host(url)
    )
    return Address(
        url,
        _shown(url, section.written("endpoint")),
        _auth(section),
        longest,
        secrets,
        _headers(section),
        _user_agent(section),
    )


def _shown(url: str, written: str) -> str:
    return (
        written if "${" not in written else f"{written} ({url.partition('://')[0]}://{_host(url)})"
    )


def _host(url: str) -> str:
    return re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]


def _check_address(url: str, section: Section, key: str = "endpoint") -> None:
    if not re.fullmatch(r"https?://[!-~]+", url) or not _has_host(url):
        section.problem(f'"{section.written(key)}" is not an http or https address', key)
    elif "@" in _host(url):
        hint = "put them into the table auth"
        section.problem("an address must not hold a name and a password", key, hint)


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _auth(section: Section) -> Auth | None:
    if "auth" not in section:
        return None
    auth = section.section("auth")
    kind = auth.choice("type", tuple(AUTH))
    if kind not in AUTH:
        return None
    names = AUTH[kind]
    auth.allow("type", *names, *(("token_endpoint", "scope") if kind == OAUTH else ()))
    secrets = [auth.secret(name) for name in names]
    endpoint = _token_endpoint(auth) if kind == OAUTH else ""
    scope = auth.text("scope", default="") if kind == OAUTH else ""
    if not all(secret.reveal() for secret in secrets):
        return None  # missing secrets have been noted
    try:
        if kind == OAUTH:
            from replica.http.oauth import ClientCredentials

            return ClientCredentials(endpoint, *secrets, scope=scope)
        return BasicAuth(*secrets) if kind == "basic" else BearerAuth(*secrets)
    except ValueError as error:
        auth.problem(str(error))
        return None


def _token_endpoint(section: Section) -> str:
    url = section.text("token_endpoint")
    if url:
        _check_address(url, section, "token_endpoint")
    return url


def _headers(section: Section) -> Mapping[str, Secret]:
    """Return headers for all requests; their values may come from the environment."""
    headers = section.section("headers")
    found = {}
    for name in headers:
        value = headers.text(name)
        if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            headers.problem(f'"{name}" is no header that can be set', name)
        elif not _HEADER_VALUE.fullmatch(value):
            headers.problem("a header has printable ASCII characters only", name)
        else:
            found[name] = Secret(value)
    return found


def _user_agent(section: Section) -> str:
    text = section.text("user_agent", default="")
    if not _HEADER_VALUE.fullmatch(text):
        section.problem("a header has printable ASCII characters only", "user_agent")
        return ""
    return text


# Records ------------------------------------------------------------------------------------------


def _mapping(section: Section, prefixes: Mapping[str, str]) -> RecordMapping:
    mapping = section.section("mapping", required=True)
    mapping.allow("key", "properties", "patterns")
    key = mapping.text("key")
    template = KeyTemplate.parse("urn:x:{id}")
    try:
        template = KeyTemplate.parse(expanded(key, prefixes)) if key else template
    except ValueError as error:
        mapping.problem(str(error), "key")
    properties = {
        expanded(name, prefixes): _field(table, prefixes)
        for name, table in mapping.section(
            "properties", required="patterns" not in mapping
        ).tables()
    }
    patterns = mapped_patterns(
        mapping.section("patterns"), prefixes, lambda each: _field(each, prefixes)
    )
    return RecordMapping(template, properties, patterns=patterns)


def _field(section: Section, prefixes: Mapping[str, str]) -> Field:
    section.allow("field", "datatype", "language")
    written = section.text("datatype", default="xsd:string")
    datatype = expanded(written, prefixes)
    if "language" in section:
        if written != "xsd:string":
            section.problem("only texts have a language", "language", "leave the datatype out")
        language = section.text("language")
        if not is_language(language):
            hint = 'write a tag such as "en-GB"'
            section.problem(f'"{language}" is not a language', "language", hint)
        return Field(section.text("field"), f"@{language.lower()}")
    try:
        term_maker(datatype)
    except ValueError as error:
        section.problem(str(error), "datatype")
        return Field(section.text("field"))
    return Field(section.text("field"), datatype)


def expanded(name: str, prefixes: Mapping[str, str]) -> str:
    """Return a name with its prefix expanded, if the prefix is known."""
    prefix, _, local = name.partition(":")
    return prefixes[prefix] + local if prefix in prefixes else name
