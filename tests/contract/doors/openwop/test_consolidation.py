"""Consolidation and commitments (RFC 0068): idempotent passes, and intentions that fire once."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.doors.openwop.schemas import CONSOLIDATED, ERROR, FIRED, valid
from tests.contract.doors.openwop.test_compaction import fresh, run_events, seed, stored
from tests.stores import on_one_store

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.jobs.tasks import Tasks
from reverie.protocols.openwop.commitments import key_of
from reverie.protocols.openwop.runs import Runs

CONSOLIDATE = "/v1/host/sample/memory/consolidate"
FIRE = "/v1/host/sample/commitment/fire"


def consolidate(caller: Any, ref: str, **more: Any) -> Any:
    answer = caller.post(CONSOLIDATE, {"memoryRef": ref, **more})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    valid(body["event"]["payload"], CONSOLIDATED)
    (event,) = run_events(caller, body["runId"], "agent.memory.consolidated")
    assert event["payload"] == body["event"]["payload"]
    return body


def test_an_empty_memory_gets_a_corpus_and_the_second_pass_changes_nothing(ada: Any) -> None:
    ref = "mem://conformance/consolidation"
    first = consolidate(ada, ref, includeSecretCanary=True)
    assert first["secretLeaked"] is False
    assert first["event"]["outputCount"] < first["event"]["inputCount"]
    second = consolidate(ada, ref)["event"]
    assert second["inputCount"] == second["outputCount"] == first["event"]["outputCount"]
    assert "mergedIds" not in second


def test_seeded_duplicates_are_merged_and_what_stands_is_clean(seamed: Any, ada: Any) -> None:
    ref, other = fresh(), seamed.caller()
    text = "The vault says [BYOK:zzz] every morning at nine."
    seed(ada, ref, text, text, "Something else entirely happened on the roof.")
    seed(other, ref, text, text)
    event = consolidate(ada, ref)["event"]
    assert (event["inputCount"], event["outputCount"]) == (3, 2)
    assert len(event["mergedIds"]) == 1
    left = stored(ada, ref)
    assert len(left) == 2
    assert "BYOK" not in str(left)
    assert "[REDACTED:byok]" in str(left)
    assert len(stored(other, ref)) == 2


def test_a_pass_tells_no_text(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "The zanzibar ledger is green.", "The zanzibar ledger is green.")
    consolidate(ada, ref)
    assert "zanzibar" not in ada.get("/v1/host/reverie/events?limit=1000").text


@pytest.mark.parametrize("condition", ["time", "predicate"])
def test_a_commitment_fires_once_and_keeps_its_intention_to_itself(ada: Any, condition: str) -> None:
    ref = "mem://conformance/commitments"
    answer = ada.post(FIRE, {"memoryRef": ref, "condition": condition, "includeIntentionCanary": True})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    valid(body["event"]["payload"], FIRED)
    assert body["event"]["memoryRef"] == ref
    assert body["event"]["condition"] == condition
    assert body["fireCount"] == 1
    assert body["intentionCanary"] not in str(body["event"])
    assert body["intentionCanary"] not in ada.get("/v1/host/reverie/events?limit=1000").text
    assert len(run_events(ada, body["runId"], "commitment.fired")) == 1


@on_one_store
@pytest.mark.parametrize(
    "bad", [{}, {"memoryRef": "x"}, {"memoryRef": "x", "condition": "never"}, {"memoryRef": "../x"}]
)
def test_a_bad_commitment_is_refused(ada: Any, bad: dict[str, Any]) -> None:
    answer = ada.post(FIRE, bad)
    assert answer.status_code == 400
    valid(answer.json(), ERROR)


@pytest.mark.parametrize("condition", ["time", "predicate"])
def test_a_commitment_that_a_worker_fires_first_is_answered_all_the_same(
    seamed: Any, ada: Any, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    around = Runs.around

    def later(runs: Runs, actor: Actor, *given: Any, **named: Any) -> Any:
        assert seamed.host.commitments.fire_due(actor) == 1
        return around(runs, actor, *given, **named)

    monkeypatch.setattr(Runs, "around", later)
    answer = ada.post(FIRE, {"memoryRef": "notes", "condition": condition})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["fireCount"], answer.json()["event"]["condition"]) == (1, condition)


def fired(caller: Any) -> int:
    return sum(
        e["type"] == "commitment.fired" for e in caller.get("/v1/host/reverie/events?limit=1000").json()["events"]
    )


def test_what_memory_says_is_due_is_fired_by_the_worker_once(seamed: Any, ada: Any) -> None:
    now = seamed.host.parts.clock.now()
    ada.put("Call Ann back.", kind="commitment", attributes={"due": to_iso(now - 1000)})
    ada.put("Call Bob back.", kind="commitment", attributes={"due": to_iso(now + 3_600_000)})
    ada.put("No instant at all.", kind="commitment", attributes={"due": "whenever"})
    asked = {"workflowId": "reverie.memory.consolidate", "inputs": {"memoryRef": "notes"}}
    assert ada.post("/v1/runs", asked).status_code == 201
    assert fired(ada) == 0
    jobs = Tasks(seamed.host)
    for _ in range(3):
        for job in jobs.ticks(ada.tenant):
            jobs.run(job)
    assert fired(ada) == 1


def test_a_pass_through_our_own_interface_finds_commitments_with_a_key_that_only_dreams(seamed: Any, ada: Any) -> None:
    ada.put("Call Ann back.", kind="commitment", attributes={"due": to_iso(seamed.host.parts.clock.now() - 1000)})
    dreamer = seamed.caller(ada.tenant, rights=frozenset({Right.READ, Right.DREAM}))
    assert dreamer.post("/v1/host/reverie/memory/notes/consolidate", {}).status_code == 200
    jobs = Tasks(seamed.host)
    for job in jobs.ticks(ada.tenant):
        jobs.run(job)
    assert fired(ada) == 1


def test_a_condition_fires_at_every_change_to_true(seamed: Any, ada: Any) -> None:
    actor, tag = Actor(tenant=ada.tenant, id="host:test"), f"done:{uuid4().hex}"
    made = seamed.host.commitments.make(actor, "notes", "Tell the team.", tag=tag)
    key = key_of(made.ref, made.id)

    def look() -> bool:
        return bool(seamed.host.commitments.settle(actor, key))

    assert [look(), look()] == [False, False]
    first = ada.put("it is done", tags=[tag])
    assert [look(), look()] == [True, False]
    ada.delete(f"memory/notes/entries/{first}")
    assert [look(), look()] == [False, False]
    ada.put("done again", tags=[tag])
    assert [look(), look()] == [True, False]
    assert fired(ada) == 2


def test_a_commitment_whose_entry_is_gone_never_fires(seamed: Any, ada: Any) -> None:
    actor = Actor(tenant=ada.tenant, id="host:test")
    made = seamed.host.commitments.make(actor, "notes", "Never mind.", due=seamed.host.parts.clock.now())
    ada.delete(f"memory/notes/entries/{made.id}")
    assert seamed.host.commitments.fire_due(actor) == 0


def test_many_processes_looking_at_once_fire_once(seamed: Any, ada: Any) -> None:
    actor = Actor(tenant=ada.tenant, id="host:test")
    made = seamed.host.commitments.make(actor, "notes", "Once.", due=seamed.host.parts.clock.now())
    results: list[bool] = []
    start = threading.Barrier(8)

    def look() -> None:
        start.wait()
        results.append(seamed.host.commitments.settle(actor, key_of(made.ref, made.id)))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(results) == 1
    assert fired(ada) == 1
