"""Parser from lines of N-Triples or N-Quads to columns of terms, without objects per statement.

A line in the usual form, with single spaces between its terms and only the usual escapes in
literals, is checked by one regular expression and cut at its spaces. So are lines with other spaces
or tabs around subject, predicate and object. All other lines go to a parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from connectors.fields import NOT_UTF8
from connectors.line_groups import LineKey
from connectors.text_slices import TextSlices

NOT_A_STATEMENT = "not N-Triples"

# IRIs by RFC 3987; the rarer ones (IP literals, some scripts) are left to the parser.
_CHARACTER = r"A-Za-z0-9._~!$&'()*+,;=\x{A0}-\x{D7FF}-"
_UNIT, _SEGMENT, _PATH, _REST = (
    rf"(?:[{more}{_CHARACTER}]|%[0-9A-Fa-f]{{2}})" for more in ("", ":@", ":@/", ":@/?")
)
_IRI = (
    rf"<[A-Za-z][A-Za-z0-9+.-]*:(?://{_UNIT}*(?::[0-9]*)?(?:/{_PATH}*)?|/?(?:{_SEGMENT}{_PATH}*)?)"
    rf"(?:\?{_REST}*)?(?:#{_REST}*)?>"
)
_BLANK = r"_:[A-Za-z0-9_]+"
_LITERAL = rf'"(?:[^"\\\n\r]|\\[tbnrf"\'\\])*"(?:@[a-z]{{2,3}}(?:-[A-Z]{{2}})?|\^\^{_IRI})?'
_PLAIN = rf"^(?:{_IRI}|{_BLANK}) {_IRI} (?:{_IRI}|{_LITERAL}|{_BLANK})(?: (?:{_IRI}|{_BLANK}))? \.$"
_SPACED = r"^(\S+)[ \t]+(\S+)[ \t]+(.*\S)[ \t]*\.$"
"""Pattern of a line that may be plain but for the spaces around its terms; inner spaces stay."""
_CHUNK = 256
"""Number of lines that a parser gets at a time."""
NOTHING = ("_:b", "_:b", "_:b")
"""Placeholder terms for a bad statement, so that it can be treated like the others."""


@dataclass(frozen=True)
class Statements:
    """Statements in the lines' order: their terms in N-Triples syntax, and the faults of bad ones.

    ``graph`` is empty for statements without one; the terms of a bad line mean nothing. ``group``
    has a number per statement, the same for neighbours that belong together. ``row`` has the number
    of its line.
    """

    subject: pa.StringArray
    predicate: pa.StringArray
    object: pa.StringArray
    graph: pa.StringArray
    fault: pa.StringArray
    group: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]


def parse(lines: pa.BinaryArray, key: LineKey, *, with_graphs: bool) -> Statements:
    """Return the statements in lines, grouped by ``key``; comments and empty lines are skipped.

    A group ends when the key changes, and at an empty line. ``with_graphs`` is True if the key
    includes the graph.
    """
    text, is_text = _texts(lines)
    plain = pc.match_substring_regex(text, _PLAIN)
    breaks, rows = np.zeros(len(text), np.int64), np.arange(len(text))
    if not pc.all(plain, min_count=0).as_py():
        text = pc.ascii_trim(text, " \t\r")
        is_empty, is_comment = pc.equal(text, ""), pc.starts_with(text, "#")
        kept = pc.invert(pc.or_(is_empty, is_comment))
        is_kept = kept.to_numpy(zero_copy_only=False)
        breaks, rows = np.cumsum(is_empty.to_numpy(zero_copy_only=False))[is_kept], rows[is_kept]
        lines, text, is_text = lines.filter(kept), text.filter(kept), is_text.filter(kept)
        odd = pc.invert(pc.match_substring_regex(text, _PLAIN))
        spaced = pc.replace_substring_regex(text.filter(odd), _SPACED, r"\1 \2 \3 .")
        text = pc.replace_with_mask(text, odd, spaced)
        plain = pc.match_substring_regex(text, _PLAIN)
    odd = pc.invert(pc.and_(plain, is_text))
    fault = pa.nulls(len(text), pa.string())
    written = lines.filter(odd).to_pylist()
    if written:
        parsed = [
            each
            for start in range(0, len(written), _CHUNK)
            for each in _parsed(written[start : start + _CHUNK])
        ]
        nothing = f"{' '.join(NOTHING)} ."
        text = pc.replace_with_mask(
            text, odd, pa.array([each or nothing for each, _ in parsed], pa.string())
        )
        fault = pc.replace_with_mask(
            fault, odd, pa.array([reason for _, reason in parsed], pa.string())
        )
    subject, predicate, object_, graph = _terms(text)
    keys = pc.binary_join_element_wise(subject, graph, " ") if with_graphs else subject
    if written:
        keys = pc.replace_with_mask(
            keys, odd, pa.array([_key(key, line) for line in written], pa.string())
        )
    return Statements(subject, predicate, object_, graph, fault, _groups(keys, breaks), rows)


def _texts(lines: pa.BinaryArray) -> tuple[pa.StringArray, pa.BooleanArray]:
    """Return lines as texts, with True for each line that is valid text."""
    lines = pc.fill_null(lines, b"")
    try:
        return lines.cast(pa.string()), pa.repeat(True, len(lines))
    except pa.ArrowInvalid:
        texts = [line.decode("utf-8", "replace") for line in lines.to_pylist()]
        good = [_is_utf8(line) for line in lines.to_pylist()]
        return pa.array(texts, pa.string()), pa.array(good, pa.bool_())


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parsed(lines: Sequence[bytes]) -> Iterable[tuple[str | None, str | None]]:
    """Return the lines' statements in the usual form, or their faults.

    One parser for all lines costs less than one for each, but stops at the first bad line.
    """
    document = b"\n".join(lines)
    if b"\r" not in document:
        try:
            quads = list(ox.parse(document, ox.RdfFormat.N_QUADS))
        except (SyntaxError, ValueError):
            quads = []
        # No line can hold two statements, so as many statements as lines means one in each.
        if len(quads) == len(lines) and not any(
            isinstance(quad.object, ox.Triple) for quad in quads
        ):
            return [(f"{quad} .", None) for quad in quads]
    return map(_parsed_alone, lines)


def _parsed_alone(line: bytes) -> tuple[str | None, str | None]:
    if not _is_utf8(line):
        return None, NOT_UTF8
    try:
        (quad,) = ox.parse(line, ox.RdfFormat.N_QUADS)
    except (SyntaxError, ValueError):
        return None, NOT_A_STATEMENT
    if isinstance(quad.object, ox.Triple):
        return None, NOT_A_STATEMENT
    return f"{quad} .", None


def _key(key: LineKey, line: bytes) -> str:
    return (key(line) or b"").decode("utf-8", "backslashreplace")


def _terms(text: pa.StringArray) -> Sequence[pa.StringArray]:
    """Return the subject, predicate, object and graph of statements, cut at their spaces."""
    slices = TextSlices(text)
    spaces = slices.places_of(" ")
    index = np.searchsorted(spaces, slices.starts)
    first, second = spaces[index], spaces[index + 1]
    end = slices.ends - len(" .")
    # The text after the last space before the end: a graph, an object, or a piece of a literal.
    last = spaces[np.searchsorted(spaces, end) - 1]
    has_graph = last > second
    unsure = np.flatnonzero(has_graph)
    if len(unsure):
        rest = TextSlices(text.take(pa.array(unsure)))
        shift = rest.starts - slices.starts[unsure]
        tail = rest.between(last[unsure] + 1 + shift, end[unsure] + shift)
        # A literal contains its own last quote; graphs have none.
        has_graph[unsure] = pc.invert(pc.match_substring(tail, '"')).to_numpy(zero_copy_only=False)
    object_end = np.where(has_graph, last, end)
    graph_start = np.where(has_graph, last + 1, end)
    return (
        slices.between(slices.starts, first),
        slices.between(first + 1, second),
        slices.between(second + 1, object_end),
        slices.between(graph_start, end),
    )


def _groups(keys: pa.StringArray, breaks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a number per statement that grows by one at each new key or empty line."""
    changes = np.zeros(len(keys), np.int64)
    if len(keys) > 1:
        other = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        changes[1:] = other | (breaks[1:] != breaks[:-1])
    return np.cumsum(changes)
