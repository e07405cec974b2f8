"""The RSP-QL language: query text in, plan out.

This part of AcquaTop knows nothing of Spark, clocks or the network. It parses text into an
:mod:`abstract syntax tree <rspql.ast>` and compiles the tree into a :mod:`plan <rspql.plan>`. If it
cannot, it reports :mod:`diagnostics <rspql.diagnostics>`.

>>> from rspql import compile_query
>>> plan = compile_query('''
...     PREFIX : <http://example.org/>
...     SELECT ?user (2 * ?mentions + ?followers AS ?score)
...     FROM NAMED WINDOW :w ON :stream [RANGE 9m STEP 3m]
...     WHERE { WINDOW :w { ?user :mentions ?mentions }
...             SERVICE :people { ?user :followers ?followers } }
...     ORDER BY DESC(?score) LIMIT 3''')
>>> plan.k, plan.join_variables, plan.window.width_ms
(3, ('user',), 540000)
"""

from rspql.compiler import compile_query
from rspql.diagnostics import Diagnostic, QueryError

__all__ = ["Diagnostic", "QueryError", "compile_query"]
