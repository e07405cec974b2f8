"""Printer from syntax trees to text: plain SPARQL 1.1, plus RSP-QL where the tree uses it.

Every text parses back to the tree that it came from. Names are written out, so no text needs a
prologue except for the base of IRI(). A text's length grows with the tree's size times its depth;
the depth is bounded by
Python's recursion limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from rspql import ast
from rspql.built_ins import ARITIES

_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"},
)
_BARE_LITERALS = {
    ast.XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    ast.XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    ast.XSD + "double": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+"),
    ast.XSD + "boolean": re.compile("true|false"),
}

# Binding strengths of expressions: an operand needs no parentheses if it binds more strongly, or
# equally on the left.
_RELATION, _SUM, _PRODUCT, _PREFIXED, _PRIMARY = 2, 3, 4, 5, 6
_STRENGTHS = {
    "||": 0,
    "&&": 1,
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/", _PRODUCT),
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), _RELATION),
}
# Binding strengths of paths.
_ALTERNATIVE, _SEQUENCE, _INVERSE, _REPEATED, _STEP = 0, 1, 2, 3, 4

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_EPOCH = datetime(1970, 1, 1)


# Terms ---------------------------------------------------------------------------------------


def term_text(term: ast.Term) -> str:
    r"""Return a term in SPARQL syntax, without prefixes; all but variables are N-Triples too.

    >>> print(term_text(ast.Literal("3", ast.XSD + "integer")), term_text(ast.Literal('a\n"b"')))
    "3"^^<http://www.w3.org/2001/XMLSchema#integer> "a\n\"b\""
    """
    match term:
        case ast.Variable(name):
            return f"?{name}"
        case ast.Iri(value):
            return f"<{value}>"
        case ast.BlankNode(label):
            return f"_:{label}"
        case ast.Literal(lexical, datatype, language):
            text = f'"{lexical.translate(_ESCAPES)}"'
            if language:
                return f"{text}@{language}"
            return text if datatype == ast.XSD + "string" else f"{text}^^<{datatype}>"


def pattern_text(pattern: Iterable[ast.TriplePattern]) -> str:
    """Return triple patterns as the inside of a group graph pattern, on one line.

    >>> pattern_text([ast.TriplePattern(ast.Variable("s"), ast.Iri("urn:p"), ast.BlankNode("b"))])
    '?s <urn:p> _:b .'
    """
    return " ".join(
        f"{term_text(triple.subject)} {_verb_text(triple.predicate)} {term_text(triple.object)} ."
        for triple in pattern
    )


def _short_text(term: ast.Term) -> str:
    """Return a term, with numbers and booleans in their short forms."""
    if isinstance(term, ast.Literal):
        bare = _BARE_LITERALS.get(term.datatype)
        if bare and bare.fullmatch(term.lexical):
            return term.lexical
    return term_text(term)


# Expressions ---------------------------------------------------------------------------------


def expression_text(expression: ast.Expression) -> str:
    """Return an expression with the parentheses it needs; a pattern in it has its own lines.

    >>> x, five = ast.Variable("x"), ast.Literal("5", ast.XSD + "integer")
    >>> print(expression_text(ast.Binary("*", ast.Binary("+", x, five), ast.Unary("-", five))))
    (?x + 5) * -(5)
    >>> print(expression_text(ast.Call("regex", (x, ast.Literal("^a")))))
    REGEX(?x, "^a")
    """
    match expression:
        case ast.Variable() | ast.Iri() | ast.Literal():
            return _short_text(expression)
        case ast.Unary(operator, operand):
            # A number after a sign would be parsed as a signed number, which is another tree.
            return operator + _operand_text(operand, _PRIMARY, bare_numbers=False)
        case ast.Binary(operator, left, right):
            return _binary_text(operator, left, right)
        case ast.In(operand, choices, negated):
            word = "NOT IN" if negated else "IN"
            return f"{_operand_text(operand, _SUM)} {word} ({_list_text(choices)})"
        case ast.Exists(group, negated):
            return f"{'NOT ' if negated else ''}EXISTS {group_text(group)}"
        case ast.Call(function, arguments, distinct):
            kept = "DISTINCT " if distinct else ""
            return f"{_function_text(function)}({kept}{_list_text(arguments)})"
        case ast.Aggregate():
            return _aggregate_text(expression)


def _binary_text(operator: str, left: ast.Expression, right: ast.Expression) -> str:
    strength = _STRENGTHS[operator]
    # Comparisons do not chain; all other operators are left-associative.
    at_left = strength + 1 if strength == _RELATION else strength
    return f"{_operand_text(left, at_left)} {operator} {_operand_text(right, strength + 1)}"


def _operand_text(operand: ast.Expression, least: int, *, bare_numbers: bool = True) -> str:
    text = expression_text(operand)
    number = isinstance(operand, ast.Literal) and not text.startswith('"')
    if _strength(operand) < least or (number and not bare_numbers):
        return f"({text})"
    return text


def _strength(expression: ast.Expression) -> int:
    match expression:
        case ast.Binary(operator):
            return _STRENGTHS[operator]
        case ast.In():
            return _RELATION
        case ast.Unary():
            return _PREFIXED
        case _:
            return _PRIMARY


def _function_text(function: ast.Iri | str) -> str:
    if isinstance(function, ast.Iri):
        return term_text(function)
    return function.upper() if function in ARITIES else function


def _aggregate_text(aggregate: ast.Aggregate) -> str:
    distinct = "DISTINCT " if aggregate.distinct else ""
    argument = "*" if aggregate.argument is None else expression_text(aggregate.argument)
    separator = (
        ""
        if aggregate.separator is None
        else f" ; SEPARATOR={term_text(ast.Literal(aggregate.separator))}"
    )
    return f"{aggregate.function.upper()}({distinct}{argument}{separator})"


def _list_text(expressions: Iterable[ast.Expression]) -> str:
    return ", ".join(map(expression_text, expressions))


def _constraint_text(expression: ast.Expression) -> str:
    """Return a condition as FILTER takes it: only calls and EXISTS need no parentheses."""
    text = expression_text(expression)
    return text if isinstance(expression, ast.Exists | ast.Call) else f"({text})"


def _assignment_text(assignment: ast.Assignment) -> str:
    return f"({expression_text(assignment.expression)} AS {term_text(assignment.variable)})"


# Paths ---------------------------------------------------------------------------------------


def path_text(path: ast.Path) -> str:
    """Return a property path with the parentheses it needs.

    >>> p, q = ast.Iri("urn:p"), ast.Iri("urn:q")
    >>> print(path_text(ast.RepeatedPath(ast.SequencePath((p, ast.InversePath(q))), "+")))
    (<urn:p>/^<urn:q>)+
    """
    match path:
        case ast.Iri():
            return term_text(path)
        case ast.AlternativePath(paths):
            return "|".join(_step_text(each, _SEQUENCE) for each in paths)
        case ast.SequencePath(paths):
            return "/".join(_step_text(each, _INVERSE) for each in paths)
        case ast.InversePath(inner):
            return "^" + _step_text(inner, _REPEATED)
        case ast.RepeatedPath(inner, modifier):
            return _step_text(inner, _STEP) + modifier
        case ast.NegatedPath((choice,)):
            return "!" + path_text(choice)
        case ast.NegatedPath(choices):
            return f"!({'|'.join(map(path_text, choices))})"


def _step_text(path: ast.Path, least: int) -> str:
    text = path_text(path)
    return f"({text})" if _path_strength(path) < least else text


def _path_strength(path: ast.Path) -> int:
    match path:
        case ast.AlternativePath():
            return _ALTERNATIVE
        case ast.SequencePath():
            return _SEQUENCE
        case ast.InversePath():
            return _INVERSE
        case ast.RepeatedPath():
            return _REPEATED
        case ast.Iri() | ast.NegatedPath():
            return _STEP


def _verb_text(predicate: ast.Variable | ast.Path) -> str:
    return term_text(predicate) if isinstance(predicate, ast.Variable) else path_text(predicate)


# Patterns ------------------------------------------------------------------------------------


def group_text(group: ast.Group) -> str:
    """Return a group graph pattern in its braces, one element per line.

    >>> five = ast.Literal("5", ast.XSD + "integer")
    >>> triple = ast.TriplePattern(ast.Variable("s"), ast.Iri("urn:p"), five)
    >>> print(group_text(ast.Group((triple, ast.OptionalPattern(ast.Group(()))))))
    {
      ?s <urn:p> 5 .
      OPTIONAL { }
    }
    """
    return _block(inside_text(group))


def inside_text(group: ast.Group) -> str:
    """Return the text between a group graph pattern's braces."""
    match group.elements:
        case (ast.SubSelect(query),):
            return _body_text(query)
        case elements:
            return "\n".join(map(_element_text, elements))


def _block(inside: str) -> str:
    return f"{{\n{_indented(inside)}\n}}" if inside else "{ }"


def _indented(text: str) -> str:
    # Every line end belongs to the layout: those in literals are escaped.
    return "  " + text.replace("\n", "\n  ")


def _element_text(element: ast.Pattern) -> str:
    match element:
        case ast.TriplePattern(subject, predicate, object_):
            return f"{_short_text(subject)} {_verb_text(predicate)} {_short_text(object_)} ."
        case ast.Group():
            return group_text(element)
        case ast.UnionPattern(groups):
            return " UNION ".join(map(group_text, groups))
        case ast.Values():
            return _values_text(element)
        case ast.Filter(expression):
            return f"FILTER {_constraint_text(expression)}"
        case ast.Assignment():
            return f"BIND {_assignment_text(element)}"
        case ast.SubSelect(query):
            return _block(_body_text(query))
        case _:
            return f"{_keyword_text(element)} {group_text(element.group)}"


def _keyword_text(
    element: ast.WindowPattern
    | ast.GraphPattern
    | ast.ServicePattern
    | ast.OptionalPattern
    | ast.MinusPattern,
) -> str:
    """Return the text before the braces of a pattern made of a keyword and a group."""
    match element:
        case ast.WindowPattern(window):
            return f"WINDOW {term_text(window)}"
        case ast.GraphPattern(graph):
            return f"GRAPH {term_text(graph)}"
        case ast.ServicePattern(service, _, silent):
            return f"SERVICE {'SILENT ' if silent else ''}{term_text(service)}"
        case ast.OptionalPattern():
            return "OPTIONAL"
        case ast.MinusPattern():
            return "MINUS"


def _values_text(values: ast.Values) -> str:
    """Return a data block.

    The values of one variable are on one line. With more variables (or none) each row has its own
    line.
    """
    if len(values.variables) == 1:
        cells = "".join(f"{_cell_text(row[0])} " for row in values.rows)
        return f"VALUES {term_text(values.variables[0])} {{ {cells}}}"
    rows = "\n".join(f"({' '.join(map(_cell_text, row))})" for row in values.rows)
    return f"VALUES ({' '.join(map(term_text, values.variables))}) {_block(rows)}"


def _cell_text(cell: ast.Iri | ast.Literal | None) -> str:
    return "UNDEF" if cell is None else _short_text(cell)


# The query -----------------------------------------------------------------------------------


def query_text(query: ast.Query) -> str:
    """Return a query, one clause per line, with a BASE if it calls IRI under one.

    >>> x, w, s = ast.Variable("x"), ast.Iri("urn:w"), ast.Iri("urn:s")
    >>> inner = ast.Group((ast.TriplePattern(x, ast.Iri("urn:p"), x),))
    >>> where = ast.Group((ast.WindowPattern(w, inner),))
    >>> windows = (ast.WindowClause(w, s, 90_000, 60_000),)
    >>> print(query_text(ast.Query(ast.Select((x,)), where, windows, limit=3)))
    SELECT ?x
    FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 90s STEP 1m]
    WHERE {
      WINDOW <urn:w> {
        ?x <urn:p> ?x .
      }
    }
    LIMIT 3
    """
    base = ast.base_of(query)
    return _body_text(query) if base is None else f"{base_text(base)}\n{_body_text(query)}"


def base_text(base: str) -> str:
    """Return the declaration of a base, under which patterns with calls of IRI have to stand.

    >>> base_text("http://example.org/")
    'BASE <http://example.org/>'
    """
    return f"BASE <{base}>"


def _body_text(query: ast.Query) -> str:
    """Return a query without its prologue, as it stands within another's braces."""
    return "\n".join(_clauses(query))


def _clauses(query: ast.Query) -> Iterator[str]:
    if query.registration:
        yield _registration_text(query.registration)
    yield _form_text(query.form, query.output)
    yield from (f"FROM {term_text(graph)}" for graph in query.default_graphs)
    yield from (f"FROM NAMED {term_text(graph)}" for graph in query.named_graphs)
    yield from map(_window_text, query.windows)
    if query.where:
        yield f"WHERE {group_text(query.where)}"
    yield from _modifiers(query)
    if query.values:
        yield _values_text(query.values)


def _registration_text(registration: ast.Registration) -> str:
    every = (
        ""
        if registration.every_ms is None
        else f" COMPUTED EVERY {duration_text(registration.every_ms)}"
    )
    return f"REGISTER {registration.output} {term_text(registration.name)}{every} AS"


def _form_text(
    form: ast.Select | ast.Construct | ast.Describe | ast.Ask, output: str | None
) -> str:
    operator = f"{output} " if output else ""
    match form:
        case ast.Select(projection, duplicates):
            items = " ".join(
                _assignment_text(i) if isinstance(i, ast.Assignment) else term_text(i)
                for i in projection
            )
            return f"SELECT {operator}{duplicates + ' ' if duplicates else ''}{items or '*'}"
        case ast.Construct(template):
            return f"CONSTRUCT {operator}{group_text(ast.Group(template))}"
        case ast.Describe(targets):
            return f"DESCRIBE {' '.join(map(term_text, targets)) or '*'}"
        case ast.Ask():
            return "ASK"


def _window_text(clause: ast.WindowClause) -> str:
    if clause.counts:
        lengths = (
            f"{'TRIPLES' if clause.triples else 'ELEMENTS'} {clause.width} STEP {clause.slide}"
        )
    else:
        lengths = f"RANGE {duration_text(clause.width)} STEP {duration_text(clause.slide)}"
    start = "" if clause.start_ms is None else f" START {term_text(_moment(clause.start_ms))}"
    return (
        f"FROM NAMED WINDOW {term_text(clause.window)} ON {term_text(clause.stream)} "
        f"[{lengths}{start}]"
    )


def duration_text(length_ms: int) -> str:
    """Return a duration in the largest unit in which it is a whole number.

    >>> [duration_text(each) for each in (540_000, 90_000, 1_500, 86_400_000)]
    ['9m', '90s', '1500ms', '1d']
    """
    unit, size = next((unit, size) for unit, size in _UNITS if length_ms % size == 0)
    return f"{length_ms // size}{unit}"


def _moment(epoch_ms: int) -> ast.Literal:
    """Return an instant in UTC; ``datetime`` supports the years 1 to 9999."""
    text = (_EPOCH + timedelta(milliseconds=epoch_ms)).isoformat(timespec="milliseconds")
    return ast.Literal(text + "Z", ast.XSD + "dateTime")


def _modifiers(query: ast.Query) -> Iterator[str]:
    if query.group_by:
        yield f"GROUP BY {' '.join(map(_key_text, query.group_by))}"
    if query.having:
        yield f"HAVING {' '.join(map(_constraint_text, query.having))}"
    if query.order:
        yield f"ORDER BY {' '.join(map(_order_text, query.order))}"
    if query.limit is not None:
        yield f"LIMIT {query.limit}{_cut_text(query.cut)}"
    if query.offset is not None:
        yield f"OFFSET {query.offset}"


def _cut_text(cut: ast.LimitScope | None) -> str:
    if cut is None:
        return ""
    per = " ".join(("", "PER", *map(term_text, cut.per))) if cut.per else ""
    return f"{per} WITH TIES" if cut.with_ties else per


def _key_text(key: ast.Expression | ast.Assignment) -> str:
    match key:
        case ast.Assignment():
            return _assignment_text(key)
        case ast.Variable():
            return term_text(key)
        case _:
            return f"({expression_text(key)})"


def _order_text(condition: ast.OrderCondition) -> str:
    if condition.descending:
        return f"DESC({expression_text(condition.expression)})"
    if isinstance(condition.expression, ast.Variable):
        return term_text(condition.expression)
    return f"ASC({expression_text(condition.expression)})"
