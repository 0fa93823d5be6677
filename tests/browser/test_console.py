"""The console in a real browser, as the people who use it."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import SECRET, Open, Site

from reverie.core.dream import DreamPlan

PAGES = (
    "/", "/memories", "/memories?q=how+long+is+berth+3", "/context?q=boats&budget=300", "/dreams", "/windows", "/agents",
    "/field", "/forget", "/audit", "/operate", "/docs",
)  # fmt: skip
AXE = (Path(__file__).parent / "vendored" / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`)"""
WIDER = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> \u202eevil\u200b "
    "\"'><svg onload=alert(1)> {{ 7 * 7 }} [link](javascript:alert(2)) " + "unbroken" * 300
)


def pages(site: Site) -> list[str]:
    """Every page, with one entry and one dream."""
    actor = site.host.system_actor("acme")
    dream = site.host.lineage.page(actor, limit=1).items[0].id
    entry = site.host.reader.page(actor, "notes", limit=1).items[0].id
    return [*PAGES, f"/memories/notes/{entry}", f"/dreams/{dream}"]


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)], ids=lambda value: str(value)
)
def test_every_page_fits_is_accessible_and_quiet(site: Site, tab: Open, scheme: str, width: int) -> None:
    opened = tab(site.key(), color_scheme=scheme, reduced_motion="reduce")
    opened.page.set_viewport_size({"width": width, "height": 844})
    faults = []
    for path in pages(site):
        page = opened.go(path)
        assert page.title().endswith("Reverie")
        if (over := page.evaluate(WIDER)) > 0:
            faults.append(f"{path} is {over} px too wide")
        if width == 1280:
            page.evaluate(AXE)
            faults += [f"{path}: {found}" for found in page.evaluate(SERIOUS)]
    assert not faults, "\n".join(faults)


def test_signing_in_and_out(site: Site, tab: Open) -> None:
    opened = tab()
    page = opened.go("/dreams")
    assert "/sign-in" in page.url
    page.fill("#key", "rvk_000000000000_" + "x" * 43)
    page.click("button:has-text('Sign in')")
    expect(page.locator("[role=alert]")).to_contain_text("not valid")
    opened.complaints.clear()  # the browser notes the 401
    page.fill("#key", site.key())
    page.click("button:has-text('Sign in')")
    expect(page.locator("h1")).to_be_visible()
    page.click("text=Sign out")
    expect(page.locator("h1")).to_have_text("Sign in")
    opened.go("/memories")
    assert "/sign-in" in page.url


def test_a_session_ends_with_its_key(site: Site, tab: Open) -> None:
    made = site.host.keys.create("acme")
    opened = tab(made.key)
    site.host.keys.revoke(made.id)
    opened.page.click("nav >> text=Memories")
    expect(opened.page.locator("h1")).to_have_text("Sign in")


def test_search_answers_while_typing_and_explains(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    page.locator("[data-search]").press_sequentially("boat 7 hull")
    expect(page.locator("#results h2")).to_contain_text("hit")
    expect(page.locator("#results mark").first).to_be_visible()
    assert "q=boat" in page.url
    page.locator("#results section summary").first.click()
    expect(page.locator("#results .signals").first).to_be_visible()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_dream_is_planned_run_watched_read_and_undone(site: Site, tab: Open, script: bool) -> None:
    tenant = f"dreamer-{script}".lower()
    for n in [*range(10), *range(10)]:
        site.put(f"Lena: mooring {n} has {n + 2} rings and costs {n + 30} euros.", ref="quay", tenant=tenant)
    page = tab(site.key(tenant=tenant), java_script_enabled=script).go("/dreams")
    page.select_option("#run select[name=ref]", "quay")
    page.click("text=Plan first")
    expect(page.locator("h2", has_text="The plan")).to_be_visible()
    page.click("text=Run this dream")
    for _ in range(200):
        if page.locator("text=Before and after").count():
            break
        page.wait_for_timeout(100)
    expect(page.locator("h1")).to_contain_text("tokens became")
    page.click("text=Verify")
    expect(page.locator("[role=status]")).to_contain_text("Verified")
    page.click("text=Undo")
    page.click("text=Undo the dream")
    expect(page.locator("[role=status]")).to_contain_text("Undone")
    assert len(site.host.reader.page(site.host.system_actor(tenant), "quay").items) == 20


def test_many_entries_through_a_preview(site: Site, tab: Open) -> None:
    for n in range(3):
        site.put(f"Old note {n}.", tenant="tidy")
    page = tab(site.key(tenant="tidy")).go("/memories")
    page.check("[data-choose-all]")
    page.click("button:has-text('Archive')")
    expect(page.locator("h1")).to_contain_text("Archive 3 entries?")
    page.click("button:has-text('Archive 3')")
    expect(page.locator("[role=status]")).to_contain_text("3 of 3")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_everything_that_matches_through_a_preview(site: Site, tab: Open, script: bool) -> None:
    tenant = f"sweep-{script}".lower()
    for n in range(70):
        site.put(f"Old note {n}.", tenant=tenant, tags=("old",))
    site.put("A new note.", tenant=tenant)
    page = tab(site.key(tenant=tenant), java_script_enabled=script).go("/memories?tag=old")
    page.select_option("select[name=reach]", "all")
    page.click("button:has-text('Retract')")
    expect(page.locator("h1")).to_contain_text("Retract 70 entries?")
    page.click("text=More entries")
    expect(page.locator("h1")).to_contain_text("Retract 70 entries?")
    expect(page.locator("main li[data-item]")).to_have_count(20)
    site.put("One more old note.", tenant=tenant, tags=("old",))
    page.click("button:has-text('Retract 70')")
    expect(page.locator("[role=alert]")).to_contain_text("Nothing was done")
    page.click("button:has-text('Retract 71')")
    expect(page.locator("[role=status]")).to_contain_text("71 of 71")
    expect(page.locator("main li[data-item]")).to_have_count(1)


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_forget_with_a_preview_and_a_certificate(site: Site, tab: Open, script: bool) -> None:
    tenant = f"privacy-{script}".lower()
    site.put("Zoe has the blue locker.", tenant=tenant, subject="zoe")
    page = tab(site.key(tenant=tenant), java_script_enabled=script).go("/forget")
    page.fill("input[name=subject]", "zoe")
    page.click("text=Preview")
    expect(page.locator("main")).to_contain_text("blue locker")
    page.check("input[name=sure]")
    page.click("text=Forget all of it")
    expect(page.locator("[role=status]")).to_contain_text("Certificate")
    assert "blue locker" not in page.content()


def test_a_key_is_shown_once(site: Site, tab: Open) -> None:
    opened = tab(site.key(tenant="keyed"))
    page = opened.go("/operate")
    page.click("summary:has-text('Make a key')")
    page.fill("input[name=name]", "bot")
    page.click("text=Make the key")
    shown = str(page.locator("#new-key").text_content())
    assert site.host.keys.authenticate(shown, door="rest").tenant == "keyed"
    assert shown not in opened.go("/operate").content()


def test_a_reader_sees_no_way_to_change(site: Site, tab: Open) -> None:
    page = tab(site.key("read")).go("/memories")
    assert page.locator("input[name=id]").count() == 0
    page.goto(f"{site.url}/dreams")
    assert page.locator("#run").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_text_stays_text_on_every_page(site: Site, tab: Open, width: int) -> None:
    tenant = f"hostile-{width}"
    actor, name = site.host.system_actor(tenant), "m" * 150
    entry = site.put(HOSTILE, tenant=tenant, tags=("<b>x</b>", "t" * 60), subject="<i>y</i>" + "s" * 100)
    for n in [*range(8), *range(8)]:
        site.put(f"{HOSTILE[:80]} \u0642\u0627\u0631\u0628 {n} {'w' * 200} {n + 3} euros", tenant=tenant, ref=name)
    report = site.host.dreams.run(actor, DreamPlan(ref=name, budget=8000, fit=True))
    assert report is not None
    site.host.agents.install(
        actor, {"agentId": "x", "label": "<img src=x>" + "L" * 80, "persona": "p", "modelClass": "small"}
    )
    site.host.schedules.save(actor, {"cron": "0 3 * * *", "ref": name})
    opened = tab(site.key(tenant=tenant))
    opened.page.set_viewport_size({"width": width, "height": 844})
    own = (
        f"/memories/notes/{entry}", f"/dreams/{report.id}", f"/dreams/{report.id}?undo=1", "/memories?where=cold",
        "/memories/change?change=forget&ref=notes", "/memories?q=evil+unbroken", f"/memories?ref={name}&where=cold",
        f"/context?q=evil&other=200&ref={name}",
    )  # fmt: skip
    for path in (*PAGES, *own):
        page = opened.go(path)
        assert page.evaluate("window.pwned") is None
        assert page.evaluate(WIDER) <= 0, path
        assert "\u202e" not in str(page.locator("main").text_content())
    page = opened.go(f"/memories/notes/{entry}")
    expect(page.locator(".content").first).to_contain_text("<script>window.pwned = 1</script>")
    expect(page.locator(".content").first).to_contain_text("[U+202E]")


def test_another_tenants_entry_is_not_there(site: Site, tab: Open) -> None:
    entry = site.put("For rivals only.", tenant="rival")
    opened = tab(site.key())
    page = opened.go(f"/memories/notes/{entry}")
    expect(page.locator("main")).to_contain_text("There is nothing here")
    assert "rivals only" not in page.content()
    opened.complaints.clear()  # the browser notes the 404


@contextmanager
def elsewhere(page: str) -> Iterator[str]:
    """A site on another port of this machine, which browsers count as the same site."""

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def test_forms_of_another_site_change_nothing(site: Site, tab: Open) -> None:
    entry = site.put("Keep me.", tenant="target")
    opened = tab(site.key(tenant="target"))
    fields = {"do": "apply", "change": "retract", "ref": "notes", "entry": f"1:{entry}", "token": "0" * 64}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    with elsewhere(
        f'<form method="post" action="{site.url}/memories/change">{inputs}<button>Win</button></form>'
    ) as url:
        opened.page.goto(url)
        with opened.page.expect_navigation():
            opened.page.click("button")
        assert "forbidden_origin" in opened.page.content()
    opened.complaints.clear()
    assert site.host.reader.get(site.host.system_actor("target"), "notes", entry).state == "active"


def test_a_name_that_was_rebound_gets_nothing(site: Site, tab: Open) -> None:
    opened = tab()
    port = site.url.rsplit(":", 1)[1]
    answer = opened.page.goto(f"http://rebound.test:{port}/sign-in")
    assert answer is not None
    assert answer.status == 421
    opened.complaints.clear()


def test_a_secret_is_in_no_page(site: Site, tab: Open) -> None:
    opened = tab(site.key())
    for path in [*pages(site), "/memories?where=cold", "/memories?q=pet"]:
        assert SECRET not in opened.go(path).content(), path


def test_everything_is_reached_by_keyboard(site: Site, tab: Open) -> None:
    page = tab(site.key()).go("/memories")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("j")
    expect(page.locator("[data-item] a").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("[data-item] a").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("entry")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")


def test_a_request_is_tried_from_the_reference(site: Site, tab: Open) -> None:
    page = tab(site.key(tenant="trying")).go("/docs")
    entries = '[data-method="GET"][data-path="/v1/host/reverie/memory/{ref}/entries"]'
    operation = page.locator("details.operation", has=page.locator(entries))
    operation.locator("summary").click()
    form = operation.locator("form[data-try]")
    form.locator("input[name=ref]").fill("notes")
    form.locator("button").click()
    expect(form.locator("[data-status]")).to_have_text("200")
    expect(form.locator("[data-answer]")).to_contain_text('"cursor"')
