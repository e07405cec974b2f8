"""Scoring expressions: what they need, how they are computed on arrays, and how far they can reach."""

from rspql.scoring.check import check_expression, variables_in
from rspql.scoring.functions import FUNCTIONS, FloatArray, ScoringFunction
from rspql.scoring.intervals import EVERYTHING, Interval, bounds
from rspql.scoring.vectorise import ScoreFunction, vectorise

__all__ = [
    "EVERYTHING",
    "FUNCTIONS",
    "FloatArray",
    "Interval",
    "ScoreFunction",
    "ScoringFunction",
    "bounds",
    "check_expression",
    "variables_in",
    "vectorise",
]
