"""Extensions of installed distributions: found without being imported, and used by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from acquatop.answer.sinks import open_sink
from acquatop.app.cli import main
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.remotes import KINDS
from acquatop.errors import UserError
from acquatop.plugins import (
    CONNECTORS,
    FEEDS,
    GROUPS,
    OWN_REMOTES,
    RANKERS,
    STRATEGIES,
    looks_at_panes,
    plugins,
)
from acquatop.topk.battery import StrategyError, check_strategy
from acquatop.topk.papers.mintopk.pretopk import PreTopk
from acquatop.topk.strategies import OWN, Family, TopKStrategy
from connectors.registry import LINES
from tests.support.worlds import NS, catalog_text

Install = Callable[..., None]

RANKER = """
import numpy as np

class Backwards:
    def __call__(self, candidates):
        return np.arange(len(candidates))[::-1]
"""
SINK = """
from acquatop.answer.sinks.callback import CallbackSink

def opened(place):
    return CallbackSink(lambda answer: print(place, answer.window))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution: its modules, and its entry points in the form that pip writes."""

    def installed(distribution: str, points: str, **modules: str) -> None:
        site = tmp_path / distribution
        metadata = site / f"{distribution}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(points)
        for name, text in modules.items():
            (site / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(site))

    return installed


def test_nothing_is_installed_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    said = capsys.readouterr().out
    assert plugins() or all(group in said for group in GROUPS)


def test_a_policy_may_name_a_ranker_of_a_distribution(install: Install, tmp_path: Path) -> None:
    install("backwards", "[acquatop.rankers]\nBACKWARDS = ranks:Backwards\n", ranks=RANKER)
    text = catalog_text(policy="AT-BACKWARDS")
    catalog = Catalog.parse(text, file=tmp_path / "c.toml")
    assert catalog.services[f"{NS}people"].refresh.policy == "AT-BACKWARDS"
    assert RANKERS["BACKWARDS"].__module__ == "ranks"  # type: ignore[attr-defined]


def test_nothing_is_imported_before_its_name_is_used(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install("broken", "[acquatop.connectors]\nbroken = breaks:IT\n", breaks="raise OSError('no')")
    Catalog.parse(catalog_text(), file=tmp_path / "c.toml")
    assert main(["plugins"]) == 0
    assert "connector broken: broken 1.0, breaks:IT\n" in capsys.readouterr().out
    assert main(["connectors"]) == 0
    said = capsys.readouterr()
    assert "lines: " in said.out
    assert 'the connector "broken" of broken 1.0 cannot be used: OSError: no' in said.err
    with pytest.raises(UserError, match=r"of broken 1\.0 cannot be used: OSError: no"):
        CONNECTORS["broken"]


def test_what_is_no_extension_of_its_kind_is_refused_with_its_distribution(
    install: Install,
) -> None:
    install("odd", "[acquatop.connectors]\nodd = odds:IT\n", odds="IT = 3")
    with pytest.raises(UserError, match=r"of odd 1\.0 cannot be used: ValueError: 3 is no"):
        CONNECTORS["odd"]


def test_the_project_s_own_are_never_replaced(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("taker", "[acquatop.connectors]\nlines = takes:LINES\n", takes="LINES = None")
    assert CONNECTORS["lines"] is LINES
    assert main(["plugins"]) == 0
    assert "connector lines: taker 1.0, takes:LINES, hidden by acquatop" in capsys.readouterr().out


def test_two_distributions_with_one_name_are_named(install: Install) -> None:
    install("first", "[acquatop.sinks]\nprints = a:opened\n")
    install("second", "[acquatop.sinks]\nprints = b:opened\n")
    with pytest.raises(UserError, match=r'the sink "prints" is in first 1.0 and second 1.0'):
        open_sink("prints:here")


def test_a_target_may_name_a_sink_of_a_distribution(install: Install) -> None:
    install("prints", "[acquatop.sinks]\nprints = printing:opened\n", printing=SINK)
    assert type(open_sink("prints:here")).__name__ == "CallbackSink"
    with pytest.raises(UserError, match=r"did you mean prints:…\?"):
        open_sink("print:here")


STRATEGY = """
from acquatop.topk.papers.mintopk.pretopk import PreTopk
from acquatop.topk.strategies import Family, TopKStrategy

class Mine(PreTopk):
    pass

MINE = TopKStrategy("mine", Family.LIST, Mine)
OURS = TopKStrategy("ours", Family.SHARED, Mine)
"""


def test_a_stream_may_name_a_strategy_of_a_distribution(install: Install, tmp_path: Path) -> None:
    points = "[acquatop.strategies]\nmine = lists:MINE\nours = lists:OURS\nodd = lists:Mine\n"
    install("lists", points, lists=STRATEGY)
    text = catalog_text().replace('connector = "lines"', 'connector = "lines"\nstrategy = "mine"')
    text = text.replace('arrivals = "latest"', 'arrivals = "distinct"')
    catalog = Catalog.parse(text, file=tmp_path / "c.toml")
    assert {each.strategy for each in catalog.streams.values()} == {"mine"}
    assert STRATEGIES["mine"].load().__name__ == "Mine"
    for name, wrong in (("ours", "cannot be brought"), ("odd", "is no acquatop.topk.strategies")):
        with pytest.raises(UserError, match=rf'the strategy "{name}" of lists 1.0 .*{wrong}'):
            STRATEGIES[name]


def test_the_battery_of_strategies_finds_what_is_wrong() -> None:
    class Forgetful(PreTopk):
        def resume(self, snapshot: bytes) -> None:
            """Forget all."""

    check_strategy(OWN["pretopk"])
    check_strategy(OWN["block-skyline"])
    with pytest.raises(StrategyError, match="wrong with k = 1 answers"):
        check_strategy(TopKStrategy("wrong", Family.LIST, Forgetful))


REST = """
def remote(options):
    return lambda ids: {each: {"followers": 1} for each in ids}
HALF = {"call": "rest:half", "directions": [1]}
ODD = {"call": "no function", "directions": [7]}
NONE = {"directions": [1]}
class Silent:
    looks_at_panes = True
"""
POINTS = """[acquatop.remotes]
rest = rest:remote
theirs = rest:remote
[acquatop.proposers]
SILENT = rest:Silent
[acquatop.functions]
half = rest:HALF
odd = rest:ODD
none = rest:NONE
[acquatop.feeds]
text = rest:NONE
"""


def test_what_cannot_serve_is_named_where_a_catalog_uses_it(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("theirs", POINTS, rest=REST)
    assert main(["plugins"]) == 0
    said = capsys.readouterr().out
    assert "remote rest: theirs 1.0, rest:remote, hidden by acquatop" in said
    text = catalog_text(policy="SILENT-LRU")
    catalog = Catalog.parse(f"{text}\n[functions.half]\n", file=tmp_path / "c.toml")
    assert catalog.functions["half"].directions == (1,)
    for table, wrong in (
        ("[functions.odd]", "does not name a function"),
        ("[functions.none]", "is no table with the keys call and directions"),
        ("[functions.half]\nrange = [0, 1]", 'unknown key "range"'),
    ):
        with pytest.raises(UserError, match=wrong):
            Catalog.parse(f"{text}\n{table}\n", file=tmp_path / "c.toml")
    with pytest.raises(UserError, match=r"the proposer \"SILENT\" .* it lacks includes_dropped"):
        looks_at_panes("SILENT-LRU")
    with pytest.raises(UserError, match="cannot be called with a table of options"):
        FEEDS["text"]
    assert set(KINDS) == set(OWN_REMOTES)
