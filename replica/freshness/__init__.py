"""How the remote changes, learned from what refreshes find: how often each row does, and where its values go.

The store reports to a :class:`History`; a :class:`ChangeModel` says what can be expected of values by now.
"""

from __future__ import annotations

from replica.freshness.change_model import ChangeModel
from replica.freshness.history import History

__all__ = ["ChangeModel", "History"]
