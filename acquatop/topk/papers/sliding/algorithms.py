"""The paper's algorithms by their names."""

from __future__ import annotations

from functools import partial

from acquatop.topk.contract import Certainty
from acquatop.topk.papers.sliding.filtered import Filtered
from acquatop.topk.papers.sliding.limit import safe_limit
from acquatop.topk.papers.sliding.one_by_one import OneByOne, Unfiltered
from acquatop.topk.papers.sliding.probabilistic import ProbabilisticSkyband
from acquatop.topk.papers.sliding.relaxed import RelaxedSkyband
from acquatop.topk.papers.sliding.strict import StrictSkyband
from acquatop.topk.papers.sliding.trees import Skyband
from acquatop.topk.sliding.block_skyline import half
from acquatop.topk.sliding.contract import check_sizes

UNFILTERED = ("SA", "RA", "PA")
FILTERED = ("SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF")


def algorithm(
    name: str, k: int, n: int, *, buffer: int | None = None, sigma: float = 1e-3, gamma: float = 0.2
) -> OneByOne:
    """Return one of the paper's algorithms, by default with its settings and the longest buffer.

    >>> algorithm("RAPF", k=3, n=100).top().positions.tolist()
    []
    >>> algorithm("PAPF", k=3, n=100)
    Traceback (most recent call last):
    ValueError: there is no algorithm PAPF: SA, RA, PA, SASF, SARF, SAPF, RASF, RARF, RAPF
    """
    check_sizes(k, n)
    if name not in (*UNFILTERED, *FILTERED):
        raise ValueError(f"there is no algorithm {name}: {', '.join((*UNFILTERED, *FILTERED))}")
    band = _skyband(name[0], k, n, sigma, gamma)
    if name in UNFILTERED:
        return Unfiltered(n, band, Certainty.APPROXIMATE if name == "PA" else Certainty.EXACT)
    newest = half(n) if buffer is None else buffer
    return Filtered(n, band, _skyband(name[2], k, newest, sigma, gamma), newest)


sa, ra = partial(algorithm, "SA"), partial(algorithm, "RA")
sasf, sarf, sapf = (partial(algorithm, name) for name in ("SASF", "SARF", "SAPF"))
rasf, rarf, rapf = (partial(algorithm, name) for name in ("RASF", "RARF", "RAPF"))


def _skyband(initial: str, k: int, n: int, sigma: float, gamma: float) -> Skyband:
    if initial == "S":
        return StrictSkyband(k)
    if initial == "R":
        return RelaxedSkyband(k, gamma)
    return ProbabilisticSkyband(k, safe_limit(n, k, sigma))
