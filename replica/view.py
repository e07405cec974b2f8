"""Read-only views of a replica: the parts of a store that readers of values need."""

from __future__ import annotations

from typing import Protocol

from replica.number_size import NumberSize
from replica.store.contract import BoolArray, FloatArray, IntArray
from replica.store.runs import Runs


class KnownValues(Protocol):
    """Keys and their numbers, as a replica knows them.

    If a key may have several solutions, each has a place of its own: ``numbers`` and ``floating``
    take places, and :meth:`runs` returns those of rows. Otherwise a row is its own place.
    """

    def rows(self, keys: list[str]) -> IntArray:
        """Return each key's row; -1 for an unknown key."""

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs | None:
        """Return the places of some rows; None if each row is its own place.

        With ``least`` 1, a row without any has the place -1, which has no values.
        """

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers, at least."""

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose key the remote had when it was last asked."""


class AveragedValues(KnownValues, Protocol):
    """Known values, with a mean that stands for unknown ones."""

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""


class ListedValues(KnownValues, Protocol):
    """Known values that can be listed."""

    def all_rows(self) -> IntArray:
        """Return the rows of all keys."""
