"""The Python API, in process: a stream from a file, an answer per window."""

from __future__ import annotations

from pathlib import Path

from acquatop import Engine

CATALOG = """
[prefixes]
"" = "http://example.org/"

[streams.":s"]
connector = "lines"
options = { path = "mentions.ndjson" }

[streams.":s".mapping]
subject = "http://example.org/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """
SELECT ?user ?n FROM NAMED WINDOW :w ON :s [RANGE 3s]
WHERE { WINDOW :w { ?user :n ?n } } ORDER BY DESC(?n) LIMIT 1
"""

Path("catalog.toml").write_text(CATALOG)
Path("mentions.ndjson").write_text(
    '{"t": 1000, "user": "ann", "n": 3}\n{"t": 2000, "user": "bob", "n": 5}\n'
)
with Engine.from_catalog("catalog.toml", runtime="local", until_end=True) as engine:
    shown = [row.bindings["user"] for answer in engine.register(QUERY) for row in answer.rows]
assert [str(user) for user in shown] == ["http://example.org/bob"], shown
print("the Python API answers")
