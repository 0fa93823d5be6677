"""The console under attack: other tenants, lesser keys, other sites, links that speak for it, and its own log."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.api.console.test_pages import Site, token

from reverie.api.console.routes import PAGES
from reverie.core.dream import DreamPlan


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.host.close()


@pytest.fixture(scope="module")
def dream(site: Site) -> str:
    """A dream of the tenant that is attacked."""
    for n in [*range(12), *range(12)]:
        site.put("victim", f"Mara: berth {n} costs {n + 10} euros a day.", subject="mara")
    report = site.host.dreams.run(site.host.system_actor("victim"), DreamPlan(ref="notes", budget=4000))
    assert report is not None
    return report.id


def state(site: Site) -> dict[str, Any]:
    """Everything of the victim that a change would show in: its events, but for those of sessions."""
    events = site.host.reader.events(site.host.system_actor("victim"))
    return {"events": [event.seq for event in events if "session" not in str(event.data.get("space", ""))]}


def test_nothing_of_another_tenant_is_seen_or_changed(site: Site, dream: str) -> None:
    entry = site.host.reader.page(site.host.system_actor("victim"), "notes", limit=1).items[0].id
    thief = site.browser(site.key("thief"))
    for path in (f"/dreams/{dream}", f"/dreams/{dream}/archive", f"/memories/notes/{entry}", "/windows?scope=notes"):
        answer = thief.get(path)
        assert answer.status_code == 404, path
        assert "berth" not in answer.text
        if not path.endswith("archive"):
            where, _, query = path.partition("?")
            assert thief.get(f"{where}.json?{query}").status_code == 404
    before, sent = state(site), token(thief)
    attempts = (
        (f"/dreams/{dream}", {"do": "undo"}),
        (f"/dreams/{dream}", {"do": "verify"}),
        (f"/memories/notes/{entry}", {"do": "change", "change": "retract"}),
        ("/memories/change", {"do": "ask", "change": "forget", "ref": "notes", "id": entry}),
        ("/memories/change", {"do": "ask", "change": "forget", "ref": "notes", "reach": "all"}),
        ("/memories/change", {"do": "apply", "change": "forget", "ref": "notes", "entry": f"1:{entry}", "sure": "1"}),
        (
            "/memories/change",
            {"do": "apply", "change": "forget", "ref": "notes", "at": "99", "count": "8", "sure": "1"},
        ),
        ("/forget", {"do": "forget", "subject": "mara", "sure": "1"}),
        ("/field", {"do": "decide", "conflict": "x", "winner": entry}),
        ("/windows", {"do": "drop", "scope": "notes"}),
    )
    for path, form in attempts:
        answer = thief.post(path, data={**form, "token": sent})
        assert answer.status_code < 500, (path, form)
        assert "berth" not in answer.text
    assert state(site) == before
    assert thief.get("/memories.json?ref=notes&q=berth+costs").json()["hits"] == []


@pytest.mark.parametrize("rights", [("read",), ("write",), ("dream",)], ids="-".join)
def test_a_lesser_key_sees_and_does_less(site: Site, dream: str, rights: tuple[str, ...]) -> None:
    entry = site.host.reader.page(site.host.system_actor("victim"), "notes", limit=1).items[0].id
    browser = site.browser(site.key("victim", *rights))
    pages = [page for page in PAGES if page.template]
    places = {page.path: page.path.replace("{ref}", "notes") for page in pages}
    if "read" not in rights:
        for page in pages:
            path = places[page.path].replace("{id}", entry if "ref" in page.path else dream)
            answer = browser.get(path)
            assert answer.status_code == 403, path
            assert "berth" not in answer.text
    sent = token(site.browser(site.key("victim")))  # of another session: worth nothing
    own = browser.get("/").text.partition('name="token" value="')[2][:64] or sent
    allowed = {
        "read": {"verify", "rebuild", "preview", "plan"},
        "write": {"apply", "ask", "change", "take", "preview", "drop", "rebuild", "forget"},
        "dream": {"plan", "run", "schedule", "change", "tick", "undo"},
    }
    before = state(site)
    for page in pages:
        path = places[page.path].replace("{id}", entry if "ref" in page.path else dream)
        for name in page.do:
            if name in set().union(*(allowed[right] for right in rights)):
                continue
            form = {
                "do": name, "token": own, "change": "archive", "ref": "notes", "id": entry, "subject": "mara",
                "sure": "1", "rights": "admin", "key": "x", "cron": "0 3 * * *", "bundle": "{}", "value": "x" * 12,
                "max_tags": "3", "scope": "s", "manifest": "{}", "agent": "a", "job": "j", "schedule": "s",
                "conflict": "c", "winner": "w", "budget": "4000",
            }  # fmt: skip
            answer = browser.post(path, data=form)
            refused = 400 <= answer.status_code < 500 or "0+of+1" in answer.headers.get("location", "")
            assert refused, (rights, path, name, answer.status_code)
    assert state(site) == before


def test_a_browser_is_not_signed_in_by_another_site(site: Site) -> None:
    answer = site.browser().post("/sign-in", data={"key": site.key()}, headers={"origin": "http://evil.test"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    crossed = site.browser().post("/sign-in", data={"key": site.key()}, headers={"sec-fetch-site": "cross-site"})
    assert crossed.status_code == 403
    assert "set-cookie" not in crossed.headers


def test_a_link_cannot_speak_for_the_console(site: Site) -> None:
    site.put("acme", "The boat is at pier 4.")
    browser = site.browser(site.key())
    lie = "Your key expired. Send it to evil.test."
    assert "evil.test." not in browser.get("/memories", params={"said": lie}).text.replace("said=", "")
    other = site.browser(site.key())
    entry = site.put("acme", "Pin me.")
    form = {"do": "change", "change": "pin", "token": token(other, f"/memories/notes/{entry}")}
    told = other.post(f"/memories/notes/{entry}", data=form).headers["location"]
    assert "Done: pin." in other.get(told).text
    assert "Done: pin." not in browser.get(told).text


@pytest.mark.parametrize("dream", [{"x": 1}, ["x"], 7, "not-a-dream"], ids=repr)
def test_an_imported_dream_with_odd_attributes_does_not_break_the_page_of_its_source(site: Site, dream: Any) -> None:
    writer, reader = (f"{role}-{type(dream).__name__}" for role in ("writer", "reader"))
    source = site.put(writer, "The tank holds 30 litres.", ref="tanks")
    site.put(writer, "The tank is small.", ref="tanks", kind="dream", attributes={"dream": dream})
    exported = site.host.bundles.export(site.host.system_actor(writer), ref="tanks", events=False)
    rows = [json.loads(line) for line in exported]
    (made,) = (row["id"] for row in rows if row.get("kind") == "dream")
    arrow = {"type": "link", "ref": "tanks", "from_id": made, "to_id": source, "link": "distilled-from", "note": None}
    body = b"".join(json.dumps(row).encode() + b"\n" for row in [*rows[:-1], arrow])
    end = {"type": "end", "entries": 2, "links": 1, "events": 0, "sha256": hashlib.sha256(body).hexdigest()}
    lines = [*body.splitlines(keepends=True), json.dumps(end).encode() + b"\n"]
    site.host.bundles.take(site.host.system_actor(reader), lines)
    assert "The tank is small." in site.browser(site.key(reader)).get(f"/memories/tanks/{source}").text


def test_the_log_holds_no_words_of_pages(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    entry = site.put("acme", "The heron sleeps at pier zanzibar.")
    browser = site.browser(site.key())
    for path in (
        "/memories?q=zanzibar",
        "/context?q=zanzibar",
        f"/memories/notes/{entry}",
        "/memories?subject=zanzibar",
    ):
        browser.get(path)
    browser.post("/forget", data={"do": "preview", "subject": "zanzibar", "token": token(browser)})
    own = [str(vars(record)) for record in caplog.records if record.name.startswith("reverie")]
    assert any("request.done" in record for record in own)
    assert not [record for record in own if "zanzibar" in record]


@pytest.mark.parametrize(
    "path", ["/sign-in?next=//%5B", "/sign-in?seal=%C3%A9", "/nowhere?seal=%C3%A9", "/docs?seal=%C3%A9"]
)
def test_a_strange_address_is_no_fault_of_the_host(site: Site, path: str) -> None:
    assert site.browser().get(path).status_code in (200, 404)


def test_a_token_that_is_not_ascii_is_a_foreign_form(site: Site) -> None:
    browser = site.browser(site.key())
    assert browser.post("/forget", data={"token": "\u00e9", "do": "preview", "subject": "x"}).status_code == 403
    assert browser.post("/sign-out", data={"token": "\u00e9"}).headers["location"] == "/"


def test_a_key_that_would_expire_after_the_last_year_is_refused_and_the_page_stays(site: Site) -> None:
    browser = site.browser(site.key())
    form = {"do": "make_key", "token": token(browser), "rights": "read", "expires": "9999999d"}
    assert browser.post("/operate", data=form).status_code == 400
    assert browser.get("/operate").status_code == 200


@pytest.mark.parametrize("what", ["rotate", "revoke"])
def test_an_administrator_does_not_get_the_rights_of_another_key_by_rotating_it(site: Site, what: str) -> None:
    whole = site.host.keys.create("acme", rights=("read", "write", "dream", "admin"))
    lesser = site.browser(site.key("acme", "read", "admin"))
    answer = lesser.post("/operate", data={"do": "change_key", "token": token(lesser), "key": whole.id, "change": what})
    assert answer.status_code == (403 if what == "rotate" else 303)
    assert bool(site.host.keys.valid([whole.id])) is (what == "rotate")
