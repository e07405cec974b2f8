"""Addresses in object stores."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

AZURE = ("az", "abfs", "abfss")
"""Schemes of Azure's store; ``abfs`` also names the account, as Hadoop's addresses do."""
HDFS = "hdfs"
"""Scheme of HDFS; its buckets are file systems, by the names of their NameNodes."""
SCHEMES = ("s3", *AZURE, HDFS)
"""Schemes of the stores that conditional writes were tried with."""
FORMS = "s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or hdfs://HOST/PREFIX"
"""Forms of addresses, for hints."""

_NO_CONDITION = "its writes under conditions were not tried"
ELSEWHERE = {
    "s3a": "write s3://",
    "s3n": "write s3://",
    "azure": "write az://",
    "adl": "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/",
    "gs": _NO_CONDITION,
    "gcs": _NO_CONDITION,
    "webhdfs": "write hdfs://",
    "swebhdfs": "write hdfs://",
}
"""Schemes of other remote storage, which users may try, and why they cannot be used."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,253}")
_AUTHORITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?")
_ACCOUNT = re.compile(r"([a-z0-9]{3,24})\.(?:dfs|blob)\.[a-z0-9.-]+")
_LINE = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class StoreAddress:
    """Bucket of an object store, and the beginning of the names of all objects meant.

    >>> address = StoreAddress.parse("s3://bucket/engines/one/")
    >>> str(address), str(address / "two"), address.prefix
    ('s3://bucket/engines/one', 's3://bucket/engines/one/two', 'engines/one')
    >>> str(StoreAddress.parse("hdfs://namenode:8020/engines/one"))
    'hdfs://namenode:8020/engines/one'
    >>> address = StoreAddress.parse("abfss://data@shop.dfs.core.windows.net/one")
    >>> str(address), address.bucket, address.account
    ('abfss://data@shop.dfs.core.windows.net/one', 'data', 'shop')
    """

    scheme: str
    bucket: str
    prefix: str
    host: str = ""
    """The host that an address names after the bucket, of Azure's alone."""

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """Return the address that a text names; raises ValueError with what is wrong."""
        parts = urlsplit(text)
        if parts.scheme in ELSEWHERE:
            raise ValueError(f"{parts.scheme}:// cannot be used: {ELSEWHERE[parts.scheme]}")
        if parts.scheme not in SCHEMES:
            raise ValueError("it is no address of an object store")
        bucket, host = parts.netloc, ""
        if parts.scheme in ("abfs", "abfss"):
            bucket, _, host = bucket.partition("@")
            if not _ACCOUNT.fullmatch(host):
                azure = f"{parts.scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
                raise ValueError(f"it is not as {azure}")
        if "@" in bucket:
            raise ValueError("an address holds no key and no password")
        prefix = parts.path.strip("/")
        form = _AUTHORITY if parts.scheme == HDFS else _BUCKET
        if not form.fullmatch(bucket) or not _LINE.fullmatch(prefix):
            raise ValueError("it needs a bucket and a prefix")
        if parts.query or parts.fragment or not all(_is_name(each) for each in prefix.split("/")):
            raise ValueError("its prefix holds a part that cannot be a name")
        return cls(parts.scheme, bucket, prefix, host)

    @property
    def account(self) -> str | None:
        """The account of Azure's store; None if the address names none."""
        found = _ACCOUNT.fullmatch(self.host)
        return found and found[1]

    def __truediv__(self, name: str) -> StoreAddress:
        return replace(self, prefix=f"{self.prefix}/{name}")

    def __str__(self) -> str:
        at = f"@{self.host}" if self.host else ""
        return f"{self.scheme}://{self.bucket}{at}/{self.prefix}"


def is_address(text: str) -> bool:
    """Return True for a text that begins with the scheme of any storage but local files.

    >>> is_address("s3://b/p"), is_address("hdfs://h/p"), is_address("folder/s3:"), is_address("x")
    (True, True, False, False)
    """
    return text.partition("://")[0] in (*SCHEMES, *ELSEWHERE) and "://" in text


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..")
