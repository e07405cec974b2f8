"""A real Chromium that looks at the live page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.staged import LIMIT

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DOCS = Path(__file__).parents[2] / "docs"
UPDATES = "UPDATE_SCREENSHOTS" in os.environ
DESK: dict[str, Any] = {"viewport": {"width": 1360, "height": 940}}
NEEDS_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

expect.set_options(timeout=1000 * LIMIT)


class Served(Protocol):
    """Thing with a page."""

    url: str


class Watched:
    """A page of which all is noted that it loads, and that goes wrong in it."""

    def __init__(self, browser: Browser, stage: Served, **options: Any) -> None:
        context = browser.new_context(**(options or DESK))
        context.set_default_timeout(1000 * LIMIT)
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._must_be(request.url, stage.url))
        self.page.goto(stage.url)

    def _must_be(self, url: str, ours: str) -> None:
        if not url.startswith(ours):
            self.wrong.append(f"it loads {url}")

    def keep(self, name: str, **options: Any) -> None:
        if UPDATES:
            self.page.screenshot(path=DOCS / name, animations="disabled", **options)

    def close(self) -> None:
        self.page.context.close()
        assert self.wrong == []
