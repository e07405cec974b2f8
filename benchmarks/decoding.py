"""Measure the statements per second that one core decodes, compared with other parsers.

The formats are N-Triples, JSON and Parquet.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import rdflib

from benchmarks.table import Figure, report
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder
from connectors.lines import LinesReader
from connectors.mapping import JsonMapping, Property, Template
from connectors.ntriples import NTriplesMapping
from connectors.parquet import ParquetReader

NS = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STATEMENTS = 3
"""Statements per record: a time, a number of mentions, and a text."""
SMALL = 20
"""The slowest parser gets this fraction of the statements."""
NAMES = {"mentions": XSD + "integer", "text": XSD + "string"}
FIELDS = {NS + name: Property(name, datatype) for name, datatype in NAMES.items()}
SUBJECT = Template.parse(NS + "user/{user}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench decoding", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000, help="how many (%(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="how often; the best counts (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, options.records)
        figures = [
            _best(label, options.records * STATEMENTS // part, options.repeat, work)
            for label, part, work in _works(folder)
        ]
    title = (
        f"{options.records:,} records of {STATEMENTS} statements (events here), seconds of one core"
    )
    report(title, figures, ["pyarrow", "numpy", "pyoxigraph", "rdflib"], as_json=options.json)


def _works(folder: Path) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield each measurement, and the fraction of the statements that it gets."""
    text, small = folder / "events.nt", folder / "small.nt"
    yield "floor: read N-Triples, count line breaks", 1, lambda: text.read_bytes().count(b"\n")
    yield "split N-Triples into lines", 1, lambda: sum(len(batch) for batch in _lines(text))
    spaced = {iri: Property(iri, each.datatype) for iri, each in FIELDS.items()}
    yield "N-Triples", 1, lambda: _decode(NTriplesMapping(NS + "at", spaced), _lines(text))
    tabs = folder / "tabs.nt"
    yield (
        "N-Triples with tabs",
        1,
        lambda: _decode(NTriplesMapping(NS + "at", spaced), _lines(tabs)),
    )
    yield (
        "peer: pyoxigraph.parse",
        1,
        lambda: sum(1 for _ in ox.parse(path=text, format=ox.RdfFormat.N_TRIPLES)),
    )
    yield "peer: rdflib", SMALL, lambda: rdflib.Graph().parse(small, format="nt")
    yield (
        "JSON",
        1,
        lambda: _decode(JsonMapping(SUBJECT, "at", FIELDS), _lines(folder / "events.json")),
    )
    columns = ColumnsMapping(SUBJECT, "at", FIELDS)
    yield "Parquet", 1, lambda: _decode(columns, _rows(folder / "events.parquet", columns))


def _write(folder: Path, records: int) -> None:
    chance = random.Random(1)
    users = [f"u{chance.randrange(10_000)}" for _ in range(records)]
    mentions = [chance.randrange(40) for _ in range(records)]
    texts = [f"Grüße, what #{number} says" for number in range(records)]
    files = (folder / "events.nt", folder / "small.nt", folder / "tabs.nt", folder / "events.json")
    with (
        files[0].open("w") as nt,
        files[1].open("w") as small,
        files[2].open("w") as tabs,
        files[3].open("w") as lines,
    ):
        for at, (user, count, text) in enumerate(
            zip(users, mentions, texts, strict=True), start=1_000_000
        ):
            said = (
                ("at", f'"{at}"^^<{XSD}integer>'),
                ("mentions", f'"{count}"^^<{XSD}integer>'),
                ("text", f'"{text}"'),
            )
            statements = [(f"<{NS}user/{user}>", f"<{NS}{name}>", value) for name, value in said]
            nt.writelines(" ".join((*each, ".\n")) for each in statements)
            tabs.writelines("\t".join((*each, ".\n")) for each in statements)
            if (at - 1_000_000) % SMALL == 0:
                small.writelines(" ".join((*each, ".\n")) for each in statements)
            lines.write(
                f'{{"at": {at}, "user": "{user}", "mentions": {count}, "text": "{text}"}}\n'
            )
    times = list(range(1_000_000, 1_000_000 + records))
    table = pa.table({"at": times, "user": users, "mentions": mentions, "text": texts})
    pq.write_table(table, folder / "events.parquet")


def _lines(file: Path) -> Iterator[pa.RecordBatch]:
    reader = LinesReader(file, 1 << 30, together="subject", max_partitions=1)
    reader.prepareForTriggerAvailableNow()
    for part in reader.partitions({}, reader.latestOffset({}, reader.getDefaultReadLimit())):
        yield from reader.read(part)


def _rows(file: Path, mapping: ColumnsMapping) -> Iterator[pa.RecordBatch]:
    reader = ParquetReader(file, mapping.types, 1 << 30, max_partitions=1)
    for part in reader.partitions({}, reader.latestOffset({}, reader.getDefaultReadLimit())):
        yield from reader.read(part)


def _decode(mapping: RecordDecoder, batches: Iterator[pa.RecordBatch]) -> int:
    return sum(mapping.records(batch).num_rows for batch in batches)


def _best(label: str, statements: int, repeat: int, work: Callable[[], object]) -> Figure:
    seconds = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return Figure(label, min(seconds), statements)


if __name__ == "__main__":
    main()
