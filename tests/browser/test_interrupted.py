"""The console when something ends under a page: its session, its host, its dream, or an entry chosen in another tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import Open, Site, Tab

from reverie.api.console.running import DreamProgress, Running
from reverie.core.errors import RateLimited
from reverie.http.limits import RateLimit


def end_session(site: Site, key: str) -> None:
    site.host.keys.revoke(key.split("_")[1])


def sign_in_again(site: Site, opened: Tab) -> Page:
    expect(opened.page.locator("h1")).to_have_text("Sign in")
    opened.page.fill("#key", site.key())
    opened.page.click("button:has-text('Sign in')")
    return opened.page


def test_a_search_after_the_end_of_the_session_leads_through_the_sign_in_to_its_hits(site: Site, tab: Open) -> None:
    key = site.key()
    opened = tab(key)
    page = opened.go("/memories")
    end_session(site, key)
    page.locator("[data-search]").press_sequentially("boat 7 hull")
    sign_in_again(site, opened)
    expect(page.locator("#results mark").first).to_be_visible()
    assert page.locator("[data-search]").input_value().startswith("b")


def test_a_search_that_is_refused_says_why(site: Site, tab: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = tab(site.key())
    page = opened.go("/memories")

    def refuse(*_: object) -> None:
        raise RateLimited("Too many requests for this key. Try again in 1 s.")

    monkeypatch.setattr(RateLimit, "take", refuse)
    page.locator("[data-search]").press_sequentially("boat")
    expect(page.locator("main")).to_contain_text("Too many requests")
    opened.complaints.clear()  # a browser notes every refusal


def test_a_search_without_an_answer_says_so_until_there_is_one(site: Site, tab: Open) -> None:
    opened = tab(site.key())
    page = opened.go("/memories")

    def lose(route: Route) -> None:
        route.abort()

    page.route("**/memories?*", lose)
    page.locator("[data-search]").press_sequentially("boat 7")
    expect(page.locator("#unanswered")).to_be_visible()
    page.unroute("**/memories?*")
    page.locator("[data-search]").press_sequentially(" hull")
    expect(page.locator("#results mark").first).to_be_visible()
    expect(page.locator("#unanswered")).to_have_count(0)
    opened.complaints.clear()


def test_a_watched_dream_is_found_again_after_signing_in(site: Site, tab: Open) -> None:
    running: Running = site.app.state.console_running
    running.begin(DreamProgress("watched-on", "acme", "notes"))
    key = site.key()
    opened = tab(key)
    page = opened.go("/dreams/watched-on")
    end_session(site, key)
    expect(page.locator("h1")).to_have_text("Sign in")
    running.end("watched-on", "There was nothing to do.")
    sign_in_again(site, opened)
    expect(page.locator("h1")).to_have_text("No dream was made")


def test_a_slow_host_does_not_make_a_watched_page_load_again(site: Site, tab: Open) -> None:
    running: Running = site.app.state.console_running
    running.begin(DreamProgress("quiet-dream", "acme", "notes", step="snapshot"))
    page = tab(site.key()).go("/dreams/quiet-dream")
    page.evaluate("window.watching = true")
    running.step("quiet-dream", "distil", 1, 1)
    expect(page.locator("[aria-current=step]")).to_contain_text("Distil")
    page.route("**/dreams/quiet-dream?watching=1", lambda _: None)  # no answer
    page.wait_for_timeout(2500)  # longer than the second after which a page without scripts loads again
    assert page.evaluate("window.watching") is True
    running.end("quiet-dream", "There was nothing to do.")


def test_entries_that_left_in_another_tab_do_not_stop_the_change_of_the_others(site: Site, tab: Open) -> None:
    ids = [site.put(f"Ruth: sail {n} was mended.", ref="two-tabs") for n in range(3)]
    page = tab(site.key()).go("/memories?ref=two-tabs")
    for entry_id in ids[:2]:
        page.check(f"input[name=id][value='{entry_id}']")
    site.host.lifecycle.erase(site.host.system_actor("acme"), "two-tabs", ids[0])
    page.click("button:has-text('Archive')")
    expect(page.locator("h1")).to_have_text("Archive 1 entry?")
    expect(page.locator("main")).to_contain_text("1 of the entries you chose is gone")
    page.click("button:has-text('Archive 1 entry')")
    expect(page.locator(".said")).to_contain_text("1 of 1 done")


def test_a_tried_request_without_an_answer_does_not_keep_the_answer_of_an_earlier_one(site: Site, tab: Open) -> None:
    opened = tab(site.key())
    page = opened.go("/docs")
    operation = page.locator("[data-try][data-path$='/stats']")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    operation.get_by_role("button").click()
    expect(operation.locator("[data-status]")).to_have_text("200")
    page.route("**/stats", lambda route: route.abort())
    operation.get_by_role("button").click()
    expect(operation.locator("[data-answer]")).to_contain_text("The host does not answer")
    expect(operation.locator("[data-status]")).to_have_text("none")
    opened.complaints.clear()  # a browser notes every lost request
