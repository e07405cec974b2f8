"""Names of results: the same for an answer and for the right one, however old its numbers are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from replica.terms import number_of


def result_names(
    identities: Iterable[str], terms: Sequence[Mapping[str, str]], variables: Sequence[str]
) -> list[str]:
    r"""Return the names of results of a join, in their order.

    A result is named by its solution of the stream and the remotes' terms that are no numbers, of
    some variables. Of several such results the further ones are numbered.

    >>> five = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> said = [{"tool": "<urn:t>", "age": five}, {"tool": "<urn:t>"}, {"age": five}]
    >>> result_names(["a", "a", "a"], said, ["tool", "age"])
    ['a\n?tool <urn:t>', 'a\n?tool <urn:t>\n2', 'a']
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for identity, of_result in zip(identities, terms, strict=True):
        said = ((each, of_result[each]) for each in variables if each in of_result)
        told = (f"\n?{each} {term}" for each, term in said if math.isnan(number_of(term)))
        name = identity + "".join(told)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}\n{seen[name]}")
    return names
