"""Error of brokers that do not answer; light to import, as who catches it need not connect."""

from __future__ import annotations


class NoReplyError(Exception):
    """Error: the brokers do not answer now."""
