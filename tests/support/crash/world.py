"""World for crash tests: a recording, deterministic remotes, and queries of every kind."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any, Self
from urllib.parse import unquote, urlsplit

NS = "http://example.org/"
USERS = [f"u{number}" for number in range(12)]

_STREAM = """
[streams.":{name}"]
connector = "lines"
arrivals = "{arrivals}"
{strategy}
lateness = "{lateness}"
small_batches = "executors"
options = {{ path = "{folder}/events.jsonl", maxBytesPerBatch = {batch} }}
[streams.":{name}".mapping]
subject = "{subject}"
time = "t"
properties = {{ {properties} }}
"""
_PROPERTIES = (
    '":user" = { field = "who", datatype = "iri" }, ":topic" = { field = "topic" }, '
    '":mentions" = { field = "mentions", datatype = "xsd:integer" }'
)
_PLACED = _PROPERTIES + ', ":number" = { field = "id", datatype = "xsd:integer" }'
_REST = """
[services.":{name}"]
remote = "rest"
endpoint = "{endpoint}/{name}/{{keys}}"
concurrency = 1
timeout = "60s"
mapping = {{ key = "http://example.org/user/{{id}}", properties = {{ ":followers" = {{ field = "n", datatype = "xsd:integer" }} }} }}
refresh = {{ {policy}n = {n}, refill = {refill}, items = {items}, requests = 1, deadline = "60s"{more} }}
"""  # noqa: E501
# The default policy goes by how long ago a value was fetched by the clock on the wall, and by where
# merits may have gone since then: of top-k queries no two lives ask in the same order, be there a
# crash between them or not.
_POLICIES = {"one": 'policy = "AT-TSM", ', "two": 'policy = "AT-TSM", '}
_TABLE = """
[services.":ranks"]
remote = "table"
path = "{folder}/ranks.csv"
time = "t"
mapping = {{ key = "http://example.org/user/{{id}}", properties = {{ \
":rank" = {{ field = "rank", datatype = "xsd:integer" }} }} }}
refresh = {{ n = 2, items = 3, requests = 1, deadline = "60s" }}
"""

_HINT = 'strategy = "shared-skyline"'
_SCORED = "SELECT ?e (?m * 1 AS ?score) FROM NAMED WINDOW :w ON :shared"
_NEAR = "SELECT ?e ?far FROM NAMED WINDOW :w ON :near"
_SUMS = "SELECT ?s (COUNT(*) AS ?n) (SUM(?m) AS ?sum)"
_ON = "FROM NAMED WINDOW :w ON :{stream} [RANGE 6s STEP 2s]"
QUERIES: Mapping[str, str] = {
    # Each with a remote of its own, so that who has asked can be told from the address.
    "top": f"""SELECT ?s (?m + ?f AS ?score) {_ON.format(stream="latest")}
        WHERE {{ WINDOW :w {{ ?s :mentions ?m }} SERVICE :one {{ ?s :followers ?f }} }}
        ORDER BY DESC(?score) LIMIT 2""",
    "sums": f"""SELECT ?s ?n (?sum + ?f AS ?score) {_ON.format(stream="all")}
        WHERE {{ WINDOW :w {{ {_SUMS} {{ ?s :mentions ?m }} GROUP BY ?s }}
                 SERVICE :two {{ ?s :followers ?f }} }} ORDER BY DESC(?score) LIMIT 3""",
    "friends": f"""CONSTRUCT {{ ?s :has ?f ; :on ?topic }} {_ON.format(stream="all")}
        WHERE {{ WINDOW :w {{ ?s :topic ?topic }} SERVICE :three {{ ?s :followers ?f }} }}""",
    "ranked": f"""SELECT ?e ?s (?m * ?r AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :user ?s ; :mentions ?m }} SERVICE :ranks {{ ?s :rank ?r }} }}
        ORDER BY DESC(?score) LIMIT 3""",
    "ranked less": f"""SELECT ?e ?s (?m - ?r AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :user ?s ; :mentions ?m }} SERVICE :ranks {{ ?s :rank ?r }} }}
        ORDER BY ?score LIMIT 2""",
    "most": f"""SELECT ?e (?m * 1 AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :mentions ?m }} }} ORDER BY DESC(?score) LIMIT 3""",
    "least": f"""SELECT ?e (?m * 1 AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :mentions ?m }} }} ORDER BY ?score LIMIT 2""",
    "most of each": f"""SELECT ?e ?topic (?m * 1 AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :mentions ?m ; :topic ?topic }} }}
        ORDER BY DESC(?score) LIMIT 1 PER ?topic WITH TIES""",
    # With windows of their own, from one structure.
    "shared most": f"""{_SCORED} [RANGE 5s STEP 1500ms]
        WHERE {{ WINDOW :w {{ ?e :mentions ?m }} }} ORDER BY DESC(?score) LIMIT 3""",
    "shared next": f"""{_SCORED} [RANGE 1s STEP 3s]
        WHERE {{ WINDOW :w {{ ?e :mentions ?m }} }} ORDER BY DESC(?score) LIMIT 2 OFFSET 1""",
    "shared new": """REGISTER ISTREAM :n AS SELECT ?e (?m * 1 AS ?score)
        FROM NAMED WINDOW :w ON :shared [RANGE 3s STEP 700ms]
        WHERE { WINDOW :w { ?e :mentions ?m } } ORDER BY DESC(?score) LIMIT 4""",
    "counts": f"""SELECT ?s ?n (?n * 1 AS ?score) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ SELECT ?s (COUNT(*) AS ?n) {{ ?e :user ?s }} GROUP BY ?s }} }}
        ORDER BY DESC(?score) LIMIT 4""",
    "by rank": f"""SELECT ?r (SUM(?m * ?m) AS ?sum) {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :user ?s ; :mentions ?m }} SERVICE :ranks {{ ?s :rank ?r }} }}
        GROUP BY ?r ORDER BY DESC(?sum) LIMIT 3""",
    # Each with a point of its own, on one grid.
    "nearest": f"""{_NEAR} [ELEMENTS 30 STEP 1]
        WHERE {{ WINDOW :w {{ ?e :mentions ?m ; :number ?n }} BIND(
            (?m - 20) * (?m - 20) + (?n - 60) * (?n - 60) AS ?far) }} ORDER BY ?far LIMIT 3""",
    "nearer": f"""REGISTER ISTREAM :nearer AS {_NEAR} [ELEMENTS 30 STEP 1]
        WHERE {{ WINDOW :w {{ ?e :mentions ?m ; :number ?n }} BIND(
            (?m - 4) * (?m - 4) + (?n - 90) * (?n - 90) AS ?far) }} ORDER BY ?far LIMIT 2""",
    "near": f"""{_NEAR} [RANGE 4s STEP 1s]
        WHERE {{ WINDOW :w {{ ?e :mentions ?m ; :number ?n }} BIND(
            (?m - 30) * (?m - 30) + (?n - 80) * (?n - 80) AS ?far) }} ORDER BY ?far LIMIT 3""",
    "topics": f"""SELECT (COUNT(DISTINCT UCASE(?topic)) AS ?n) {_ON.format(stream="all")}
        WHERE {{ WINDOW :w {{ ?s :topic ?topic }} }} ORDER BY ?n LIMIT 1""",
    "new": f"""REGISTER ISTREAM :new AS SELECT ?s (?m * 1 AS ?score) {_ON.format(stream="latest")}
        WHERE {{ WINDOW :w {{ ?s :mentions ?m }} }} ORDER BY DESC(?score) LIMIT 3""",
    "last": """REGISTER ISTREAM :last AS SELECT ?e ?m (?m * 1 AS ?score)
        FROM NAMED WINDOW :w ON :distinct [ELEMENTS 40 STEP 1]
        WHERE { WINDOW :w { ?e :mentions ?m } } ORDER BY DESC(?score) LIMIT 3""",
    "lasts": """SELECT ?s (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :latest [ELEMENTS 30 STEP 10]
        WHERE { WINDOW :w { ?s :mentions ?m } } GROUP BY ?s ORDER BY DESC(?n) LIMIT 3""",
    "pairs": """SELECT ?s ?t FROM NAMED WINDOW :v ON :all [RANGE 4s STEP 2s]
        FROM NAMED WINDOW :w ON :calm [RANGE 2s STEP 2s]
        WHERE { WINDOW :v { ?s :topic "t3" } WINDOW :w { ?t :topic "t4" } } ORDER BY ?s ?t""",
    # Each reads what the one before answers, which is certified at best.
    "busy": f"""REGISTER STREAM :busy AS SELECT ?e ?s (?m * ?r AS ?busy)
        {_ON.format(stream="distinct")}
        WHERE {{ WINDOW :w {{ ?e :user ?s ; :mentions ?m }} SERVICE :ranks {{ ?s :rank ?r }} }}
        ORDER BY DESC(?busy) LIMIT 3""",
    "often": f"""REGISTER ISTREAM :often AS SELECT ?s (COUNT(*) AS ?n) (MAX(?b) AS ?most)
        {_ON.format(stream="busy")}
        WHERE {{ WINDOW :w {{ ?row :s ?s ; :busy ?b }} }}
        GROUP BY ?s ORDER BY DESC(?n) ?s LIMIT 2""",
    "talk": f"""CONSTRUCT {{ ?s :often ?n ; :says ?topic }}
        FROM NAMED WINDOW :v ON :often [RANGE 6s STEP 2s] {_ON.format(stream="all")}
        WHERE {{ WINDOW :v {{ ?row :s ?s ; :n ?n }} WINDOW :w {{ ?s :topic ?topic }} }}""",
}
SERVICE_OF = {"one": "top", "two": "sums", "three": "friends"}
PREFIX = f"PREFIX : <{NS}>\n"


def queries(*names: str) -> dict[str, str]:
    """Return the texts of some queries, of all if none is named."""
    return {name: PREFIX + QUERIES[name] for name in names or QUERIES}


def write_world(folder: Path, endpoint: str, **changes: object) -> Path:
    """Write a recording, a table and a catalog, some of its values set.

    Return the catalog's path.
    """
    values: dict[str, Any] = {"events": 180, "batch": 1_300, "seed": 5, **changes}
    (folder / "events.jsonl").write_bytes(recording(values["events"], Random(values["seed"])))
    (folder / "ranks.csv").write_text(ranks(Random(9)))
    return write_catalog(folder, endpoint, **values)


def write_catalog(folder: Path, endpoint: str, **changes: object) -> Path:
    """Write a catalog, some of its values set."""
    values: dict[str, Any] = {
        "batch": 1_300,
        "n": 2,
        "items": 3,
        "more": "",
        "refill": "false",
        **changes,
    }
    streams = (
        ("latest", "latest", "user/{user}", "200ms"),
        ("distinct", "distinct", "event/{id}", "200ms"),
        ("shared", "distinct", "event/{id}", "200ms"),
        ("near", "distinct", "event/{id}", "200ms"),
        # What is late where two streams are joined depends on which of them is read first: here
        # nothing is.
        ("all", "all", "user/{user}", "2s"),
        ("calm", "all", "user/{user}", "2s"),
    )
    parts = [f'[prefixes]\n"" = "{NS}"\n']
    for name, arrivals, subject, lateness in streams:
        stream = {
            "name": name,
            "arrivals": arrivals,
            "subject": NS + subject,
            "properties": _PLACED if name == "near" else _PROPERTIES,
        }
        stream |= {"lateness": lateness, "strategy": _HINT if name == "shared" else ""}
        parts.append(_STREAM.format(**stream, folder=folder, batch=values["batch"]))
    for name in SERVICE_OF:
        parts += [
            _REST.format(name=name, endpoint=endpoint, policy=_POLICIES.get(name, ""), **values)
        ]
    path = folder / "catalog.toml"
    path.write_text("".join(parts) + _TABLE.format(folder=folder))
    return path


def recording(count: int, random: Random, start: int = 0) -> bytes:
    """Return events as lines, fifteen in a second of theirs, some late and some broken."""
    lines = []
    for number in range(start, start + count):
        late = random.choice([0, 0, 0, 100, 300, 1_500 if number % 40 == 39 else 0])
        event = {
            "t": max(1, 1_000 + number * 1000 // 15 - late),
            "id": number,
            "user": (user := random.choice(USERS)),
            "who": f"{NS}user/{user}",
            "topic": f"t{random.randrange(6)}",
            "mentions": random.randrange(50),
        }
        lines.append(b"{" if number % 97 == 96 else json.dumps(event).encode())
    return b"".join(line + b"\n" for line in lines)


def ranks(random: Random) -> str:
    """Return a table of values that change as time goes by."""
    rows = [
        f"{time},{user},{random.randrange(1, 9)}"
        for time in range(0, 40_000, 1_500)
        for user in USERS
    ]
    return "t,id,rank\n" + "\n".join(rows) + "\n"


class People:
    """HTTP server on loopback with constant values; it records all requests in order."""

    def __init__(self) -> None:
        self.asked: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        people = self

        self.on_request: Callable[[int], None] = lambda count: None
        """Called with the number of requests since :meth:`take`, before each is answered."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                _, service, ids = urlsplit(self.path).path.split("/")
                keys = unquote(ids).split(",")
                people.asked[service].append(tuple(keys))
                people.on_request(sum(map(len, people.asked.values())))
                body = json.dumps(
                    [{"id": key, "n": 7 * int(key[1:]) % 40} for key in keys]
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who is killed leaves its connection
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, daemon=True, args=(0.02,)
        )

    def take(self) -> dict[str, list[tuple[str, ...]]]:
        """Return what has been asked since this was called last, by service."""
        asked, self.asked = self.asked, defaultdict(list)
        return dict(asked)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
