"""Scoring expressions: checks, vectorised evaluation, bounds, and directions."""

from rspql.scoring.bounds import bounds
from rspql.scoring.check import check_condition, check_expression, variables_in
from rspql.scoring.expand import to_sparql
from rspql.scoring.functions import FloatArray, FunctionRegistry, ScoringFunction, scoring_function
from rspql.scoring.intervals import EVERYTHING, Interval
from rspql.scoring.library import DEFAULT_FUNCTIONS, FUNCTIONS, MATH
from rspql.scoring.monotonicity import Direction, directions, explain_direction
from rspql.scoring.ordered_nan import with_ordered_nan
from rspql.scoring.ranges import range_of_aggregate, ranges_of
from rspql.scoring.types import result_type, type_of_value
from rspql.scoring.vectorise import (
    ConditionFunction,
    ScoreFunction,
    needs_types,
    vectorise,
    vectorise_condition,
)

__all__ = [
    "DEFAULT_FUNCTIONS",
    "EVERYTHING",
    "FUNCTIONS",
    "MATH",
    "ConditionFunction",
    "Direction",
    "FloatArray",
    "FunctionRegistry",
    "Interval",
    "ScoreFunction",
    "ScoringFunction",
    "bounds",
    "check_condition",
    "check_expression",
    "directions",
    "explain_direction",
    "needs_types",
    "range_of_aggregate",
    "ranges_of",
    "result_type",
    "scoring_function",
    "to_sparql",
    "type_of_value",
    "variables_in",
    "vectorise",
    "vectorise_condition",
    "with_ordered_nan",
]
