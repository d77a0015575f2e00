"""The session page in a real Chromium, against the real server and sessions that the runtime's own code wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.web.conftest import CRASHED, FINISHED, LONG_WORD, MARKUP, Server, start_server, stop_server

pytestmark = pytest.mark.browser

CONTRASTS = """
() => {
  const channel = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = numbers(colour).map((value) => channel(value / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || parent.offsetParent === null) continue;
    const pair = [luminance(getComputedStyle(parent).color), luminance(ground(parent))].sort((a, b) => b - a);
    found.push([walker.currentNode.data.trim().slice(0, 30), (pair[0] + 0.05) / (pair[1] + 0.05)]);
  }
  return found;
}
"""

CRASHED_PAGE = """
- main "Session 00000000-0000-4000-8000-000000000002":
  - heading "Session 00000000-0000-4000-8000-000000000002" [level=2]
  - paragraph: "no end recorded: crashed or still running"
  - region "Tool calls":
    - heading "Tool calls" [level=3]
    - paragraph: 0 finished, 1 unknown, 1 not started
    - list:
      - listitem:
        - text: Bash · unknown
        - paragraph: /It began and no answer was kept/
      - listitem:
        - text: Write · not_started
        - paragraph: /without a start nothing ran/
  - region "Conversation":
    - heading "Conversation" [level=3]
    - list:
      - listitem:
        - strong: User
        - text: Deploy release 7.
      - listitem:
        - strong: Assistant
        - text: I deploy. Bash · unknown Write · not_started
"""


def test_the_list_says_how_each_session_ended(page: Page, server: Server) -> None:
    page.goto(server.url)
    listed = page.get_by_role("navigation", name="Sessions").get_by_role("listitem")
    expect(listed).to_have_count(2)
    expect(listed.filter(has_text=FINISHED)).to_contain_text("ended: completed")
    expect(listed.filter(has_text=CRASHED)).to_contain_text("no end recorded: crashed or still running")
    expect(listed.filter(has_text=CRASHED)).to_contain_text("1 unknown")
    expect(page.get_by_role("status")).to_have_text("2 sessions.")


def test_a_crashed_session_shows_its_call_as_unknown(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_role("link", name="Deploy release 7.").click()
    expect(page.get_by_role("main")).to_match_aria_snapshot(CRASHED_PAGE)


def test_a_finished_session_shows_its_answer_and_no_arguments(page: Page, server: Server) -> None:
    page.goto(f"{server.url}#{FINISHED}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("ended: completed")
    expect(main.get_by_role("region", name="Tool calls").get_by_role("listitem")).to_contain_text("Read · finished")
    expect(main).to_contain_text("Result of Read")
    assert "s3cret" not in page.content()


def test_what_was_said_is_shown_as_text(page: Page, server: Server) -> None:
    page.goto(f"{server.url}#{FINISHED}")
    expect(page.get_by_role("main").get_by_text(MARKUP)).to_be_visible()
    assert page.locator("img").count() == 0
    assert page.title() == "Sessions"


def test_the_keyboard_is_enough(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_count(2)
    focused = page.locator(":focus")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("Skip to the session")
    expect(focused).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(focused).to_have_text("Read again")
    assert focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    expect(focused).to_contain_text("Deploy release 7.")
    page.keyboard.press("Enter")
    expect(focused).to_have_attribute("id", "conversation")
    expect(page.get_by_role("link", name="Deploy release 7.")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("status")).to_have_text(f"Session {CRASHED} read.")


def test_a_reload_and_the_skip_link_keep_the_session(page: Page, server: Server) -> None:
    page.goto(f"{server.url}#{CRASHED}")
    title = page.get_by_role("heading", level=2)
    expect(title).to_have_text(f"Session {CRASHED}")
    page.get_by_role("link", name="Skip to the session").focus()
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_attribute("id", "conversation")
    page.reload()
    expect(title).to_have_text(f"Session {CRASHED}")


def test_a_late_answer_changes_nothing(page: Page, server: Server) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**/sessions/{FINISHED}", hold)
    page.goto(server.url)
    with page.expect_request(f"**/sessions/{FINISHED}"):
        page.get_by_role("link", name=FINISHED).click()
    page.get_by_role("link", name=CRASHED).click()
    title = page.get_by_role("heading", level=2)
    expect(title).to_have_text(f"Session {CRASHED}")
    with page.expect_event("requestfinished"):
        held[0].continue_()
    # The page's own code for the late answer has run once a later task of the page has.
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    expect(title).to_have_text(f"Session {CRASHED}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_reads_well_on_a_narrow_window(context: BrowserContext, page: Page, server: Server, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{server.url}#{FINISHED}")
    expect(page.get_by_role("main")).to_contain_text(LONG_WORD)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 15
    assert [(text, round(ratio, 2)) for text, ratio in contrasts if ratio < 4.5] == []
    button = page.get_by_role("button", name="Read again").bounding_box()
    assert button is not None
    assert button["height"] >= 44


def test_ids_and_landmarks_are_unique(page: Page, server: Server) -> None:
    page.goto(f"{server.url}#{CRASHED}")
    expect(page.get_by_role("main")).to_contain_text("Bash · unknown")
    for role in ("main", "navigation", "banner", "status"):
        assert page.locator("body").get_by_role(role).count() == 1, role
    levels = page.eval_on_selector_all("h1, h2, h3", "nodes => nodes.map((node) => Number(node.tagName[1]))")
    assert levels == [1, 2, 3, 3]
    ids = page.eval_on_selector_all("[id]", "nodes => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))
    assert page.locator("html").get_attribute("lang") == "en"
    unnamed = "nodes => nodes.filter((node) => !node.textContent.trim()).length"
    assert page.eval_on_selector_all("a, button", unnamed) == 0


def test_it_talks_to_its_own_server_only(page: Page, server: Server) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}#{CRASHED}")
    expect(page.get_by_role("main")).to_contain_text("Bash · unknown")
    assert {url for url in asked if not url.startswith((server.url, "data:"))} == set()


def test_an_unknown_session_is_said(page: Page, server: Server) -> None:
    page.goto(f"{server.url}#{FINISHED[:-1]}9")
    expect(page.get_by_role("alert")).to_have_text(f"Could not read: no session {FINISHED[:-1]}9.")


def test_a_server_that_is_gone_is_said(page: Page, home: Path) -> None:
    mine = start_server(home)
    page.goto(mine.url)
    expect(page.get_by_role("status")).to_have_text("2 sessions.")
    assert stop_server(mine) == 0
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_role("alert")).to_have_text("Could not read: the server does not answer.")
    expect(page.get_by_role("status")).to_be_empty()
