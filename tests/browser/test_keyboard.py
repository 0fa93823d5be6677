"""The console by keyboard alone: search, moving through lists, help, the order of Tab, and focus after swaps."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.conftest import Open, Site

from reverie.api.console.running import DreamProgress, Running

FOCUSED = "document.activeElement"


def focus(page: Page, expression: str) -> object:
    """Something of the element that has the focus."""
    return page.evaluate(f"{FOCUSED}.{expression}")


def test_slash_searches_and_letters_stay_letters(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/dreams")
    page.keyboard.press("/")
    page.wait_for_url("**/memories#search")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("jk?/ boat 7")
    expect(page.locator("[data-search]")).to_have_value("jk?/ boat 7")
    assert page.locator("dialog[open]").count() == 0
    expect(page.locator("#results h2")).to_contain_text("hit")
    expect(page.locator("[data-search]")).to_be_focused()


def test_j_and_k_move_and_enter_opens(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    items = page.locator("[data-item] a.content")
    page.keyboard.press("j")
    expect(items.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(items.nth(2)).to_be_focused()
    page.keyboard.press("k")
    expect(items.nth(1)).to_be_focused()
    items.nth(5).focus()
    page.keyboard.press("j")
    expect(items.nth(6)).to_be_focused()
    for _ in range(40):
        page.keyboard.press("j")
    expect(items.last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("One entry")


def test_down_leads_from_the_search_into_the_hits_it_found(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    page.locator("[data-search]").press_sequentially("boat 7 hull")
    expect(page.locator("#results mark").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#results [data-item] a.content").first).to_be_focused()


def test_help_opens_and_closes_and_gives_the_focus_back(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    page.keyboard.press("j")
    before = focus(page, "href")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    assert focus(page, "href") == before


def test_tab_begins_with_a_way_past_the_navigation(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    page.keyboard.press("Tab")
    assert focus(page, "className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("[data-search]")).to_be_focused()
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(focus(page, "name || document.activeElement.textContent.trim()"))
    assert order == ["ref", "mode", "Search", "Readable"]


def test_everything_of_a_page_is_reached_by_tab_and_seen(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/operate")
    wanted = page.locator("main a:visible, main button:visible, main summary:visible").count()
    seen = set()
    for _ in range(wanted + 80):
        page.keyboard.press("Tab")
        inside = page.evaluate(f"document.querySelector('main').contains({FOCUSED}) && {FOCUSED} !== document.body")
        if not inside:
            if seen:
                break
            continue
        assert page.evaluate(f"getComputedStyle({FOCUSED}).outlineStyle") != "none", focus(page, "outerHTML")
        seen.add(page.evaluate(f"[...document.querySelectorAll('main *')].indexOf({FOCUSED})"))
    assert len(seen) >= wanted


def test_focus_stays_while_a_dream_shows_how_far_it_is(site: Site, tab: Open) -> None:
    running: Running = site.app.state.console_running
    running.begin(DreamProgress("watched-dream", "acme", "notes", step="distil"))
    page = tab(site.key()).go("/dreams/watched-dream")
    assert page.locator("#progress[aria-live=polite]").count() == 1
    page.get_by_text("Look again").focus()
    running.step("watched-dream", "commit", 1, 1)
    expect(page.locator("[aria-current=step]")).to_contain_text("commit")
    expect(page.get_by_text("Look again")).to_be_focused()
    running.end("watched-dream", "There was nothing to do.")
    expect(page.locator("h1")).to_have_text("No dream was made")


def test_a_dream_that_ends_loads_its_report_as_a_page_of_its_own(site: Site, tab: Open) -> None:
    """So that title and scroll position are those of a page that was opened, and the focus is on what it says."""
    running: Running = site.app.state.console_running
    running.begin(DreamProgress("ending-dream", "acme", "notes", step="distil"))
    page = tab(site.key()).go("/dreams/ending-dream")
    page.evaluate("window.watching = true")
    page.get_by_text("Look again").focus()
    running.end("ending-dream", "There was nothing to do.")
    expect(page.locator("h1")).to_have_text("No dream was made")
    page.wait_for_load_state()
    assert page.evaluate("window.watching") is None
    assert page.url.endswith("/dreams/ending-dream")
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Back to dreams")).to_be_focused()
