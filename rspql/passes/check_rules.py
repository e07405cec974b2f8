"""Check the rules of SPARQL 1.1 that its grammar cannot express: scopes, grouping, aggregates.

A text that breaks one of these rules is not a query, so the parser runs this pass itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rspql import ast
from rspql.diagnostics import Diagnostic, in_source_order, nearest
from rspql.scope import selected


def check_rules(query: ast.Query) -> list[Diagnostic]:
    """Return every breach of the rules, in source order.

    Takes time proportional to the query's size.
    """
    checker = _Checker()
    checker.query(query)
    return in_source_order(checker.found)


class _Checker:
    """Checker that walks a query once.

    Each method returns the variables in scope after the part it has walked [18.2.1].
    """

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._label_home: dict[str, int] = {}
        self._basic_patterns = 0

    def _report(self, code: str, message: str, node: ast.Node, hint: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, node.span, hint))

    # Queries ------------------------------------------------------------------------------------

    def query(self, query: ast.Query) -> dict[str, None]:
        scope = {} if query.where is None else self.group(query.where)
        keys = self._group_keys(query, scope)
        expressions = [*query.having, *(each.expression for each in query.order)]
        for expression in expressions:
            self._expression(expression, aggregates=True)
        if query.cut is not None:
            self._cut(query, query.cut, scope, keys)
        if not isinstance(query.form, ast.Select):
            return {}
        for item in query.form.projection:
            if isinstance(item, ast.Assignment):
                self._expression(item.expression, aggregates=True)
        if _is_grouped(query):
            self._check_grouped(query.form, keys)
        after = _names(query.values.variables) if query.values else {}
        names = self._check_projection(query.form, scope | after)
        return (names if query.form.projection else scope) | after

    def _group_keys(self, query: ast.Query, scope: dict[str, None]) -> set[str]:
        keys = set()
        for condition in query.group_by:
            expression = (
                condition.expression if isinstance(condition, ast.Assignment) else condition
            )
            self._expression(expression, aggregates=False)
            if isinstance(condition, ast.Assignment):
                self._bind(condition, scope)
                keys.add(condition.variable.name)
                scope[condition.variable.name] = None
            elif isinstance(condition, ast.Variable):
                keys.add(condition.name)
        return keys

    def _cut(
        self, query: ast.Query, cut: ast.LimitScope, scope: Iterable[str], keys: Iterable[str]
    ) -> None:
        """Check the variables behind PER: a row decides them."""
        what = "PER" if cut.per else "WITH TIES"
        if not isinstance(query.form, ast.Select | ast.Construct):
            self._report("limit", f"{what} is for SELECT and CONSTRUCT", cut)
            return
        after = _names(query.values.variables) if query.values else {}
        known = {**dict.fromkeys(scope), **after}
        if isinstance(query.form, ast.Select):
            shown = selected(query)
            is_distinct = query.form.duplicates == "DISTINCT"
            more = {} if is_distinct else dict.fromkeys(keys) if _is_grouped(query) else known
            known = {**shown, **more}
        for each in cut.per:
            if each.name not in known:
                near = nearest(each.name, known)
                message = f"PER needs ?{each.name}, which is no variable of a row"
                hint = f"did you mean ?{near}?" if near else f"select ?{each.name}, or bind it"
                self._report("limit", message, each, hint)

    def _check_grouped(self, form: ast.Select, keys: set[str]) -> None:
        if not form.projection:
            self._report(
                "grouping",
                "SELECT * cannot stand with GROUP BY or aggregates",
                form,
                "name what to select",
            )
        known = set(keys)
        for item in form.projection:
            for variable in _outside_aggregates(
                item.expression if isinstance(item, ast.Assignment) else item
            ):
                if variable.name not in known:
                    message = f"?{variable.name} is neither grouped by nor aggregated"
                    hint = f"add it to GROUP BY, or wrap it: SAMPLE(?{variable.name})"
                    self._report("grouping", message, variable, hint)
            if isinstance(item, ast.Assignment):
                known.add(item.variable.name)

    def _check_projection(self, form: ast.Select, scope: dict[str, None]) -> dict[str, None]:
        names: dict[str, None] = {}
        for item in form.projection:
            if isinstance(item, ast.Assignment):
                self._bind(item, scope | names)
                names[item.variable.name] = None
            else:
                names[item.name] = None
        return names

    def _bind(self, item: ast.Assignment, scope: Iterable[str]) -> None:
        name = item.variable.name
        if name in scope:
            self._report(
                "bound-twice", f"?{name} is bound already", item.variable, "choose another name"
            )

    # Patterns -----------------------------------------------------------------------------------

    def group(self, group: ast.Group) -> dict[str, None]:
        scope: dict[str, None] = {}
        basic_pattern: int | None = None
        for element in group.elements:
            if isinstance(element, ast.TriplePattern):
                if basic_pattern is None:
                    self._basic_patterns += 1
                    basic_pattern = self._basic_patterns
                scope |= self._triple(element, basic_pattern)
            elif isinstance(element, ast.Filter):
                # A filter applies to its whole group, wherever it stands: it does not end a basic
                # graph pattern.
                self._expression(element.expression, aggregates=False)
            else:
                basic_pattern = None
                scope |= self._element(element, scope)
        return scope

    def _triple(self, triple: ast.TriplePattern, basic_pattern: int) -> dict[str, None]:
        names: dict[str, None] = {}
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, ast.Variable):
                names[term.name] = None
            elif isinstance(term, ast.BlankNode):
                home = self._label_home.setdefault(term.label, basic_pattern)
                if home != basic_pattern:
                    message = f"the blank node _:{term.label} stands in two graph patterns"
                    self._report("blank-node-scope", message, term, "use a variable")
        return names

    def _element(self, element: ast.Pattern, scope: dict[str, None]) -> dict[str, None]:
        """Return the names that an element, not a triple or filter, adds to its group's scope."""
        match element:
            case ast.Assignment():
                self._expression(element.expression, aggregates=False)
                self._bind(element, scope)
                return {element.variable.name: None}
            case ast.Values():
                return _names(element.variables)
            case ast.SubSelect():
                if element.query.cut is not None:
                    message = "PER and WITH TIES are not supported in a sub-query"
                    hint = "write them behind the LIMIT of the whole query"
                    self._report("limit", message, element.query.cut, hint)
                return self.query(element.query)
            case ast.Group():
                return self.group(element)
            case ast.UnionPattern():
                branches = [self.group(group) for group in element.groups]
                return {name: None for branch in branches for name in branch}
            case ast.MinusPattern():
                self.group(element.group)
                return {}
            case ast.OptionalPattern():
                return self.group(element.group)
            case (
                ast.WindowPattern(place, group)
                | ast.GraphPattern(place, group)
                | ast.ServicePattern(place, group)
            ):
                return _names([place]) | self.group(group)
            case _:
                raise AssertionError(f"no pattern: {element!r}")

    # Expressions --------------------------------------------------------------------------------

    def _expression(self, expression: ast.Node, *, aggregates: bool) -> None:
        """Check the places of aggregates, and the patterns in EXISTS."""
        if isinstance(expression, ast.Exists):
            self.group(expression.group)
            return
        if isinstance(expression, ast.Aggregate):
            if not aggregates:
                message = f"{expression.function.upper()} cannot stand here"
                hint = "aggregates belong in SELECT, HAVING and ORDER BY, and not into each other"
                self._report("aggregate", message, expression, hint)
            aggregates = False
        for child in ast.children(expression):
            self._expression(child, aggregates=aggregates)


def _is_grouped(query: ast.Query) -> bool:
    """Return True if a SELECT query makes rows of groups."""
    assert isinstance(query.form, ast.Select)
    ordered = (each.expression for each in query.order)
    computed = (*query.having, *ordered, *_selected(query.form))
    return bool(query.group_by) or any(map(_aggregates, computed))


def _selected(form: ast.Select) -> list[ast.Expression]:
    return [item.expression for item in form.projection if isinstance(item, ast.Assignment)]


def _aggregates(expression: ast.Expression) -> bool:
    return any(isinstance(node, ast.Aggregate) for node in ast.walk(expression))


def _outside_aggregates(expression: ast.Node) -> Iterator[ast.Variable]:
    if isinstance(expression, ast.Variable):
        yield expression
    elif not isinstance(expression, ast.Aggregate | ast.Exists):
        for child in ast.children(expression):
            yield from _outside_aggregates(child)


def _names(nodes: Iterable[ast.Node]) -> dict[str, None]:
    return {node.name: None for node in nodes if isinstance(node, ast.Variable)}
