"""Measure parsing and planning of the paper's Listing 1, compared with other parsers.

The others parse its SPARQL part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import pyoxigraph
from rdflib.plugins.sparql.parser import parseQuery

from benchmarks.table import Figure, report
from rspql.compiler import analyse
from rspql.explain import explain
from rspql.formatter import format_query
from rspql.grammar import grammar
from rspql.parser import parse
from rspql.scoring import DEFAULT_FUNCTIONS, scoring_function

LISTING_1 = """PREFIX : <http://example.org/>
REGISTER STREAM :TopkUsersToContact AS
SELECT ?user F(?mentionCount, ?followerCount) AS ?score
FROM NAMED WINDOW :W ON :S [RANGE 9m STEP 3m]
WHERE {
  WINDOW :W { ?user :hasMentions ?mentionCount }
  SERVICE :BKG { ?user :hasFollowers ?followerCount }
}
ORDER BY DESC(?score)
LIMIT 1
"""
ITS_SPARQL_PART = """PREFIX : <http://example.org/>
SELECT ?user (:F(?mentionCount, ?followerCount) AS ?score)
WHERE {
  GRAPH :W { ?user :hasMentions ?mentionCount }
  SERVICE :BKG { ?user :hasFollowers ?followerCount }
}
ORDER BY DESC(?score)
LIMIT 1
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench parsing", description=__doc__)
    parser.add_argument("--times", type=int, default=300, help="how often each (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    functions = DEFAULT_FUNCTIONS.with_function(
        "F", scoring_function(lambda x, y: x + y, directions=(1, 1))
    )
    store = pyoxigraph.Store()
    sum_of_two = pyoxigraph.NamedNode("http://example.org/F")
    work: dict[str, Callable[[], object]] = {
        "floor: pyoxigraph, SPARQL part, parsed and evaluated on nothing (Rust)": lambda: (
            store.query(
                ITS_SPARQL_PART.replace("SERVICE", "GRAPH"),
                custom_functions={sum_of_two: lambda x, _: x},
            )
        ),
        "rdflib, SPARQL part, parsed": lambda: parseQuery(ITS_SPARQL_PART),
        "lark, SPARQL part, to a parse tree": lambda: grammar().parse(ITS_SPARQL_PART),
        "rspql, SPARQL part, to a checked syntax tree": lambda: parse(ITS_SPARQL_PART),
        "rspql, Listing 1, to a checked syntax tree": lambda: parse(LISTING_1),
        "rspql, Listing 1, to a plan": lambda: analyse(LISTING_1, functions=functions),
        "rspql, Listing 1, to an explanation": lambda: explain(
            analyse(LISTING_1, functions=functions)
        ),
        "rspql, Listing 1, formatted": lambda: format_query(LISTING_1),
    }
    figures = [_timed(name, each, options.times) for name, each in work.items()]
    report(
        "Listing 1 of the paper, queries per second",
        figures,
        ["lark", "rdflib", "pyoxigraph"],
        as_json=options.json,
    )


def _timed(name: str, work: Callable[[], object], times: int) -> Figure:
    work()  # one-time setup, such as the lexer's tables, must not count
    started = time.perf_counter()
    for _ in range(times):
        work()
    return Figure(name, time.perf_counter() - started, times)


if __name__ == "__main__":
    main()
