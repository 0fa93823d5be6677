"""The envelope: closed, exact, idempotent; and the clock it carries."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.stores import on_one_store

from .conftest import Agent, unit

BAD: list[tuple[str, Any]] = [
    ("protocol", "Akashik"),
    ("protocol", None),
    ("version", "0.1"),
    ("version", "0.1.1"),
    ("id", ""),
    ("id", 7),
    ("id", None),
    ("agent_id", ""),
    ("agent_id", None),
    ("agent_id", "a" * 257),
    ("session_id", 7),
    ("session_id", ""),
    ("session_id", ["s"]),
    ("epoch", -1),
    ("epoch", 1.0),
    ("epoch", "1"),
    ("epoch", True),
    ("epoch", None),
    ("payload", []),
    ("payload", None),
    ("payload", "{}"),
    ("operation", "record"),
    ("operation", "FORGET"),
    ("operation", None),
    ("operation", ["RECORD"]),
    ("operation", "ATTUNE"),
    ("extra", 1),
]


@on_one_store
@pytest.mark.parametrize(("member", "value"), BAD, ids=[f"{m}-{str(v)[:8]}" for m, v in BAD])
def test_a_wrong_member_is_refused(join: Callable[..., Agent], member: str, value: Any) -> None:
    agent = join()
    response = agent.post("RECORD", agent.envelope("RECORD", unit("a")) | {member: value})
    assert response.status_code == 400
    body = response.json()
    assert body["code"] == "INVALID_ENVELOPE"
    assert body["operation"] == "RECORD"
    assert body["recoverable"] is True
    assert body["suggested_action"]
    assert agent.caller.get("/akashik/v1/field/status").json()["units"]["hot"] == 0


@on_one_store
@pytest.mark.parametrize(
    "member", ["protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload"]
)
def test_every_member_is_required(join: Callable[..., Agent], member: str) -> None:
    agent = join()
    envelope = agent.envelope("RECORD", unit("a"))
    del envelope[member]
    assert agent.post("RECORD", envelope).json()["code"] == "INVALID_ENVELOPE"


@on_one_store
@pytest.mark.parametrize(
    "sent", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"protocol":"akashik","protocol":"akashik"}', b"NaN"]
)
def test_what_is_no_json_object_is_refused(join: Callable[..., Agent], sent: bytes) -> None:
    caller = join().caller
    headers = {"content-type": "application/json"}
    response = caller.send("POST", "/akashik/v1/record", content=sent, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_ENVELOPE")


def test_a_body_that_is_not_json_by_name_is_refused(join: Callable[..., Agent]) -> None:
    caller = join().caller
    response = caller.send("POST", "/akashik/v1/record", content=b"{}", headers={"content-type": "text/plain"})
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_ENVELOPE")


def test_without_a_key_nothing_is_read(server: Any) -> None:
    for method, path in (("POST", "record"), ("POST", "nothing"), ("GET", "agents"), ("GET", "field/log")):
        response = server.stranger().send(method, f"/akashik/v1/{path}", content=b"{")
        assert response.status_code == 401
        assert response.json()["code"] == "UNAUTHENTICATED"
        assert set(response.json()) >= {"code", "message", "operation", "recoverable", "suggested_action"}


def test_unknown_paths_and_methods_answer_in_the_protocols_shape(join: Callable[..., Agent]) -> None:
    caller = join().caller
    assert caller.post("/akashik/v1/forget", {}).json()["code"] == "NOT_FOUND"
    assert caller.post("/akashik/v1/test/faults", {"kind": "enrichment", "on": True}).status_code == 404
    wrong = caller.get("/akashik/v1/record")
    assert wrong.status_code == 405
    assert "code" in wrong.json()


def test_answers_are_bare_and_carry_the_epoch(join: Callable[..., Agent]) -> None:
    agent = join()
    answer = agent("RECORD", unit("a"))
    assert set(answer) == {"status", "memory_unit_id", "conflicts_detected", "rejection_reason", "epoch"}
    assert agent.unit(answer["memory_unit_id"])["epoch"] == answer["epoch"]


def test_a_repeat_is_answered_as_the_first_and_does_nothing(join: Callable[..., Agent]) -> None:
    agent = join()
    envelope = agent.envelope("RECORD", unit("once"))
    first = agent.post("RECORD", envelope).json()
    before = agent.caller.get("/akashik/v1/field/status").json()
    again = agent.post("RECORD", envelope)
    assert (again.status_code, again.json()) == (200, first)
    assert agent.caller.get("/akashik/v1/field/status").json() == before


def test_a_repeat_with_another_body_is_refused(join: Callable[..., Agent]) -> None:
    agent = join()
    envelope = agent.envelope("RECORD", unit("once"))
    agent.post("RECORD", envelope)
    for change in ({"payload": unit("twice")}, {"epoch": 5}, {"session_id": "s"}):
        response = agent.post("RECORD", envelope | change)
        assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_MESSAGE")
        assert response.json()["recoverable"] is False


def test_an_id_belongs_to_its_agent_and_operation(join: Callable[..., Agent]) -> None:
    one = join()
    two = join(one.caller)
    first = one("RECORD", unit("a"), id="same")
    second = two("RECORD", unit("a"), id="same")
    assert first["memory_unit_id"] != second["memory_unit_id"]
    assert one("ATTUNE", {"scope": {"role": "r", "max_units": 1}}, id="same")["record"]


def test_a_repeated_attune_shows_the_first_answer_without_what_was_written_since(join: Callable[..., Agent]) -> None:
    writer = join()
    reader = join(writer.caller)
    writer.record("first")
    envelope = reader.envelope("ATTUNE", {"scope": {"role": "r", "max_units": 9}})
    first = reader.post("ATTUNE", envelope).json()
    writer.record("second")
    assert reader.post("ATTUNE", envelope).json() == first


def test_a_repeat_after_leaving_still_answers(join: Callable[..., Agent]) -> None:
    agent = join()
    envelope = agent.envelope("DEREGISTER", {"agent_id": agent.id})
    first = agent.post("DEREGISTER", envelope).json()
    assert first["status"] == "ok"
    assert agent.post("DEREGISTER", envelope).json() == first


def test_a_refused_message_can_be_corrected_under_its_id(join: Callable[..., Agent]) -> None:
    agent = join()
    agent.refused("MISSING_INTENT", "RECORD", unit("a", intent={}), id="mine")
    assert agent("RECORD", unit("a"), id="mine")["status"] == "accepted"


def test_fifty_repeats_at_once_record_once(join: Callable[..., Agent]) -> None:
    agent = join()
    envelope = agent.envelope("RECORD", unit("once"))
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: agent.post("RECORD", envelope).json(), range(50)))
    assert len({answer["memory_unit_id"] for answer in answers}) == 1
    assert agent.caller.get("/akashik/v1/field/status").json()["units"]["hot"] == 1


def test_the_clock_goes_past_what_it_receives(join: Callable[..., Agent]) -> None:
    agent = join()
    assert agent("RECORD", unit("a"), epoch=1000)["epoch"] == 1001
    assert agent("RECORD", unit("b"), epoch=3)["epoch"] == 1002


def test_an_epoch_that_is_too_large_is_refused_and_does_not_move_the_clock(join: Callable[..., Agent]) -> None:
    agent = join()
    for epoch in (2**53, 2**53 + 1, 2**63, 10**30):
        body = agent.refused("EPOCH_OVERFLOW", "RECORD", unit("a"), epoch=epoch)
        assert (body["http"], body["recoverable"]) == (400, False)
    assert agent("RECORD", unit("a"))["epoch"] == 2


def test_a_clock_at_its_end_still_serves(join: Callable[..., Agent]) -> None:
    agent = join()
    last = agent("RECORD", unit("a"), epoch=2**53 - 1)["epoch"]
    assert last == 2**53
    assert agent("RECORD", unit("b"))["epoch"] == last + 1  # the agent sends what it was told
    page = agent.caller.get("/akashik/v1/field/log").json()
    assert [event["epoch"] for event in page["events"]][-1] == last + 1


def test_fifty_clients_at_once_never_share_an_epoch(join: Callable[..., Agent]) -> None:
    first = join()
    agents = [join(first.caller) for _ in range(50)]

    def work(number: int) -> list[int]:
        agent = agents[number]
        answers = [agent("RECORD", unit(f"from {number}")), agent("ATTUNE", {"scope": {"role": "r", "max_units": 3}})]
        return [answer["epoch"] for answer in answers]

    with ThreadPoolExecutor(50) as pool:
        epochs = [epoch for pair in pool.map(work, range(50)) for epoch in pair]
    assert len(set(epochs)) == 100
    events = first.caller.get("/akashik/v1/field/log?limit=10000").json()["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    seen = [event["epoch"] for event in events]
    assert seen == sorted(seen)
