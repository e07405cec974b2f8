"""Texts as IRIs in N-Triples syntax: the check that they are some, and templates around them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Characters allowed in an IRI by RFC 3987, in the syntax of Arrow's regular expressions.
_FIT_FOR_IRI = (
    r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2}|"
    r"[\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{1FFFD}\x{20000}-\x{2FFFD}\x{30000}-\x{3FFFD}])*$"
)

_USUAL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~!$&'()*+,;=:@/?-"
"""Bytes allowed anywhere in an IRI."""
_USUAL_WHOLE = _USUAL + b"#"
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_WHOLE_IRI = _FIT_FOR_IRI.replace("^", "^[A-Za-z][A-Za-z0-9+.-]*:", 1).replace("/?-]", "/?#-]")


def in_template(names: pa.Array, prefix: str, suffix: str) -> pa.StringArray:
    """Return names as IRIs between a prefix and a suffix."""
    return pc.binary_join_element_wise(f"<{prefix}", names, f"{suffix}>", "")


def make_iris(names: pa.Array, prefix: str) -> pa.BooleanArray:
    """Return True for each name that makes an IRI behind a prefix; nulls are good.

    Numbers fit behind every prefix but the empty one.
    """
    if pa.types.is_integer(names.type):
        return pa.repeat(bool(prefix), len(names)) if prefix else pc.is_null(names)
    if prefix and _are_usual(names):
        return pa.repeat(True, len(names))
    fit = pc.match_substring_regex(names, _FIT_FOR_IRI) if prefix else are_iris(names)
    return pc.fill_null(fit, True)


def are_iris(texts: pa.StringArray) -> pa.BooleanArray:
    """Return True for each text that is a whole IRI; null for null."""
    if (
        len(texts)
        and not texts.null_count
        and _begin_alike(texts)
        and _are_usual(texts, _USUAL_WHOLE)
    ):
        return texts.is_valid()
    return pc.match_substring_regex(texts, _WHOLE_IRI)


def _begin_alike(texts: pa.StringArray) -> bool:
    """Return True if all texts begin with the scheme of the first one; False if one is null."""
    if not len(texts) or texts.null_count:
        return False
    scheme = _SCHEME.match(texts[0].as_py())
    return scheme is not None and bool(pc.all(pc.starts_with(texts, scheme[0])).as_py())


def _are_usual(names: pa.StringArray, usual: bytes = _USUAL) -> bool:
    """Return True if all names are of usual characters: far cheaper to tell than by a pattern."""
    texts = names.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return True
    bounds = np.frombuffer(offsets, np.int64)[[texts.offset, texts.offset + len(texts)]].tolist()
    return not data.slice(bounds[0], bounds[1] - bounds[0]).to_pybytes().translate(None, usual)
