"""Extensions that installed distributions bring, found by their entry points.

A distribution names them in its ``pyproject.toml``, in a group of :data:`GROUPS`. An extension is
imported when a catalog, a command or a program uses its name, and not before.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from acquatop.errors import UserError
from acquatop.topk.strategies import OWN as OWN_STRATEGIES
from acquatop.topk.strategies import Family, TopKStrategy, checked_strategy
from connectors.registry import CONNECTORS as OWN_CONNECTORS
from connectors.registry import Connector
from replica.rankers.registry import DEFAULT_RANKERS, RankerRegistry, checked_ranker

T = TypeVar("T")

OWN_REMOTES = ("sparql", "rest", "table", "sql", "python", "push")
OWN_FEEDS = ("lines", "http", "kafka")


@dataclass(frozen=True)
class OwnProposer:
    """A proposer of the project's own, as plans need to know it before it is loaded."""

    looks_at_panes: bool


OWN_PROPOSERS: Mapping[str, OwnProposer] = {
    "AT": OwnProposer(looks_at_panes=False),
    "ANY": OwnProposer(looks_at_panes=False),
    "WSJ": OwnProposer(looks_at_panes=True),
    "ALL": OwnProposer(looks_at_panes=False),
}
"""Names for the Super-MTK+N list (AcquaTop), any possible result, the window's join, all keys."""
_PROPOSER_PARTS = (
    "looks_at_panes",
    "includes_dropped",
    "add_pane",
    "propose",
    "close_before",
    "snapshot",
    "resume",
)


@dataclass(frozen=True)
class Plugin:
    """An installed extension: its name, the distribution that brings it, and where its code is.

    ``hidden_by`` tells why it is not used: the project, or another distribution, has its name.
    """

    group: str
    name: str
    distribution: str
    code: str
    hidden_by: str | None = None


class Extensions(Mapping[str, T], Generic[T]):
    """The project's own extensions of one kind by their names, and those that are installed.

    An installed one never replaces one of the project's own. ``checked`` returns what was imported
    for a name if it can serve, and raises :class:`ValueError` if not.
    """

    def __init__(
        self, group: str, own: Mapping[str, T], checked: Callable[[str, object], T]
    ) -> None:
        self.group = group
        self._own = own
        self._checked = checked
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Return an extension; :class:`~acquatop.errors.UserError` if it cannot be imported."""
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._installed[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._installed

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._installed if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def installed(self) -> Iterator[Plugin]:
        """Yield the installed extensions, also those that others hide; imports none of them."""
        for name, points in self._installed.items():
            for point in points:
                others = [_distribution(each) for each in points if each is not point]
                hidden_by = "acquatop" if name in self._own else ", ".join(others)
                yield Plugin(self.group, name, _distribution(point), point.value, hidden_by or None)

    @property
    def _installed(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        return _points(self.group, tuple(sys.path))

    def _load(self, name: str, points: tuple[EntryPoint, ...]) -> T:
        names = " and ".join(sorted(map(_distribution, points)))
        kind = kind_of(self.group)
        if len(points) > 1:
            raise UserError(
                f'the {kind} "{name}" is in {names}\n  hint: uninstall all of them but one'
            )
        try:
            return self._checked(name, points[0].load())
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UserError(f'the {kind} "{name}" of {names} cannot be used: {what}') from error


@lru_cache(maxsize=16)
def _points(group: str, _path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name, as found on a search path for modules."""
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=group):
        found[point.name].append(point)
    return {name: tuple(found[name]) for name in sorted(found)}


def kind_of(group: str) -> str:
    """Return the word for one extension of a group.

    >>> kind_of("acquatop.sinks"), kind_of("acquatop.strategies")
    ('sink', 'strategy')
    """
    several = group.removeprefix("acquatop.")
    one = several.removesuffix("ies")
    return several.removesuffix("s") if one == several else f"{one}y"


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


def _of_project(*_options: object) -> Any:
    """Stand for what the project opens by itself."""
    raise NotImplementedError


def _connector(name: str, found: object) -> Connector:
    if not isinstance(found, Connector) or found.name != name:
        raise ValueError(f'{found!r} is no connectors.registry.Connector named "{name}"')
    return found


def _called(what: str) -> Callable[[str, object], Callable[..., Any]]:
    """Return a check that something can be called with what is named."""

    def checked(_name: str, found: object) -> Callable[..., Any]:
        if not callable(found):
            raise ValueError(f"{found!r} cannot be called with {what}")
        return found

    return checked


def _proposer(name: str, found: object) -> Any:
    lacking = [each for each in _PROPOSER_PARTS if not hasattr(found, each)]
    if not callable(found) or lacking:
        raise ValueError(f"{found!r} is no class of proposers: it lacks {', '.join(lacking)}")
    if not name.isalnum():
        raise ValueError(f'"{name}" cannot begin the name of a policy')
    return found


def _function(name: str, found: object) -> Mapping[str, Any]:
    if not isinstance(found, Mapping) or not {"call", "directions"} <= found.keys():
        raise ValueError(f"{found!r} is no table with the keys call and directions")
    return found


CONNECTORS: Extensions[Connector] = Extensions("acquatop.connectors", OWN_CONNECTORS, _connector)
"""Connectors that streams may name."""
SINKS: Extensions[Callable[[str], Any]] = Extensions(
    "acquatop.sinks", {}, _called("what follows the colon of a target")
)
"""Openers of installed sinks, by what stands before the colon of a target."""
_RANKERS = Extensions("acquatop.rankers", DEFAULT_RANKERS, checked_ranker)
RANKERS = RankerRegistry(_RANKERS)
"""Rankers that policies may name."""
STRATEGIES: Extensions[TopKStrategy] = Extensions(
    "acquatop.strategies", OWN_STRATEGIES, checked_strategy
)
"""Structures that streams may name."""
REMOTES: Extensions[Callable[..., Any]] = Extensions(
    "acquatop.remotes", dict.fromkeys(OWN_REMOTES, _of_project), _called("a table of options")
)
"""Kinds of remotes that services may name: functions from options to one from ids to records."""
FEEDS: Extensions[Callable[..., Any]] = Extensions(
    "acquatop.feeds", dict.fromkeys(OWN_FEEDS, _of_project), _called("a table of options")
)
"""Kinds of feeds that services may name: functions from options to messages as they come."""
PROPOSERS: Extensions[Any] = Extensions("acquatop.proposers", OWN_PROPOSERS, _proposer)
"""Classes of proposers that policies may begin with."""
FUNCTIONS: Extensions[Mapping[str, Any]] = Extensions("acquatop.functions", {}, _function)
"""Declarations of functions that catalogs may name, as the catalog's own."""
FAMILIES: tuple[Extensions[Any], ...] = (
    CONNECTORS,
    SINKS,
    _RANKERS,
    STRATEGIES,
    REMOTES,
    FEEDS,
    PROPOSERS,
    FUNCTIONS,
)
GROUPS = tuple(family.group for family in FAMILIES)
"""Groups of entry points."""


def family_of(strategy: str | None) -> Family | None:
    """Return the family of a strategy that a catalog names; None for no name of such a one."""
    if strategy is None or strategy not in STRATEGIES:
        return None
    return STRATEGIES[strategy].family


def looks_at_panes(policy: str) -> bool:
    """Return True if a policy considers all that a window joins with.

    >>> looks_at_panes("WSJ-LRU"), looks_at_panes("AT-TSM")
    (True, False)
    """
    return bool(PROPOSERS[policy.partition("-")[0]].looks_at_panes)


def plugins() -> list[Plugin]:
    """Return what is installed, of all kinds."""
    return [plugin for family in FAMILIES for plugin in family.installed()]
