"""Column store of one variable's terms: numbers as numbers, other terms as interned texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from replica.number_size import NumberSize
from replica.store.columns import AnyArray, column, grown
from replica.store.contract import BoolArray, FloatArray, IntArray
from replica.store.key_index import KeyIndex
from replica.store.number_forms import (
    FLOATING,
    NONE,
    OTHER,
    OTHER_FLOATING,
    PLACES,
    SINGLE,
    form_of,
    is_form,
    is_text,
    text_of,
)

_TEXTUAL = (OTHER, OTHER_FLOATING)
"""Codes of terms that are held as texts."""
_XSD = "http://www.w3.org/2001/XMLSchema#"


def places_of(term: str) -> int:
    """Return the number of digits after the point if a term is an xsd:decimal, else 0."""
    lexical, _, datatype = term.rpartition('"^^<')
    return len(lexical.partition(".")[2]) if datatype == f"{_XSD}decimal>" else 0


def is_single(term: str) -> bool:
    """Return True if a term is an xsd:float."""
    return term.endswith(f"^^<{_XSD}float>")


class TermColumn:
    """A term or none by row. Every term is returned with its exact original text.

    A number in a usual XSD form takes 9 bytes. Any other term takes 4 more, and its text is held
    once for all rows that have it, with about 30 bytes overhead. Reading and setting n rows takes
    O(n).

    >>> terms = TermColumn()
    >>> terms.make_room(2)
    >>> terms.set(np.array([0, 1]), ['"many"', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>']).tolist()
    [True, True]
    >>> terms.numbers(np.array([1, 0, -1])), terms.term(0)
    (array([ 7., nan, nan]), '"many"')
    """

    def __init__(self) -> None:
        self._capacity = 0
        self._numbers: FloatArray = column(0, np.nan, np.float64)
        self._codes = column(0, NONE, np.uint8)
        # Columns for terms other than numbers are created with the first such term.
        self._texts: KeyIndex | None = None
        self._ids = column(0, -1, np.int32)
        self._holders = column(0, 0, np.int32)
        # Texts held, by their digits after the point; those of xsd:float.
        self._places = Counter({0: 1})
        self._singles = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        texts = 0 if self._texts is None else self._texts.nbytes
        return (
            self._numbers.nbytes
            + self._codes.nbytes
            + self._ids.nbytes
            + self._holders.nbytes
            + texts
        )

    def make_room(self, capacity: int) -> None:
        """Make room for rows up to a number."""
        self._capacity = capacity
        self._numbers = grown(self._numbers, capacity, np.nan)
        self._codes = grown(self._codes, capacity, NONE)
        if self._texts is not None:
            self._ids = grown(self._ids, capacity, -1)

    def numbers(self, rows: IntArray) -> FloatArray:
        """Return the terms of rows as numbers, NaN if there is none and for row -1."""
        return self._numbers[rows]

    def floating(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose number is an xsd:float or xsd:double."""
        mask: BoolArray = FLOATING[self._codes[rows]]
        return mask

    def size(self) -> NumberSize:
        """Return the size of all numbers. O(capacity) on columns."""
        codes = np.flatnonzero(np.bincount(self._codes[: self._capacity]))
        numbers = np.abs(self._numbers[: self._capacity])
        exact = numbers[~FLOATING[self._codes[: self._capacity]] & np.isfinite(numbers)]
        places = int(PLACES[codes[~FLOATING[codes]]].max(initial=0))
        return NumberSize(
            float(exact.max(initial=0.0)),
            max(places, *self._places),
            bool(SINGLE[codes].any()) or self._singles > 0,
            bool((FLOATING & ~SINGLE)[codes].any()),
        )

    def all_numbers(self) -> FloatArray:
        """Return all finite numbers."""
        return self._numbers[np.isfinite(self._numbers)]

    def term(self, row: int) -> str | None:
        """Return a row's term, None if it has none and for row -1."""
        code = self._codes.item(row)
        if code == NONE:
            return None
        if not is_text(code):
            return text_of(self._numbers.item(row), code)
        return self._all_texts().keys(self._ids[[row]])[0]

    def terms(self, rows: IntArray) -> list[str | None]:
        """Return the terms of some rows."""
        return [self.term(row) for row in rows.tolist()]

    def distinct_terms(self, rows: IntArray) -> tuple[IntArray, list[str | None]]:
        """Return for each of some rows the number of its term, and the terms, each once.

        O(n log n) on columns, and the texts of different terms alone.

        >>> terms = TermColumn()
        >>> terms.make_room(4)
        >>> _ = terms.set(np.arange(4), ["<urn:a>", None, '"7"', "<urn:a>"])
        >>> numbers, said = terms.distinct_terms(np.arange(4))
        >>> [said[number] for number in numbers.tolist()], len(said)
        (['<urn:a>', None, '"7"', '<urn:a>'], 3)
        """
        codes = self._codes[rows].astype(np.int64)
        # Bits tell numbers apart: zero has two texts.
        held = self._numbers[rows].view(np.int64)
        held[codes == NONE] = 0
        textual = np.isin(codes, _TEXTUAL)
        # Without a text there need be no room for them.
        held[textual] = self._ids[rows[textual]]
        _, numbers = np.unique(held, return_inverse=True)
        _, firsts, numbers = np.unique(
            numbers * len(PLACES) + codes, return_index=True, return_inverse=True
        )
        return numbers, self.terms(rows[firsts])

    def set(self, rows: IntArray, terms: Sequence[str | None]) -> BoolArray:
        """Set the terms, or none, of rows, each given once; return True for those that changed."""
        forms = [form_of(term) for term in terms]
        numbers = np.array([number for number, _ in forms], np.float64)
        codes = np.array([code for _, code in forms], np.uint8)
        # Compare bits: zero has two texts, and NaN must equal itself.
        changed: BoolArray = (self._numbers[rows].view(np.int64) != numbers.view(np.int64)) | (
            self._codes[rows] != codes
        )
        in_words = is_text(codes)
        if self._texts is not None or in_words.any():
            ids = np.full(len(rows), -1, np.int64)
            ids[in_words] = self._hold(
                [terms[at] or "" for at in np.flatnonzero(in_words).tolist()]
            )
            changed |= self._replace_ids(rows, ids)
        self._numbers[rows], self._codes[rows] = numbers, codes
        return changed

    def clear(self, rows: IntArray) -> None:
        """Remove the terms of some rows, each given once."""
        if self._texts is not None:
            self._replace_ids(rows, np.full(len(rows), -1, np.int64))
        self._numbers[rows], self._codes[rows] = np.nan, NONE

    def keep(self, rows: IntArray, capacity: int) -> None:
        """Move some rows to the front, in this order; the others must have no term."""
        self._capacity = capacity
        self._numbers = grown(np.append(self._numbers[rows], np.nan), capacity, np.nan)
        self._codes = grown(np.append(self._codes[rows], np.uint8(NONE)), capacity, NONE)
        if self._texts is not None:
            self._ids = grown(np.append(self._ids[rows], np.int32(-1)), capacity, -1)

    def state(self, used: int) -> dict[str, AnyArray]:
        """Return the state of the first ``used`` rows as columns."""
        columns = {"numbers": self._numbers[:used], "codes": self._codes[:used]}
        if self._texts is None:
            return columns
        texts = {f"texts.{name}": each for name, each in self._texts.state().items()}
        return {**columns, "ids": self._ids[:used], **texts}

    def resume(self, state: Mapping[str, AnyArray], used: int) -> None:
        """Continue from a state; raises ValueError if it is invalid. There must be room for it."""
        numbers, codes = state["numbers"], state["codes"]
        if not len(numbers) == len(codes) == used or not all(
            is_form(code) for code in np.unique(codes).tolist()
        ):
            raise ValueError("a column of terms is not as it should be")
        self._numbers[:used], self._codes[:used] = numbers, codes
        if "ids" in state:
            self._resume_texts(state, used)
        elif is_text(codes).any():
            raise ValueError("terms have no text")

    def _resume_texts(self, state: Mapping[str, AnyArray], used: int) -> None:
        ids, texts = state["ids"].astype(np.int64), KeyIndex()
        texts.resume({name[6:]: each for name, each in state.items() if name.startswith("texts.")})
        held, in_words = texts.all_rows(), is_text(self._codes[:used])
        if not np.array_equal(in_words, ids >= 0) or not np.array_equal(
            np.unique(ids[in_words]), held
        ):
            raise ValueError("terms have no text")
        # A snapshot may be older than the forms.
        for row in np.flatnonzero(in_words).tolist():
            self._numbers[row], self._codes[row] = form_of(texts.keys(ids[[row]])[0])
        self._texts = texts
        self._ids = column(self._capacity, -1, np.int32)
        self._ids[:used] = ids
        self._holders = column(texts.capacity, 0, np.int32)
        self._places, self._singles = Counter({0: 1}), 0
        self._count_texts(texts.keys(held), 1)
        np.add.at(self._holders, ids[in_words], 1)

    def _all_texts(self) -> KeyIndex:
        if self._texts is None:
            self._texts = KeyIndex()
            self._ids = column(self._capacity, -1, np.int32)
        return self._texts

    def _replace_ids(self, rows: IntArray, ids: IntArray) -> BoolArray:
        before = self._ids[rows]
        self._ids[rows] = ids
        self._let_go(before[before >= 0])
        return np.asarray(before != ids)

    def _hold(self, texts: list[str]) -> IntArray:
        """Return the texts' rows, after counting one more holder of each."""
        index = self._all_texts()
        ids = index.find(texts)
        unknown = np.flatnonzero(ids < 0).tolist()
        new = list(dict.fromkeys(texts[at] for at in unknown))
        self._count_texts(new, 1)
        rows = dict(zip(new, index.add(new).tolist(), strict=True))
        ids[unknown] = [rows[texts[at]] for at in unknown]
        if index.capacity >= len(self._holders):
            self._holders = grown(self._holders, index.capacity, 0)
        np.add.at(self._holders, ids, 1)
        return ids

    def _let_go(self, ids: AnyArray) -> None:
        np.subtract.at(self._holders, ids, 1)
        unused = np.unique(ids[self._holders[ids] == 0]).astype(np.int64)
        if len(unused):
            self._count_texts(self._all_texts().keys(unused), -1)
            self._all_texts().remove(unused)

    def _count_texts(self, texts: Iterable[str], sign: int) -> None:
        for text in texts:
            self._places[places_of(text)] += sign
            self._singles += sign * is_single(text)
        self._places += Counter()
