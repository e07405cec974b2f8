"""Client of a schema registry: schemas by their numbers, each asked for once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from connectors import ConnectorError

USER, PASSWORD = "ACQUATOP_REGISTRY_USER", "ACQUATOP_REGISTRY_PASSWORD"
_SECONDS = 10.0
_AGAIN = Retry(4, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504))


class SchemaRegistry:
    """Registry at an address, with the user and the password of the environment if there are."""

    def __init__(self, address: str, environment: Mapping[str, str] = os.environ) -> None:
        self._address = address.rstrip("/")
        user = environment.get(USER)
        self._auth = (user, environment.get(PASSWORD, "")) if user else None
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=_AGAIN))

    def schema(self, number: int) -> Mapping[str, Any]:
        """Return the schema of a number."""
        return self._get(f"schemas/ids/{number}")

    def reference(self, subject: str, version: int) -> Mapping[str, Any]:
        """Return a schema to which another one refers."""
        return self._get(f"subjects/{quote(subject, safe='')}/versions/{version}")

    def _get(self, path: str) -> Mapping[str, Any]:
        try:
            reply = self._session.get(
                f"{self._address}/{path}",
                auth=self._auth,
                timeout=_SECONDS,
                # Of Protobuf's this is the compiled form; other kinds do not know it.
                params={"format": "serialized"},
            )
            reply.raise_for_status()
            said: Mapping[str, Any] = reply.json()
        except (requests.RequestException, ValueError) as error:
            raise ConnectorError(
                f"the schema registry at {self._address} does not give {path}: {error}\n"
                "  hint: see that it is running, and that the address (registry) is right"
            ) from None
        return said
