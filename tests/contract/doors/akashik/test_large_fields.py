"""Fields with more units than an answer looks at: what must be found all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.doors.akashik.conftest import Agent

Join = Callable[..., Agent]
MANY = 300
"""More than the candidates of a small scope."""


def crowd(agent: Agent, *, tag: str = "crowd") -> None:
    """Units of no task, put in through REST at once."""
    entries = [
        {"content": f"Crate {n} of hall {n % 7} holds valves.", "kind": "finding", "tags": [tag]} for n in range(MANY)
    ]
    response = agent.caller.post("/v1/host/reverie/memory/akashik/entries", {"entries": entries})
    assert response.status_code == 201, response.text


def test_a_unit_of_the_task_is_found_however_old_it_is(join: Join) -> None:
    scout = join()
    pilot = join(scout.caller)
    old = scout.record("The rudder was greased.", intent={"purpose": "keep her afloat", "task_id": "refit"})
    crowd(scout)
    assert pilot.seen(scope={"max_units": 5, "active_task_id": "refit"})[0] == old
    assert old not in pilot.seen(scope={"max_units": 5})


def test_a_handoff_finds_the_units_of_its_task_alone(join: Join) -> None:
    scout = join()
    pilot = join(scout.caller)
    mine = scout.record("The rudder was greased.", intent={"purpose": "keep her afloat", "task_id": "refit"})
    scout.record("The sails were dried.", intent={"purpose": "keep them whole", "task_id": "refit-2"})
    crowd(scout)
    request = {"action": "initiate", "task_id": "refit", "to_agent": pilot.id}
    package = scout("HANDOFF", request)["handoff"]["package"]
    assert [unit["id"] for unit in package["units"]] == [mine]


def test_a_check_compares_what_is_alike(join: Join) -> None:
    """Both were written by another interface, which detects nothing by itself."""
    scout = join(authority_level=10)
    caller = scout.caller
    texts = ["The tank of the tender holds 40 litres.", "The tank of the tender holds 60 litres."]
    body = {"entries": [{"content": text, "kind": "finding"} for text in texts]}
    made = caller.post("/v1/host/reverie/memory/akashik/entries", body).json()["receipts"]
    crowd(scout)
    answer = scout("DETECT", {"mode": "check", "target_id": made[0]["id"]})
    (found,) = answer["conflicts"]
    assert {found["unit_a"], found["unit_b"]} == {one["id"] for one in made}
    assert answer["scan_coverage"]["new_conflicts_found"] == 1
    assert answer["scan_coverage"]["units_scanned"] < MANY


def test_archived_units_are_counted_whole_and_seen_newest_first(join: Join, monkeypatch: Any) -> None:
    from reverie.protocols.akashik import candidates

    monkeypatch.setattr(candidates, "MOST_ARCHIVED", 20)
    boss = join(authority_level=10)
    pilot = join(boss.caller)
    crowd(boss)
    boss("COMPACT", {"strategy": "archive"})
    last = boss.record("The last crate was sealed.")
    boss("COMPACT", {"strategy": "archive"})
    answer = pilot.attune(scope={"max_units": 3, "include_archived": True})
    assert answer["context_budget"]["units_available"] == MANY + 1
    assert len(answer["record"]) == 3
    assert last in pilot.seen(scope={"max_units": 100, "include_archived": True})


def test_the_status_counts_every_unit(join: Join) -> None:
    boss = join(authority_level=10)
    crowd(boss)
    old = boss.record("The winch is new.")
    boss(
        "RECORD",
        {
            "type": "finding",
            "content": "The winch is used.",
            "intent": {"purpose": "put it right"},
            "confidence": {"score": 0.5, "reasoning": "seen"},
            "relations": [{"type": "supersedes", "target_id": old}],
        },
    )
    boss("RECORD", {"mode": "draft", "type": "finding", "content": "The winch", "intent": {"purpose": "go on later"}})
    boss("COMPACT", {"strategy": "purge", "filter": {"status": ["superseded"]}})
    boss("COMPACT", {"strategy": "archive", "filter": {"status": ["active"]}})
    units = boss.caller.get("/akashik/v1/field/status").json()["units"]
    assert units == {"hot": 1, "archived": MANY + 1, "purged": 1}
