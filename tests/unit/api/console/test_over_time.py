"""Figures over time: what plots show, under a clock set by hand, and what a page reminds of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import EMBEDDER
from tests.unit.api.console.test_pages import Site

from reverie.api.console import latency, plots
from reverie.app import open_store
from reverie.core.actor import Actor
from reverie.core.clock import MS_PER_DAY
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.dreams.lineage import DreamFigures
from reverie.host import Host
from reverie.ops.backup import create
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.conformance import HandClock
from reverie.store.sqlite import SqliteStore

ADA = Actor(tenant="acme", id="ada")
START = 20_700 * MS_PER_DAY + 3_600_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.host.close()


def test_a_series_counts_what_was_readable_at_the_end_of_each_day(tmp_path: Path) -> None:
    clock = HandClock(START)
    store = SqliteStore(tmp_path / "reverie.db", clock=clock)
    host = Host(Services(store=store, clock=clock, embedder=EMBEDDER, tokens=TokenCounter()))
    for _ in range(4):
        host.entries.put(ADA, "notes", [Draft(f"Berth {n} costs {n + 10} euros a day.") for n in range(8)])
        clock.advance(MS_PER_DAY)
    report = host.dreams.run(ADA, DreamPlan(ref="notes", budget=4000))
    assert report is not None
    since, until = START - MS_PER_DAY, clock.now()
    days = host.history.series(ADA, since=since, until=until)
    assert [one.entries for one in days] == [0, 8, 16, 24, 32, 32 - len(report.sources) + 1]
    assert sum(one.changes for one in days) == host.reader.snapshot(ADA)
    assert [one.at % MS_PER_DAY for one in days] == [0] * 6
    weeks = host.history.series(ADA, since=since, until=until, most=2)
    assert [(one.days, one.entries) for one in weeks] == [(3, 16), (3, days[-1].entries)]
    assert host.history.series(ADA, since=until + MS_PER_DAY, until=until + 2 * MS_PER_DAY) == []
    [figures] = host.lineage.figures(ADA, since=0, until=host.reader.snapshot(ADA))
    assert (figures.id, figures.saved) == (report.id, report.hot_before - report.hot_after)
    assert host.lineage.figures(ADA, since=report.seq, until=report.seq + 9) == []
    host.close()


def test_a_time_range_is_in_the_address(site: Site) -> None:
    site.put("acme", "The boat is at pier 4.")
    browser = site.browser(site.key())
    assert browser.get("/home.json").json()["span"]["days"] == 30
    assert len(browser.get("/home.json?days=7").json()["plots"]["entries"]) == 7
    asked = browser.get("/home.json?since=2026-01-01&until=2026-01-31").json()
    assert (asked["span"]["since"], asked["span"]["until"], asked["span"]["days"]) == ("2026-01-01", "2026-01-31", None)
    for wrong in ("days=0", "days=x", "since=yesterday", "since=2026-02-01&until=2026-01-01", "since=0001-01-01"):
        assert browser.get(f"/?{wrong}").status_code == 400, wrong
        assert browser.get(f"/dreams?{wrong}").status_code == 400, wrong


def test_searches_are_timed_and_hold_no_words(site: Site) -> None:
    site.put("acme", "The boat is at pier 4.")
    browser = site.browser(site.key())
    for _ in range(3):
        browser.get("/memories?q=zanzibar")
    [row] = browser.get("/home.json").json()["plots"]["latency"]
    assert row[3][0] == 3
    assert "zanzibar" not in browser.get("/").text
    assert site.browser(site.key("rival")).get("/home.json").json()["plots"]["latency"] == []


def test_searches_outlive_the_process_in_a_bounded_way(tmp_path: Path) -> None:
    first = Site(tmp_path)
    first.put("acme", "The boat is at pier 4.")
    first.browser(first.key()).get("/memories?q=zanzibar")
    first.host.close()
    second = Site(tmp_path)
    [row] = second.browser(second.key()).get("/home.json").json()["plots"]["latency"]
    assert row[3][0] == 1
    assert second.browser(second.key("rival")).get("/home.json").json()["searches"] == 0
    kept = second.host.parts.store.control(lambda tx: tx.setting("console.searches/acme"))
    assert kept is not None
    assert b"zanzibar" not in kept
    second.host.close()


def test_old_searches_are_counted_by_day_and_then_dropped() -> None:
    now = 500 * MS_PER_DAY + 7
    slots = {(now - now % 600_000 - n * 600_000, 600_000): Counter({n % 40: 1}) for n in range(450 * 144)}
    kept = latency._fold(slots, now)
    assert len(kept) <= 144 + 401
    assert sum(sizes.total() for sizes in kept.values()) == sum(
        now - (at - at % MS_PER_DAY) < 400 * MS_PER_DAY for at, _ in slots
    )
    assert latency._fold(kept, now) == kept


def test_the_middle_and_the_slow_search_are_near_what_was_measured() -> None:
    sizes = Counter(round(math.log(ms) / latency._STEP) for ms in [10.0] * 90 + [200.0] * 10)
    one = latency.SearchSlot(0, sizes)
    assert one.slowest_but(0.5) == pytest.approx(10, rel=0.08)
    assert one.slowest_but(0.95) == pytest.approx(200, rel=0.08)


def test_a_dream_that_replaces_another_saves_only_what_the_memory_has_fewer() -> None:
    """Its sources are the originals again; what left hot memory is the text of the first dream, and new entries."""
    made = [
        DreamFigures("a", "x", 1, 10, 120, 40, state="superseded", cold_tokens=100),
        DreamFigures("b", "x", 2, 20, 180, 50, state="done", cold_tokens=90),
        DreamFigures("c", "x", 3, 30, 30, 20, state="done"),
        DreamFigures("d", "y", 4, 40, 90, 20, state="undone"),
    ]
    assert [row[1][0] for row in plots.saved(made[::-1])] == [60, 100, 110]


def test_an_old_host_is_reminded_of_backups_and_proofs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("acme", "The boat is at pier 4.")
    browser, reader = site.browser(site.key()), site.browser(site.key("acme", "read"))

    def said(client: object = browser) -> set[str]:
        return {alert["what"] for alert in client.get("/home.json").json()["alerts"]}  # type: ignore[attr-defined]

    assert said() == set()
    now = site.host.parts.clock.now
    monkeypatch.setattr(type(site.host.parts.clock), "now", lambda self: now() + 40 * MS_PER_DAY, raising=True)
    # the session of a browser is over by then: the same pages, with a key
    bearer = {"authorization": f"Bearer {site.key()}"}
    browser.headers |= bearer
    reader.headers |= {"authorization": f"Bearer {site.key('acme', 'read')}"}
    assert said() == {"The audit log was not verified lately", "No backup of this host yet"}
    assert said(reader) == {"The audit log was not verified lately"}
    assert site.host.audit.verify(site.host.system_actor("acme")).ok
    create(site.host, tmp_path / "copy.db", open_store=open_store)
    assert said() == set()
    monkeypatch.setattr(type(site.host.parts.clock), "now", lambda self: now() + 50 * MS_PER_DAY, raising=True)
    assert said() == {"The last backup is old"}
