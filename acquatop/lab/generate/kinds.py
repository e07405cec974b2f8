"""Kinds of traces: how values change, how the stream mentions users, and what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from acquatop.lab.generate.bursts import Bursts
from acquatop.lab.generate.contract import KindOfChange, KindOfStream
from acquatop.lab.generate.mentions import SteadyMentions
from acquatop.lab.generate.mixed import Mixed
from acquatop.lab.generate.rare import Rare
from acquatop.lab.generate.redrawn import Redrawn
from acquatop.lab.generate.returning import Returning
from acquatop.lab.generate.rhythm import Rhythm
from acquatop.lab.generate.tails import Tails
from acquatop.lab.generate.texts import BY_MENTION, BY_USER
from acquatop.lab.generate.walks import Walks

_STEADY = SteadyMentions()


@dataclass(frozen=True)
class KindOfData:
    """A kind of change, a kind of stream, and a query: by user, or by mention."""

    change: KindOfChange
    stream: KindOfStream = _STEADY
    query: str = BY_USER

    @property
    def adds_up(self) -> bool:
        """True if mentions of a user are added up."""
        return self.query == BY_USER


KINDS: Mapping[str, KindOfData] = MappingProxyType(
    {
        "redrawn": KindOfData(Redrawn()),
        "walks": KindOfData(Walks()),
        "bursts": KindOfData(Bursts()),
        "rhythm": KindOfData(Rhythm()),
        "rare": KindOfData(Rare()),
        "tails": KindOfData(Tails()),
        "mixed": KindOfData(Mixed()),
        "few": KindOfData(Redrawn(40.0), SteadyMentions(chance=0.12)),
        "returning": KindOfData(Walks(), Returning()),
        "list": KindOfData(Redrawn(), SteadyMentions(weighed=True), BY_MENTION),
    }
)
"""Kinds by name, each with its defaults."""
