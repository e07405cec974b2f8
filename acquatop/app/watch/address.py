"""Addresses to listen on, in the form of command line options: ``[HOST:]PORT``."""

from __future__ import annotations

from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ListenAddress:
    """A host and a port; port 0 means any free port.

    >>> ListenAddress.parse("9464"), ListenAddress.parse("[::1]:0")
    (ListenAddress(host='127.0.0.1', port=9464), ListenAddress(host='::1', port=0))
    >>> str(ListenAddress("::1", 80)), str(ListenAddress("0.0.0.0", 80))
    ('[::1]:80', '0.0.0.0:80')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """Return the address that a text names; without a host it is on this machine only.

        Raises :class:`ValueError` with the reason if the text is no address.
        """
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(
                f"{text!r} is not [HOST:]PORT: an IPv6 address is written in brackets, as in "
                f"[::1]:9464"
            )
        if colon and not host:
            raise ValueError(f"{text!r} is not [HOST:]PORT: there is nothing before the colon")
        if not (port.isascii() and port.isdecimal() and int(port) <= 65535):
            raise ValueError(f"{text!r} is not [HOST:]PORT: a port is a number from 0 to 65535")
        return cls(host or LOOPBACK, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
