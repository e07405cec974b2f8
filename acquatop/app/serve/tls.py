"""Certificate and key with which the service encrypts."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acquatop.errors import UserError

KEY_PASSWORD = "ACQUATOP_TLS_KEY_PASSWORD"  # noqa: S105 (a variable's name)


@dataclass(frozen=True)
class TlsFiles:
    """A certificate with its chain, its key, and the key's password if it has one."""

    certificate: Path
    key: Path
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        certificate: Path | None,
        key: Path | None,
        variables: Mapping[str, str] = os.environ,
    ) -> TlsFiles | None:
        """Return the files that options name; None without a certificate.

        The key may stand in the certificate's file. Raises :class:`UserError` if they cannot be
        used.
        """
        if certificate is None:
            if key is not None:
                raise UserError("--tls-key needs --tls-certificate")
            return None
        files = cls(certificate, key or certificate, variables.get(KEY_PASSWORD) or None)
        files.check()
        return files

    def check(self) -> None:
        """Raise :class:`UserError` if the files cannot be used."""
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let a context use them; raises :class:`UserError` if it cannot."""
        # Without this OpenSSL would ask on the terminal.
        password = self.password or ""
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: password)
        except (OSError, ValueError) as error:
            raise UserError(
                f"the certificate {self.certificate} with the key {self.key} cannot be used: "
                f"{error}\n"
                f"  hint: both are PEM files; the key's password, if any, is in {KEY_PASSWORD}"
            ) from None

    def for_uvicorn(self) -> dict[str, Any]:
        """Return the settings of uvicorn."""
        return {
            "ssl_certfile": self.certificate,
            "ssl_keyfile": self.key,
            "ssl_keyfile_password": self.password,
        }
