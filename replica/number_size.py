"""Size of a variable's numbers: enough to know if arithmetic in doubles loses digits of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumberSize:
    """Facts about a variable's numbers.

    Integers and decimals have magnitudes up to ``greatest``, and at most ``places`` digits after
    the point. Others are of xsd:float (``has_single``) or xsd:double (``has_double``).
    """

    greatest: float = 0.0
    places: int = 0
    has_single: bool = False
    has_double: bool = False
