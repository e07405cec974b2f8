from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import connectors.lines
from connectors.lines import LinesReader
from connectors.mapping import BAD, IRI, Property, Template, count_faults
from connectors.ntriples import NTriplesMapping
from connectors.offsets_by_file import Offset, reached
from connectors.read_limits import ReadMaxBytes
from tests.support.offsets import reached_in

XSD = "http://www.w3.org/2001/XMLSchema#"
PROPERTIES = {
    "urn:mentions": Property("urn:mentions", XSD + "integer"),
    "urn:knows": Property("urn:knows", IRI),
}
ONE = NTriplesMapping("urn:at", PROPERTIES)
SEVERAL = NTriplesMapping("urn:at", PROPERTIES, several=True)
IN_GRAPH = NTriplesMapping(Template.parse("urn:time:{ms}"), PROPERTIES)
MAPPINGS = (ONE, SEVERAL, IN_GRAPH)


def rows_of(document: str, mapping: NTriplesMapping = ONE) -> list[tuple[object, ...]]:
    lines = pa.record_batch(
        [pa.array([line.encode() for line in document.split("\n")], pa.binary())], ["value"]
    )
    return [tuple(row.values())[:-1] for row in mapping.records(lines).to_pylist()]


def test_a_run_of_statements_about_one_subject_is_a_record() -> None:
    document = f"""
        <urn:ann> <urn:mentions> "3"^^<{XSD}integer> .
        # of no interest
        <urn:ann> <urn:name> "Ann" .
        <urn:ann> <urn:at> "1970-01-01T00:00:01Z"^^<{XSD}dateTime> .
        <urn:bob> <urn:at> "2000"^^<{XSD}long> .
        <urn:bob> <urn:knows> <urn:\\u00e9> ."""
    assert rows_of(document) == [
        (1000, "<urn:ann>", 3, None, None),
        (2000, "<urn:bob>", None, "<urn:é>", None),
    ]


def test_an_empty_line_parts_records_about_one_subject() -> None:
    event = f'<urn:a> <urn:at> "{{}}"^^<{XSD}integer> .'
    said = "more than one time in <urn:at>: an empty line ends a record"
    assert [row[0] for row in rows_of(event.format(1) + "\n\n" + event.format(2))] == [1, 2]
    assert [row[-1] for row in rows_of(event.format(1) + "\n" + event.format(2))] == [said]
    assert [row[-1] for row in rows_of(event.format(1) + "\n" + event.format(1))] == [None]


def test_a_graph_s_name_may_say_the_time() -> None:
    line = f'<urn:a> <urn:mentions> "{{}}"^^<{XSD}integer> <urn:time:{{}}> .'
    document = [line.format(1, 5), line.format(2, "1970-01-01T00:00:01+00:00"), line.format(3, "x")]
    rows = rows_of("\n".join(document), IN_GRAPH)
    assert [row[:3] for row in rows] == [
        (5, "<urn:a>", 1),
        (1000, "<urn:a>", 2),
        (None, None, None),
    ]
    assert rows[2][-1] == "no time in the graph's name"


def test_each_further_object_is_a_row_where_several_are_kept() -> None:
    said = [f'<urn:a> <urn:mentions> "{number}"^^<{XSD}integer> .' for number in (1, 2, 1)]
    document = "\n".join(
        [*said, f'<urn:a> <urn:at> "7"^^<{XSD}integer> .', "<urn:a> <urn:knows> <urn:b> ."]
    )
    assert rows_of(document, SEVERAL) == [
        (7, "<urn:a>", 1, "<urn:b>", None),
        (7, "<urn:a>", 2, None, None),
    ]
    assert rows_of(document) == [(None, None, None, None, "more than one object of <urn:mentions>")]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('<urn:a> <urn:at> "1"^^<X#integer> .', None),
        ('<urn:a> <urn:knows> "1" .', "no time in <urn:at>"),
        ('<urn:a> <urn:at> "1" .', "the object of <urn:at> is not a time"),
        (
            '<urn:a> <urn:at> "999999999999999999"^^<X#integer> .',
            "the time in <urn:at> is not in the years 1 to 9999",
        ),
        (
            '<urn:a> <urn:at> "1"^^<X#int> .\n<urn:a> <urn:mentions> "1" .',
            "the object of <urn:mentions> is not a whole number",
        ),
        (
            '<urn:a> <urn:at> "1"^^<X#int> .\n<urn:a> <urn:knows> "1" .',
            "the object of <urn:knows> is not an IRI",
        ),
        ("_:a <urn:knows> <urn:b> .", "the subject is a blank node"),
        ("<urn:a> <urn:knows> <urn:b>", "not N-Triples"),
        ("<urn:a", "not N-Triples"),
    ],
)
def test_faults_are_named_and_cost_only_their_own_record(line: str, fault: str | None) -> None:
    good = '<urn:{}> <urn:at> "1"^^<X#integer> .'
    batch = "\n".join([good.format("b"), line, good.format("c")]).replace("X#", XSD)
    assert [row[-1] for row in rows_of(batch)] == [None, fault, None]
    if fault == "not N-Triples" and ">" in line:
        whole = "\n".join([good.format("a"), line, good.format("a")]).replace("X#", XSD)
        assert [row[-1] for row in rows_of(whole)] == [fault]


def test_nothing_is_no_record() -> None:
    for mapping in MAPPINGS:
        assert rows_of("\n# nothing\n", mapping) == []
        found = mapping.records(pa.record_batch([pa.array([], pa.binary())], ["value"]))
        assert (found.num_rows, found.schema) == (0, mapping.schema)
        assert pickle.loads(pickle.dumps(mapping)) == mapping


statements = st.builds(
    "{} {} .".format,
    st.sampled_from(["<urn:a>", "<urn:b>", "<urn:\\u00e9>", "_:c"]),
    st.sampled_from(
        [f'<urn:at> "{time}"^^<{XSD}integer>' for time in (1, 2)]
        + [f'<urn:mentions> "{number}"^^<{XSD}integer>' for number in (1, 2)]
        + ["<urn:knows> <urn:b>", '<urn:knows> "b', "<urn:knows> <urn:c> <urn:time:3>"]
    ),
)
odd = st.sampled_from(
    [
        "",
        " ",
        "# c",
        "  # <urn:a>",
        "x",
        "\t<urn:a><urn:knows><urn:d>.",
        "<urn:a> <urn:p> <urn:o> .\r",
    ]
)


@settings(max_examples=60)
@given(
    st.lists(statements | odd, max_size=12),
    st.sampled_from(MAPPINGS),
    st.integers(1, 300),
    st.integers(0, 400),
    st.integers(1, 3),
)
def test_no_cut_into_batches_and_partitions_parts_a_record(
    tmp_path_factory: pytest.TempPathFactory,
    document: list[str],
    mapping: NTriplesMapping,
    limit: int,
    written_first: int,
    partitions: int,
) -> None:
    file = tmp_path_factory.mktemp("nt") / "a.nt"
    data = "".join(line + "\n" for line in document).encode()
    reader = LinesReader(file, limit, together=mapping.together, max_partitions=partitions)
    found: list[tuple[object, ...]] = []
    offset: Offset = {}
    for at_end, text in ((False, data[:written_first]), (True, data)):
        file.write_bytes(text)
        if at_end:
            reader.prepareForTriggerAvailableNow()
        while (end := reader.latestOffset(offset, ReadMaxBytes(limit))) != offset:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(connectors.lines, "LEAST_PARTITION", 40)
                parts = reader.partitions(offset, end)
            for part in parts:
                for batch in pickle.loads(pickle.dumps(reader)).read(part):
                    found += [
                        tuple(row.values())[:-1] for row in mapping.records(batch).to_pylist()
                    ]
            offset = end
    assert found == rows_of("\n".join(document), mapping)
    assert reached_in(offset) == ({"a.nt": len(data)} if data else {})


def test_records_wait_until_another_begins(tmp_path: Path) -> None:
    file = tmp_path / "a.nt"
    reader = LinesReader(file, 1000, together="subject")
    ends = []
    for written in (
        "<urn:a> 1\n# c\n",
        "<urn:a> 2\n",
        "<urn:a",
        "> 3\n<urn:b> 1\n",
        "\n",
        "# c\n<urn:b> 2\n",
    ):
        with file.open("a") as stream:
            stream.write(written)
        ends.append(reached(reader.latestOffset({}, ReadMaxBytes(1000)).get("a.nt", 0)))
    assert ends == [0, 0, 0, 34, 44, 49]


def test_reasons_are_counted() -> None:
    batch = ONE.records(
        pa.record_batch([pa.array([b"x", b"y .", b"<urn:a> <urn:p> <urn:o> ."])], ["value"])
    )
    assert count_faults([batch]) == {"not N-Triples": 2, "no time in <urn:at>": 1}
    assert batch.column(BAD).null_count == 0
