"""Builder of whole queries: their modifiers, their clauses and their forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import Output, keywords, nodes
from rspql.builder.terms import USUAL_PREFIXES
from rspql.builder.windows import WindowBuilder
from rspql.diagnostics import Diagnostic


@dataclass(frozen=True)
class _NamedGraph:
    iri: ast.Iri


@dataclass(frozen=True)
class _DefaultGraph:
    iri: ast.Iri


@v_args(meta=True)
class AstBuilder(WindowBuilder):
    """Builder of the whole tree."""

    # The dataset

    def default_graph_clause(self, meta: Meta, children: list[Any]) -> _DefaultGraph:
        return _DefaultGraph(nodes(children)[0])

    def named_graph_clause(self, meta: Meta, children: list[Any]) -> _NamedGraph:
        return _NamedGraph(nodes(children)[0])

    # Modifiers

    def group_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"group_by": tuple(nodes(children))}

    def having_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"having": tuple(nodes(children))}

    def order_condition(self, meta: Meta, children: list[Any]) -> ast.OrderCondition:
        descending = "DESC" in keywords(children)
        return ast.OrderCondition(nodes(children)[0], descending, span=self._span(meta))

    def order_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"order": tuple(nodes(children))}

    def limit_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        _, count, *more = children
        clause: dict[str, Any] = {"limit": self._whole(count, meta)}
        for each in more:
            clause |= each
        if more:
            per, ties = clause.pop("per", ()), clause.pop("with_ties", False)
            clause["cut"] = ast.LimitScope(per, ties, span=self._span(meta))
        return clause

    def per(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"per": tuple(nodes(children))}

    def with_ties(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"with_ties": True}

    def offset_clause(self, meta: Meta, children: list[Token]) -> dict[str, Any]:
        return {"offset": self._whole(children[1], meta)}

    def solution_modifier(self, meta: Meta, children: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: value for child in children for name, value in child.items()}

    # Query forms: each method returns the query's clauses by name

    def _clauses(self, form: ast.Node, parts: list[Any]) -> dict[str, Any]:
        clauses: dict[str, Any] = {"form": form, "where": None}
        for part in parts:
            if isinstance(part, dict):
                clauses |= part
            elif isinstance(part, ast.Group):
                clauses["where"] = part
            elif isinstance(part, ast.Values):
                clauses["values"] = part
        clauses["windows"] = tuple(part for part in parts if isinstance(part, ast.WindowClause))
        clauses["default_graphs"] = tuple(
            part.iri for part in parts if isinstance(part, _DefaultGraph)
        )
        clauses["named_graphs"] = tuple(part.iri for part in parts if isinstance(part, _NamedGraph))
        return clauses

    def select_clause(self, meta: Meta, children: list[Any]) -> ast.Select:
        duplicates = next(
            (each for each in ("DISTINCT", "REDUCED") if each in keywords(children)), None
        )
        items = tuple(child for child in nodes(children) if not isinstance(child, Output))
        self._note_output(children)
        return ast.Select(items, duplicates, span=self._span(meta))

    def output_operator(self, meta: Meta, children: list[Token]) -> Output:
        return Output(children[0].type, self._source.span(meta.start_pos, meta.end_pos))

    def _note_output(self, children: list[Any]) -> None:
        self._outputs += [child for child in children if isinstance(child, Output)]

    def select_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        form, *parts = children
        return self._clauses(form, parts)

    def sub_select(self, meta: Meta, children: list[Any]) -> ast.SubSelect:
        # The last operator seen belongs to this query if it stands within it. Those of inner
        # queries are already removed.
        start = self._source.span(meta.start_pos, meta.end_pos).start
        while self._outputs and self._outputs[-1].span.start >= start:
            message = "only the query itself makes a stream, not a query within it"
            self.diagnostics.append(Diagnostic("syntax", message, self._outputs.pop().span))
        query = ast.Query(**self.select_query(meta, children), span=self._span(meta))
        return ast.SubSelect(query, span=self._span(meta))

    def construct_template(self, meta: Meta, children: list[Any]) -> ast.Construct:
        return ast.Construct(tuple(children[0]) if children else (), span=self._span(meta))

    def construct_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        self._note_output(children)
        form, *parts = (child for child in nodes(children) if not isinstance(child, Output))
        return self._clauses(form, parts)

    def construct_short(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        triples = tuple(next((child for child in children if isinstance(child, list)), ()))
        form = ast.Construct(triples, span=self._span(meta))
        return self._clauses(form, [ast.Group(triples, span=self._span(meta)), *nodes(children)])

    def describe_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        targets = tuple(child for child in children if isinstance(child, ast.Variable | ast.Iri))
        return self._clauses(ast.Describe(targets, span=self._span(meta)), nodes(children))

    def ask_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return self._clauses(ast.Ask(span=self._span(meta)), nodes(children))

    def query(self, meta: Meta, children: list[Any]) -> ast.Query:
        parts = nodes(children)
        clauses = next(part for part in parts if isinstance(part, dict))
        dataset = self._clauses(clauses["form"], parts[: parts.index(clauses)])
        for name in ("windows", "default_graphs", "named_graphs"):
            clauses[name] = dataset[name] + clauses[name]
        clauses["output"] = self._outputs[0].operator if self._outputs else None
        clauses["registration"] = next(
            (part for part in parts if isinstance(part, ast.Registration)), None
        )
        clauses["values"] = next((part for part in parts if isinstance(part, ast.Values)), None)
        query = ast.Query(**clauses, span=self._span(meta))
        self._judge_undeclared(query)
        return query

    def _judge_undeclared(self, query: ast.Query) -> None:
        """Report names without a declared prefix.

        In RSP-QL the empty prefix and the usual ones need no declaration.
        """
        if query.registration or query.windows:
            for prefix in ("", *USUAL_PREFIXES):
                self._undeclared.pop(prefix, None)
        found = [each for each_prefix in self._undeclared.values() for each in each_prefix]
        self.diagnostics += sorted(found, key=lambda each: each.span.start if each.span else 0)
