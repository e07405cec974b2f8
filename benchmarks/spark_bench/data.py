"""Data of the benchmark: readings of keys over an hour, and a weight of each key; equal for all.

Readings are multiples of a sixteenth, so their sums are exact in any order, and answers of
different engines can be compared bit by bit. No reading falls on the border of a pane, as engines
differ in the side to which such a border belongs. The last row is much later than all others: it
lets every window close.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

WIDTH_MS, SLIDE_MS = 540_000, 180_000
START_MS = 1_700_000_100_000 // WIDTH_MS * WIDTH_MS
SPAN_MS = 61 * 60_000
TOP = 10
TRIPLE_FILES = 4
"""Number of files of readings that are also written as N-Triples."""
NS = "http://example.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_VERSION = 3
_FIRST_CHANGE = 1_700_000_000
_SEED = 6
_DICTIONARY = 16 << 20
"""Room for all keys: files with keys as plain text would be slower to read, for every engine."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Size of the data: rows, keys, and rows per file."""

    rows: int
    keys: int
    rows_per_file: int = 250_000

    @property
    def folder(self) -> Path:
        """Folder of the data, kept from run to run."""
        name = f"v{_VERSION}-{self.rows}-{self.keys}-{self.rows_per_file}"
        return Path(tempfile.gettempdir()) / "acquatop-bench-spark" / name

    @property
    def readings(self) -> Path:
        """Folder of Parquet files with the readings."""
        return self.folder / "readings"

    @property
    def weights(self) -> Path:
        """Parquet file with the keys' weights."""
        return self.folder / "weights.parquet"

    @property
    def triples(self) -> Path:
        """Folder of N-Triples files with the first readings."""
        return self.folder / "triples"

    @property
    def closes(self) -> range:
        """Closes of the windows that hold a reading, other than the last row."""
        last = START_MS + SPAN_MS - SPAN_MS % SLIDE_MS + WIDTH_MS
        return range(START_MS + SLIDE_MS, last + 1, SLIDE_MS)


def times(world: World, rows: IntArray) -> IntArray:
    """Return the times of readings, by number: evenly over the span, never on a pane's border.

    >>> times(World(4, 2), np.arange(4)) - START_MS
    array([      1,  915001, 1830001, 2745001])
    """
    found: IntArray = START_MS + 1 + rows * SPAN_MS // world.rows
    found += found % SLIDE_MS == 0
    return found


def weights(world: World) -> FloatArray:
    """Return the weight of each key, by its number."""
    return np.random.default_rng(_SEED).random(world.keys)


def blocks(world: World) -> Iterator[pa.Table]:
    """Yield the readings, one file's worth at a time; each block has a seed of its own."""
    for number, begin in enumerate(range(0, world.rows, world.rows_per_file)):
        rows = np.arange(begin, min(world.rows, begin + world.rows_per_file))
        chance = np.random.default_rng((_SEED, number))
        keys = chance.integers(0, world.keys, len(rows))
        values = chance.integers(1, 160_000, len(rows)) / 16
        yield _table(rows, times(world, rows), keys, values)
    late = np.array([world.rows])
    yield _table(
        late, np.array([START_MS + SPAN_MS + 3 * WIDTH_MS]), np.array([0]), np.array([0.0625])
    )


def _table(rows: IntArray, moments: IntArray, keys: IntArray, values: FloatArray) -> pa.Table:
    return pa.table(
        {
            "event": rows,
            "time": pa.array(moments, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            "time_ms": moments,
            "key_id": keys,
            "key": names(keys),
            "value": values,
        }
    )


def names(keys: IntArray) -> pa.Array:
    """Return keys as IRIs.

    >>> names(np.array([7, 42])).to_pylist()
    ['http://example.org/key/7', 'http://example.org/key/42']
    """
    return pc.binary_join_element_wise(f"{NS}key/", pa.array(keys).cast(pa.string()), "")


def statements(block: pa.Table) -> pa.Array:
    """Return readings as lines of N-Triples, three of each: key, value, and time."""
    subject = pc.binary_join_element_wise(
        f"<{NS}event/", block["event"].cast(pa.string()), f"> <{NS}", ""
    )
    of = pc.binary_join_element_wise(subject, "of> <", block["key"], "> .\n", "")
    value = _literal(subject, "value", block["value"], "double")
    moment = _literal(subject, "time", block["time_ms"], "integer")
    return pc.binary_join_element_wise(of, value, moment, "")


def _joined(texts: pa.ChunkedArray) -> bytes:
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    joined: bytes = (
        pc.binary_join(pa.LargeListArray.from_arrays([0, len(whole)], whole), "")[0]
        .as_buffer()
        .to_pybytes()
    )
    return joined


def _literal(subject: pa.Array, predicate: str, values: pa.Array, datatype: str) -> pa.Array:
    end = f'"^^<{_XSD}{datatype}> .\n'
    return pc.binary_join_element_wise(
        subject, f'{predicate}> "', values.cast(pa.string()), end, ""
    )


def prepare(world: World) -> None:
    """Write the data unless it exists; a folder is complete once it has its name."""
    if world.folder.exists():
        return
    world.folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=world.folder.parent))
    try:
        _write(world, draft)
        draft.rename(world.folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _write(world: World, folder: Path) -> None:
    keys = np.arange(world.keys)
    pq.write_table(
        pa.table({"key_id": keys, "key": names(keys), "weight": weights(world)}),
        folder / world.weights.name,
    )
    (folder / world.readings.name).mkdir()
    (folder / world.triples.name).mkdir()
    last: Path | None = None
    for number, block in enumerate(blocks(world)):
        if len(block) == 1 and last is not None:
            # The last row gets no file of its own, which would be a batch of its own.
            block, number = pa.concat_tables([pq.read_table(last), block]), number - 1
        last = folder / world.readings.name / f"part-{number:05d}.parquet"
        pq.write_table(block, last, dictionary_pagesize_limit=_DICTIONARY)
        if number < TRIPLE_FILES:
            (folder / world.triples.name / f"part-{number:05d}.nt").write_bytes(
                _joined(statements(block))
            )
        # Spark reads files in the order of their modification times.
        os.utime(last, (_FIRST_CHANGE + number, _FIRST_CHANGE + number))
