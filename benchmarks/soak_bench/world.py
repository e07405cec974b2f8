"""Catalog and queries of the soak benchmark: one query of each kind, over one stream."""

from __future__ import annotations

from pathlib import Path

_FUNCTION = 'remote = "python"\nfunction = "benchmarks.soak_bench.people:followers"'
_STREAM = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
{source}
late = "late.jsonl"
dead_letters = "bad.jsonl"
dead_letters_bytes = 1000000
[streams.":stream".mapping]
subject = "http://example.org/user/{{user}}"
time = "t"
[streams.":stream".mapping.properties]
":mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
":vip" = {{ field = "vip", datatype = "xsd:integer" }}
"""
_PIPE = """connector = "pipe"
small_batches = "executors"
options = { path = "PATH", log = "received", maxLogBytes = 67108864, maxBytesPerBatch = BYTES }"""
_LINES = """connector = "lines"
options = { path = "events" }
start_ms = 0"""
_SERVICE = """
[services.":{name}"]
{source}
concurrency = 2
{capacity}{more}
[services.":{name}".refresh]
items = 300
requests = 4
deadline = "1s"
n = 10
{refill}
"""
_MAPPING = """[services.":{name}".mapping]
key = "http://example.org/user/{{id}}"
[services.":{name}".mapping.properties]
":followers" = {{ field = "followers", datatype = "xsd:integer" }}
"""
_TOP = """SELECT ?user (?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}s STEP {step}s]
WHERE {{ WINDOW :w {{ {pattern} }} SERVICE :{service} {{ ?user :followers ?followers }} }}
ORDER BY DESC(?score) LIMIT 5"""
_QUERIES = {
    "top": _TOP.format(width=8, step=4, pattern="?user :mentions ?mentions", service="people"),
    "refilled": _TOP.format(
        width=80, step=200, pattern="?user :mentions ?mentions", service="refilled"
    ),
    "sums": """SELECT ?user (?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 100s STEP 50s]
WHERE { WINDOW :w { SELECT ?user (SUM(?mention) AS ?mentions) { ?user :mentions ?mention }
GROUP BY ?user } SERVICE :summed { ?user :followers ?followers } }
ORDER BY DESC(?score) LIMIT 5""",
    "counted": """SELECT ?user (2 * ?mentions AS ?score)
FROM NAMED WINDOW :w ON :stream [ELEMENTS 300 STEP 150]
WHERE { WINDOW :w { ?user :mentions ?mentions } } ORDER BY DESC(?score) LIMIT 5""",
    "whole": """SELECT ?user (AVG(?mentions) AS ?mean) (MAX(?followers) AS ?most)
FROM NAMED WINDOW :w ON :stream [RANGE 100s STEP 500s]
WHERE { WINDOW :w { ?user :mentions ?mentions ; :vip ?vip }
SERVICE :joined { ?user :followers ?followers } }
GROUP BY ?user ORDER BY DESC(?mean) LIMIT 5""",
    "asked": _TOP.format(
        width=40, step=40, pattern="?user :mentions ?mentions ; :vip ?vip", service="web"
    ),
}
CAPACITY = 20_000
"""Items of each bounded replica."""


def query(kind: str, *, name: str | None = None) -> str:
    """Return the text of a query of a kind."""
    return f"PREFIX : <http://example.org/> REGISTER STREAM :{name or kind} AS {_QUERIES[kind]}"


KINDS = tuple(_QUERIES)


BATCH_BYTES = 1 << 21
"""Bytes of a batch, at most."""


def catalog(
    port: int, *, pipe: Path | None, capacity: int | None = CAPACITY, batch: int = BATCH_BYTES
) -> str:
    """Return a catalog whose stream is a pipe, or else a file of lines.

    ``port`` is that of the SPARQL endpoint. Replicas have a ``capacity``, or no limit. A ``batch``
    from the pipe has so many bytes; on Spark it is a job, however small.
    """
    endpoint = f'endpoint = "http://127.0.0.1:{port}/query"\nload = false'
    piped = _PIPE.replace("PATH", str(pipe)).replace("BYTES", str(batch))
    source = _LINES if pipe is None else piped
    limit = "" if capacity is None else f"capacity = {capacity}\n"
    return _STREAM.format(source=source) + "".join(
        _SERVICE.format(name=name, source=remote, capacity=limit, more=more, refill=refill)
        + (_MAPPING.format(name=name) if remote == _FUNCTION else "")
        for name, remote, more, refill in (
            ("people", _FUNCTION, "", ""),
            ("refilled", _FUNCTION, "", "refill = true"),
            ("summed", _FUNCTION, "", ""),
            ("joined", _FUNCTION, 'solutions = "many"', ""),
            ("web", endpoint, "", ""),
        )
    )
