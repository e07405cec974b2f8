"""Serialised state of a structure: named columns, versioned, compressed. Reading runs no code."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from acquatop.topk.contract import AnyArray, Rows

MAGIC = b"acquatop-topk\n"
_PARTS = b"acquatop-parts\n"
_TABLE = b"acquatop-table\n"


class SnapshotError(ValueError):
    """Bytes that are no snapshot of the structure to be restored."""


@dataclass(frozen=True)
class State:
    """Plain settings, and tables of columns by name."""

    settings: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, AnyArray]]


def pack(kind: str, version: int, state: State) -> bytes:
    """Return a structure's state as bytes: checksum, line of JSON, an Arrow stream per table.

    Columns of objects must hold text, or tuples of text.

    >>> packed = pack("list", 1, State({"k": 3}, {"held": {"times": np.arange(3)}}))
    >>> restored = unpack("list", 1, packed)
    >>> restored.settings["k"], restored.tables["held"]["times"].tolist()
    (3, [0, 1, 2])
    """
    bodies = [_write(columns) for columns in state.tables.values()]
    sizes = dict(zip(state.tables, map(len, bodies), strict=True))
    header = {"kind": kind, "version": version, "settings": dict(state.settings), "tables": sizes}
    return _sealed(MAGIC, b"".join([json.dumps(header).encode(), b"\n", *bodies]))


def unpack(kind: str, version: int, snapshot: bytes) -> State:
    """Return the state that was packed; raise :class:`SnapshotError` that says what is wrong."""
    content = _opened(MAGIC, snapshot, "a snapshot of a top-k structure")
    with reading():
        line, _, body = content.partition(b"\n")
        header = json.loads(line)
        found = header["kind"], header["version"]
        if found != (kind, version):
            raise SnapshotError(
                f"this is a snapshot of {found[0]} version {found[1]}, not of {kind} "
                f"version {version}"
            )
        tables, start = {}, 0
        for name, size in header["tables"].items():
            tables[name] = _read(body[start : start + size])
            start += size
        return State(header["settings"], tables)


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    """Return several snapshots as one: checksum, a line of JSON with their lengths, their bytes.

    >>> unpack_parts(pack_parts({"first": b"some", "second": b""}))
    {'first': b'some', 'second': b''}
    """
    sizes = {name: len(part) for name, part in parts.items()}
    return _sealed(_PARTS, b"".join([json.dumps(sizes).encode(), b"\n", *parts.values()]))


def unpack_parts(snapshot: bytes) -> dict[str, bytes]:
    """Return the snapshots packed into one; raise :class:`SnapshotError` for other bytes."""
    content = _opened(_PARTS, snapshot, "a snapshot of several parts")
    with reading():
        line, _, body = content.partition(b"\n")
        parts, start = {}, 0
        for name, size in json.loads(line).items():
            parts[name] = body[start : start + size]
            start += size
        if start != len(body):
            raise SnapshotError(
                "the snapshot is damaged: its parts are not as long as they should be"
            )
        return parts


def pack_table(table: pa.Table) -> bytes:
    """Return a table of any columns as bytes: a checksum, then an Arrow stream.

    >>> unpack_table(pack_table(pa.table({"name": ["a", None]}))).to_pylist()
    [{'name': 'a'}, {'name': None}]
    """
    return _sealed(_TABLE, _stream(table))


def unpack_table(snapshot: bytes) -> pa.Table:
    """Return the table that was packed; raise :class:`SnapshotError` that says what is wrong."""
    content = _opened(_TABLE, snapshot, "a snapshot of a table")
    with reading():
        return pa.ipc.open_stream(content).read_all()


@contextmanager
def reading() -> Iterator[None]:
    """Turn any error while reading a snapshot into :class:`SnapshotError`."""
    try:
        yield
    except SnapshotError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        OSError,
        pa.ArrowException,
    ) as error:
        raise SnapshotError(f"the snapshot is damaged: {error!r}") from error


def random_settings(random: np.random.Generator) -> dict[str, Any]:
    """Return the state of a random generator as plain settings.

    >>> source, other = np.random.default_rng(1), np.random.default_rng(2)
    >>> set_random(other, random_settings(source))
    >>> source.random() == other.random()
    True
    """
    settings = _plain(random.bit_generator.state)
    assert isinstance(settings, dict)
    return settings


def set_random(random: np.random.Generator, settings: Mapping[str, Any]) -> None:
    """Set a random generator's state; raise :class:`SnapshotError` for a state of another kind."""
    with reading():
        random.bit_generator.state = dict(settings)


def table_of(rows: Rows) -> dict[str, AnyArray]:
    """Return rows as named columns."""
    parts = {f"part{at}": part for at, part in enumerate(rows.parts)}
    carried = {f"carried{at}": column for at, column in enumerate(rows.carried)}
    return {
        "times": rows.times,
        "identities": rows.identities,
        "keys": rows.keys,
        **parts,
        **carried,
    }


def rows_of(columns: Mapping[str, AnyArray]) -> Rows:
    """Return the rows that were written as named columns."""
    parts = tuple(columns[name] for name in columns if name.startswith("part"))
    carried = tuple(columns[name] for name in columns if name.startswith("carried"))
    return Rows(columns["times"], columns["identities"], columns["keys"], parts, carried)


def _write(columns: Mapping[str, AnyArray]) -> bytes:
    batch = pa.record_batch(
        {
            name: pa.array(column.tolist() if column.dtype == object else column)
            for name, column in columns.items()
        }
    )
    return _stream(pa.Table.from_batches([batch]))


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _sealed(magic: bytes, content: bytes) -> bytes:
    return magic + b"%08x\n" % zlib.crc32(content) + content


def _opened(magic: bytes, snapshot: bytes, what: str) -> bytes:
    """Return the sealed content after verifying its checksum."""
    if not snapshot.startswith(magic):
        raise SnapshotError(f"these bytes are not {what}")
    checksum, _, content = snapshot[len(magic) :].partition(b"\n")
    if checksum != b"%08x" % zlib.crc32(content):
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    return content


def _plain(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {name: _plain(each) for name, each in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


def _read(body: bytes) -> dict[str, AnyArray]:
    table = pa.ipc.open_stream(body).read_all()
    return {name: _column(table.column(name)) for name in table.column_names}


def _column(column: pa.ChunkedArray) -> AnyArray:
    if pa.types.is_primitive(column.type):
        return np.array(column.to_numpy())
    values = column.to_pylist()
    restored = np.empty(len(values), dtype=object)
    restored[:] = [tuple(each) if isinstance(each, list) else each for each in values]
    return restored
