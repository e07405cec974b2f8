"""Compression of large tables on their way to the driver."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.ipc

PACKED_FROM = 1 << 16
"""Bytes of a table from which on it is compressed."""
PACKED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
