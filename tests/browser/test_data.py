"""The console with data that strains it: names without end, other scripts, agents that disagree, and none at all."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Open, Site
from tests.browser.test_console import PAGES, WIDER

from reverie.core.dream import DreamPlan
from reverie.core.entry import Source
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.field import Field
from reverie.window.policy import Base

LONG = "m" * 200


def disagree(site: Site, tenant: str, one: str, other: str) -> None:
    """Two agents of a Field contradict each other."""
    actor = site.host.system_actor(tenant)

    def perform(agent: str, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        message = {
            "protocol": PROTOCOL,
            "version": VERSION,
            "id": site.host.parts.ids.new(),
            "operation": operation,
            "agent_id": agent,
            "session_id": None,
            "epoch": 0,
            "payload": payload,
        }
        return site.host.use(Field).perform(actor, message)

    names = "scout" + "s" * 100, "ledger"
    for name in names:
        perform(name, "REGISTER", {"id": name, "role": "r" * 150, "interests": []})
    said = {
        "mode": "committed",
        "type": "finding",
        "intent": {"purpose": "to know"},
        "confidence": {"score": 0.8, "reasoning": "seen"},
    }
    first = perform(names[0], "RECORD", {**said, "content": one})
    against = [{"type": "contradicts", "target_id": first["memory_unit_id"]}]
    perform(names[1], "RECORD", {**said, "content": other, "relations": against})


def converse(site: Site, tenant: str, scope: str) -> None:
    """A conversation of three turns, compacted by its provider in the second."""
    keeper = site.host.windows.keeper(site.host.system_actor(tenant), scope)
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="none")
    for number, tokens in enumerate((9000, 4000, 5900)):
        state.plan([{"role": "user", "content": f"Question {number}"}], model="m" * 60, input_is="items")
        answer = {"id": f"m{number}", "type": "message", "role": "assistant"}
        output: list[dict[str, Any]] = [{**answer, "content": [{"type": "output_text", "text": "w" * 900}]}]
        if number == 1:
            output.insert(0, {"id": "c", "type": "compaction", "encrypted_content": "ZGVtbw==" * 40})
        usage = {"input_tokens": tokens, "output_tokens": 60, "total_tokens": tokens + 60}
        turn = state.accept({"id": f"r{number}", "status": "completed", "output": output, "usage": usage})
        state = keeper.save_turn(state, turn)


@pytest.fixture(scope="module")
def strained(site: Site) -> str:
    """A tenant whose names and words are as long as they may be."""
    tenant = "strained"
    for n in [*range(6), *range(6)]:
        site.put(f"Berth {n} costs {10**14 + n} euros. {'w' * 300}", tenant=tenant, ref=LONG, tags=("t" * 200,))
    assert site.host.dreams.run(site.host.system_actor(tenant), DreamPlan(ref=LONG, budget=8000, fit=True)) is not None
    site.put("One.", tenant=tenant, ref=f"{LONG[:190]}/other", subject="s" * 200)
    site.host.schedules.save(site.host.system_actor(tenant), {"cron": "0 3 * * *", "ref": LONG})
    disagree(site, tenant, "y" * 800, "z" * 2000)
    converse(site, tenant, "chat/" + "s" * 150)
    return tenant


@pytest.mark.parametrize("width", [1280, 390])
def test_names_without_end_fit_on_every_page(site: Site, tab: Open, strained: str, width: int) -> None:
    opened = tab(site.key(tenant=strained))
    opened.page.set_viewport_size({"width": width, "height": 844})
    dream = site.host.lineage.page(site.host.system_actor(strained), limit=1).items[0].id
    own = (
        f"/memories?ref={LONG}", f"/memories/change?ref={LONG}&change=archive", f"/dreams/{dream}", f"/dreams?ref={LONG}",
        f"/windows?scope={quote('chat/' + 's' * 150)}", f"/windows?scope={quote('chat/' + 's' * 150)}&drop=1",
    )  # fmt: skip
    faults = []
    for path in (*PAGES, *own):
        answer = opened.page.goto(site.url + path)
        assert answer is not None
        if answer.status != 200 or opened.page.evaluate(WIDER) > 0:
            faults.append((path, answer.status, opened.page.evaluate(WIDER)))
    assert not faults


def test_tokens_before_and_after_a_compaction_are_those_of_the_window(site: Site, tab: Open, strained: str) -> None:
    page = tab(site.key(tenant=strained)).go(f"/windows?scope={quote('chat/' + 's' * 150)}")
    row = page.locator("table.cards tbody tr", has_text="server threshold")
    expect(row.locator("td.num").nth(0)).to_have_text("9\u2009000")
    expect(row.locator("td.num").nth(1)).to_have_text("5\u2009900")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_conflict_is_decided_from_the_home_page(site: Site, tab: Open, script: bool) -> None:
    tenant = f"torn-{script}".lower()
    disagree(site, tenant, "The slipway carries 12 tons.", "The slipway carries 9 tons.")
    page = tab(site.key(tenant=tenant), java_script_enabled=script).go("/")
    page.click("a:has-text('Decide')")
    card = page.locator(".side-card", has_text="9 tons")
    expect(card).to_contain_text("80 % confident: seen")
    card.locator("input[name=winner]").check()
    page.click("button:has-text('Decide')")
    expect(page.locator("[role=status]")).to_contain_text("Decided")
    expect(page.locator("main")).to_contain_text("No two agents contradict each other")


def test_a_window_is_dropped_after_a_confirmation(site: Site, tab: Open) -> None:
    converse(site, "dropping", "chat/one")
    page = tab(site.key(tenant="dropping")).go("/windows")
    page.click("text=chat/one")
    page.click("a:has-text('Drop')")
    page.click("text=Keep it")
    expect(page.locator("[role=alertdialog]")).to_have_count(0)
    page.click("a:has-text('Drop')")
    page.click("button:has-text('Drop the window')")
    expect(page.locator("[role=status]")).to_contain_text("dropped")
    expect(page.locator("main")).to_contain_text("No conversation yet")


def test_the_direction_of_a_line_is_that_of_its_words_not_of_its_speaker(site: Site, tab: Open) -> None:
    tenant, speaker = "scripts", Source(actor="\u0643\u0631\u064a\u0645")
    german = "Die Donaudampfschifffahrt kostet 35 Euro."
    arabic = "\u062a\u0645 \u0646\u0642\u0644 \u0627\u0644\u0627\u062c\u062a\u0645\u0627\u0639 \u0625\u0644\u0649 \u064a\u0648\u0645 15."
    page = tab(site.key(tenant=tenant)).page
    for ref, words, direction in (("left", german, "ltr"), ("right", arabic, "rtl")):
        for n in [*range(8), *range(8)]:
            site.put(f"{words} {n}", tenant=tenant, ref=ref, source=speaker)
        report = site.host.dreams.run(site.host.system_actor(tenant), DreamPlan(ref=ref, budget=4000, fit=True))
        assert report is not None
        page.goto(f"{site.url}/dreams/{report.id}")
        line = page.locator(".line.pair > div:last-child p.content").first
        expect(line).to_contain_text(words[:10])
        assert line.evaluate("line => line.matches(':dir(rtl)') ? 'rtl' : 'ltr'") == direction


def test_a_new_tenant_is_shown_a_next_step_on_every_page(site: Site, tab: Open) -> None:
    opened = tab(site.key(tenant="newcomer"))
    for path in (*PAGES, "/memories?q=anything"):
        page = opened.go(path)
        assert page.locator("main select:not(:has(option))").count() == 0, path
        assert page.locator("main :is(code, form button, a.button)").count() > 0, path


def test_an_address_that_no_page_has_leads_home(site: Site, tab: Open) -> None:
    opened = tab(site.key())
    page = opened.go("/no-such-page")
    expect(page.locator("h1")).to_have_text("There is nothing here")
    opened.complaints.clear()  # the browser notes the 404
    page.click("text=Go to Home")
    expect(page.locator("h1")).to_have_text("Home")


def test_each_hit_is_explained_by_its_own_words(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories?q=boat+7+hull")
    first = page.locator("#results li[data-item]").first
    first.locator("summary").click()
    expect(first.locator("details")).to_contain_text("in 100 are right")
    expect(first.locator("details")).to_contain_text("written")
    expect(first.locator("mark").first).to_be_visible()


def test_a_plan_that_cannot_run_cannot_be_started(site: Site, tab: Open) -> None:
    for words in ("Berth 4 costs 14 euros a day.", "The slipway carries 12 tons."):
        site.put(words, tenant="small")
    page = tab(site.key(tenant="small")).go("/dreams")
    page.click("text=Plan first")
    expect(page.locator("main")).to_contain_text("These entries would not get smaller")
    expect(page.locator("button:has-text('Run this dream')")).to_be_disabled()
    expect(page.locator("button:has-text('Plan again')")).to_be_enabled()


def test_each_plot_is_drawn_with_an_axis_for_each_of_its_scales(site: Site, tab: Open) -> None:
    tenant = "plotted"
    for ref in ("one", "two"):
        for n in [*range(6), *range(6)]:
            site.put(f"Berth {n} costs {n + 10} euros.", tenant=tenant, ref=ref)
        assert site.host.dreams.run(site.host.system_actor(tenant), DreamPlan(ref=ref, budget=8000, fit=True))
    page = tab(site.key(tenant=tenant)).go("/dreams")
    bars = page.locator("figure", has_text="Tokens per dream")
    expect(bars.locator("canvas")).to_have_count(1)
    expect(bars.locator(".key span")).to_have_text(["Before", "After"])
    recent = site.app.state.console_searches
    for seconds in (0.004, 0.009):
        recent.add(tenant, seconds)
    slots = recent._new[tenant]  # a second slot, an hour earlier: a plot needs two
    (at, width), sizes = next(iter(slots.items()))
    slots[at - 3_600_000, width] = sizes
    page.goto(f"{site.url}/")
    searches = page.locator("figure", has_text="Searches")
    expect(searches.locator("canvas")).to_have_count(1)
    expect(searches.locator(".u-axis")).to_have_count(3)
    expect(searches.locator(".key span")).to_have_text(["Median", "95th percentile", "Searches"])


def test_an_entry_of_many_lines_leaves_room_for_the_others(site: Site, tab: Open) -> None:
    site.put("line\n" * 200, tenant="lines")
    site.put("After it.", tenant="lines")
    page = tab(site.key("admin", "read", tenant="lines")).go("/memories?ref=notes")
    for row in page.locator(".entry a.content").all():
        box = row.bounding_box()
        assert box is not None
        assert box["height"] < 240
