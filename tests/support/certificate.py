"""Self-signed certificate for 127.0.0.1, with its key, which no client trusts."""

from __future__ import annotations

from pathlib import Path

CERTIFICATE = Path(__file__).parents[1] / "fixtures" / "self_signed.pem"
