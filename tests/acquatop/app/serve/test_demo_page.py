"""The live page of the demos in a real Chromium. With ``UPDATE_SCREENSHOTS=1`` the pictures in the
README are made anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsing import NEEDS_CHROMIUM, UPDATES, Watched
from tests.support.serving import ROOT

pytestmark = [*NEEDS_CHROMIUM, pytest.mark.server]

COLUMNS = {
    "social_media": ["?mentions", "?followers", "?growth"],
    "manufacturing": ["?instrument", "?days", "?vibration"],
}
SCREEN: dict[str, Any] = {"viewport": {"width": 1180, "height": 560}, "color_scheme": "light"}


@dataclass
class Demo:
    """A demo that runs, and where its page is."""

    url: str


@contextmanager
def running(scene: str) -> Iterator[Demo]:
    """Run a demo with its live page, until the end of the block."""
    command = [sys.executable, "-m", "acquatop", "demo", scene, "--ui", "--runtime", "local"]
    surroundings = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    process = subprocess.Popen(
        command, cwd=ROOT, env=surroundings, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        places = (re.search(r"the live page is at (\S+)", line) for line in process.stderr)
        yield Demo(next(filter(None, places))[1])
        process.terminate()
        rest = process.communicate(timeout=60)[1]
        assert (process.returncode, "Traceback" in rest) == (0, False), rest
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("scene", COLUMNS)
def test_a_demo_s_page_shows_a_ranking(browser: Browser, scene: str) -> None:
    with running(scene) as demo:
        watched = Watched(browser, demo, **SCREEN)
        page = watched.page
        expect(page.locator("tbody tr")).to_have_count(5)
        for name in COLUMNS[scene]:
            expect(page.locator("table")).to_contain_text(name.removeprefix("?"))
        expect(page.locator(".badge")).to_have_text(re.compile("Exact|Certified|Approximate"))
        expect(page.locator(".waiting")).to_be_hidden()
        some = re.compile(f"M[^LM]*(L[^LM]*){{{6 if UPDATES else 1},}}")
        expect(page.locator(".chart.latency .line")).to_have_attribute("d", some)
        watched.keep(f"demo-{scene}.png")
        watched.close()
