"""The report in a real browser: it loads nothing, and shows the policies that are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from acquatop.lab.replay.data import Generated
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.runner import run
from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report import REPORT, write_output
from tests.support.browsing import CHROMIUM, NEEDS_CHROMIUM

pytestmark = NEEDS_CHROMIUM

EXPERIMENT = Experiment(
    (Generated("redrawn", {"changes": 20.0}, {}, users=30, windows=25),),
    policies=("AT-TSM", "WSJ-LRU", "ANY-IMP"),
    budgets=(1, 3),
    ks=(3,),
    ns=(2,),
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_output(ReplaySummary(run(EXPERIMENT, folder, processes=0)), folder)
    return folder / REPORT


def test_policies_can_be_hidden_and_points_tell_their_values(report: Path) -> None:
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url))
        page.goto(report.as_uri())
        panels = page.locator('[data-policy="AT-TSM"]')
        rows = page.locator("tbody tr", has_text="AT-TSM")
        expect(panels.first).to_be_visible()
        page.get_by_label("AT-TSM").uncheck()
        expect(panels.first).to_be_hidden()
        expect(rows.first).to_be_hidden()
        page.get_by_label("AT-TSM").check()
        expect(rows.first).to_be_visible()
        told = page.locator("figure title").all_text_contents()
        browser.close()
    assert any(each.startswith("WSJ-LRU, 3 items: nDCG 0.") for each in told)
    assert any(each.startswith("AT-TSM at 3: nDCG differs by ") for each in told)
    assert wrong == [report.as_uri()]
