"""What needs a person is the first thing on the home page, worst first."""

from __future__ import annotations

from pathlib import Path

from tests.unit.api.console.test_pages import Site
from tests.unit.memory.test_audit import tamper


def alerts(site: Site) -> list[tuple[str, str]]:
    browser = site.browser(site.key())
    page = browser.get("/").text
    found = [(one["level"], one["what"]) for one in browser.get("/home.json").json()["alerts"]]
    assert all(what in page for _, what in found)
    return found


def test_a_broken_log_is_shown_once_it_was_verified(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.put("acme", "The boat is at pier 4.")
    assert alerts(site) == []
    assert tamper(tmp_path / "reverie.db", "UPDATE event SET actor = 'someone'") > 0
    assert not site.host.audit.verify(site.host.system_actor("acme")).ok
    assert alerts(site)[0] == ("bad", "The audit log does not hold")
    site.host.close()


def test_a_schedule_that_failed_is_shown(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for n in range(4):
        site.put("acme", f"Berth {n} costs {n + 10} euros a day and is {n + 4} metres long.")
    caller = {"authorization": f"Bearer {site.key()}"}
    api = site.browser()
    plan = {"cron": "0 3 * * *", "ref": "notes", "budget": 1, "fit": False}
    made = api.post("/v1/host/reverie/schedules", json=plan, headers=caller).json()
    ran = api.post(f"/v1/host/reverie/schedules/{made['id']}/run", headers=caller).json()
    assert (ran["status"], ran["code"]) == ("failed", "token_budget_exceeded")
    assert alerts(site) == [("bad", "The schedule 0 3 * * * failed")]
    site.host.close()
