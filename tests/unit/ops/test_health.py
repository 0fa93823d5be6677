"""Ready, degraded and unavailable, told apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.host import Host
from reverie.memory.read import ANYTHING
from reverie.ops import health
from reverie.ops.doctor import examine
from reverie.ops.health import Health
from reverie.settings import Settings
from reverie.store.conformance import HandClock


@pytest.fixture
def make_health(make_host: Callable[..., Host], tmp_path: Path) -> Callable[..., tuple[Health, Host]]:
    """`make_health(**settings)`: health over a whole host."""

    def make(**settings: Any) -> tuple[Health, Host]:
        host = make_host(embedder=EMBEDDER)
        return Health(Settings.load({}, data=str(tmp_path), **settings), host), host

    return make


def free(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=count))


def test_ok(make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 10 * 2**30)
    checked, _ = make_health()
    assert checked.ready().document() == {
        "status": "ok",
        "checks": {"read": {"status": "ok"}, "disk": {"status": "ok"}, "write": {"status": "ok"}},
    }


@pytest.mark.parametrize(("count", "status"), [(100 * 2**20, "degraded"), (2**20, "unavailable")])
def test_the_disk(
    make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch, count: int, status: str
) -> None:
    free(monkeypatch, count)
    checked, _ = make_health()
    assert checked.ready().status == status


def test_a_closed_store_is_unavailable(make_health: Callable[..., tuple[Health, Host]]) -> None:
    checked, host = make_health()
    host.close()
    found = checked.ready()
    assert found.status == "unavailable"
    assert found.checks["read"].detail == "store_unavailable"


@pytest.mark.parametrize("engine", ["sqlite"], scope="session")  # elsewhere no writer waits for another
def test_a_writer_that_hangs_is_noticed(
    make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.05)
    checked, host = make_health()
    held, free_again = threading.Event(), threading.Event()

    def hang(_: Any) -> None:
        held.set()
        free_again.wait(120)

    stuck = threading.Thread(target=lambda: host.parts.store.control(hang, write=True))
    stuck.start()
    held.wait(120)
    try:
        found = checked.ready()
    finally:
        free_again.set()
        stuck.join()
    assert found.checks["write"].status == "unavailable"
    assert found.checks["read"].status == "ok"


def test_a_store_that_hangs_holds_one_thread_of_each_kind_however_often_it_is_tried(
    make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)
    checked, host = make_health()
    free_again = threading.Event()
    monkeypatch.setattr(host.parts.store, "control", lambda *_, **__: free_again.wait(120))
    try:
        for _ in range(5):
            assert checked.ready().status == "unavailable"
        assert sum(thread.name == "reverie-health" for thread in threading.enumerate()) == 2
    finally:
        free_again.set()


def test_a_change_is_logged(
    make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)
    checked, _ = make_health()
    free(monkeypatch, 10 * 2**30)
    checked.ready()
    free(monkeypatch, 100 * 2**20)
    checked.ready()
    assert [record.__dict__["fields"] for record in caplog.records] == [{"before": "ok", "now": "degraded"}]


def test_read_only_is_degraded(
    make_health: Callable[..., tuple[Health, Host]], monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 10 * 2**30)
    checked, _ = make_health(read_only=True)
    assert checked.ready().status == "degraded"


def test_a_process_that_stops_wants_no_traffic(make_health: Callable[..., tuple[Health, Host]]) -> None:
    checked, _ = make_health()
    checked.stopping = True
    assert checked.ready().status == "unavailable"


def test_a_clock_that_jumps_is_reported(
    make_health: Callable[..., tuple[Health, Host]],
    clock: HandClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)
    free(monkeypatch, 10 * 2**30)
    checked, _ = make_health()
    assert "clock" not in checked.ready().checks
    clock.advance(86_400_000)
    assert checked.ready().checks["clock"].detail == "the clock jumped by +86400 s"
    clock.advance(-86_400_000)
    assert checked.ready().checks["clock"].detail == "the clock jumped by -86400 s"
    jumps = [record.__dict__["fields"] for record in caplog.records if record.__dict__["action"] == "clock.jumped"]
    assert [round(jump["milliseconds"], -4) for jump in jumps] == [86_400_000, -86_400_000]


def test_order_is_that_of_the_log_whatever_the_clock_says(
    make_health: Callable[..., tuple[Health, Host]], ada: Actor, clock: HandClock, tmp_path: Path
) -> None:
    _, host = make_health()
    texts = ["before", "during", "after"]
    for text, jump in zip(texts, (0, 86_400_000, -86_400_000), strict=True):
        clock.advance(jump)
        host.entries.put(ada, "notes", [Draft(text)])
    assert [event.seq for event in host.reader.events(ada)] == [1, 2, 3]
    position = host.parts.store.read(
        Scope(ada.tenant), lambda tx: [e.content for e in tx.scan(ANYTHING, limit=9).items]
    )
    assert position == texts
    verdict = host.audit.verify(ada)
    assert (verdict.ok, verdict.backwards) == (True, 1)
    found = [check for check in examine(host, Settings.load({}, data=str(tmp_path))) if check.name == "log times"]
    assert [check.status for check in found] == ["warn"]


def test_a_broken_log_is_not_also_a_sound_one(
    make_host: Callable[..., Host], ada: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    host.entries.put(ada, "notes", [Draft("The tank holds 30 litres.")])
    broken = SimpleNamespace(ok=False, broken_at=1, reason="changed", events=1, entries=1, backwards=0)
    monkeypatch.setattr(host.audit, "verify", lambda _: broken)
    checks = examine(host, Settings.load({}, data=str(tmp_path)))
    assert [check.status for check in checks if check.name == "log"] == ["fail"]
