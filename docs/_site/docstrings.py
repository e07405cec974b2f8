"""Writes docstrings as Markdown for the site's reference; in the code they are reStructuredText."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_NAMED = re.compile(r":(?:class|meth|func|data|mod|attr|exc):`(~?)([\w.]+)`")
_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)
_LITERAL = re.compile(r"::\n\n((?:(?: {4}.*)?\n?)+)")


class Markdown(Extension):
    """Rewrites each docstring that griffe has read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite an object's docstring in place."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Return a docstring's text with its roles, literal blocks and doctests as Markdown has them.

    >>> print(to_markdown("See :class:`~replica.store.ReplicaStore`, or::\\n\\n    x = 1\\n"))
    See `ReplicaStore`, or:
    <BLANKLINE>
    ```python
    x = 1
    ```
    """
    text = _NAMED.sub(lambda role: f"`{role[2].rpartition('.')[2] if role[1] else role[2]}`", text)
    text = _LITERAL.sub(_fenced_literal, f"{text}\n")
    return _DOCTEST.sub(lambda test: f"```pycon\n{test[0].rstrip()}\n```\n", text).rstrip()


def _fenced_literal(block: re.Match[str]) -> str:
    lines = "\n".join(line.removeprefix("    ") for line in block[1].rstrip().split("\n"))
    return f":\n\n```python\n{lines}\n```\n\n"
