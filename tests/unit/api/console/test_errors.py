"""Addresses that nothing answers, and faults: a page for browsers, the one error body for programs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.api.console.test_pages import Site, token

from reverie.http.limits import RateLimit
from reverie.memory.audit import Audit


def test_an_unknown_address_is_a_page_for_browsers_and_json_for_programs(tmp_path: Path) -> None:
    site = Site(tmp_path)
    page = site.browser().get("/no-such-page")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing here" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    program = site.browser().get("/no-such-page", headers={"accept": "*/*"})
    assert (program.status_code, program.json()["error"]) == (404, "not_found")
    for path in ("/v1/host/reverie/no-such-path", "/akashik/v1/no-such-path"):
        assert "application/json" in site.browser().get(path).headers["content-type"], path
    assert site.browser().post("/no-such-page").headers["content-type"] == "application/json"
    site.host.close()


def test_a_dream_beyond_the_limit_of_its_key_is_refused_and_not_awaited_for_ever(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.put("acme", "The tank holds 30 litres.")
    key = site.host.keys.create("acme")
    browser = site.browser(key.key)
    form = {"do": "run", "ref": "notes", "token": token(browser)}
    with ExitStack() as stack:
        for _ in range(site.settings.heavy_per_key):
            stack.enter_context(site.app.state.limits.heavy.one(key.id))
        assert browser.post("/dreams", data=form).status_code == 429
    assert browser.post("/dreams", data=form).status_code == 303
    site.host.close()


def test_entries_of_an_imported_bundle_count_against_the_key(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.app.state.limits = replace(site.app.state.limits, entries=RateLimit(1, 1, of="entries"))
    for n in range(3):
        site.put("acme", f"Number {n}.")
    bundle = b"".join(site.host.bundles.export(site.host.system_actor("acme"), events=False)).decode()
    browser = site.browser(site.key("other"))
    form = {"do": "take", "bundle": bundle, "token": token(browser)}
    assert [browser.post("/operate", data=form).status_code for _ in range(2)] == [303, 429]
    site.host.close()


def test_a_fault_is_a_page_for_browsers_that_names_the_log_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)

    def broken(*_: object) -> None:
        raise RuntimeError("text of a memory")

    browser = site.browser(site.key())
    monkeypatch.setattr(Audit, "last", broken)
    page = browser.get("/")
    assert (page.status_code, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert page.headers["x-request-id"] in page.text
    assert "text of a memory" not in page.text
    assert browser.get("/home.json", headers={"accept": "*/*"}).json()["error"] == "internal_error"
    site.host.close()
