"""Summaries of results: intervals, improvements, tables and pictures."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acquatop.errors import EnvironmentProblem
from acquatop.lab.replay.bootstrap import interval
from acquatop.lab.replay.data import Generated
from acquatop.lab.replay.experiment import Experiment, Printed, load_experiment, shipped
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.runner import Results
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.summary import Cell, ReplaySummary
from acquatop.lab.report.axes import views
from acquatop.lab.report.drawing import check_drawing
from acquatop.lab.report.pictures import pictures
from acquatop.lab.report.recommended import recommended
from acquatop.lab.report.reliability import groups
from acquatop.lab.report.report import report

EXPERIMENT = Experiment(
    (Generated("redrawn", {"changes": 20.0}, {}, windows=10),),
    policies=("AT-TSM", "AT-BSM", "WSJ-LRU", "WSJ-ASM"),
    budgets=(1, 3, 7),
    ks=(5,),
    ns=(10,),
    seeds=(1, 2),
    title="What <is> best?",
)


def measured(level: float, windows: int = 10) -> list[Measured]:
    unknown = float("nan")
    return [
        Measured(
            *(at, 100 * at, level, level, level / 2, 1.0, 0.25, unknown, 3, 1, "certified"),
            *(level / 2, level, "[]"),
        )
        for at in range(windows)
    ]


def summary(experiment: Experiment = EXPERIMENT) -> ReplaySummary:
    levels = {"AT-TSM": 0.5, "AT-BSM": 0.4, "WSJ-LRU": 0.25, "WSJ-ASM": 1.0}
    found = {
        (data.name, setting): measured(levels[setting.policy] + 0.01 * setting.budget)
        for data in experiment.data
        for setting in experiment.settings()
    }
    return ReplaySummary(Results(experiment, found, {"seed 1": {"windows without events": 3}}))


def test_an_interval_holds_the_mean_and_shrinks_with_more_windows() -> None:
    random = np.random.default_rng(1)
    few, many = (interval(random.normal(0.5, 0.1, (1, windows))) for windows in (30, 3000))
    for found in (few, many):
        assert found.low < found.mean < found.high
    assert many.high - many.low < (few.high - few.low) / 5


@pytest.mark.parametrize("alike", [1, 5])
def test_an_interval_covers_the_truth_about_as_often_as_it_says(alike: int) -> None:
    random = np.random.default_rng(alike)
    series = [np.repeat(random.random((1, 200 // alike)), alike, axis=1) for _ in range(200)]
    covered = [found.low <= 0.5 <= found.high for found in map(interval, series)]
    assert np.mean(covered) > 0.85


def test_data_sets_that_differ_make_an_interval_wide() -> None:
    alike, different = (
        np.full((5, 40), 0.5),
        np.repeat(np.linspace(0.3, 0.7, 5)[:, None], 40, axis=1),
    )
    assert interval(alike) == (0.5, 0.5, 0.5)
    found = interval(different)
    assert found.high - found.low > 0.1


def test_improvements_are_of_the_medians_in_percent() -> None:
    found = {(each.new, each.metric): each for each in summary().improvements()}
    best = found["AT-TSM", "ndcg"]
    assert best.old == "WSJ-LRU"
    assert (best.most, best.at_most.budget) == (pytest.approx(100 * (0.51 / 0.26 - 1)), 1)
    assert (best.least, best.at_least.budget) == (pytest.approx(100 * (0.57 / 0.32 - 1)), 7)
    assert ("AT-TSM", "WSJ-WBM") not in found


def test_what_has_no_number_does_not_count() -> None:
    found = summary().interval(Cell("", "AT-TSM", 1, 5, 10), "age_seconds")
    assert np.isnan(found.mean)


def test_a_page_holds_everything_and_loads_nothing() -> None:
    made = summary()
    page = report(made, list(pictures(made)))
    assert "<title>What &lt;is&gt; best?</title>" in page
    assert page.count("<svg") == page.count("</svg>") == 4
    assert page.count('data-policy="AT-BSM"') == 3  # panels, also of what was expected
    assert "<title>AT-TSM, 1 items: nDCG 0.51</title>" in page
    assert page.count('data-toggles="AT-TSM"') == 1
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page.replace("xlink:href", "href")) == []
    assert "@import" not in page
    assert "url(http" not in page
    assert "windows without events" in page
    assert "prefers-color-scheme: dark" in page


def test_the_fewest_items_near_the_best_are_recommended() -> None:
    (view,) = views(EXPERIMENT)
    found = recommended(summary(), view)
    # 0.57 with 7 items is the best that a budget can buy; 3 items lack more than 0.02 of it.
    assert found is not None
    assert (found.policy, found.budget) == ("AT-TSM", 7)
    only = replace(EXPERIMENT, policies=("WSJ-ASM",))
    assert recommended(summary(only), views(only)[0]) is None


def test_what_was_expected_is_compared_with_what_came() -> None:
    made = summary()
    found = list(groups(made, "AT-TSM", "ndcg"))
    assert sum(each.count for each in found) == 3 * 2 * 10
    assert [each.real for each in found] == pytest.approx([each.expected for each in found])
    (low,) = groups(made, "WSJ-LRU", "precision")
    assert low.real == pytest.approx(low.expected)


def test_a_page_and_its_pictures_are_the_same_again() -> None:
    first, second = (report(made, list(pictures(made))) for made in (summary(), summary()))
    assert first == second
    assert [each.png for each in pictures(summary())] == [each.png for each in pictures(summary())]


def test_one_setting_alone_can_be_shown() -> None:
    one = replace(EXPERIMENT, policies=("WSJ-ASM",), budgets=(1,), seeds=(1,))
    made = summary(one)
    assert list(pictures(made)) == []
    assert "WSJ-ASM" in report(made, [])


def test_views_are_along_what_has_many_values_at_each_of_what_has_few() -> None:
    both = replace(EXPERIMENT, ks=(5, 10, 20), budgets=(7, 15))
    assert [(view.axis.name, view.rest) for view in views(both)] == [
        ("k", "budget 7"),
        ("k", "budget 15"),
    ]
    assert [view.name for view in views(both)] == ["k-budget-7", "k-budget-15"]


def test_what_is_missing_to_draw_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install matplotlib"):
        check_drawing()


def test_the_paper_s_experiments_are_here() -> None:
    assert shipped() == ["0", "1", "2", "3", "4"]
    found = {name: load_experiment(name) for name in shipped()}
    assert all(len(each.seeds) == 5 and "AT-BSM" in each.policies for each in found.values())
    assert found["1"].budgets == (1, 3, 7, 10, 15, 20, 25)
    assert [dict(data.varied) for data in found["2"].data] == [
        {"changes": each} for each in (5, 10, 20, 40, 80)
    ]
    assert found["3"].ks == (5, 7, 10, 15, 20, 30)
    assert found["4"].ns == (0, 10, 20, 30, 40)


def test_what_the_paper_prints_stands_beside_the_improvements() -> None:
    printed = {("AT-TSM", "WSJ-LRU", "precision"): Printed(8.27, -2.69)}
    made = summary(replace(EXPERIMENT, printed=printed))
    found = {(each.new, each.metric): each.printed for each in made.improvements()}
    assert found["AT-TSM", "precision"] == Printed(8.27, -2.69)
    assert found["AT-TSM", "ndcg"] is None
    assert "<td>+8.27 %</td><td>-2.69 %</td>" in report(made, [])


def test_an_experiment_on_another_kind_has_nothing_printed() -> None:
    own = load_experiment("2")
    other = own.on_kind("list")
    assert own.printed["AT-BSM", "WSJ-LRU", "ndcg_positional"] == Printed(13.27, 0.65)
    assert {each.kind for each in other.data if isinstance(each, Generated)} == {"list"}
    assert [each.varied for each in other.data] == [each.varied for each in own.data]
    assert (other.printed, other.title) == ({}, f"{own.title} (list)")


def test_an_experiment_s_mistakes_are_all_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'policies = ["AT-TMS"]\nbudgets = [1, -3]\nk = []\nn = 10\nseeds = [1]\nextra = 1\n'
        '[data]\nkind = "redrwn"\n[printed.AT-TSM.WSJ-LRU]\nprecision = 3\n'
    )
    with pytest.raises(Exception, match="there is no policy") as caught:
        load_experiment(str(file))
    said = str(caught.value)
    assert 'mine.toml:1: there is no policy "AT-TMS"' in said
    assert 'mine.toml:2: "budgets" must be whole numbers from 0 on' in said
    assert 'mine.toml:3: "k" must be a number, or a list of numbers' in said
    assert 'mine.toml:6: unknown key "extra"' in said
    assert 'did you mean "redrawn"?' in said
    assert 'mine.toml:10: "precision" must be two numbers: at best, at worst' in said


def test_settings_come_in_the_order_of_the_results() -> None:
    assert EXPERIMENT.settings()[:3] == [
        Setting("AT-TSM", 1, 5, 10, 1),
        Setting("AT-TSM", 1, 5, 10, 2),
        Setting("AT-TSM", 3, 5, 10, 1),
    ]
