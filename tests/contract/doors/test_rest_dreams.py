"""Dreams, lineage and schedules over HTTP."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import pytest
from tests.stores import on_one_store

FATES = ("kept", "shortened", "merged", "rolled", "outdated", "chatter", "retired")

EVENTS = {"Accept": "text/event-stream"}


def is_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["error"]) == (status, code), answer.text
    assert set(body) <= {"error", "message", "details"}
    return body


def fill(caller: Any, ref: str = "notes", count: int = 30) -> None:
    """Thirty notes of three weeks ago, half of them pleasantries."""
    start = time.time() - 21 * 86_400
    entries = []
    for number in range(count):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start + number * 3600))
        text = f"We decided that service {number} listens on port {7000 + number}. Lunch was late and the coffee cold."
        if not number % 2:
            text = "Thanks everyone, that was a good and long day at the office with many pleasant words."
        about = {"subject": "customer-7"} if number == 7 else {}
        entries.append({"content": text, "created_at": at, **about})
    assert caller.post(f"memory/{ref}/entries", {"entries": entries}).status_code == 201


def sse(text: str) -> list[tuple[str, Any]]:
    messages = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        messages.append((fields["event"], json.loads(fields["data"])))
    return messages


def test_a_plan_touches_nothing(acme: Any) -> None:
    fill(acme)
    before = acme.get("stats").json()["head"]
    answer = acme.post("memory/notes/dreams", {"plan": True})
    assert answer.status_code == 200
    plan = answer.json()
    assert plan["sources"] == 30
    assert plan["feasible"]
    assert acme.get("stats").json()["head"] == before
    assert acme.get("memory/notes/dreams").json() == {"dreams": []}


def test_a_dream_its_report_and_the_way_back(acme: Any) -> None:
    fill(acme)
    before = acme.get("memory/notes/entries").json()["entries"]
    answer = acme.post("memory/notes/dreams", {"budget": 4000})
    assert answer.status_code == 201, answer.text
    report = answer.json()
    assert report["tokens_used"] <= report["budget"] == 4000
    assert acme.get("memory/notes/dreams").json() == {"dreams": [report]}
    path = f"memory/notes/dreams/{report['id']}"
    assert acme.get(path).json() == report
    assert acme.get(f"{path}/verify").json()["recomputed"] == report["checksum"]
    diff = acme.get(f"{path}/diff").json()
    taken = [entry for fate in FATES for entry in diff[fate]]
    assert sorted(taken) == sorted(source["id"] for source in report["sources"])
    tree = acme.get(f"memory/notes/entries/{report['output_id']}/why").json()
    assert len(tree["sources"]) == 30
    source = tree["sources"][1]["id"]
    assert acme.get(f"memory/notes/entries/{source}/derived").json() == {"derived": [report["output_id"]]}
    archive = acme.get(f"archives/{report['checksum']}")
    assert hashlib.sha256(archive.content).hexdigest() == report["checksum"]
    index = acme.get("memory/notes/index").json()
    assert [item["archiveChecksum"] for item in index["archives"]] == [report["checksum"]]
    page = acme.get("memory/notes/index", headers={"Accept": "text/markdown"})
    assert page.headers["content-type"].startswith("text/markdown")
    assert "# Memory index" in page.text
    assert acme.post(f"{path}/undo").json()["state"] == "undone"
    after = acme.get("memory/notes/entries").json()["entries"]
    assert [{**entry, "version": 0} for entry in after] == [{**entry, "version": 0} for entry in before]
    is_problem(acme.post(f"{path}/undo"), 409, "not_undoable")
    assert acme.get("audit/verify").json()["ok"]


def test_nothing_to_do_is_no_error(acme: Any) -> None:
    answer = acme.post("memory/empty/dreams", {})
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["reason"]) == ("nothing", "too_few")
    assert sse(acme.post("memory/empty/dreams", {}, headers=EVENTS).text)[-1] == ("nothing", answer.json())


def test_the_steps_come_as_events(acme: Any) -> None:
    fill(acme)
    answer = acme.post("memory/notes/dreams", {}, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    messages = sse(answer.text)
    steps = [data["step"] for event, data in messages if event == "step"]
    assert steps[0] == "snapshot"
    assert steps[-1] == "done"
    event, report = messages[-1]
    assert event == "report"
    assert acme.get(f"memory/notes/dreams/{report['id']}").json() == report


def test_a_budget_that_is_too_small_names_the_one_that_is_enough(acme: Any) -> None:
    fill(acme)
    least = acme.post("memory/notes/dreams", {"plan": True}).json()["minimum_required"]
    body = is_problem(acme.post("memory/notes/dreams", {"budget": least - 1}), 422, "token_budget_exceeded")
    assert (body["details"]["budget"], body["details"]["minimumRequired"]) == (least - 1, least)
    event, fault = sse(acme.post("memory/notes/dreams", {"budget": 1}, headers=EVENTS).text)[-1]
    assert (event, fault["error"], fault["details"]["minimumRequired"]) == ("error", "token_budget_exceeded", least)
    assert acme.post("memory/notes/dreams", {"budget": least}).status_code == 201


@pytest.mark.parametrize(
    ("texts", "fit"),
    [
        (("Haha!", "Oh wow."), False),
        (("Haha!", "Oh wow."), True),
        (("Mia is allergic to nuts.", "Never call before ten."), True),
    ],
)
def test_what_cannot_be_made_smaller_stays_as_it_is(acme: Any, texts: tuple[str, ...], fit: bool) -> None:
    for text in texts:
        acme.put(text)
    answer = acme.post("memory/notes/dreams", {"fit": fit})
    assert (answer.status_code, answer.json()["state"]) == (200, "nothing")
    assert answer.json()["reason"] == "cannot_be_smaller"
    assert acme.post("memory/notes/dreams", {"fit": fit, "plan": True}).json()["feasible"] is False
    assert {entry["content"] for entry in acme.get("memory/notes/entries").json()["entries"]} == set(texts)


def test_only_one_dreams_at_a_time(server: Any, acme: Any) -> None:
    fill(acme)
    actor = server.host.system_actor(acme.tenant)
    assert server.host.leases.take(actor, "dream/notes", "someone", for_ms=60_000)
    is_problem(acme.post("memory/notes/dreams", {}), 409, "busy")
    is_problem(acme.post("memory/notes/dreams", {}, headers=EVENTS), 409, "busy")
    is_problem(acme.post("memory/notes/consolidate"), 409, "busy")


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {"budget": 0},
        {"budget": "8000"},
        {"after": "elsewhere"},
        {"older_than": "soon"},
        {"distiller": "oracle"},
        {"distiller": "none"},
        {"unknown": 1},
    ],
)
def test_what_is_not_a_plan(acme: Any, body: dict[str, Any]) -> None:
    fill(acme, count=6)
    is_problem(acme.post("memory/notes/dreams", body), 400, "validation_error")


def test_consolidation_twice_is_consolidation_once(acme: Any) -> None:
    fill(acme)
    first = acme.post("memory/notes/consolidate").json()
    assert first["duplicates"] > 10
    assert acme.post("memory/notes/consolidate").json()["seq"] is None


def test_forgetting_goes_through_dreams(acme: Any) -> None:
    fill(acme)
    report = acme.post("memory/notes/dreams", {}).json()
    preview = acme.post("memory/forget", {"subject": "customer-7", "preview": True}).json()
    assert (preview["forgotten"], preview["derived"], preview["redone"]) == (1, 1, 1)
    assert acme.post("memory/forget", {"subject": "customer-7"}).json()["redone"] == 1
    assert "7007" not in acme.get("memory/notes/entries").text
    is_problem(acme.get(f"archives/{report['checksum']}"), 404, "not_found")


def test_nothing_of_another_tenant_or_memory_is_seen(server: Any, acme: Any) -> None:
    fill(acme)
    report = acme.post("memory/notes/dreams", {}).json()
    schedule = acme.post("schedules", {"cron": "0 3 * * *"}).json()
    other = server.caller()
    for path in (
        f"memory/notes/dreams/{report['id']}",
        f"memory/notes/dreams/{report['id']}/diff",
        f"memory/notes/dreams/{report['id']}/verify",
        f"archives/{report['checksum']}",
        f"memory/notes/entries/{report['output_id']}/why",
        f"memory/notes/entries/{report['output_id']}/derived",
    ):
        is_problem(other.get(path), 404, "not_found")
    is_problem(other.post(f"memory/notes/dreams/{report['id']}/undo"), 404, "not_found")
    is_problem(other.patch(f"schedules/{schedule['id']}", {"paused": True}), 404, "not_found")
    is_problem(other.delete(f"schedules/{schedule['id']}"), 404, "not_found")
    is_problem(other.post(f"schedules/{schedule['id']}/run"), 404, "not_found")
    assert other.get("schedules").json() == {"schedules": []}
    assert other.get("memory/notes/index").json()["archives"] == []
    is_problem(acme.post(f"memory/elsewhere/dreams/{report['id']}/undo"), 404, "not_found")
    is_problem(acme.get(f"memory/elsewhere/dreams/{report['id']}"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "memory/notes/dreams", {}),
        ("POST", "memory/notes/dreams/x/undo", None),
        ("POST", "memory/notes/consolidate", None),
        ("POST", "schedules", {"cron": "0 3 * * *"}),
        ("PATCH", "schedules/x", {"paused": True}),
        ("DELETE", "schedules/x", None),
        ("POST", "schedules/x/run", None),
    ],
)
def test_dreaming_takes_the_right_to_dream(server: Any, method: str, path: str, body: Any) -> None:
    caller = server.caller(rights=["read", "write"])
    sent = {} if body is None else {"json": body}
    for headers in ({}, EVENTS):
        answer = caller.send(method, path, headers=headers, **sent)
        assert is_problem(answer, 403, "forbidden")["details"]["right"] == "dream"
    assert caller.post("memory/notes/dreams", {"plan": True}).status_code == 200


def test_schedules_from_the_first_to_the_last_word(acme: Any) -> None:
    fill(acme)
    answer = acme.post("schedules", {"cron": "0 3 * * *", "zone": "Europe/Berlin", "ref": "notes", "older_than": "7d"})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["next_at"] > made["created_at"]
    assert made["older_than_ms"] == 7 * 86_400_000
    assert made["why_not"] == "not due yet"
    path = f"schedules/{made['id']}"
    paused = acme.patch(path, {"paused": True}).json()
    assert (paused["why_not"], paused["next_at"], paused["older_than_ms"]) == ("paused", None, made["older_than_ms"])
    assert acme.patch(path, {"paused": False, "cron": "30 4 * * *"}).json()["cron"] == "30 4 * * *"
    ran = acme.post(f"{path}/run").json()
    assert ran["status"] == "done"
    assert acme.get(f"memory/notes/dreams/{ran['dreams'][0]}").status_code == 200
    (listed,) = acme.get("schedules").json()["schedules"]
    assert listed["last"] == ran
    assert acme.delete(path).json() == {"id": made["id"]}
    is_problem(acme.delete(path), 404, "not_found")
    is_problem(acme.post("schedules", {"cron": "often"}), 400, "validation_error")
    is_problem(acme.post("schedules", {"cron": "0 3 * * *", "jitter": "2d"}), 400, "validation_error")
    is_problem(acme.post("schedules", {"cron": "0 3 * * *", "created_at": 1}), 400, "validation_error")


def test_a_new_schedule_is_meant_in_the_zone_of_the_tenant(acme: Any) -> None:
    acme.patch("policy", {"zone": "Asia/Tokyo"})
    assert acme.post("schedules", {"cron": "0 3 * * *"}).json()["zone"] == "Asia/Tokyo"


def test_dreams_are_found_by_their_id_alone(acme: Any) -> None:
    for number in range(12):
        acme.put(
            f"Good morning, everyone! The club with number {number} pays {number + 3} euros for its moorings at pier {number}."
        )
    made = acme.post("memory/notes/dreams", {"budget": 4000}).json()
    assert [dream["id"] for dream in acme.get("dreams").json()["dreams"]] == [made["id"]]
    assert acme.get("dreams?ref=other").json()["dreams"] == []
    assert acme.get(f"dreams/{made['id']}").json()["checksum"] == made["checksum"]
    assert acme.get(f"dreams/{made['id']}/diff").json()["dream"] == made["id"]
    assert acme.get(f"dreams/{made['id']}/verify").json()["ok"]
    assert [one["outputId"] for one in acme.get("index").json()["archives"]] == [made["output_id"]]
    assert acme.post(f"dreams/{made['id']}/undo").json()["state"] == "undone"
    assert acme.get("dreams/nothing").status_code == 404


def test_extractive_means_extractive_whatever_the_policy_says(acme: Any) -> None:
    for number in range(12):
        acme.put(
            f"Good morning, everyone! The club with number {number} pays {number + 3} euros for its moorings at pier {number}."
        )
    acme.patch("policy", {"dream_distiller": "llm"})
    refused = acme.post("memory/notes/dreams", {"plan": True})
    assert refused.status_code == 400, "the policy names a model that this host does not have"
    assert acme.post("memory/notes/dreams", {"plan": True, "distiller": "extractive"}).json()["feasible"]
