"""Notations of numbers: a number and its form reproduce a term's exact text."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import numpy.typing as npt

from replica.terms import is_floating, is_not_a_number, number_of, single

NONE, OTHER = 0, 1
"""Codes of no term and of a term kept as text; greater codes are forms of numbers."""

_LONGEST = 32
_EXACT = 16
"""Integers of fewer digits are exact as floats."""
_DIGITS = range(18)
_WHOLE = (
    "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger "
    "unsignedLong unsignedInt unsignedShort unsignedByte"
).split()
_FORMS: tuple[tuple[str, str, int], ...] = (
    ("", "", 0),
    ("", "", 0),
    *((name, "", 0) for name in _WHOLE),
    *product(["decimal"], [""], _DIGITS),
    *product(["double", "float"], ["", "E", "e"], _DIGITS),
    ("", "", 0),
)
"""By code: datatype, exponent mark if any, and number of digits after the point."""
OTHER_FLOATING = len(_FORMS) - 1
"""Code of a term kept as text that is a number of xsd:double or xsd:float."""
FLOATING = np.array([name in ("double", "float") for name, _, _ in _FORMS])
FLOATING[OTHER_FLOATING] = True
"""By code: True if the numbers are of xsd:double or xsd:float."""
SINGLE = np.array([name == "float" for name, _, _ in _FORMS])
"""By code: True if the numbers are of xsd:float; those kept as text have a code of xsd:double."""
PLACES = np.array([digits for _, _, digits in _FORMS])
"""By code: the number of digits after the point."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_CODES = {
    (f"{_XSD}{name}>", mark, digits): code
    for code, (name, mark, digits) in enumerate(_FORMS)
    if name
}
_FLOAT = f"{_XSD}float>"
_DATATYPES = {datatype for datatype, _, _ in _CODES}


def form_of(term: str | None) -> tuple[float, int]:
    """Return a term's number, NaN if it is none, and the code of its form.

    The form is ``OTHER`` if number and form would not reproduce the same text.

    >>> text_of(*form_of('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'))
    '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    >>> form_of('"007"^^<http://www.w3.org/2001/XMLSchema#integer>'), form_of('"7"')
    ((7.0, 1), (nan, 1))
    """
    if term is None:
        return math.nan, NONE
    lexical, _, datatype = term.rpartition('"^^<')
    if datatype not in _DATATYPES or len(lexical) > _LONGEST:
        return _other(term)
    lexical = lexical[1:]
    is_usual = len(lexical) < _EXACT and datatype != _FLOAT
    if is_usual and lexical[:1] != "0" and lexical.isdecimal() and lexical.isascii():
        # By far the most usual case: no need to format it again for comparison.
        return float(lexical), _CODES[datatype, "", 0]
    return _form_of(term, lexical, datatype)


def _form_of(term: str, lexical: str, datatype: str) -> tuple[float, int]:
    try:
        number = single(float(lexical)) if datatype == _FLOAT else float(lexical)
    except ValueError:
        return math.nan, OTHER
    mark = _mark_in(lexical)
    mantissa, _, _ = lexical.partition(mark) if mark else (lexical, "", "")
    digits = len(mantissa) - 1 - point if (point := mantissa.find(".")) >= 0 else 0
    code = _CODES.get((datatype, mark, digits), OTHER)
    if code == OTHER or not math.isfinite(number) or _written(number, mark, digits) != lexical:
        return _other(term)
    return number, code


def _other(term: str) -> tuple[float, int]:
    number = number_of(term)
    is_number = number == number or is_not_a_number(number)
    return number, OTHER_FLOATING if is_number and is_floating(term) else OTHER


def text_of(number: float, code: int) -> str:
    """Return the term of a number in a form."""
    name, mark, digits = _FORMS[code]
    return f'"{_written(number, mark, digits)}"^^<{_XSD}{name}>'


def _mark_in(lexical: str) -> str:
    return "E" if "E" in lexical else "e" if "e" in lexical else ""


def _written(number: float, mark: str, digits: int) -> str:
    if not mark:
        return f"{number:.{digits}f}"
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    return f"{mantissa}{mark}{int(exponent)}"


def is_text(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return a mask of the codes of terms kept as text."""
    mask: npt.NDArray[np.bool_] = (codes == OTHER) | (codes == OTHER_FLOATING)
    return mask


def is_form(code: int) -> bool:
    """Return True if a code is valid.

    >>> is_form(OTHER), is_form(255)
    (True, False)
    """
    return code < len(_FORMS)
