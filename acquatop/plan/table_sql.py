"""Ranking of a table in SQL: the order by a score, and conditions on numbers."""

from __future__ import annotations

from collections.abc import Mapping

from acquatop.catalog.remotes import SqlSource
from connectors.lexical import INTEGERS
from replica.remotes.records import Star
from replica.remotes.sql_best import SqlOrder
from replica.remotes.sql_statement import SqlStatement
from rspql import ast
from rspql.plan import TableRanking

_NUMBERS = frozenset((*INTEGERS, ast.XSD + "decimal", ast.XSD + "double", ast.XSD + "float"))
_COMPARED = {"=": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_JOINED = {"&&": "AND", "||": "OR"}


def in_sql(ranking: TableRanking, source: SqlSource, star: Star) -> SqlOrder | None:
    """Return the order of a table's rows as a database computes it; None if it cannot.

    That is + - * of columns of numbers, and filters that compare these.
    """
    if not SqlStatement(source.statement, source.mapping.key.path, "qmark").is_table:
        return None
    columns = {
        name: source.mapping.properties[predicate].path
        for name, predicate in star.columns.items()
        if source.mapping.properties[predicate].datatype in _NUMBERS
    }
    score = _number(ranking.score, columns)
    filters = [each for each in ranking.beside if isinstance(each, ast.Filter)]
    computed = [each for each in ranking.beside if not isinstance(each, ast.Filter)]
    conditions = [_condition(each.expression, columns) for each in filters]
    if score is None or star.constants or star.fields or None in conditions:
        return None
    if any(not isinstance(each, ast.Assignment) for each in computed):
        return None
    every = [f"{score} IS NOT NULL", *(each for each in conditions if each)]
    return SqlOrder(f"{score} {'DESC' if ranking.descending else 'ASC'}", " AND ".join(every))


def _number(node: ast.Expression, columns: Mapping[str, str]) -> str | None:
    match node:
        case ast.Variable(name):
            return columns.get(name)
        case ast.Literal(lexical, datatype) if datatype in _NUMBERS:
            return lexical if _is_plain(lexical) else None
        case ast.Unary("-", operand):
            inner = _number(operand, columns)
            return None if inner is None else f"(- {inner})"
        case ast.Binary("+" | "-" | "*" as operator, left, right):
            sides = _number(left, columns), _number(right, columns)
            return None if None in sides else f"({sides[0]} {operator} {sides[1]})"
    return None


def _condition(node: ast.Expression, columns: Mapping[str, str]) -> str | None:
    match node:
        case ast.Binary(operator, left, right) if operator in _COMPARED:
            sides = _number(left, columns), _number(right, columns)
            return None if None in sides else f"{sides[0]} {_COMPARED[operator]} {sides[1]}"
        case ast.Binary(operator, left, right) if operator in _JOINED:
            parts = _condition(left, columns), _condition(right, columns)
            return None if None in parts else f"({parts[0]} {_JOINED[operator]} {parts[1]})"
    return None


def _is_plain(lexical: str) -> bool:
    """Return True for digits with at most a point: nothing that a database reads otherwise."""
    whole, _, rest = lexical.partition(".")
    return whole.isdecimal() and (not rest or rest.isdecimal()) and lexical.isascii()
