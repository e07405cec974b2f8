"""Solutions of a SPARQL engine as columns of terms, without an object for each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from pyoxigraph import QueryResultsFormat, QuerySolutions

_XSD = "http://www.w3.org/2001/XMLSchema#"
_CODED = pa.dictionary(pa.int32(), pa.string())
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def columns_of(solutions: QuerySolutions) -> Sequence[pa.DictionaryArray]:
    """Return a column of N-Triples terms for each variable, ``""`` where it is unbound."""
    names = [variable.value for variable in solutions.variables]
    written = solutions.serialize(format=QueryResultsFormat.TSV)
    assert written is not None
    table = pa_csv.read_csv(
        pa.BufferReader(written),
        read_options=pa_csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
        parse_options=pa_csv.ParseOptions(
            delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, _CODED), strings_can_be_null=False
        ),
    )
    return [_in_full(column.combine_chunks()) for column in table.unify_dictionaries().columns]


def _in_full(column: pa.ChunkedArray | pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column of TSV with all terms in full: numbers and truth values are short there."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], _CODED)
    return pa.DictionaryArray.from_arrays(column.indices, _full_terms(column.dictionary))


def _full_terms(texts: pa.StringArray) -> pa.StringArray:
    is_short = pc.match_substring_regex(texts, r'^[^<"_]')
    if pc.any(is_short, min_count=0).as_py():
        datatype = pc.if_else(
            pc.match_substring_regex(texts, "^(true|false)$"),
            "boolean",
            pc.if_else(
                pc.match_substring_regex(texts, "[eE]"),
                "double",
                pc.if_else(pc.match_substring(texts, "."), "decimal", "integer"),
            ),
        )
        full = pc.binary_join_element_wise('"', texts, f'"^^<{_XSD}', "", "")
        full = pc.binary_join_element_wise(full, datatype, ">", "")
        texts = pc.if_else(is_short, full, texts)
    if pc.any(pc.match_substring(texts, "\\t"), min_count=0).as_py():
        texts = pa.array(map(_with_tabs, texts.to_pylist()), pa.string())
    return texts


def _with_tabs(term: str) -> str:
    """Return a term of TSV in the usual form, which does not escape tabs.

    >>> backslash = chr(92)
    >>> _with_tabs(f"{backslash}t{backslash * 2}t") == f"{chr(9)}{backslash * 2}t"
    True
    """
    return _ESCAPE.sub(lambda found: "\t" if found[1] == "t" else found[0], term)
