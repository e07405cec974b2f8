"""The live page in a real Chromium. With ``UPDATE_SCREENSHOTS=1`` the pictures in the documents
are made anew.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from rdflib import Literal, URIRef

from acquatop.answer.answer import Answer, Counts, Row, Status
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from replica.budget import Spending
from tests.support.browsing import DESK, NEEDS_CHROMIUM, Watched
from tests.support.staged import QUERY, Stage, ranking, staged, wait_for

USERS = (
    "ada-abe ben-jones cleo-fox dara-hill elif-berg finn-eze gus-imai hana-cruz ivo-diaz juno-gray"
).split()
SOCIAL = "http://example.org/social#"
NOON = 1_750_075_200_000
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
}

pytestmark = NEEDS_CHROMIUM


class Social:
    """Users whose mentions and followers drift, and what a query with a budget would make of
    them.
    """

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._mentions = {user: self._dice.randrange(8, 34) for user in USERS}
        self._followers = {user: self._dice.randrange(5_000, 90_000) for user in USERS}
        self._fetched = dict.fromkeys(USERS, NOON)

    def answer(self, query: str, closes_ms: int) -> Answer:
        dice = self._dice
        for user in USERS:
            self._mentions[user] = max(1, min(40, self._mentions[user] + dice.randint(-3, 3)))
            self._followers[user] = max(
                900, round(self._followers[user] * dice.uniform(0.93, 1.07))
            )
        spent = dice.randrange(4, 9)
        self._fetched |= dict.fromkeys(dice.sample(USERS, spent), closes_ms)
        scores = {
            user: 0.7 * self._mentions[user] / 40 + 0.3 * self._followers[user] / 100_000
            for user in USERS
        }
        best = sorted(USERS, key=lambda user: -scores[user])[:5]
        rows = tuple(
            Row(
                rank,
                {
                    "user": URIRef(f"{SOCIAL}user/{user}"),
                    "mentionCount": Literal(self._mentions[user]),
                    "followerCount": Literal(self._followers[user]),
                    "score": Literal(scores[user]),
                },
                scores[user],
                self._fetched[user] == closes_ms,
                (closes_ms - self._fetched[user]) / 1000,
            )
            for rank, user in enumerate(best, start=1)
        )
        is_late = closes_ms % 14_000 == NOON % 14_000
        return replace(
            ranking(query, closes_ms),
            opens_ms=closes_ms - 6000,
            rows=rows,
            spending=Spending(items=spent, requests=1, seconds=0.003 + 0.02 * dice.random() ** 3),
            counts=Counts(events=100 + dice.randrange(40), late=2 if is_late else 0),
            latency_seconds=0.012 + 0.03 * dice.random() ** 3,
            variables=("user", "mentionCount", "followerCount", "score"),
        )


def gallery(stage: Stage) -> Answer:
    """Let some queries run for a while, and return the last answer of the first."""
    for name in ("TopkUsersToContact", "RisingStars", "MostMentioned", "QuietGiants", "NightOwls"):
        stage.client.register(QUERY, name=SOCIAL + name)
    world = Social(9)
    for at in range(50):
        answer = world.answer(f"{SOCIAL}TopkUsersToContact", NOON + 2000 * at)
        stage.engine.give(answer)
    users = USERS
    stage.give(f"{SOCIAL}RisingStars", NOON, *users[5:8], status=Status.EXACT)
    reason = "2 of the window's solutions have no value from the remote yet"
    stage.give(
        f"{SOCIAL}MostMentioned",
        NOON,
        *users[2:6],
        status=Status.APPROXIMATE,
        reason=reason,
        bound=0.61,
    )
    stage.give(f"{SOCIAL}QuietGiants", NOON, *users[:3])
    stage.client.pause("NightOwls")
    return answer


def test_the_page_shows_what_an_answer_is_worth(browser: Browser, stage: Stage) -> None:
    answer = gallery(stage)
    watched = Watched(browser, stage, **DESK, color_scheme="light")
    page = watched.page
    expect(page.get_by_role("heading", name="TopkUsersToContact")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(page.locator(".badge")).to_have_text("Certified")
    expect(page.locator(".worth")).to_have_text("83 % expected precision")
    newest = stage.client.answers("TopkUsersToContact")[-1]
    old = [row for row in newest["results"] if not row["refreshed"]]
    expect(page.locator(".sentences")).to_contain_text(
        f"asked for {newest['spent']['items']} of at most 8 items"
    )
    expect(page.locator(".sentences")).to_contain_text(f"{len(old)} of 5 rows")
    expect(page.locator(".tile").first).to_contain_text(f"{newest['spent']['items']} / 8")
    assert [text.endswith("old") for text in page.locator("tbody .age").all_inner_texts()] == [
        row in old for row in newest["results"]
    ]
    expect(page.locator(".graphs figure")).to_have_count(3)
    expect(page.locator(".chart.latency .line")).to_have_attribute(
        "d", re.compile("M[^LM]*(L[^LM]*){49}")
    )
    expect(page.locator("#queries li")).to_have_count(5)
    expect(page.get_by_role("link", name="NightOwls")).to_contain_text("paused")
    watched.keep("serve-light.png")

    before = page.locator("tbody .name").all_inner_texts()
    rows = [
        replace(row, rank=at) for at, row in enumerate((answer.rows[4], *answer.rows[:4]), start=1)
    ]
    stage.engine.give(
        replace(answer, closes_ms=NOON + 200_000, rows=tuple(rows), status=Status.EXACT)
    )
    expect(page.locator(".badge")).to_have_text("Exact")
    assert page.locator("tbody .name").all_inner_texts() == [before[4], *before[:4]]
    expect(page.locator("tbody tr").first.locator("td.rank")).to_have_text("1▲4, up 4")

    page.locator("tbody tr").nth(1).click()
    expect(page.locator(".reasons")).to_contain_text("is in, at rank 2")
    page.get_by_label("A key").fill("nobody")
    page.get_by_label("A key").press("Enter")
    expect(page.locator(".reasons")).to_contain_text("nobody is in none of the 5 solutions")

    page.get_by_role("link", name="MostMentioned").click()
    expect(page.locator(".badge")).to_have_text("Approximate")
    expect(page.locator(".sentences")).to_contain_text("Nothing that is missing scores beyond 0.61")
    page.get_by_text("The plan", exact=True).click()
    expect(page.locator("details[open] .plan")).to_contain_text("Topk+N")
    watched.close()


def test_windows_of_any_year_are_shown_in_the_order_of_time(browser: Browser, stage: Stage) -> None:
    """As texts, years of five digits would come before those of four."""
    stage.client.register(QUERY, name=SOCIAL + "TopkUsersToContact")
    answer, year_10000 = Social(3).answer(f"{SOCIAL}TopkUsersToContact", NOON), 253_402_300_800_000
    watched = Watched(browser, stage)
    for closes_ms in (year_10000 - 2_000, year_10000 + 2_000, year_10000 + 4_000):
        stage.engine.give(replace(answer, opens_ms=closes_ms - 6_000, closes_ms=closes_ms))
    shown = watched.page.locator("main")
    expect(shown).to_contain_text("window 9999-12-31 23:59:58 – 10000-01-01 00:00:04")
    latency = watched.page.locator(".chart.latency .line")
    expect(latency).to_have_attribute("d", re.compile(r"^[^L]*(L[^L]*){2}$"))
    watched.page.reload()
    expect(shown).to_contain_text("window 9999-12-31 23:59:58 – 10000-01-01 00:00:04")
    expect(latency).to_have_attribute("d", re.compile(r"^[^L]*(L[^L]*){2}$"))
    watched.close()


@pytest.mark.parametrize(("name", "options"), [("dark", DESK), ("phone", PHONE)])
def test_the_page_in_the_dark_and_on_a_phone(
    browser: Browser, stage: Stage, name: str, options: Any
) -> None:
    gallery(stage)
    watched = Watched(browser, stage, **options, color_scheme="dark" if name == "dark" else "light")
    expect(watched.page.locator("tbody tr")).to_have_count(5)
    expect(watched.page.locator("#pulse")).to_have_text("live")
    width = watched.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], "it can be read without scrolling to the side"
    ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(9, 18, 22)") == (name == "dark")
    watched.keep(f"serve-{name}.png")
    watched.close()


def test_a_query_is_written_by_keyboard_alone(browser: Browser, stage: Stage) -> None:
    watched = Watched(browser, stage)
    page = watched.page
    expect(page.get_by_text("No query runs yet")).to_be_visible()
    page.get_by_role("button", name="Write a query").focus()
    page.keyboard.press("Enter")
    text = page.get_by_role("textbox", name="The query, in RSP-QL")
    expect(text).to_be_focused()
    page.keyboard.press("Control+A")
    wrong = QUERY.strip().replace("WINDOW :w {", "WINDOW :v {")
    page.keyboard.insert_text(wrong)
    expect(page.locator(".findings li")).to_have_count(2)
    expect(page.locator("#verdict")).to_have_text("2 mistakes.")
    said = stage.client.check(wrong)["diagnostics"]
    shown = page.locator(".findings .place").all_inner_texts()
    assert shown == [f"{each['line']}:{each['column']}" for each in said]
    assert page.locator("#marks mark").all_inner_texts() == [
        wrong[each["span"]["start"] : each["span"]["end"]] for each in said
    ]
    watched.keep("serve-editor.png")
    page.locator(".findings .place").nth(1).press("Enter")
    page.keyboard.insert_text(":w")
    expect(page.locator("#verdict")).to_have_text("It can be run.")
    page.get_by_role("button", name="Show the plan").press("Enter")
    expect(page.locator("#draft-plan")).to_contain_text("Topk+N")
    text.press("Control+Enter")
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    expect(page.locator(".waiting")).to_be_visible()
    assert [each["text"] for each in stage.client.queries()] == [QUERY.strip()]
    page.get_by_role("button", name="Pause").press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Remove").press("Enter")
    page.locator("#sure").get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_text("No query runs yet")).to_be_visible()
    watched.close()


def test_without_an_answer_the_page_says_what_has_come_and_what_of_it_was_bad(
    browser: Browser, stage: Stage
) -> None:
    stage.client.register(QUERY)
    watched = Watched(browser, stage)
    page = watched.page
    leader, waiting = page.locator("#queries .leader"), page.locator(".waiting")
    expect(leader).to_have_text("no answer yet")
    expect(waiting).to_have_text("The first answer comes when the first window closes.")
    stage.engine.bring(2)
    expect(leader).to_have_text("no answer yet: 2 items came, all good")
    stage.engine.bring(1500, no_time=2, not_JSON=1400)
    said = "1,502 items came, 1,402 of them bad, mostly: not JSON"
    expect(leader).to_have_text(f"no answer yet: {said}")
    expect(waiting).to_contain_text(said)
    page.reload()
    expect(waiting).to_contain_text(said)
    stage.give("query", NOON)
    expect(leader).to_have_text("1. ann")
    expect(waiting).to_be_hidden()
    watched.close()


def test_the_page_says_what_a_query_waits_for_without_an_answer_and_when_they_stop(
    browser: Browser, stage: Stage
) -> None:
    stage.client.register(QUERY)
    window = Waiting(kind=WaitingKind.WINDOW, since=1.5, text="a window is <open>")
    silent = Waiting(kind=WaitingKind.SILENT, since=1.5, text="nothing comes", remedy="send it")
    stage.engine.waits = {"query": window}
    watched = Watched(browser, stage)
    waits = watched.page.locator(".wait")
    expect(waits).to_have_text("Waiting: a window is <open>.")
    stage.engine.waits = {"query": silent}
    expect(waits).to_have_text("Waiting: nothing comes; send it.")
    stage.engine.waits = {"query": window}
    stage.give("query", NOON)
    expect(waits).to_be_hidden()
    stage.engine.waits = {"query": silent}
    expect(waits).to_have_text("Waiting: nothing comes; send it.")
    watched.page.reload()
    expect(waits).to_be_visible()
    stage.client.pause("query")
    expect(waits).to_be_hidden()
    watched.close()


def test_a_window_has_a_date_unless_it_is_of_today(browser: Browser, stage: Stage) -> None:
    stage.client.register(QUERY)
    watched = Watched(browser, stage)
    watched.page.clock.set_fixed_time(datetime.fromtimestamp(NOON / 1000, UTC))
    shown, today = watched.page.locator(".window"), NOON + 60_000
    for closes_ms, words in (
        (today, "window 12:00:54 – 12:01:00"),
        (today + 86_400_000, "window 2025-06-17 12:00:54 – 12:01:00"),
        (today + 129_543_000, "window 2025-06-17 23:59:57 – 2025-06-18 00:00:03"),
    ):
        stage.give("query", closes_ms, opens_ms=closes_ms - 6_000)
        expect(shown).to_have_text(words)
    watched.close()


def test_the_page_keeps_up_and_does_not_grow(browser: Browser, stage: Stage) -> None:
    names = [f"q{at}" for at in range(100)]
    for name in names:
        stage.client.register(QUERY, name=name)
    watched = Watched(browser, stage)
    page = watched.page
    expect(page.locator("#queries li")).to_have_count(100)
    protocol = page.context.new_cdp_session(page)

    def run(first: int, rounds: int) -> tuple[float, int]:
        for at in range(first, first + rounds):
            for name in names[:12]:
                stage.engine.give(replace(ranking(name, 1000 * at, *USERS[:3]), window=at))
        leader = f"window {f'{(first + rounds - 2) // 60:02}:{(first + rounds - 2) % 60:02}'}"
        expect(page.locator(".window")).to_contain_text(f"00:{leader.removeprefix('window ')}")
        protocol.send("HeapProfiler.collectGarbage")
        counted = protocol.send("Memory.getDOMCounters")
        return protocol.send("Runtime.getHeapUsage")["usedSize"] / 2**20, counted["nodes"]

    run(1, 62)
    memory, nodes = run(63, 1)
    more_memory, more_nodes = run(64, 20)
    assert more_nodes <= nodes + 50
    assert more_memory <= memory + 1.0
    watched.close()


def test_a_page_behind_a_token_asks_for_it_and_shows_names_as_text(browser: Browser) -> None:
    token = "a token of these tests"
    with staged(token=token) as stage:
        watched = Watched(browser, stage)
        page = watched.page
        stage.service.register(QUERY, "<img src=x onerror=alert(1)>")
        page.get_by_role("textbox", name="Token").fill("wrong")
        page.get_by_role("button", name="Enter").click()
        wait_for(lambda: page.locator("#token").input_value() == "")
        page.get_by_role("textbox", name="Token").fill(token)
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("heading", name="<img src=x onerror=alert(1)>")).to_be_visible()
        assert page.locator("main img[src=x]").count() == 0
        watched.wrong = [each for each in watched.wrong if "401" not in each]
        watched.close()
