"""Queries that the standard's rules allow, and queries that they forbid."""

from __future__ import annotations

GOOD = """
SELECT * WHERE { }
SELECT*{?s?p?o}
BASE <http://example.org/> PREFIX : <> PREFIX a.b-c: <x#> SELECT ?x { ?x a.b-c:y.z :o }
SELECT $x { $x <p> ?y ; ; <q> ?z ; . }
SELECT * { ?s <p> 1, 1.0, 1e0, .5, +1, -1.5, .5E-3, true, FALSE, 'a', "b"@en-GB, '''c''', \
\"\"\"d"e\"\"\"^^<t> }
SELECT * { ?s <p> '''a''b\\n\\\\''' , "\\t\\b\\n\\r\\f\\"\\'\\\\" }
SELECT * { ?s <p> "\\u00e9\\U0001F600" ; <\\u00e9> ?\\u0061 }
SELECT * { ?größe <p> ?Ωx . ?_1 <p> ?1a }
SELECT * { ?s <p> () , ( ) , (1 (2 ?x) [ <q> [] ]) . [] <p> [] . [ <p> 1 ] . (1) <q> 2 }
SELECT * { _:a <p> _:b.c . FILTER(?x > 1) _:a <q> 1 }
SELECT * { { _:a <p> 1 } UNION { _:b <p> 1 } }
SELECT * # comment } \\u000A { ?s <a#b> "#" } # end
SELECT * { (1) . [ <p> 1 ] }
SELECT * { ?s <p>|^<q>/(<r>*|!(<s>|^<t>|a))+/^(<u>?)/!a/!^a/!() ?o }
SELECT * { ?s (<p>) ?o ; ?v ?w ; a <C> }
SELECT * { FILTER(?x<?y) FILTER (?x = -1 || ?x != +2 && !?y || ?x*-1/2-3+4 <= ?z -5) }
SELECT * { FILTER(?x -1*2/3 = ?y +1.0-2e0) }
SELECT * { FILTER(?x IN () && ?x NOT IN (1, ?y) && EXISTS { ?s ?p ?o } && NOT EXISTS {}) }
SELECT * { FILTER REGEX(?x, "a", "i") FILTER <f>() FILTER <f>(DISTINCT 1, 2) FILTER(<i>) }
SELECT (IF(BOUND(?x), COALESCE(?x, 1), CONCAT()) AS ?y) (NOW() AS ?z) (BNODE() AS ?b) \
(BNODE("l") AS ?c) { }
SELECT (REPLACE(?x, "a", "b") AS ?y) (REPLACE(?x, "a", "b", "i") AS ?z) (SUBSTR(?x, 1) AS \
?v) (RAND( ) AS ?w) { }
SELECT (COUNT(*) AS ?c) (COUNT(DISTINCT *) AS ?d) (SUM(DISTINCT ?x + 1) AS ?e) { }
SELECT (GROUP_CONCAT(?x) AS ?c) (GROUP_CONCAT(DISTINCT ?x ; SEPARATOR = ", ") AS ?d) \
(SAMPLE(?x) AS ?e) { }
SELECT ?x ?k (MIN(?y) AS ?m) (?m + 1 AS ?n) { } GROUP BY ?x STR(?y) (?z + 1 AS ?k) \
<f>(?z) HAVING (?k > 1) (?m < 2)
SELECT ?x { } ORDER BY ?x ASC(?y) DESC(?x + 1) (?z) STRLEN(?x) <f>(?x) LIMIT 1 OFFSET 2
SELECT DISTINCT ?x { } OFFSET 2 LIMIT 1 VALUES ?y { 1 UNDEF }
SELECT REDUCED ?x { VALUES (?x ?y) { (1 UNDEF) (<a> "b"@en) } VALUES () { () } VALUES ?z \
{ } VALUES (?w) { } }
SELECT ?x { { SELECT ?y { ?y <p> 1 } LIMIT 1 } { SELECT (COUNT(*) AS ?n) { } } BIND(1 AS ?x) }
SELECT ?x FROM <a> FROM NAMED <b> { GRAPH ?g { ?x ?y ?z } GRAPH <g> { } MINUS { } \
OPTIONAL { OPTIONAL { } } }
SELECT ?x { SERVICE SILENT <s> { ?x ?y ?z } SERVICE ?s { } }
SELECT ?x { ?x <p> ?y BIND(?y AS ?z) ?x <q> ?z . }
PREFIX : <x> SELECT * { ?s <p> true.:y <p> 2 } VALUES ?x {UNDEF-1}
SELECT * { FILTER(true-1) } LIMIT10 OFFSET2
ASK { } LIMIT 1
ASK WHERE { ?s ?p ?o }
DESCRIBE <a>
DESCRIBE ?x <a> FROM <g> { ?x ?y ?z } LIMIT 1
DESCRIBE * { ?x ?y ?z }
CONSTRUCT { } WHERE { }
CONSTRUCT { ?s ?p [ <q> (1 2) ] . _:a <p> _:a } { ?s ?p ?o . _:a <p> ?o }
CONSTRUCT WHERE { ?s ?p ?o ; <p> <q> . } LIMIT 1
CONSTRUCT FROM <g> WHERE { }
prefix select: <s#> Select ?select { ?select select:where select:select , select:FILTER } \
oRDER bY ?select
""".strip().split("\n")


BAD = """
SELECT * WHERE { ?s ?p }
SELECT WHERE { }
SELECT ?x, ?y { }
SELECT * { ?s ?p ?o ?q }
SELECT * { ?s <p> ?o } }
SELECT * { . }
SELECT * { ?s <p> ?o . . }
SELECT * { ; }
SELECT * { ?s <p> 'a\\qb' }
SELECT * { ?s <p> "a
SELECT * { ?s <p> "\\u12" }
SELECT * { ?s <p> "\\uD83D\\uDE00" }
SELECT * { ?s <p> "\\U00110000" }
SELECT * { ?s <a b> ?o }
SELECT * { ?s <p> "a"@en_GB }
SELECT * { ?s "p" ?o }
SELECT * { ?s _:p ?o }
SELECT * { ?s [] ?o }
SELECT * { <p> }
SELECT * { ?a\u00d7b <p> 1 }
SELECT * { undeclared:s <p> 1 }
SELECT * { ?s <p>* }
SELECT * { ?s !?v ?o }
SELECT * { ?s !(<p>/<q>) ?o }
CONSTRUCT { ?s <p>/<q> ?o } { ?s ?p ?o }
CONSTRUCT { ?s ?p ?o } { FILTER }
CONSTRUCT WHERE { ?s ?p ?o FILTER(?s) }
CONSTRUCT WHERE { { } }
SELECT * { _:a <p> 1 OPTIONAL { _:a <p> 2 } }
SELECT * { _:a <p> 1 { _:a <p> 2 } }
SELECT * { { _:a <p> 1 } UNION { _:a <p> 2 } }
SELECT * { _:a <p> 1 GRAPH <g> { _:a <p> 2 } }
SELECT * { _:a <p> 1 . OPTIONAL { } _:a <p> 2 }
SELECT * { _:a <p> 1 . FILTER EXISTS { _:a <p> 2 } }
SELECT * { ?s <p> ?x BIND(1 AS ?x) }
SELECT * { BIND(1 AS ?x) BIND(2 AS ?x) }
SELECT * { { ?s <p> ?x } BIND(1 AS ?x) }
SELECT * { OPTIONAL { ?s <p> ?x } BIND(1 AS ?x) }
SELECT * { { SELECT ?x { ?x <p> 1 } } BIND(1 AS ?x) }
SELECT * { VALUES ?x { 1 } BIND(1 AS ?x) }
SELECT (1 AS ?x) { ?x <p> 1 }
SELECT (1 AS ?x) { } VALUES ?x { 1 }
SELECT (1 AS ?x) (2 AS ?x) { }
SELECT ?x (1 AS ?x) { }
SELECT (1) { }
SELECT (?x AS 1) { }
SELECT * { ?x <p> ?y } GROUP BY ?x
SELECT ?y { ?x <p> ?y } GROUP BY ?x
SELECT ?x (COUNT(*) AS ?c) { ?x <p> ?y }
SELECT (?y + 1 AS ?z) { ?x <p> ?y } GROUP BY ?x
SELECT (STR(?x) AS ?z) { ?x <p> ?y } GROUP BY STR(?x)
SELECT (COUNT(SUM(?x)) AS ?z) { ?x <p> ?y }
SELECT (SUM(*) AS ?z) { }
SELECT (COUNT(?x, ?y) AS ?z) { }
SELECT * { FILTER(COUNT(?x) > 1) }
SELECT * { BIND(SUM(?x) AS ?y) }
SELECT ?x { } GROUP BY COUNT(?x)
SELECT * { FILTER ?x }
SELECT * { FILTER(BOUND(1)) }
SELECT * { FILTER(BOUND((?x))) }
SELECT * { FILTER(BOUND()) }
SELECT (COUNT(*) AS ?n) { } GROUP BY (?x AS ?y) (?z AS ?y)
SELECT (2 AS ?y) { } GROUP BY (1 AS ?y)
SELECT * { } LIMIT 1 ORDER BY ?x
SELECT * { } LIMIT 12345678901234567890
SELECT * { FILTER(BOUND(<x>)) }
SELECT * { FILTER(STR()) }
SELECT * { FILTER(STR(1, 2)) }
SELECT * { FILTER(IF(1, 2)) }
SELECT * { FILTER(NOW(1)) }
SELECT * { FILTER(REGEX("a")) }
SELECT * { FILTER(1 < 2 < 3) }
SELECT * { FILTER(!!?x) }
SELECT * { VALUES (?x ?y) { (1) } }
SELECT * { VALUES (?x) { (1 2) } }
SELECT * { VALUES ?x { ?y } }
SELECT * { VALUES ?x { _:b } }
SELECT * { VALUES (?x ?x) { (1 2) } }
SELECT * { } ORDER BY
SELECT * { } LIMIT -1
SELECT * { } LIMIT 1 LIMIT 2
SELECT * { } LIMIT 1 ORDER BY ?x
SELECT * { } HAVING
SELECT * { SELECT ?x { } ?x ?y ?z }
SELECT * { { SELECT ISTREAM ?x { } } }
SELECT * { { SELECT * FROM <g> { } } }
SELECT * { GRAPH "g" { } }
SELECT * { SERVICE "s" { } }
ASK
DESCRIBE
DESCRIBE _:a
PREFIX x <y> SELECT * { }
PREFIX : <y>
BASE x: SELECT * { }
SELECT * { ?s ?p ?o } extra
""".strip().split("\n")
