"""Addresses in object stores."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

SCHEMES = ("s3",)
"""Schemes of the object stores that conditional writes were tried with."""
ELSEWHERE = ("s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "azure", "adl", "hdfs", "webhdfs")
"""Schemes of other remote storage, which users may try."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,253}")
_LINE = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class StoreAddress:
    """Bucket of an object store, and the beginning of the names of all objects meant.

    >>> address = StoreAddress.parse("s3://bucket/engines/one/")
    >>> str(address), str(address / "two"), address.prefix
    ('s3://bucket/engines/one', 's3://bucket/engines/one/two', 'engines/one')
    """

    scheme: str
    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """Return the address that a text names; raises ValueError with what is wrong."""
        parts = urlsplit(text)
        if parts.scheme in ELSEWHERE:
            raise ValueError(f"{parts.scheme}:// cannot be used: only s3:// was tried")
        if parts.scheme not in SCHEMES:
            raise ValueError("it is no address of an object store")
        if "@" in parts.netloc:
            raise ValueError("an address holds no key and no password")
        prefix = parts.path.strip("/")
        if not _BUCKET.fullmatch(parts.netloc) or not _LINE.fullmatch(prefix):
            raise ValueError("it needs a bucket and a prefix")
        if parts.query or parts.fragment or not all(_is_name(each) for each in prefix.split("/")):
            raise ValueError("its prefix holds a part that cannot be a name")
        return cls(parts.scheme, parts.netloc, prefix)

    def __truediv__(self, name: str) -> StoreAddress:
        return replace(self, prefix=f"{self.prefix}/{name}")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}"


def is_address(text: str) -> bool:
    """Return True for a text that begins with the scheme of any storage but local files.

    >>> is_address("s3://b/p"), is_address("hdfs://h/p"), is_address("folder/s3:"), is_address("x")
    (True, True, False, False)
    """
    return text.partition("://")[0] in (*SCHEMES, *ELSEWHERE) and "://" in text


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..")
