"""Catalog and queries of a generated trace."""

from __future__ import annotations

CATALOG = """\
# A trace: stream.csv has a mention per row, remote.csv what a user's value is from that time on.
[prefixes]
"" = "http://example.org/social#"

[streams.":S"]
connector = "lines"
arrivals = "distinct"
start_ms = 0
options = { path = "stream.csv" }

[streams.":S".mapping]
subject = "http://example.org/mention/{row}"
time = "time_ms"

[streams.":S".mapping.properties]
":of" = { field = "subject", datatype = "iri" }
":count" = { field = "value", datatype = "xsd:integer" }

[services.":BKG"]
remote = "table"
path = "remote.csv"
time = "time_ms"
block_size = 1

[services.":BKG".mapping]
key = "{subject}"
properties = { ":gainsFollowers" = { field = "value", datatype = "xsd:double" } }

[services.":BKG".refresh]
n = 10
items = 7
requests = 7
"""

BY_USER = """\
PREFIX : <http://example.org/social#>

REGISTER STREAM :TopkUsersToContact AS
SELECT ?user ?mentionCount ?gain
       (0.7 * norm(?mentionCount, 0, {mentions}) + 0.3 * norm(?gain, {low}, {high}) AS ?score)
FROM NAMED WINDOW :W ON :S [RANGE {width}s STEP {slide}s]
WHERE {{
  WINDOW :W {{
    SELECT ?user (SUM(?count) AS ?mentionCount)
    WHERE {{ ?mention :of ?user ; :count ?count }}
    GROUP BY ?user
  }}
  SERVICE :BKG {{ ?user :gainsFollowers ?gain }}
}}
ORDER BY DESC(?score)
LIMIT 5
"""

BY_MENTION = """\
PREFIX : <http://example.org/social#>

REGISTER STREAM :TopkMentions AS
SELECT ?mention ?user ?reach ?gain
       (0.7 * norm(?reach, 0, {mentions}) + 0.3 * norm(?gain, {low}, {high}) AS ?score)
FROM NAMED WINDOW :W ON :S [RANGE {width}s STEP {slide}s]
WHERE {{
  WINDOW :W {{ ?mention :of ?user ; :count ?reach }}
  SERVICE :BKG {{ ?user :gainsFollowers ?gain }}
}}
ORDER BY DESC(?score)
LIMIT 5
"""
