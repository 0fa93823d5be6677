"""Schedules for OpenWOP: cron and delays, the horizon, one run for each tick, missed ticks as one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.contract.doors.openwop.test_runs import events, fill, of_type
from tests.stores import on_one_store

from reverie.jobs.timetable import HORIZON_MS

MINUTE = 60_000
HOURLY = "MINUTE * * * *"
"""Once an hour, five minutes before the test: due once, and not again while it runs."""


def runs_of(caller: Any, schedule: str) -> list[dict[str, Any]]:
    started = caller.get("events?type=run.started").json()["events"]
    found = [caller.get(f"/v1/runs/{event['data']['run']}").json() for event in started]
    return [run for run in found if run["metadata"].get("schedule") == schedule]


def late(server: Any, caller: Any, schedule: str, by_ms: int) -> None:
    """Let a schedule be older than it is."""
    actor = server.host.system_actor(caller.tenant)
    made = server.host.parts.clock.now() - by_ms
    server.host.schedules.save(actor, {"id": schedule, "created_at": made}, existing=True)


@pytest.mark.parametrize(
    "body",
    [
        {"cron": HOURLY, "ref": "night", "zone": "Europe/Berlin"},
        {"config": {"cron": HOURLY, "timezone": "Europe/Berlin"}, "memoryRef": "night", "type": "schedule"},
        {"id": "nightly", "enabled": True, "type": "schedule", "config": {"cron": HOURLY}, "memoryRef": "night"},
        {"delayMs": 5 * MINUTE, "timezone": "UTC", "ref": "night"},
        {"config": {"delayMs": 5 * MINUTE}, "memoryRef": "night", "workflowId": "reverie.memory.distill"},
    ],
    ids=str,
)
def test_a_tick_is_one_run_that_dreams(server: Any, acme: Any, body: dict[str, Any]) -> None:
    for _ in range(2):
        fill(acme, "night")
    five_minutes_ago = datetime.fromtimestamp(server.host.parts.clock.now() / 1000 - 300, UTC)
    made = acme.post("schedules", json.loads(json.dumps(body).replace(HOURLY, f"{five_minutes_ago.minute} * * * *")))
    assert made.status_code == 201, made.text
    schedule = made.json()["id"]
    actor = server.host.system_actor(acme.tenant)
    assert server.host.schedules.tick(actor) == 0
    late(server, acme, schedule, 10 * MINUTE)
    assert server.host.schedules.tick(actor) == 1
    assert server.host.schedules.tick(actor) == 0
    (run,) = runs_of(acme, schedule)
    assert (run["status"], run["workflowId"]) == ("completed", "reverie.memory.distill")
    found = events(acme, run["runId"])
    (compacted,) = of_type(found, "memory.compacted")
    assert compacted["payload"]["trigger"] == "host-managed"
    assert len(of_type(found, "workspace.updated")) == 1
    if "delay" in str(body):
        assert next(s for s in acme.get("schedules").json()["schedules"] if s["id"] == schedule)["next_at"] is None


def test_a_scheduled_consolidation_says_so(server: Any, acme: Any) -> None:
    for _ in range(2):
        acme.put("The gate is locked at ten.", ref="night")
    made = acme.post("schedules", {"cron": "* * * * *", "ref": "night", "kind": "consolidate"})
    late(server, acme, made.json()["id"], 3 * MINUTE)
    server.host.schedules.tick(server.host.system_actor(acme.tenant))
    (run,) = runs_of(acme, made.json()["id"])
    (done,) = of_type(events(acme, run["runId"]), "agent.memory.consolidated")
    assert (done["payload"]["trigger"], done["payload"]["outputCount"]) == ("scheduled", 1)


def test_a_tick_with_nothing_to_do_is_a_run_too(server: Any, acme: Any) -> None:
    made = acme.post("schedules", {"cron": "* * * * *", "ref": "empty"})
    late(server, acme, made.json()["id"], 2 * MINUTE)
    server.host.schedules.tick(server.host.system_actor(acme.tenant))
    (run,) = runs_of(acme, made.json()["id"])
    assert [event["type"] for event in events(acme, run["runId"])] == ["run.started", "run.completed"]


def test_beyond_the_horizon_is_refused_with_the_cap(server: Any, acme: Any) -> None:
    answer = acme.post("schedules", {"delayMs": HORIZON_MS + 1, "ref": "far"})
    assert (answer.status_code, answer.json()["error"]) == (422, "schedule_horizon_exceeded")
    horizon = server.stranger().get("/.well-known/openwop").json()["scheduling"]["maxFutureHorizon"]
    assert answer.json()["details"]["maxFutureHorizon"] == horizon
    assert acme.get("schedules").json() == {"schedules": []}
    assert acme.post("schedules", {"delayMs": HORIZON_MS, "ref": "far"}).status_code == 201


def test_a_cron_beyond_the_horizon_is_refused_too(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reverie.jobs.timetable.HORIZON_MS", 60 * MINUTE)
    month = (datetime.now(UTC).month + 5) % 12 + 1
    answer = acme.post("schedules", {"config": {"cron": f"0 0 15 {month} *"}})
    assert (answer.status_code, answer.json()["error"]) == (422, "schedule_horizon_exceeded")
    assert answer.json()["details"]["maxFutureHorizon"] == "PT1H"


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"cron": "* * * * *", "delayMs": 5},
        {"delayMs": -1},
        {"delayMs": "5"},
        {"config": {"cron": "* * * *"}},
        {"config": {"cron": "* * * * *", "timezone": "Nowhere/Else"}},
        {"config": 5},
        {"config": {"cron": "* * * * *", "unknown": 1}},
        {"type": "webhook", "config": {"cron": "* * * * *"}},
        {"cron": "* * * * *", "workflowId": "someone.else"},
        {"cron": "* * * * *", "id": "../x"},
        {"cron": "* * * * *", "ref": "../x"},
    ],
    ids=str,
)
def test_what_is_no_schedule_is_refused(acme: Any, body: dict[str, Any]) -> None:
    answer = acme.post("schedules", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error"), answer.text
    assert acme.get("schedules").json() == {"schedules": []}


def test_a_disabled_trigger_does_not_fire(server: Any, acme: Any) -> None:
    made = acme.post("schedules", {"id": "off", "type": "schedule", "enabled": False, "config": {"cron": "* * * * *"}})
    assert made.json()["paused"] is True
    late(server, acme, "off", 5 * MINUTE)
    assert server.host.schedules.tick(server.host.system_actor(acme.tenant)) == 0
    assert acme.patch("schedules/off", {"enabled": True}).json()["paused"] is False
    assert server.host.schedules.tick(server.host.system_actor(acme.tenant)) == 1
