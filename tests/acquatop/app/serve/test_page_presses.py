"""Presses, focus and selections on the live page, while it draws itself anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browsing import NEEDS_CHROMIUM, Watched
from tests.support.staged import QUERY, Stage, wait_for

pytestmark = NEEDS_CHROMIUM

ACTIVE = "document.activeElement"


@contextmanager
def held(page: Page, path: str, method: str = "GET") -> Iterator[list[Route]]:
    """Hold back the service's replies to some requests until the block ends; the service has done
    them by then.
    """
    replies: list[tuple[Route, Any]] = []
    routes: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method != method:
            route.continue_()
            return
        routes.append(route)
        replies.append((route, route.fetch()))

    page.route(path, hold)
    yield routes
    for route, reply in replies:
        route.fulfill(response=reply)
    page.unroute(path)


def write(page: Page, text: str) -> None:
    page.get_by_role("button", name="New query").press("Enter")
    page.get_by_role("textbox", name="The query, in RSP-QL").fill(text)


def drawn(page: Page) -> None:
    """Wait until what the page knows by now has been drawn."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def posts(page: Page) -> list[str]:
    """Note the changes that a page asks for from now on."""
    found: list[str] = []
    page.on(
        "request",
        lambda request: request.method == "POST" and found.append(request.url.rpartition("/")[2]),
    )
    return found


def test_a_new_query_is_shown_with_its_box_closed_and_the_next_key_is_for_it(
    browser: Browser, stage: Stage
) -> None:
    watched = Watched(browser, stage)
    page = watched.page
    page.get_by_role("button", name="Write a query").press("Enter")
    text = page.get_by_role("textbox", name="The query, in RSP-QL")
    text.fill(QUERY)
    with held(page, "**/queries", "POST"):
        # The box is open still when the page is told of the query; a second press is about the
        # same query.
        text.press("Control+Enter")
        text.press("Control+Enter")
        page.get_by_role("button", name="Run it").click()
        expect(page.locator("#queries li")).to_have_count(1)
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.locator("#title").count() == 0
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    assert page.evaluate(f"{ACTIVE}.id") == "main"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    assert [each["state"] for each in stage.client.queries()] == ["paused"]
    watched.close()


def test_what_is_written_when_the_first_lines_are_offered_takes_their_place(
    browser: Browser, stage: Stage
) -> None:
    watched = Watched(browser, stage)
    page = watched.page
    text = page.get_by_role("textbox", name="The query, in RSP-QL")
    with held(page, "**/catalog"):
        page.get_by_role("button", name="Write a query").press("Enter")
        expect(text).to_be_focused()
        page.keyboard.press("Control+A")
    expect(text).not_to_have_value("")
    page.keyboard.insert_text(QUERY)
    expect(text).to_have_value(QUERY)
    watched.close()


def test_a_button_that_is_pressed_stays_until_it_is_let_go(browser: Browser, stage: Stage) -> None:
    watched, other = Watched(browser, stage), Watched(browser, stage)
    page = watched.page
    page.get_by_role("button", name="Write a query").hover()
    page.mouse.down()
    stage.client.register(QUERY)
    expect(other.page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    drawn(page)
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.down("Space")
    stage.client.pause("query")
    expect(other.page.get_by_role("button", name="Resume")).to_be_visible()
    drawn(page)
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.up("Space")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    assert stage.client.query("query")["state"] == "paused"
    other.close()
    watched.close()


def test_answers_leave_focus_selection_scrolling_and_open_parts_as_they_are(
    browser: Browser, stage: Stage
) -> None:
    stage.client.register(QUERY)
    users = [f"user-{at}" for at in range(40)]
    stage.give("query", 1000, *users)
    watched = Watched(browser, stage)
    page = watched.page
    page.get_by_text("The query", exact=True).click()
    page.get_by_role("button", name="Pause").focus()
    page.locator("tbody .name", has_text="user-39").select_text()
    page.evaluate("scrollTo(0, 300)")
    look = f"""() => [{ACTIVE}, scrollY, String(getSelection()),
      [...document.querySelectorAll("details")].map((each) => each.open)]"""
    before = page.evaluate_handle(look)
    stage.give("query", 2000, users[39], *users[:39])
    expect(page.locator(".window")).to_contain_text("00:02")
    stage.give("query", 3000, *users[20:39], users[39], *users[5:20])
    expect(page.locator(".window")).to_contain_text("00:03")
    assert page.evaluate(f"([old]) => old === {ACTIVE} && old.isConnected", before)
    assert page.evaluate(look)[1:] == before.json_value()[1:]
    assert before.json_value()[1:] == [300, "user-39", [True, False, False, True]]
    watched.close()


def test_rows_about_the_same_things_are_all_shown_once(browser: Browser, stage: Stage) -> None:
    stage.client.register(QUERY)
    watched = Watched(browser, stage)
    page = watched.page
    for closes, users in enumerate(
        (("ann", "ann", "bob"), ("bob", "ann", "ann"), ("ann", "bob")), start=1
    ):
        stage.give("query", 1000 * closes, *users)
        expect(page.locator(".window")).to_contain_text(f"00:0{closes}")
        assert page.locator("tbody .name").all_inner_texts() == list(users)
        assert page.locator("tbody .place").all_inner_texts() == [
            str(at + 1) for at in range(len(users))
        ]
    watched.close()


def test_no_query_s_name_moves_the_focus_or_presses_something_else(
    browser: Browser, stage: Stage
) -> None:
    # Each of these is the id of an element, too.
    for name in ("query", "new", "main", "editor"):
        stage.client.register(QUERY, name=name)
    watched = Watched(browser, stage)
    page = watched.page
    for name in ("new", "main", "editor", "query"):
        link = page.locator("#queries").get_by_role("link", name=name)
        link.press("Enter")
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        drawn(page)
        expect(link).to_be_focused()
    page.get_by_role("link", name="To the answers").press("Enter")
    drawn(page)
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    assert page.evaluate(f"{ACTIVE}.id") == "main"
    page.go_back()
    expect(page.get_by_role("heading", name="editor", exact=True)).to_be_visible()
    for address in ("#main", "#/main"):
        page.goto(f"{stage.url}/{address}")
        page.reload()
        expect(page.get_by_role("heading", name="main", exact=True)).to_be_visible()
    page.goto(f"{stage.url}/#%zz")
    page.reload()
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    watched.close()


def test_another_query_comes_up_only_when_the_one_that_is_shown_has_gone(
    browser: Browser, stage: Stage
) -> None:
    for name in ("first", "second"):
        stage.client.register(QUERY, name=name)
    watched = Watched(browser, stage)
    page = watched.page
    second = page.get_by_role("heading", name="second", exact=True)
    page.locator("#queries").get_by_role("link", name="second").click()
    expect(second).to_be_visible()
    with held(page, "**/queries", "POST"):
        write(page, QUERY)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#queries li")).to_have_count(3)
        assert second.is_visible()
    expect(page.get_by_role("heading", name="query", exact=True)).to_be_visible()
    # The box that asks about a query closes with it, and the focus does not fall out of the page.
    page.get_by_role("button", name="Remove").press("Enter")
    expect(page.locator("#sure")).to_be_visible()
    stage.client.remove("query")
    expect(page.get_by_role("heading", name="first", exact=True)).to_be_visible()
    expect(page.locator("#sure")).not_to_be_visible()
    assert page.evaluate(f"{ACTIVE}.id") == "main"
    # One of the same id is another query: nobody has asked for it.
    stage.client.register(QUERY)
    expect(page.locator("#queries li")).to_have_count(3)
    expect(page.get_by_role("heading", name="first", exact=True)).to_be_visible()
    page.locator("#queries").get_by_role("link", name="first").focus()
    stage.client.remove("first")
    expect(page.locator("#queries").get_by_role("link", name="second")).to_be_focused()
    assert {each["state"] for each in stage.client.queries()} == {"running"}
    watched.close()


def test_a_key_that_is_held_presses_once(browser: Browser, stage: Stage) -> None:
    stage.client.register(QUERY)
    watched = Watched(browser, stage)
    page = watched.page
    asked = posts(page)
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.down("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    for _ in range(3):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    # Keys in a row are presses of their own: each does what the button says by then.
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    assert asked == ["pause", "resume"]
    watched.close()


def test_what_is_refused_is_said_until_something_is_done(browser: Browser, stage: Stage) -> None:
    stage.client.register(QUERY)
    watched = Watched(browser, stage)
    page = watched.page
    problem = page.locator("article .problem")
    stage.service.is_ready = False
    page.get_by_role("button", name="Pause").press("Enter")
    expect(problem).to_contain_text("starting or stopping")
    stage.service.is_ready = True
    stage.give("query", 1000)
    expect(page.locator(".window")).to_contain_text("00:01")
    expect(problem).to_be_visible()
    page.get_by_role("button", name="Pause").press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    expect(problem).to_be_hidden()
    watched.wrong = [each for each in watched.wrong if "503" not in each]
    watched.close()


def test_a_mistake_s_button_stays_while_the_text_is_checked_again(
    browser: Browser, stage: Stage
) -> None:
    watched = Watched(browser, stage)
    page = watched.page
    wrong = QUERY.strip().replace("WINDOW :w {", "WINDOW :v {")
    write(page, wrong)
    places = page.locator(".findings .place")
    expect(places).to_have_count(2)
    before = places.all_inner_texts()
    places.nth(1).focus()
    button = page.evaluate_handle(ACTIVE)
    # The text gets a line more, as by a check whose reply comes late.
    page.evaluate("""() => {
      const text = document.getElementById("text");
      text.value = "\\n" + text.value;
      text.dispatchEvent(new Event("input"));
    }""")
    wait_for(
        lambda: (
            places.all_inner_texts() == [f"{int(line) + 1}:{at}" for line, at in map(split, before)]
        )
    )
    assert page.evaluate(f"(old) => old === {ACTIVE}", button)
    page.keyboard.press("Enter")
    page.keyboard.insert_text(":w")
    expect(page.locator("#verdict")).to_have_text("It can be run.")
    watched.close()


def split(place: str) -> tuple[str, str]:
    line, _, column = place.partition(":")
    return line, column
