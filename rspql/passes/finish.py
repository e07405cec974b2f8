"""Plan how an answer is made of the best solutions by the score: more keys, groups, ties."""

from __future__ import annotations

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, evaluable
from rspql.passes.read_stream import StreamPart
from rspql.passes.recognise_topk import Ranking
from rspql.plan import Finish, RollUp
from rspql.scope import Names, selected
from rspql.scoring import FunctionRegistry


def finish(
    query: ast.Query,
    ranking: Ranking,
    part: StreamPart,
    remote: Names,
    functions: FunctionRegistry,
    roll_up: RollUp | None = None,
) -> Finish | None:
    """Return what is left to do with the best solutions by the score; None if nothing is.

    REDUCED may keep all rows. Raises :class:`NotIncremental` for keys that a row does not decide.
    """
    assert isinstance(query.form, ast.Select)
    for key in ranking.more_keys:
        _check_key(key)
    keys = tuple(evaluable(key, functions) for key in ranking.more_keys)
    is_distinct = query.form.duplicates == "DISTINCT" and not _determines(
        selected(query), part, remote, roll_up
    )
    cut = query.cut or ast.LimitScope()
    is_of_groups = part.aggregate is not None or roll_up is not None
    holds = None if is_of_groups else ranking.holds
    made = Finish(
        keys,
        is_distinct,
        tuple(each.name for each in cut.per),
        cut.with_ties,
        None if holds is None else evaluable(holds, functions),
    )
    return None if made == Finish() else made


def _check_key(key: ast.OrderCondition) -> None:
    for node in ast.walk(key):
        if isinstance(node, ast.Exists | ast.Aggregate):
            raise NotIncremental("a key of ORDER BY needs the whole window", node)
        if isinstance(node, ast.Call) and node.function in VOLATILE:
            name = str(node.function).upper()
            raise NotIncremental(f"it orders by {name}, which is another each time", node)


def _determines(names: Names, part: StreamPart, remote: Names, roll_up: RollUp | None) -> bool:
    """Return True if no two solutions are equal in some variables."""
    if roll_up is not None:
        return all(name in names for name in roll_up.keys)
    aggregate = part.aggregate
    bound = part.bound if aggregate is None else dict.fromkeys(aggregate.keys)
    return all(name in names for name in (*bound, *remote))
