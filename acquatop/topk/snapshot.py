"""A structure's state as bytes: named columns, versioned, compressed, and nothing that runs when it is read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from acquatop.topk.contract import AnyArray, Rows

MAGIC = b"acquatop-topk\n"


class SnapshotError(ValueError):
    """Bytes that are no snapshot of the structure that should go on from them."""


@dataclass(frozen=True)
class State:
    """Plain settings, and tables of columns by name."""

    settings: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, AnyArray]]


def pack(kind: str, version: int, state: State) -> bytes:
    """Return a structure's state as bytes: a checksum, a line of JSON, then an Arrow stream per table.

    Columns of objects must hold text, or tuples of text.

    >>> packed = pack("list", 1, State({"k": 3}, {"held": {"times": np.arange(3)}}))
    >>> restored = unpack("list", 1, packed)
    >>> restored.settings["k"], restored.tables["held"]["times"].tolist()
    (3, [0, 1, 2])
    """
    bodies = [_write(columns) for columns in state.tables.values()]
    sizes = dict(zip(state.tables, map(len, bodies), strict=True))
    header = {"kind": kind, "version": version, "settings": dict(state.settings), "tables": sizes}
    content = b"".join([json.dumps(header).encode(), b"\n", *bodies])
    return MAGIC + b"%08x\n" % zlib.crc32(content) + content


def unpack(kind: str, version: int, snapshot: bytes) -> State:
    """Return what was packed; raises :class:`SnapshotError` with what is wrong with the bytes."""
    if not snapshot.startswith(MAGIC):
        raise SnapshotError("these bytes are not a snapshot of a top-k structure")
    try:
        checksum, _, content = snapshot[len(MAGIC) :].partition(b"\n")
        if checksum != b"%08x" % zlib.crc32(content):
            raise SnapshotError("the snapshot is damaged: its checksum does not match")
        line, _, body = content.partition(b"\n")
        header = json.loads(line)
        found = header["kind"], header["version"]
        if found != (kind, version):
            raise SnapshotError(f"this is a snapshot of {found[0]} version {found[1]}, not of {kind} version {version}")
        tables, start = {}, 0
        for name, size in header["tables"].items():
            tables[name] = _read(body[start : start + size])
            start += size
    except (KeyError, TypeError, OSError, UnicodeDecodeError, json.JSONDecodeError, pa.ArrowException) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    return State(header["settings"], tables)


def table_of(rows: Rows) -> dict[str, AnyArray]:
    """Return rows as named columns."""
    parts = {f"part{at}": part for at, part in enumerate(rows.parts)}
    carried = {f"carried{at}": column for at, column in enumerate(rows.carried)}
    return {"times": rows.times, "identities": rows.identities, "keys": rows.keys, **parts, **carried}


def rows_of(columns: Mapping[str, AnyArray]) -> Rows:
    """Return the rows that were written as named columns."""
    parts = tuple(columns[name] for name in columns if name.startswith("part"))
    carried = tuple(columns[name] for name in columns if name.startswith("carried"))
    return Rows(columns["times"], columns["identities"], columns["keys"], parts, carried)


def _write(columns: Mapping[str, AnyArray]) -> bytes:
    batch = pa.record_batch(
        {name: pa.array(column.tolist() if column.dtype == object else column) for name, column in columns.items()}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


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
