"""`Idempotency-Key`: a request is carried out once, and answered the same every time."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.doors.openwop.schemas import ERROR, valid
from tests.contract.doors.openwop.test_runs import start
from tests.stores import on_one_store

REPLAY = "openwop-idempotent-replay"
RUN = {"workflowId": "conformance-idempotent", "inputs": {"nonce": "n"}}


def send(caller: Any, key: str, body: Any = RUN, path: str = "/v1/runs", method: str = "POST") -> Any:
    return caller.send(method, path, json=body, headers={"Idempotency-Key": key})


def count(caller: Any) -> int:
    found = caller.get("/v1/host/reverie/events?type=run.started&limit=1000").json()
    return len(found.get("events", found.get("items", [])))


def test_the_same_request_is_the_same_run(ada: Any) -> None:
    key, before = uuid4().hex, count(ada)
    first, second = send(ada, key), send(ada, key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert REPLAY not in first.headers
    assert second.headers[REPLAY] == "true"
    assert first.json() == second.json()
    spaced = ada.send(
        "POST",
        "/v1/runs",
        content=b'{ "inputs":{"nonce":"n"},\n "workflowId":"conformance-idempotent"}',
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
    )
    assert spaced.json() == first.json()
    assert count(ada) == before + 1


def test_without_a_key_each_request_is_a_run(ada: Any) -> None:
    runs = {ada.post("/v1/runs", RUN).json()["runId"] for _ in range(3)}
    assert len(runs) == 3


@pytest.mark.parametrize("other", [{**RUN, "inputs": {"nonce": "m"}}, {**RUN, "tags": ["t"]}, {**RUN, "tenantId": "x"}])
def test_another_request_under_the_key_is_refused(ada: Any, other: dict[str, Any]) -> None:
    key = uuid4().hex
    run = send(ada, key).json()["runId"]
    refused = send(ada, key, other)
    assert (refused.status_code, refused.json()["error"]) == (409, "idempotency_key_mismatch")
    valid(refused.json(), ERROR)
    assert run not in refused.text
    assert key not in refused.text


def test_ten_at_once_make_one_run(ada: Any) -> None:
    key, before = uuid4().hex, count(ada)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: send(ada, key), range(10)))
    assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
    assert len({answer.json()["runId"] for answer in answers}) == 1
    assert sum(answer.headers.get(REPLAY) == "true" for answer in answers) == 9
    assert count(ada) == before + 1


def test_a_run_that_goes_on_is_answered_as_it_was_first(ada: Any) -> None:
    key, body = uuid4().hex, {"workflowId": "conformance-delay", "inputs": {"delayMs": 200}}
    first, second = send(ada, key, body), send(ada, key, body)
    assert first.json() == second.json()
    assert first.json()["status"] == "running"


def test_tenants_and_operations_do_not_share_keys(seamed: Any, ada: Any) -> None:
    key = uuid4().hex
    mine, theirs = send(ada, key).json()["runId"], send(seamed.caller(), key).json()["runId"]
    assert mine != theirs
    forked = send(ada, key, {"mode": "replay"}, f"/v1/runs/{mine}:fork")
    assert forked.status_code == 201
    assert send(ada, key, {"mode": "replay"}, f"/v1/runs/{mine}:fork").json() == forked.json()
    other = start(ada, "conformance-noop")["runId"]
    assert send(ada, key, {"mode": "replay"}, f"/v1/runs/{other}:fork").status_code == 409


def test_what_was_wrong_may_be_put_right_under_the_key(ada: Any) -> None:
    key = uuid4().hex
    assert send(ada, key, {"workflowId": "conformance-idempotent"}).status_code == 400
    assert send(ada, key, {"workflowId": "nope"}).status_code == 400
    assert send(ada, key).status_code == 201


def test_a_refusal_that_no_retry_cures_is_kept(ada: Any) -> None:
    key = uuid4().hex
    first, second = (send(ada, key, {}, "/v1/runs/nope/cancel") for _ in range(2))
    assert (first.status_code, second.status_code) == (404, 404)
    assert first.json() == second.json()
    valid(second.json(), ERROR)
    assert second.headers[REPLAY] == "true"


def test_files_are_written_once(ada: Any) -> None:
    key, path = uuid4().hex, "/v1/host/workspace/files/once.md"
    versions = [send(ada, key, {"content": "a"}, path, "PUT").json()["version"] for _ in range(3)]
    assert versions == [1, 1, 1]
    assert send(ada, key, {"content": "b"}, path, "PUT").status_code == 409
    gone = [ada.send("DELETE", path, headers={"Idempotency-Key": key}).status_code for _ in range(2)]
    assert gone == [204, 204]
    assert send(ada, uuid4().hex, {"content": "a"}, path, "PUT").json()["version"] == 3


@on_one_store
@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "tab\there"])
def test_a_key_is_visible_ascii(ada: Any, key: str) -> None:
    refused = send(ada, key)
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


def test_a_key_is_in_no_event(ada: Any) -> None:
    key = f"customer-{uuid4().hex}"
    send(ada, key)
    assert key not in json.dumps(ada.get("/v1/host/reverie/events?limit=1000").json())


def test_a_request_whose_process_died_goes_on_under_its_id(seamed: Any, ada: Any) -> None:
    """The record was written, the run was made, and then the process died before it could record the answer."""
    from reverie.core.canonical import canonical
    from reverie.core.entry import Scope
    from reverie.memory.idempotency import Claim

    host, key = seamed.host, uuid4().hex
    actor = host.keys.authenticate(ada.key, door="openwop")
    request = canonical({"path": {}, "query": [], "match": None, "body": RUN}).decode()
    claim = host.idempotency.claim(actor, "runs.create", key, request)
    assert isinstance(claim, Claim)
    made = host.runs.start(actor, RUN["workflowId"], inputs=RUN["inputs"], fixtures=True, run_id=claim.id)
    host.parts.store.write(Scope(ada.tenant), lambda tx: tx.release(claim.name, claim.holder))
    again = send(ada, key)
    assert (again.status_code, again.json()["runId"]) == (201, made.id)
