"""Queries of every kind over one stream, for tests of event time."""

from __future__ import annotations

NS = "http://example.org/"


PREFIX = f"PREFIX : <{NS}>\n"


BEST = (
    "SELECT ?s ?p FROM NAMED WINDOW :w ON :a {window} WHERE {{ WINDOW :w {{ ?s :p ?p }} }} "
    "ORDER BY DESC(?p) LIMIT 3"
)


SUMS = (
    "SELECT ?s (SUM(?p) AS ?sum) FROM NAMED WINDOW :w ON :a {window} WHERE {{ WINDOW :w "
    "{{ ?s :p ?p }} }}"
    " GROUP BY ?s ORDER BY DESC(?sum) LIMIT 3"
)


WHOLE = "SELECT ?s ?p FROM NAMED WINDOW :w ON :a {window} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}"


LAST_THREE = "[ELEMENTS 3 STEP 1]"
