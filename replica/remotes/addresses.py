"""Address templates with a placeholder for ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

_DOTS = re.compile(r"(?:^|[/\\])\.\.?(?:[/\\]|$)")


class RestAddress:
    """Address with a placeholder: ``{keys}`` for ids separated by commas, or ``{key}`` for one.

    Ids are percent-encoded, except letters, digits and ``-._~``. Ids that a server could still
    misinterpret are never sent: dots that lead to another folder, and a comma in one of several
    ids. The placeholder stands in the path or in the query, so ids cannot choose the host. Raises
    ValueError for other addresses.

    >>> users = RestAddress("https://api.example.org/users?ids={keys}&fields=name")
    >>> users.of(["7", "a&b=c"])
    'https://api.example.org/users?ids=7,a%26b%3Dc&fields=name'
    >>> users.takes("7"), users.takes("7,8"), users.takes("../admin")
    (True, False, False)
    """

    def __init__(self, template: str) -> None:
        match = re.fullmatch(r"(https?://[^/?#{}\s]+[/?][^#{}\s]*)\{(keys?)\}([^#{}\s]*)", template)
        if match is None:
            raise ValueError(
                f'"{template}" is not an http or https address with {{keys}} or {{key}} '
                "behind its host"
            )
        self._before, self._after = match[1], match[3]
        self.takes_many = match[2] == "keys"
        self.name = template.partition("?")[0]
        """Address for messages, without the query, which may hold secrets."""

    def takes(self, id_: str) -> bool:
        """Return True if an id can be sent."""
        if _DOTS.search(id_) or any("\ud800" <= each <= "\udfff" for each in id_):
            return False
        return not (self.takes_many and "," in id_)

    def of(self, ids: Sequence[str]) -> str:
        """Return the address that asks for some ids."""
        return f"{self._before}{','.join(quote(id_, safe='') for id_ in ids)}{self._after}"
