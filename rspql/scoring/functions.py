"""Functions in scores: their definition, user functions, and the registry that finds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from rspql import ast
from rspql.scoring.intervals import EVERYTHING, Interval, clip, widen

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Mask = BoolArray | bool
Expand = Callable[..., ast.Expression]

SPARQL_NAMES = frozenset(
    """
    abs avg bnode bound ceil coalesce concat contains count datatype day encode_for_uri exists floor
    group_concat hours if in iri isblank isiri isliteral isnumeric isuri lang langmatches lcase max
    md5 min minutes month not now rand regex replace round sameterm sample seconds sha1 sha256
    sha384 sha512 str strafter strbefore strdt strends strlang strlen strstarts struuid substr sum
    timezone tz ucase uri uuid year
    """.split()
)
"""Names of SPARQL 1.1's own functions and keywords, in lower case."""


class ResultType(Enum):
    """Rule for the datatype of a function's value, given those of its arguments."""

    DOUBLE = "double"
    ARGUMENT = "that of its arguments"
    QUOTIENT = "that of a quotient of its arguments"


@dataclass(frozen=True)
class ScoringFunction:
    """A function of numbers with ``arity`` arguments, or at least as many if it is ``variadic``.

    - ``apply`` works on whole arrays. NaN in any argument gives NaN.
    - ``fails`` returns, for the arguments and the result, a mask of the rows that are errors. By
      default every NaN is one; otherwise a NaN is the number NaN.
    - ``floating`` returns a mask of the rows whose value is an xsd:float or xsd:double, for the
      arguments and their masks. By default it follows from ``result``.
    - ``bounds`` returns an interval that holds every number ``apply`` can give for arguments from
      the given intervals.
    - ``directions`` returns for the given intervals 1 for each argument in which the function never
      falls, -1 for each in which it never rises, and 0 if neither is known.
    - ``total`` returns True if no numbers from the given intervals give an error.
    - ``exactly`` does the same to the numerators of ratios, if that is possible.
    - ``sparql`` is the function's name in SPARQL engines: a SPARQL name, or an IRI that can be
      bound to a custom function. ``expand`` writes a call in plain SPARQL if no engine knows the
      function.
    """

    arity: int
    apply: Callable[..., FloatArray]
    bounds: Callable[..., Interval]
    signature: str
    directions: Callable[..., tuple[int, ...]]
    variadic: bool = False
    total: Callable[..., bool] = lambda *_intervals: False
    result: ResultType = ResultType.DOUBLE
    sparql: str | None = None
    expand: Expand | None = None
    fails: Callable[..., BoolArray | bool] = lambda result, *_values: np.isnan(result)
    floating: Callable[[Sequence[FloatArray], Sequence[Mask]], Mask] | None = None
    exactly: Callable[[FloatArray], FloatArray] | None = None

    @property
    def keeps_nan(self) -> bool:
        """True if the value can be NaN without being an error."""
        return self.result is not ResultType.DOUBLE

    def takes(self, count: int) -> bool:
        """Return True if the function can be called with ``count`` arguments."""
        return count >= self.arity if self.variadic else count == self.arity


def scoring_function(
    function: Callable[..., npt.ArrayLike],
    directions: Sequence[int],
    range: tuple[float, float] | None = None,
    signature: str | None = None,
) -> ScoringFunction:
    """Return a user function for use in scores.

    ``function`` takes one array of doubles per argument, all of one length, and returns as many
    values, NaN for errors. If an argument is NaN, so is the result, whatever the function returns.
    ``directions`` has one number per argument: 1 if the result never falls as the argument grows,
    -1 if it never rises, 0 if neither holds everywhere. Results are clipped to ``range``. These
    declarations are trusted, not checked: with wrong directions, answers are reported as more
    certain than they are. Exceptions from the function are not caught.

    >>> decay = scoring_function(lambda age: np.exp2(-age / 7), directions=(-1,), range=(0, 1))
    >>> decay.apply(np.array([0.0, 7.0, -7.0, np.nan]))
    array([1. , 0.5, 1. , nan])
    >>> decay.bounds(Interval(7.0, np.inf)).low
    0.0
    """
    signs = tuple(directions)
    if not signs or any(sign not in (-1, 0, 1) for sign in signs):
        raise ValueError(f"directions are 1, -1 or 0, one for each argument, not {directions!r}")
    limits = EVERYTHING if range is None else Interval(float(range[0]), float(range[1]))
    if not limits.low <= limits.high:
        raise ValueError(f"the range from {limits.low:g} to {limits.high:g} is empty")
    apply = _strict(function, limits)
    return ScoringFunction(
        arity=len(signs),
        apply=apply,
        bounds=lambda *intervals: corner_bounds(apply, signs, intervals, limits),
        signature=signature or _signature(function, len(signs)),
        directions=lambda *_intervals: signs,
    )


def corner_bounds(
    apply: Callable[..., FloatArray],
    signs: Sequence[int],
    intervals: Sequence[Interval],
    limits: Interval,
) -> Interval:
    """Return the bounds of a function that is monotone in each argument, from two of its values.

    If an argument has sign 0 and is not a single number, only the limits are known.
    """
    if any(sign == 0 and not each.is_point for sign, each in zip(signs, intervals, strict=True)):
        return limits
    least = [
        each.low if sign >= 0 else each.high for sign, each in zip(signs, intervals, strict=True)
    ]
    most = [
        each.high if sign >= 0 else each.low for sign, each in zip(signs, intervals, strict=True)
    ]
    with np.errstate(all="ignore"):
        low, high = (
            float(apply(*(np.array([each]) for each in corner))[0]) for corner in (least, most)
        )
    # An error in a corner says nothing about the values next to it.
    reach = Interval(-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)
    return clip(widen(reach), limits)


class FunctionRegistry:
    """Immutable registry of the functions that a score may call, by name or IRI.

    Names are case-insensitive, IRIs are not. An extension is a new registry.

    >>> twice = scoring_function(lambda x: 2 * x, (1,))
    >>> registry = FunctionRegistry({}).with_function("twice", twice)
    >>> registry.find("TWICE") is registry.find("twice")
    True
    """

    def __init__(self, functions: Mapping[str, ScoringFunction]) -> None:
        # A plain dictionary: it is pickled with scores for the workers that decode records; a
        # mapping proxy cannot be.
        self._functions: Mapping[str, ScoringFunction] = {
            _key(name): each for name, each in functions.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __getitem__(self, name: str) -> ScoringFunction:
        return self._functions[_key(name)]

    def find(self, function: ast.Iri | str) -> ScoringFunction | None:
        """Return a call's scoring function, None if unknown; an IRI is never read as a name."""
        if isinstance(function, ast.Iri):
            return self._functions.get(function.value) if _is_iri(function.value) else None
        return None if _is_iri(function) else self._functions.get(function.lower())

    def with_function(self, name_or_iri: str, function: ScoringFunction) -> FunctionRegistry:
        """Return a registry with one more function; it replaces one of the same name.

        A name consists of letters, digits and ``_``, and must not be one of SPARQL's own.
        Everything with a colon is an IRI. The function's signature takes over a name, but not an
        IRI.
        """
        if not _is_iri(name_or_iri):
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name_or_iri):
                raise ValueError(f"{name_or_iri!r} is neither a name nor an absolute IRI")
            if name_or_iri.lower() in SPARQL_NAMES:
                raise ValueError(
                    f"{name_or_iri} has a meaning of its own in SPARQL; choose another name"
                )
            function = replace(
                function, signature=name_or_iri + function.signature[function.signature.find("(") :]
            )
        return FunctionRegistry({**self._functions, name_or_iri: function})


def _is_iri(name: str) -> bool:
    return ":" in name


def _key(name: str) -> str:
    return name if _is_iri(name) else name.lower()


def _signature(function: Callable[..., object], count: int) -> str:
    name = getattr(function, "__name__", "f")
    arguments = ", ".join(f"value{at}" for at in range(1, count + 1)) if count > 1 else "value"
    return f"{name if name.isidentifier() else 'f'}({arguments})"


def _strict(function: Callable[..., npt.ArrayLike], limits: Interval) -> Callable[..., FloatArray]:
    def apply(*arguments: FloatArray) -> FloatArray:
        columns = np.broadcast_arrays(*arguments)
        result = np.broadcast_to(np.asarray(function(*columns), dtype=np.float64), columns[0].shape)
        missing = np.isnan(columns).any(axis=0)
        return np.where(missing, np.nan, np.clip(result, limits.low, limits.high))

    return apply
