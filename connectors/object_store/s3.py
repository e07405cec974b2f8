"""Stores behind the protocol of S3, as the process's environment names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.object_store.address import StoreAddress
from connectors.object_store.provider import Provider

if TYPE_CHECKING:
    from obstore.store import S3Store


def _open(address: StoreAddress, endpoint: str | None, common: Mapping[str, Any]) -> S3Store:
    from obstore.store import S3Store

    return S3Store(
        address.bucket,
        prefix=address.prefix,
        config={} if endpoint is None else {"endpoint": endpoint},  # type: ignore[typeddict-item, unused-ignore]
        **common,
    )


S3 = Provider(
    needed="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    credentials=(
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_METADATA_ENDPOINT",
        "AWS_SKIP_SIGNATURE",
    ),
    endpoints=("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    removed_at_once=1000,
    open=_open,
)
