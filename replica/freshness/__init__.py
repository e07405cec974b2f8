"""Freshness model, learned from refreshes: each row's rate of change, and where its values move.

The store reports to a :class:`History`; a :class:`ChangeModel` predicts the present values.
"""

from __future__ import annotations

from replica.freshness.change_model import ChangeModel
from replica.freshness.history import History

__all__ = ["ChangeModel", "History"]
