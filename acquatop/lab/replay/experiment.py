"""Experiment: the settings that are compared, and the recordings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from acquatop.catalog.section import CatalogError, Document, Section
from acquatop.catalog.services import policies
from acquatop.errors import UserError
from acquatop.lab.generate import KINDS
from acquatop.lab.replay.data import Data, Generated, Recorded, values_of
from acquatop.lab.replay.measure import METRICS
from acquatop.lab.replay.setting import CLAIRVOYANT, Setting

SHIPPED = Path(__file__).parent / "experiments"
"""Folder of the paper's experiments, each in a file named by its number."""

NEW, OLD = ("AT-TSM", "AT-BSM"), ("WSJ-WBM", "WSJ-LRU")
"""Policies that the AcquaTop paper proposes, and those it compares them with (its Table 6)."""


Compared = tuple[str, str, str]
"""A new policy, an old one, and a metric."""


@dataclass(frozen=True)
class Printed:
    """Percentages that a paper prints for an improvement, at best and at worst."""

    most: float
    least: float


@dataclass(frozen=True)
class Experiment:
    """All combinations of the listed values, replayed on each of the recordings.

    ``new`` policies are compared with ``old`` ones, and with the improvements ``printed`` by a
    paper. ``items_per_request`` is the number of items that a request may carry, if it differs from
    the catalog's.
    """

    data: tuple[Data, ...]
    policies: tuple[str, ...]
    budgets: tuple[int, ...]
    ks: tuple[int, ...]
    ns: tuple[int, ...]
    seeds: tuple[int, ...] = (1,)
    title: str = "Evaluation"
    question: str = ""
    new: tuple[str, ...] = NEW
    old: tuple[str, ...] = OLD
    items_per_request: int | None = None
    printed: Mapping[Compared, Printed] = field(default_factory=dict)

    def on_kind(self, kind: str) -> Experiment:
        """Return the experiment on another kind of generated data: nothing is printed for it."""
        return replace(
            self,
            data=tuple(each.of_kind(kind) for each in self.data),
            title=f"{self.title} ({kind})",
            printed={},
        )

    def settings(self) -> list[Setting]:
        """Return all settings, in the order of the results."""
        combined = product(self.policies, self.budgets, self.ks, self.ns, self.seeds)
        return [Setting(*each) for each in combined]


def shipped() -> list[str]:
    """Return the names of the experiments that are included."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def load_experiment(name: str) -> Experiment:
    """Return the experiment of a file, or of a number: the AcquaTop paper's are numbered.

    Raise :class:`~acquatop.errors.UserError` with all problems of the file.
    """
    file = SHIPPED / f"{name}.toml" if name in shipped() else Path(name)
    try:
        text = file.read_text("utf-8-sig")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        hint = (
            f"name a TOML file, or one of {', '.join(shipped())}, the AcquaTop paper's experiments"
        )
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(
            f"{file}: the experiment cannot be read: {reason}\n  hint: {hint}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: this is not TOML: {error}") from None
    document = Document(file, text, {})
    experiment = _experiment(Section(document, data, ()))
    document.raise_problems()
    if experiment is None:
        raise CatalogError(f"{file}: the experiment has no data")
    return experiment


def _experiment(root: Section) -> Experiment | None:
    root.allow(
        "title",
        "question",
        "policies",
        "budgets",
        "k",
        "n",
        "seeds",
        "new",
        "old",
        "items_per_request",
        "printed",
        "data",
    )
    policies = _policies(root, "policies", ())
    if not policies:
        root.problem('"policies" must list at least one')
    lists = {
        name: _wholes(root, name, least)
        for name, least in (("budgets", 0), ("k", 1), ("n", 0), ("seeds", 0))
    }
    printed = dict(_printed(root.section("printed")))
    data = _data(root.section("data", required=True))
    if not data:
        return None
    return Experiment(
        data,
        policies,
        lists["budgets"],
        lists["k"],
        lists["n"],
        lists["seeds"],
        title=root.text("title", default="Evaluation"),
        question=root.text("question", default=""),
        new=_policies(root, "new", NEW),
        old=_policies(root, "old", OLD),
        items_per_request=root.whole("items_per_request", default=None, least=1),
        printed=printed,
    )


def _policies(root: Section, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(root.texts(key)) if key in root else default
    known = (*policies(), CLAIRVOYANT)
    for each in found:
        if each not in known:
            root.problem(f'there is no policy "{each}"', key, f"known are {', '.join(known)}")
    return found


def _printed(section: Section) -> Iterator[tuple[Compared, Printed]]:
    for new, against in section.tables():
        for old, metrics in against.tables():
            metrics.allow(*METRICS)
            for metric in metrics:
                most, *others = metrics.numbers(metric)
                if len(others) != 1:
                    metrics.problem(f'"{metric}" must be two numbers: at best, at worst', metric)
                else:
                    yield (new, old, metric), Printed(most, others[0])


def _wholes(root: Section, key: str, least: int) -> tuple[int, ...]:
    """Return a list of whole numbers with at least one element."""
    values = root.numbers(key)
    if any(not isinstance(each, int) or each < least for each in values):
        root.problem(f'"{key}" must be whole numbers from {least} on', key)
        return (least,)
    return tuple(int(each) for each in values)


def _data(section: Section) -> tuple[Data, ...]:
    if "trace" in section:
        section.allow("trace", "query")
        folder, query = Path(section.path("trace")), Path(section.path("query"))
        try:
            return (Recorded(folder, query.read_text("utf-8-sig"), str(query)),)
        except (OSError, UnicodeDecodeError):
            section.problem("the query cannot be read", "query")
            return ()
    kind = section.choice("kind", tuple(KINDS))
    if kind not in KINDS:
        return ()
    known = values_of(kind)
    section.allow("kind", "users", "windows", *known)
    values = {name: section.numbers(name) for name in known if name in section}
    varied = [name for name, several in values.items() if len(several) > 1]
    users, windows = (
        section.whole("users", default=400, least=1),
        section.whole("windows", default=150, least=1),
    )
    return tuple(
        Generated(kind, made, {name: made[name] for name in varied}, users, windows)
        for made in (dict(zip(values, each, strict=True)) for each in product(*values.values()))
    )
