"""A browser, and a service for it to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from acquatop.app.serve.limits import Limits
from tests.support.browsing import CHROMIUM
from tests.support.staged import Stage, staged


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Tests run as whoever they like, in machines that may not allow a sandbox; the pages are
        # ours.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(Limits(work_rate=1e6, work_burst=10**6, read_rate=1e6, read_burst=10**6)) as stage:
        yield stage
