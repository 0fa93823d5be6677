"""Changes of many entries: a preview of everything affected, then exactly that, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.api.console.test_pages import Site, token

from reverie.core.dream import DreamPlan


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.host.close()


def ids(browser: TestClient, query: str = "") -> set[str]:
    return {entry["id"] for entry in browser.get(f"/memories.json?ref=notes{query}").json()["items"]}


def ask(browser: TestClient, query: str, change: str = "archive") -> tuple[str, dict[str, Any]]:
    """The address of the preview of everything that a filter matches, and what it says."""
    form = {"do": "ask", "change": change, "ref": "notes", "reach": "all", "token": token(browser)}
    address = browser.post(f"/memories/change?{query}", data=form).headers["location"]
    path, _, asked = address.partition("?")
    return address, browser.get(f"{path}.json?{asked}").json()


def confirm(browser: TestClient, address: str, shown: dict[str, Any], **fields: str) -> Any:
    form = {"do": "apply", "change": shown["change"], "ref": "notes", "at": shown["at"], "count": shown["count"]}
    return browser.post(address, data={**form, "token": token(browser), **fields})


def test_chosen_entries_are_changed_and_one_that_changed_meanwhile_is_left(site: Site) -> None:
    made = [site.put("chosen", f"Note number {n} about kettles.") for n in range(4)]
    browser = site.browser(site.key("chosen"))
    form = {"do": "ask", "change": "archive", "ref": "notes", "id": made[:3], "token": token(browser)}
    preview = browser.post("/memories/change", data=form)
    assert all(f"Note number {n}" in preview.text for n in range(3))
    assert "Note number 3" not in preview.text
    site.host.lifecycle.pin(site.host.system_actor("chosen"), "notes", made[1])
    entries = re.findall(r'name="entry" value="([^"]+)"', preview.text)
    done = browser.post("/memories/change", data={**form, "do": "apply", "entry": entries})
    assert "2+of+3+done" in done.headers["location"]
    assert "changed+since+you+looked" in done.headers["location"]
    assert ids(browser) == {made[1], made[3]}


def test_everything_that_matches_is_listed_page_by_page_and_changed(site: Site) -> None:
    for n in range(120):
        site.put("all", f"Kettle {n} boils.", tags=("kettle",))
    kept = {site.put("all", f"Pan {n} fries.", tags=("pan",)) for n in range(3)}
    browser = site.browser(site.key("all"))
    address, shown = ask(browser, "tag=kettle")
    assert (shown["count"], len(shown["entries"])) == (120, 50)
    assert "Archive 120 entries?" in browser.get(address).text
    listed, page = {entry["id"] for entry in shown["entries"]}, shown
    while page["cursor"]:
        query = f"&at={shown['at']}&count=120&cursor={page['cursor']}"
        page = browser.get(address.replace("/change?", "/change.json?") + query).json()
        assert page["count"] == 120
        listed |= {entry["id"] for entry in page["entries"]}
    assert len(listed) == 120
    assert not listed & kept
    site.put("all", "Pan 4 came in between and does not match.", tags=("pan",))
    assert "120+of+120" in confirm(browser, address, shown).headers["location"].replace("%E2%80%89", "")
    assert ids(browser, "&tag=kettle") == set()
    assert kept < ids(browser)


def _written(site: Site, tenant: str, _: list[str]) -> None:
    site.put(tenant, "Kettle 99 is new.", tags=("kettle",))


def _deleted(site: Site, tenant: str, made: list[str]) -> None:
    site.host.lifecycle.delete(site.host.system_actor(tenant), "notes", made[0])


def _swapped(site: Site, tenant: str, made: list[str]) -> None:
    _written(site, tenant, made)
    _deleted(site, tenant, made)


def _pinned(site: Site, tenant: str, made: list[str]) -> None:
    site.host.lifecycle.pin(site.host.system_actor(tenant), "notes", made[2])


def _dreamt(site: Site, tenant: str, _: list[str]) -> None:
    assert site.host.dreams.run(site.host.system_actor(tenant), DreamPlan(ref="notes", budget=4000, fit=True))


@pytest.mark.parametrize("between", [_written, _deleted, _swapped, _pinned, _dreamt], ids=lambda one: one.__name__[1:])
def test_a_change_in_between_is_noticed_and_nothing_is_done(site: Site, between: Any) -> None:
    tenant = f"between{between.__name__}".replace("_", "-")
    made = [site.put(tenant, f"Kettle {n % 6} boils {n % 6 + 2} litres.", tags=("kettle",)) for n in range(12)]
    browser = site.browser(site.key(tenant))
    address, shown = ask(browser, "tag=kettle", "forget")
    between(site, tenant, made)
    before = ids(browser)
    answer = confirm(browser, address, shown, sure="1")
    assert answer.status_code == 200
    assert "Nothing was done" in answer.text
    assert ids(browser) == before
    if between is not _dreamt:
        fresh = {name: re.search(rf'name="{name}" value="(\d+)"', answer.text) for name in ("at", "count")}
        again = {name: match[1] for name, match in fresh.items() if match}
        done = confirm(browser, address, {**shown, **again}, sure="1")
        assert f"{again['count']}+of+{again['count']}" in done.headers["location"]
        assert ids(browser) == set()


def test_an_age_means_the_same_when_it_is_confirmed(site: Site) -> None:
    site.put("aged", "Kettle of today.")
    browser = site.browser(site.key("aged"))
    address, shown = ask(browser, "age=1")
    assert "age=" not in address
    assert "from=" in address
    assert "1+of+1" in confirm(browser, address, shown).headers["location"]


def test_forgetting_needs_a_tick_and_leaves_what_is_held(site: Site) -> None:
    held, free = (site.put("hold", f"Kettle {n}.") for n in range(2))
    site.host.lifecycle.hold(site.host.system_actor("hold"), "notes", held)
    browser = site.browser(site.key("hold"))
    address, shown = ask(browser, "", "forget")
    assert confirm(browser, address, shown).status_code == 400
    assert "on+hold" in confirm(browser, address, shown, sure="1").headers["location"]
    assert ids(browser) == {held}
    assert free not in ids(browser, "&where=cold")


def test_one_transaction_changes_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Site(tmp_path)
    for n in range(250):
        made.put("many", f"Kettle {n}.")
    actor, writes = made.host.system_actor("many"), 0
    write = made.host.parts.store.write

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal writes
        writes += 1
        return write(*arguments, **named)

    from reverie.core.query import Filter

    reach = made.host.bulk.reach(actor, "notes", Filter())
    monkeypatch.setattr(made.host.parts.store, "write", counted)
    done = made.host.bulk.change(actor, "notes", Filter(), "pin", position=reach.position, count=250)
    assert (dict(done), writes) == ({"done": 250}, 2)
    made.host.close()
