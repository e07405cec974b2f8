"""Base of the stores that scores are computed from."""

from __future__ import annotations

from abc import abstractmethod

from replica.number_size import NumberSize
from replica.store.contract import BoolArray, FloatArray, IntArray
from replica.store.keyed_store import KeyedStore
from replica.store.row_changes import RowChanges
from replica.store.runs import Runs


class JoinedStore(KeyedStore):
    """Last known values by key; :class:`~replica.view.KnownValues` says what places are."""

    token: bytes
    """Random bytes that no other store has."""
    changes: RowChanges
    """Rows with new values, or with other keys or none."""

    @abstractmethod
    def present(self, rows: IntArray) -> BoolArray:
        """Return True for each row whose key the remote had when it was last asked."""

    @abstractmethod
    def runs(self, rows: IntArray, *, least: int = 0) -> Runs | None:
        """Return the places of some rows; None if each row is its own place."""

    @abstractmethod
    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN if there is none."""

    @abstractmethod
    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""

    @abstractmethod
    def terms(self, variable: str, places: IntArray) -> list[str | None]:
        """Return the N-Triples terms of some places' values, None if there is none."""

    @abstractmethod
    def distinct_terms(self, variable: str, places: IntArray) -> tuple[IntArray, list[str | None]]:
        """Return for each of some places the number of its term, and the terms, each once."""

    @abstractmethod
    def mean(self, variable: str) -> float:
        """Return the mean of a variable's known numbers, NaN if there are none."""

    @abstractmethod
    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
