from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rspql import ast
from rspql.diagnostics import QueryError
from rspql.formatter import Piece, format_query, pieces
from rspql.parser import parse
from rspql.printer import query_text
from tests.support.query_texts import queries

LISTING_1 = """register stream :TopkUsersToContact as
select ?user
F(?mentionCount,?followerCount) as ?score
from named window :W on :S [range 9m step 3m]
where{
window :W {?user :hasMentions ?mentionCount}
service :BKG {?user :hasFollowers ?followerCount}
}
order by desc (?score)
limit 1
"""

EVERYTHING = """

# what it is for
base <http://b.example/>  prefix : <#>  # the default


# who gets it
register rstream :out computed every 5s as select distinct ?x
   (count(distinct *) as ?c) # the count
   (group_concat( ?x;separator = ', ') as ?all)
from named window :w on stream :s [range PT9M slide   3 min]
from named window ?v on :s [ elements 10 step 5 ] from :static
where { # inside
# a window
  window :w{?x a/:p|^:q* [:a 1;:b (1 2 ( 3 ))],?z;.?x !(:p|^a)+ -5 } # behind it


  service silent :b{?x :p _:b .filter(!?x=-?y&&- 5<?z -1)filter not exists{?x ?y ?z}} minus{?x ?p
   ?y,
   ?z
  }
  {select ?x {?x ?y ?z} limit 3 values ?x{1 2}} {} union{[] :p (  )} union {
  # nothing
  } .
  bind(if(bound(?x),coalesce(),'''a
b'''@en)as ?k) values ( ?x ?y ) { (1 undef)
   (2 "3"^^:t) } values ?x { 1

   2 } filter :f(?x) ?x ?y ?z filter regex(?x,'a')optional { graph ?g {} } filter (?x > 3
      && ?y < 4 # less
      && exists { ?a ?b ?c }
      || ?a not in (1,2))
# last
} # end
group by ?x (str(?y) as ?yy)
having(count(*)>1) order by desc(?x) asc(?y) ?z limit 5 offset 2 # so few
# bye"""


def formatted(text: str) -> str:
    """Return the layout of a text, after a look at everything that must hold of all."""
    layout = format_query(text)
    assert syntax(layout) == syntax(text)
    assert comments(layout) == comments(text)
    assert format_query(layout) == layout
    return layout


def syntax(text: str) -> ast.Query:
    return parse(text, prefixes={"": "urn:"})


def comments(text: str) -> list[str]:
    return [comment.text for piece in pieces(text) for comment in piece.comments]


def test_listing_1_of_the_paper() -> None:
    assert formatted(LISTING_1) == (
        """\
REGISTER STREAM :TopkUsersToContact AS
SELECT ?user
  F(?mentionCount, ?followerCount) AS ?score
FROM NAMED WINDOW :W ON :S [RANGE 9m STEP 3m]
WHERE {
  WINDOW :W {
    ?user :hasMentions ?mentionCount
  }
  SERVICE :BKG {
    ?user :hasFollowers ?followerCount
  }
}
ORDER BY DESC(?score)
LIMIT 1
"""
    )


def test_a_query_with_everything_in_it() -> None:
    assert formatted(EVERYTHING) == (
        """\
# what it is for
BASE <http://b.example/>
PREFIX : <#> # the default

# who gets it
REGISTER RSTREAM :out COMPUTED EVERY 5s AS
SELECT DISTINCT ?x
  (COUNT(DISTINCT *) AS ?c) # the count
  (GROUP_CONCAT(?x ; SEPARATOR=', ') AS ?all)
FROM NAMED WINDOW :w ON STREAM :s [RANGE PT9M SLIDE 3 min]
FROM NAMED WINDOW ?v ON :s [ELEMENTS 10 STEP 5]
FROM :static
WHERE { # inside
  # a window
  WINDOW :w {
    ?x a/:p|^:q* [ :a 1 ; :b (1 2 (3)) ], ?z ; .
    ?x !(:p|^a)+ -5
  } # behind it

  SERVICE SILENT :b {
    ?x :p _:b .
    FILTER (!?x = -?y && - 5 < ?z -1)
    FILTER NOT EXISTS {
      ?x ?y ?z
    }
  }
  MINUS {
    ?x ?p ?y,
        ?z
  }
  {
    SELECT ?x {
      ?x ?y ?z
    }
    LIMIT 3
    VALUES ?x { 1 2 }
  }
  { } UNION {
    [] :p ()
  } UNION {
    # nothing
  } .
  BIND (IF(BOUND(?x), COALESCE(), '''a
b'''@en) AS ?k)
  VALUES (?x ?y) {
    (1 UNDEF)
    (2 "3"^^:t)
  }
  VALUES ?x { 1
    2 }
  FILTER :f(?x)
  ?x ?y ?z
  FILTER REGEX(?x, 'a')
  OPTIONAL {
    GRAPH ?g { }
  }
  FILTER (?x > 3
    && ?y < 4 # less
    && EXISTS {
      ?a ?b ?c
    }
    || ?a NOT IN (1, 2))
  # last
} # end
GROUP BY ?x (STR(?y) AS ?yy)
HAVING (COUNT(*) > 1)
ORDER BY DESC(?x) ASC(?y) ?z
LIMIT 5
OFFSET 2 # so few
# bye
"""
    )


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("ask{}", "ASK { }"),
        ("ask\nwhere{?s ?p ?o.?a ?b ?c.}", "ASK\nWHERE {\n  ?s ?p ?o .\n  ?a ?b ?c .\n}"),
        ("construct where{?s ?p ?o}", "CONSTRUCT WHERE {\n  ?s ?p ?o\n}"),
        ("construct{?s ?p 1}from :g{}", "CONSTRUCT {\n  ?s ?p 1\n}\nFROM :g { }"),
        ("describe*{}limit 1", "DESCRIBE * { }\nLIMIT 1"),
        ("describe <urn:a>\n<urn:b>", "DESCRIBE <urn:a>\n  <urn:b>"),
        ("select*{}values(?x ?y){}", "SELECT * { }\nVALUES (?x ?y) { }"),
        ("select*{}values(){()()}", "SELECT * { }\nVALUES () {\n  ()\n  ()\n}"),
        ("select(:f(?x,-?y,- 1,-1)as ?z){}", "SELECT (:f(?x, -?y, - 1, -1) AS ?z) { }"),
        ("select(?x-?y*-(2)+ +?z as ?s){}", "SELECT (?x - ?y * -(2) + +?z AS ?s) { }"),
        ("select(?x-1 as ?y){}", "SELECT (?x -1 AS ?y) { }"),
        ("select(TRUE as ?y)(isiri(?x)as ?z){}", "SELECT (TRUE AS ?y) (ISIRI(?x) AS ?z) { }"),
        ("ask{filter now()?s ?p ?o}", "ASK {\n  FILTER NOW()\n  ?s ?p ?o\n}"),
        ("ask{filter norm()?s ?p ?o}", "ASK {\n  FILTER norm()\n  ?s ?p ?o\n}"),
        ("ask{?s ?p ?o{?a ?b ?c}}", "ASK {\n  ?s ?p ?o\n  {\n    ?a ?b ?c\n  }\n}"),
        ("ask{?s(:p/^:q)*?o}", "ASK {\n  ?s (:p/^:q)* ?o\n}"),
        ("ask{(1:f(2)):p:q(3)}", "ASK {\n  (1 :f (2)) :p:q (3)\n}"),
        ("ask{:f :p(:f(2)),()}", "ASK {\n  :f :p (:f (2)), ()\n}"),
        ("ask{?s ?p'a'@en,'b'^^:t}", "ASK {\n  ?s ?p 'a'@en, 'b'^^:t\n}"),
        ("ask{}\r\n# one\r\n\r\n\r\n# two \r\n", "ASK { }\n# one\n\n# two"),
        ("ask#\n{#\n}#", "ASK #\n{ #\n} #"),
        ("ask{\n\n# alone\n\n}", "ASK {\n  # alone\n}"),
        ("ask{?s ?p ?o # here\n.}", "ASK {\n  ?s ?p ?o # here\n    .\n}"),
        ("ask{?s # s\n# p\n?p ?o}", "ASK {\n  ?s # s\n      # p\n      ?p ?o\n}"),
    ],
)
def test_layout(text: str, layout: str) -> None:
    assert formatted(text) == layout + "\n"


def test_codepoint_escapes_stay_as_written() -> None:
    assert formatted(r"\u0061sk{?s ?p '\u00e9',?\u0061\u0020#\u0020yes" + "\n}") == (
        "ASK {\n  ?s ?p '\\u00e9', ?\\u0061 #\\u0020yes\n}\n"
    )


@pytest.mark.parametrize(
    "text", ["", "# nothing", "ASK", "ASK { } }", "SELECT ?x { ?s ?p }", r"ASK { ?s ?p '\uD800' }"]
)
def test_what_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        format_query(text, file="q.rspql")
    assert caught.value.file == "q.rspql"


@settings(max_examples=100)
@given(queries())
def test_what_is_printed_is_its_own_layout(query: ast.Query) -> None:
    text = query_text(query) + "\n"
    assert formatted(text) == text


def as_typed(piece: Piece) -> str:
    return piece.text.lower() if piece.kind in (piece.text, "FUNCTION") else piece.text


gaps = st.sampled_from(
    [" ", " ", "\n", "\t\r\n\r\n\r\n", " # behind\n", "\n# alone\n", "\n\n# apart \n\n\n", "#\n#\n"]
)


@settings(max_examples=100)
@given(queries(), st.data())
def test_whatever_stands_between_the_tokens(query: ast.Query, data: st.DataObject) -> None:
    words = [as_typed(piece) for piece in pieces(query_text(query))]
    between = data.draw(st.lists(gaps, min_size=len(words), max_size=len(words)))
    text = "".join(gap + word for gap, word in zip(between, words, strict=True))
    assert parse(text) == query
    assert not any(line.endswith(" ") for line in formatted(text).split("\n"))
