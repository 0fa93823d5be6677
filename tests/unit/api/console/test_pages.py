"""The console over HTTP, without a browser: who gets in, what a page says, and what it refuses."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from reverie.api.console import change
from reverie.api.console import page as forms
from reverie.api.console.access import HEADERS, LINK_KEY
from reverie.api.console.operate import POLICY, explained
from reverie.api.console.reference import described
from reverie.api.console.routes import PAGES
from reverie.api.console.text import visible
from reverie.app import build_app, build_host
from reverie.core.entry import Draft
from reverie.core.policy import TenantPolicy
from reverie.host import Host
from reverie.settings import Settings

HTML = {"accept": "text/html"}
HOSTILE = "<script>alert(1)</script> \u202edrawkcab\u200b <img src=x onerror=alert(2)> " + "W" * 3000


class Site:
    """A host with two tenants, and browsers that look at it."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.load({}, data=folder, worker=False)
        self.host: Host = build_host(self.settings)
        self.app: Any = build_app(self.settings, self.host)

    def browser(self, key: str | None = None, **options: Any) -> TestClient:
        client = TestClient(self.app, base_url="http://localhost", headers=HTML, follow_redirects=False, **options)
        if key is not None:
            answer = client.post("/sign-in", data={"key": key})
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        return client

    def key(self, tenant: str = "acme", *rights: str) -> str:
        return self.host.keys.create(tenant, rights=rights or ("read", "write", "dream", "admin")).key

    def put(self, tenant: str, content: str, ref: str = "notes", **fields: Any) -> str:
        actor = self.host.system_actor(tenant)
        return self.host.entries.put(actor, ref, [Draft(content, **fields)])[0].id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.host.close()


def token(client: TestClient, path: str = "/memories") -> str:
    return str(re.search(r'name="token" value="([0-9a-f]{64})"', client.get(path).text)[1])  # type: ignore[index]


def test_vendored_files_are_the_ones_listed() -> None:
    shipped = resources.files("reverie.api.console").joinpath("static")
    own = Path(__file__).parents[3] / "browser" / "vendored"
    for folder in (shipped, own):
        listed = json.loads(folder.joinpath("VENDORED.json").read_text())
        assert listed
        for item in listed:
            assert set(item) == {"file", "package", "version", "licence", "path", "sha256"}
            assert hashlib.sha256(folder.joinpath(item["file"]).read_bytes()).hexdigest() == item["sha256"]
    named = {item["file"] for item in json.loads(shipped.joinpath("VENDORED.json").read_text())}
    written = {"console.css", "console.js", "icon.svg"}
    assert {file.name for file in shipped.iterdir() if file.name.endswith((".js", ".css", ".svg"))} == named | written


def test_the_root_is_a_page_for_browsers_and_json_for_programs(site: Site) -> None:
    browser = site.browser()
    assert browser.get("/").headers["location"] == "/sign-in"
    answer = browser.get("/", headers={"accept": "*/*"})
    assert answer.json()["name"] == "reverie"
    assert set(answer.json()["links"]) == {"openapi", "health", "readiness", "metrics"}


def test_every_page_wants_a_session_and_has_the_headers(site: Site) -> None:
    signed_in, signed_out = site.browser(site.key()), site.browser()
    for page in PAGES:
        path = page.path.replace("{ref}", "notes").replace("{id}", "none")
        path += "?change=pin&ref=notes" if page is change.PAGE else ""
        refused = signed_out.get(path)
        assert refused.status_code == 303
        assert refused.headers["location"].startswith("/sign-in")
        json_path = page.json_path.replace("{ref}", "notes").replace("{id}", "none")
        assert signed_out.get(json_path).status_code == (401 if page.template else 404)
        answer = signed_in.get(path)
        assert answer.status_code == (404 if "{" in page.path else 200), (path, answer.text[-600:])
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        if page.template:
            assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|<style|\bstyle=|javascript:", answer.text), path


def test_the_same_page_as_json_with_a_key(site: Site) -> None:
    client = site.browser()
    answer = client.get("/memories.json?ref=notes", headers={"authorization": f"Bearer {site.key()}"})
    assert answer.status_code == 200
    assert answer.json()["ref"] == "notes"


def test_the_cookie_is_strict_and_under_tls_bound_to_the_host(site: Site) -> None:
    plain = site.browser().post("/sign-in", data={"key": site.key()}).headers["set-cookie"]
    assert plain.startswith("reverie_session=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in plain.split(";")}
    tls = site.browser().post("/sign-in", data={"key": site.key()}, headers={"x-forwarded-proto": "https"})
    assert tls.headers["set-cookie"].startswith("__Host-reverie_session=")
    assert "Secure" in tls.headers["set-cookie"]


@pytest.mark.parametrize("key", ["", "nonsense", "rvk_0123456789ab_" + "A" * 43])
def test_a_wrong_key_does_not_sign_in(site: Site, key: str) -> None:
    answer = site.browser().post("/sign-in", data={"key": key})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "not valid" in answer.text


def test_after_signing_in_one_is_where_one_wanted_to_be(site: Site) -> None:
    browser = site.browser()
    assert browser.get("/memories?q=a%20b").headers["location"] == "/sign-in?next=%2Fmemories%3Fq%3Da%2520b"
    for sent, reached in (("/dreams", "/dreams"), ("https://evil.test/", "/"), ("//evil.test", "/"), ("/\\evil", "/")):
        answer = site.browser().post("/sign-in", data={"key": site.key(), "next": sent})
        assert answer.headers["location"] == reached


def test_a_link_signs_in_once(site: Site) -> None:
    secret = site.app.state.console_links.make()
    first = site.browser().get(f"/sign-in?once={secret}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    again = site.browser().get(f"/sign-in?once={secret}")
    assert again.status_code == 401
    site.browser().get(f"/sign-in?once={site.app.state.console_links.make()}")
    assert sum(key.name == LINK_KEY for key in site.host.keys.all()) == 1


def test_signing_out_ends_the_session(site: Site) -> None:
    browser = site.browser(site.key())
    sent = token(browser)
    cookie = dict(browser.cookies)
    assert browser.post("/sign-out", data={"token": sent}).headers["location"] == "/sign-in"
    thief = site.browser(cookies=cookie)
    assert thief.get("/memories").status_code == 303


def test_a_revoked_key_signs_out(site: Site) -> None:
    made = site.host.keys.create("acme")
    browser = site.browser(made.key)
    assert browser.get("/memories").status_code == 200
    site.host.keys.revoke(made.id)
    assert browser.get("/memories").headers["location"].startswith("/sign-in")


def test_forms_of_other_pages_are_refused(site: Site) -> None:
    entry = site.put("acme", "The boat is at pier 4.")
    browser = site.browser(site.key())
    form = {"do": "apply", "change": "archive", "ref": "notes", "entry": f"1:{entry}"}
    refused = [
        browser.post("/memories/change", data=form),
        browser.post("/memories/change", data={**form, "token": "0" * 64}),
        browser.post(
            "/memories/change", data={**form, "token": token(browser)}, headers={"sec-fetch-site": "cross-site"}
        ),
        browser.post(
            "/memories/change", data={**form, "token": token(browser)}, headers={"origin": "http://evil.test"}
        ),
        browser.post("/memories/change", data={**form, "token": token(site.browser(site.key()))}),
    ]
    assert [answer.status_code for answer in refused] == [403] * 5
    bearer = {"authorization": f"Bearer {site.key()}"}
    assert site.browser().post("/memories/change", data=form, headers=bearer).status_code == 403
    assert site.host.reader.get(site.host.system_actor("acme"), "notes", entry).archived is False


def test_another_name_of_this_machine_is_refused(site: Site) -> None:
    assert site.browser(site.key()).get("/memories", headers={"host": "rebound.test"}).status_code == 421


def test_another_tenants_entry_is_not_there(site: Site) -> None:
    entry = site.put("rival", "Nobody else may read this.")
    answer = site.browser(site.key("acme")).get(f"/memories/notes/{entry}")
    assert answer.status_code == 404
    assert "Nobody else" not in answer.text
    assert site.browser(site.key("rival")).get(f"/memories/notes/{entry}").status_code == 200


def test_hostile_text_is_shown_as_text(site: Site) -> None:
    entry = site.put("acme", HOSTILE, tags=("<b>bold</b>",), subject='"><script>x</script>')
    browser = site.browser(site.key())
    for path in ("/memories", "/memories?q=drawkcab", f"/memories/notes/{entry}"):
        page = browser.get(path).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>" not in page
        assert "<img src=x" not in page
        assert "\u202e" not in page
        assert "[U+202E]" in page


def test_what_is_hidden_is_spelled_out_and_what_belongs_stays() -> None:
    assert visible("a\u200bb\u202ec\ufeff\x07") == "a[U+200B]b[U+202E]c[U+FEFF][U+0007]"
    family, persian = "👨\u200d👩\u200d👧", "می\u200cخواهم"
    assert (visible(family), visible(persian), visible("line\nline\ttab")) == (family, persian, "line\nline\ttab")
    assert visible("pass\u200dword") == "pass[U+200D]word"


def test_rights_decide_what_is_offered_and_done(site: Site) -> None:
    entry = site.put("acme", "The mooring costs 12 euros.")
    reader = site.browser(site.key("acme", "read"))
    assert "Choose entry" not in reader.get("/memories").text
    form = {
        "do": "apply",
        "change": "archive",
        "ref": "notes",
        "entry": f"1:{entry}",
        "token": token(reader, f"/memories/notes/{entry}"),
    }
    assert reader.post("/memories/change", data=form).status_code == 403
    assert reader.get("/memories/change?change=archive&ref=notes").status_code == 403
    writer = site.browser(site.key("acme", "write"))
    assert writer.get("/memories").status_code == 403


def test_a_used_link_leads_home_while_its_session_lasts(site: Site) -> None:
    browser = site.browser()
    link = f"/sign-in?once={site.app.state.console_links.make()}"
    browser.get(link)
    again = browser.get(link)
    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert browser.get("/dreams").status_code == 200


def test_a_budget_above_the_policy_is_refused_not_lowered(site: Site) -> None:
    site.put("acme", "Berth 4 is 12 metres long.")
    browser = site.browser(site.key())
    form = {"token": token(browser), "ref": "notes", "budget": "200000", "cron": "0 3 * * *"}
    for do in ("plan", "run", "schedule"):
        answer = browser.post("/dreams", data={**form, "do": do})
        assert answer.status_code == 400
        assert "The policy allows a dream 8000 tokens" in answer.text


def test_an_unknown_or_empty_memory_says_how_to_fill_it(site: Site) -> None:
    site.put("acme", "Berth 4 is 12 metres long.")
    browser = site.browser(site.key())
    page = browser.get("/memories?ref=harbour").text
    assert "There is no memory of this name" in page
    assert "harbour" in page.split("reverie</span>")[1]
    assert "No entries match" in browser.get("/memories?ref=notes&tag=nowhere").text


def test_an_entry_shows_every_tag_and_a_list_says_how_many_more(site: Site) -> None:
    tags = tuple(f"tag-{number:02d}" for number in range(60))
    made = site.put("acme", "Many tags.", ref="tags", tags=tags)
    browser = site.browser(site.key())
    assert "and 54 more" in browser.get("/memories?ref=tags").text
    page = browser.get(f"/memories/tags/{made}").text
    assert all(f">{tag}<" in page for tag in tags)


def test_a_list_is_read_page_by_page_and_each_entry_once(site: Site) -> None:
    actor = site.host.system_actor("paged")
    site.host.entries.put(actor, "notes", [Draft(f"Line {n}.") for n in range(60)])
    client, seen, cursor = site.browser(site.key("paged")), [], ""
    for _ in range(3):
        page = client.get(f"/memories.json?cursor={cursor}" if cursor else "/memories.json").json()
        seen += [item["content"] for item in page["items"]]
        cursor = page["cursor"]
    assert cursor is None
    assert sorted(seen) == sorted(f"Line {n}." for n in range(60))


@pytest.mark.parametrize(
    "path",
    ["/memories?age=x", "/memories?cursor=xx", "/memories?mode=no&q=a", "/memories?state=no", "/memories/a%00b/c"],
)
def test_a_wrong_address_gets_a_page_that_says_so(site: Site, path: str) -> None:
    answer = site.browser(site.key()).get(path)
    assert answer.status_code in (400, 404)
    assert "<h1" in answer.text or "empty" in answer.text


def test_a_dream_is_planned_run_watched_read_verified_and_undone(site: Site) -> None:
    actor = site.host.system_actor("sleepy")
    said = [f"Mara: berth {n} costs {n + 10} euros a day." for n in range(12)]
    site.host.entries.put(actor, "notes", [Draft(text) for text in said * 2])
    browser = site.browser(site.key("sleepy"))
    with browser:
        form = {"ref": "notes", "budget": "4000", "token": token(browser, "/dreams")}
        plan = browser.post("/dreams", data={**form, "do": "plan"})
        assert plan.status_code == 200
        assert "Run this dream" in plan.text
        where = browser.post("/dreams", data={**form, "do": "run"}).headers["location"]
        for _ in range(600):
            if "Before and after" in (page := browser.get(where).text):
                break
        assert "tokens became" in page
        assert 'id="must-keep"' in page or "Checks" in page
        assert "more entries of this memory" not in page
        report = browser.get(f"{where}.json").json()["report"]
        archive = browser.get(f"{where}/archive")
        assert hashlib.sha256(archive.content).hexdigest() == report["checksum"]
        assert "Verified" in browser.post(where, data={"do": "verify", "token": form["token"]}).text
        assert "Undo this dream?" in browser.get(f"{where}?undo=1").text
        undone = browser.post(where, data={"do": "undo", "token": form["token"]})
        assert undone.status_code == 303
        assert browser.get(f"{where}.json").json()["report"]["state"] == "undone"
    assert len(site.host.reader.page(actor, "notes").items) == 24


def test_a_dream_that_makes_nothing_says_why(site: Site) -> None:
    site.put("awake", "Only one note.")
    browser = site.browser(site.key("awake"))
    with browser:
        form = {"do": "run", "ref": "notes", "token": token(browser, "/dreams")}
        where = browser.post("/dreams", data=form).headers["location"]
        for _ in range(600):
            if "No dream was made" in (page := browser.get(where).text):
                break
        assert "Nothing to do" in page


def test_schedules_are_made_paused_and_removed(site: Site) -> None:
    browser = site.browser(site.key("clocked"))
    sent = token(browser, "/dreams")
    made = browser.post("/dreams", data={"do": "schedule", "cron": "0 3 * * *", "token": sent})
    assert made.status_code == 303
    [one] = browser.get("/dreams.json").json()["schedules"]
    browser.post("/dreams", data={"do": "change", "schedule": one["id"], "change": "pause", "token": sent})
    assert browser.get("/dreams.json").json()["schedules"][0]["paused"] is True
    browser.post("/dreams", data={"do": "change", "schedule": one["id"], "change": "remove", "token": sent})
    assert browser.get("/dreams.json").json()["schedules"] == []
    bad = browser.post("/dreams", data={"do": "schedule", "cron": "never", "token": sent})
    assert bad.status_code == 400


def test_a_page_without_a_ref_shows_the_memory_that_changed_last(site: Site) -> None:
    for number in range(3):
        site.put("both", f"Note {number} about the harbour.", ref="large")
    site.put("both", "The ferry leaves at nine.", ref="latest")
    browser = site.browser(site.key("both"))
    for page in ("/memories.json", "/context.json"):
        assert browser.get(page).json()["ref"] == "latest"
        assert browser.get(f"{page}?ref=large").json()["ref"] == "large"


def test_every_policy_is_explained() -> None:
    named = set(TenantPolicy().document())
    assert set(POLICY) <= named
    assert [name for name in named if not explained(name)[1]] == []


def test_the_context_lab_counts_what_it_packs(site: Site) -> None:
    site.put("lab", "The launch takes place on 13 October in the old harbour.")
    document = site.browser(site.key("lab")).get("/context.json?q=when+is+the+launch&budget=200&other=40").json()
    first, second = document["packed"]
    assert "13 October" in first["text"]
    assert first["tokens"] <= 200
    assert second["tokens"] <= 40
    assert document["candidates"][0]["included"] is True


def test_forget_shows_everything_reached_and_gives_a_certificate(site: Site) -> None:
    for n in range(3):
        site.put("gone", f"Zoe has locker {n}.", subject="zoe")
    site.put("gone", "The harbour opens at eight.")
    browser = site.browser(site.key("gone"))
    form = {"subject": "zoe", "ref": "", "token": token(browser, "/forget")}
    preview = browser.post("/forget", data={**form, "do": "preview"}).text
    assert all(f"locker {n}" in preview for n in range(3))
    assert "harbour" not in preview
    assert browser.post("/forget", data={**form, "do": "forget"}).status_code == 400
    done = browser.post("/forget", data={**form, "do": "forget", "sure": "1"}).text
    assert "Certificate" in done
    assert "locker" not in done
    assert [entry["content"] for entry in browser.get("/memories.json").json()["items"]] == [
        "The harbour opens at eight."
    ]


def test_the_audit_page_proves_the_chain_and_exports_it(site: Site) -> None:
    site.put("proved", "One fact.")
    browser = site.browser(site.key("proved"))
    assert "The chain holds" in browser.post("/audit", data={"do": "verify", "token": token(browser, "/audit")}).text
    lines = browser.get("/audit/export").text.strip().split("\n")
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    written = browser.get("/audit.json?type=memory.written").json()["events"]
    assert [event["type"] for event in written] == ["memory.written"]
    mine = browser.get("/audit.json?actor=host:reverie").json()["events"]
    assert {event["agent_id"] for event in mine} == {"host:reverie"}
    assert browser.get("/audit?type=no.such").status_code == 400


def test_keys_are_shown_once_rotated_and_revoked(site: Site) -> None:
    made = site.host.keys.create("keyed")
    browser = site.browser(made.key)
    sent = token(browser, "/operate")
    page = browser.post("/operate", data={"do": "make_key", "name": "bot", "rights": ["read"], "token": sent}).text
    shown = re.search(r'id="new-key">(rvk_[^<]+)<', page)
    assert shown is not None
    assert site.host.keys.authenticate(shown[1], door="rest").tenant == "keyed"
    assert shown[1] not in browser.get("/operate").text
    key_id = shown[1].split("_")[1]
    browser.post("/operate", data={"do": "change_key", "key": key_id, "change": "revoke", "token": sent})
    assert key_id not in site.host.keys.valid([key_id])
    foreign = site.host.keys.create("rival").id
    refused = browser.post("/operate", data={"do": "change_key", "key": foreign, "change": "revoke", "token": sent})
    assert refused.status_code == 404
    assert site.host.keys.valid([foreign])
    reader = site.browser(site.key("keyed", "read"))
    form = {"do": "make_key", "rights": ["admin"], "token": token(reader, "/operate")}
    assert reader.post("/operate", data=form).status_code == 403
    assert 'id="keys"' not in reader.get("/operate").text


def test_secrets_and_policy_are_changed_and_secrets_never_shown(site: Site) -> None:
    browser = site.browser(site.key("strict"))
    sent = token(browser, "/operate")
    value = "Velvet.Walrus-" + "q7" * 6
    browser.post("/operate", data={"do": "add_secret", "id": "pet", "value": value, "token": sent})
    page = browser.get("/operate").text
    assert "[REDACTED:pet]" in page
    assert value not in page
    site.put("strict", f"The pet is called {value} by everyone.")
    for path in ("/memories", "/audit", "/operate", "/", "/audit/export", "/operate/export", "/memories.json"):
        assert value not in browser.get(path).text
    browser.post("/operate", data={"do": "set_policy", "undo_window_ms": "3d", "token": sent})
    policy = {one["name"]: one["value"] for one in browser.get("/operate.json").json()["policy"]}
    assert policy["undo_window_ms"] == 3 * 86_400_000
    shown = browser.get("/operate").text
    assert 'name="undo_window_ms" value="3d"' in shown
    unchanged = browser.post("/operate", data={"do": "set_policy", "undo_window_ms": "3d", "token": sent})
    assert "Nothing+was+changed" in unchanged.headers["location"]
    wrong = browser.post("/operate", data={"do": "set_policy", "max_tags": "many", "token": sent})
    assert wrong.status_code == 400


def test_a_bundle_goes_out_and_in(site: Site) -> None:
    site.put("sender", "The ferry leaves at nine.")
    bundle = site.browser(site.key("sender")).get("/operate/export").text
    browser = site.browser(site.key("receiver"))
    done = browser.post("/operate", data={"do": "take", "bundle": bundle, "token": token(browser, "/operate")})
    assert "Imported+1" in done.headers["location"]
    assert browser.get("/memories.json").json()["items"][0]["content"] == "The ferry leaves at nine."


def test_exports_count_among_the_heavy_operations_of_the_key(site: Site) -> None:
    key = site.host.keys.create("hungry", rights=("read",))
    browser, heavy = site.browser(key.key), site.app.state.limits.heavy
    with contextlib.ExitStack() as running:
        for _ in range(site.settings.heavy_per_key):
            running.enter_context(heavy.one(key.id))
        assert [browser.get(path).status_code for path in ("/operate/export", "/audit/export")] == [429, 429]
    assert [browser.get(path).status_code for path in ("/operate/export", "/audit/export")] == [200, 200]


def test_a_large_form_is_refused_from_strangers_and_read_in_a_thread(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    fields = forms._fields

    def watched(body: bytes) -> Any:
        read.append(threading.current_thread().name)
        return fields(body)

    monkeypatch.setattr(forms, "_fields", watched)
    encoded = {"Content-Type": "application/x-www-form-urlencoded"}
    large = b"key=" + b"%41" * 100_000
    assert site.browser().post("/sign-in", content=large, headers=encoded).status_code == 413
    assert read == []
    browser = site.browser(site.key("large"))
    sent = token(browser, "/operate")
    read.clear()
    body = f"token={sent}&do=take&bundle=".encode() + b"%41" * 100_000
    assert browser.post("/operate", content=body, headers=encoded).status_code == 400
    assert [name.startswith("reverie-request") for name in read] == [True]


def test_agents_show_what_they_lack(site: Site) -> None:
    browser = site.browser(site.key("manned"))
    manifest = {
        "agentId": "support-bot", "label": "Support", "persona": "calm", "modelClass": "small",
        "memoryShape": {"longTerm": True}, "requiresCapabilities": ["host.no-such-thing"],
    }  # fmt: skip
    sent = token(browser, "/agents")
    done = browser.post("/agents", data={"do": "install", "manifest": json.dumps(manifest), "token": sent})
    assert done.status_code == 303, done.text
    page = browser.get("/agents").text
    assert "degraded" in page
    assert "no-such-thing" in page
    assert browser.post("/agents", data={"do": "install", "manifest": "{", "token": sent}).status_code == 400


def test_the_examples_of_the_reference_have_values(site: Site) -> None:
    shown = {one["id"]: one for group in described(site.app)["groups"] for one in group["operations"]}
    assert json.loads(shown["put_entries"]["body"])["content"] == json.loads(shown["get_entry"]["answer"])["content"]
    assert json.loads(shown["akashik_attune"]["answer"])["record"]
    assert "`" not in re.sub(r"<code>.*?</code>", "", site.browser().get("/docs").text)


def test_the_reference_is_open_and_its_session_can_try(site: Site) -> None:
    page = site.browser().get("/docs").text
    assert "/v1/host/reverie/memory/{ref}/entries" in page
    assert "data-try" not in page
    browser = site.browser(site.key("trying"))
    sent = re.search(r'data-token="([0-9a-f]{64})"', browser.get("/docs").text)
    assert sent is not None
    api = "/v1/host/reverie/memory/notes/entries"
    assert browser.get(api).status_code == 401  # a cookie alone is no key
    assert browser.get(api, headers={"x-reverie-token": "0" * 64}).status_code == 401
    away = {"x-reverie-token": sent[1], "sec-fetch-site": "same-site"}
    assert browser.get(api, headers=away).status_code in (401, 403)
    tried = browser.post(api, headers={"x-reverie-token": sent[1]}, json={"content": "Tried from the reference."})
    assert tried.status_code == 201, tried.text
