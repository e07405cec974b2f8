"""Azure's store of blobs, as addresses and the process's environment name it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import StoreError
from connectors.object_store.provider import Provider

if TYPE_CHECKING:
    from obstore.store import AzureStore

_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"


def _open(address: StoreAddress, endpoint: str | None, common: Mapping[str, Any]) -> AzureStore:
    from obstore.store import AzureStore

    account = address.account or os.environ.get(_ACCOUNT)
    if not account:
        raise StoreError(
            f"{address} names no account\n"
            f"  hint: set {_ACCOUNT}, or write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
        )
    config = {"account_name": account, **({} if endpoint is None else {"endpoint": endpoint})}
    return AzureStore(
        address.bucket,
        prefix=address.prefix,
        config=config,  # type: ignore[arg-type, unused-ignore]
        **common,
    )


AZURE = Provider(
    needed=f"{_ACCOUNT} and AZURE_STORAGE_ACCOUNT_KEY",
    credentials=(
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_IDENTITY_ENDPOINT",
        "AZURE_SKIP_SIGNATURE",
    ),
    endpoints=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    removed_at_once=256,
    open=_open,
)
