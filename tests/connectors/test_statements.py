"""The parser of statements against pyoxigraph's, which refuses what is not N-Quads."""

from __future__ import annotations

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.line_groups import subject_and_graph_of, subject_of
from connectors.statements import NOT_A_STATEMENT, NOT_UTF8, parse

XSD = "http://www.w3.org/2001/XMLSchema#"
Term = ox.NamedNode | ox.BlankNode | ox.Literal | ox.DefaultGraph | ox.Triple

iris = st.sampled_from(
    "<urn:a> <urn:a> <http://example.org/p> <http://example.org/é#x> <http://u@h:80/%41?q=[> "
    "<http://[::1]/> <a> "
    "<urn:\\u00E9\\U0001F600> <http://x.org:8/a//b?q=/?#> <urn:a#b#c> <http://a:b/> "
    "<urn:\ue000>".split()
)
blanks = st.sampled_from(["_:a", "_:a.b", "_:a.", "_:0", "_:é"])
texts = st.text(max_size=8) | st.sampled_from(
    ["a <b> .", "\\t\\u0041", "\\uD800", "\\x", '\\"', "<urn:a", "\x00\x7f"]
)
literals = st.builds(
    '"{}"{}'.format,
    texts,
    st.sampled_from(["", "@en", "@en-GB", "@EN-latn-x-abc", "@e_", f"^^<{XSD}string>", "^^<a>"]),
)
spaces = st.sampled_from([" "] * 8 + ["", "\t", "  "])
lines = st.builds(
    lambda parts, gaps: "".join(each for pair in zip(parts, gaps, strict=False) for each in pair),
    st.tuples(
        iris | blanks,
        iris,
        iris | blanks | literals,
        st.just("") | iris | blanks,
        st.sampled_from([".", ".", ". # c", ""]),
    ),
    st.lists(spaces, min_size=5, max_size=5),
)
mutated = st.builds(
    lambda line, at, put, length: (
        line[: at % (len(line) + 1)] + put + line[at % (len(line) + 1) + length :]
    ),
    lines,
    st.integers(0, 200),
    st.sampled_from(
        ["", " ", "<", ">", '"', "\\", ".", "\ue000", "^", "@", "_:", "é", "[", "%", "\r", "#", "{"]
    ),
    st.integers(0, 3),
)


def expected(line: bytes) -> list[tuple[str, ...]] | None:
    """Return the one statement in a line, nothing for one that holds none, None for one that is
    refused.
    """
    try:
        quads = list(ox.parse(line, ox.RdfFormat.N_QUADS))
    except (SyntaxError, ValueError):
        return None
    if any(isinstance(quad.object, ox.Triple) for quad in quads) or len(quads) > 1:
        return None  # what is only in RDF 1.2, and several statements in one line
    return [terms_of(*quad) for quad in quads]


def terms_of(*terms: Term) -> tuple[str, ...]:
    return tuple("" if isinstance(each, ox.DefaultGraph) else str(each) for each in terms)


def reread(*terms: str) -> tuple[str, ...]:
    (quad,) = ox.parse(" ".join(terms) + " .", ox.RdfFormat.N_QUADS)
    return terms_of(*quad)


def rows_of(found: list[bytes]) -> list[tuple[str, ...] | None]:
    statements = parse(pa.array(found, pa.binary()), subject_and_graph_of, with_graphs=True)
    columns = (statements.subject, statements.predicate, statements.object, statements.graph)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [
        reread(*row) if fault is None else None
        for row, fault in zip(rows, statements.fault.to_pylist(), strict=True)
    ]


@settings(max_examples=120)
@given(st.lists(lines | mutated | st.text(max_size=5), max_size=6))
def test_a_line_is_read_as_pyoxigraph_reads_it_and_bad_where_that_refuses_it(
    written: list[str],
) -> None:
    document = [line.replace("\n", "").encode("utf-8", "surrogatepass") for line in written]
    wanted = [
        (line, expected(line))
        for line in document
        if line.strip(b" \t\r") and line.strip(b" \t\r")[:1] != b"#"
    ]
    assert rows_of(document) == [each and each[0] for _, each in wanted]


def test_all_lines_at_once_are_read_as_one_by_one() -> None:
    document = [
        b'<urn:a> <urn:p> "x" .',
        b"",
        b"# c",
        b" <urn:a>\t<urn:p>'x' .",
        b'<urn:b> <urn:p> "a <b>" <urn:g> .\r',
    ]
    assert rows_of(document) == [row for line in document for row in rows_of([line])]


def test_faults_are_named() -> None:
    found = parse(
        pa.array([b"x", b'\xff <urn:p> "a" .', b'<urn:a> <urn:p> "x" .']),
        subject_of,
        with_graphs=False,
    )
    assert found.fault.to_pylist() == [NOT_A_STATEMENT, NOT_UTF8, None]


@pytest.mark.parametrize(
    ("document", "groups"),
    [
        ("<urn:a> <urn:p> 'x'|<urn:a> <urn:p> <urn:o> .|<urn:b> <urn:p> <urn:o> .", [0, 0, 1]),
        ("<urn:a> <urn:p> <urn:o> .|# c|<urn:a><urn:q><urn:o>.", [0, 0]),
        ("<urn:a> <urn:p> <urn:o> .||<urn:a> <urn:q> <urn:o> .", [0, 1]),
        ("<urn:a> <urn:p> <urn:o> <urn:g> .|<urn:a> <urn:q> <urn:o> <urn:h> .", [0, 0]),
    ],
)
def test_neighbours_about_one_subject_are_a_group(document: str, groups: list[int]) -> None:
    lines = [line.encode() for line in document.split("|")]
    assert parse(pa.array(lines), subject_of, with_graphs=False).group.tolist() == groups


def test_another_graph_is_another_group_where_graphs_count() -> None:
    lines = [
        b"<urn:a> <urn:p> <urn:o> <urn:g> .",
        b"<urn:a> <urn:q> <urn:o>\t<urn:g>.",
        b"<urn:a> <urn:p> <urn:o> .",
    ]
    assert parse(pa.array(lines), subject_and_graph_of, with_graphs=True).group.tolist() == [
        0,
        0,
        1,
    ]
