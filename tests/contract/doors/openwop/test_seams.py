"""The seams over reads, files, schedules and runs; and that none of them exists without its switch."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.contract.doors.openwop.schemas import ERROR, MEMORY_ENTRY, RUN_EVENT, valid
from tests.contract.doors.openwop.test_runs import events, start
from tests.stores import on_one_store

from reverie.core.clock import from_iso, to_iso
from reverie.core.errors import Invalid
from reverie.settings import Settings

MEMORY_SEAMS = [
    ("POST", "/v1/test/memory/seed"),
    ("GET", "/v1/memory/anything"),
    ("POST", "/v1/test/memory/forget"),
]
COMPACTION_SEAMS = [("POST", "/v1/test/memory/compact")]
OTHER_SEAMS = [
    ("POST", "/v1/host/sample/memory/distill"),
    ("POST", "/v1/host/sample/memory/consolidate"),
    ("POST", "/v1/host/sample/commitment/fire"),
    ("POST", "/v1/host/sample/workspace/op"),
    ("POST", "/v1/host/sample/scheduling/tick"),
    ("GET", "/v1/host/sample/test/runs/x/events"),
]
REFS = [
    "mem_tenant:default_agent:conformance-rfc0012-sr1_longTerm",
    "conformance-distill",
    "mem://conformance/consolidation",
    "conformance/agent-memory-roundtrip",
]


def exists(caller: Any, method: str, path: str) -> bool:
    answer = caller.send(method, path, **({"json": {}} if method == "POST" else {}))
    valid(answer.json(), ERROR) if answer.status_code >= 400 else None
    return bool(answer.status_code != 404 or "nothing at this path" not in answer.json()["message"])


def read(caller: Any, ref: str, **query: Any) -> list[dict[str, Any]]:
    answer = caller.get(f"/v1/memory/{quote(ref, safe='')}", params=query)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown["memoryRef"] == ref
    assert shown.get("asOf") == query.get("asOf")
    for entry in shown["entries"]:
        valid(entry, MEMORY_ENTRY)
    return list(shown["entries"])


@on_one_store
@pytest.mark.parametrize(
    ("switches", "on"),
    [
        ({}, []),
        ({"openwop_compaction": True}, []),
        ({"openwop_trigger_compaction": True}, []),
        ({"openwop_compaction": True, "openwop_trigger_compaction": True}, MEMORY_SEAMS + COMPACTION_SEAMS),
        ({"openwop_seams": True}, MEMORY_SEAMS + OTHER_SEAMS),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_a_seam_exists_only_by_its_switch_and_then_wants_a_key(
    make_server: Any, switches: dict[str, bool], on: list[tuple[str, str]]
) -> None:
    server = make_server(**switches)
    caller = server.caller()
    for method, path in MEMORY_SEAMS + COMPACTION_SEAMS + OTHER_SEAMS:
        assert exists(caller, method, path) == ((method, path) in on), path
        refused = server.stranger().send(method, path, **({"json": {}} if method == "POST" else {}))
        assert (refused.status_code, refused.json()["error"]) == (401, "unauthenticated")
    assert caller.get("/v1/memory").status_code == 404


def test_production_refuses_to_start_with_a_seam() -> None:
    Settings.load({"REVERIE_PRODUCTION": "true"})
    pair = {"OPENWOP_MEMORY_COMPACTION": "true", "OPENWOP_TEST_TRIGGER_COMPACTION": "true"}
    for seam in (pair, {"OPENWOP_TEST_SEAM_ENABLED": "true"}):
        assert Settings.load(seam).seams
        with pytest.raises(Invalid, match="REVERIE_PRODUCTION"):
            Settings.load({**seam, "REVERIE_PRODUCTION": "true"})
    Settings.load({"OPENWOP_MEMORY_COMPACTION": "true", "REVERIE_PRODUCTION": "true"})


@on_one_store
@pytest.mark.parametrize("ref", REFS)
def test_names_of_the_suite_are_plain_names(seamed: Any, ada: Any, ref: str) -> None:
    kept = ada.put("A note.", ref=ref, tags=["plain"])
    assert [entry["id"] for entry in read(ada, ref)] == [kept]
    assert read(seamed.caller(), ref) == []


@pytest.mark.parametrize(
    "ref", ["../x", "a/../b", "a//b", "a/", "./x", "a\x7fb", "-a", "é", "x" * 257, "a b", "%2e%2e"]
)
def test_a_malformed_name_reads_as_empty_and_refuses_writes(ada: Any, ref: str) -> None:
    assert read(ada, ref) == []
    assert read(ada, ref, id="x") == []
    assert read(ada, ref, asOf="2026-01-01T00:00:00Z") == []
    seeded = ada.post("/v1/test/memory/seed", {"memoryRef": ref, "entries": [{"id": "a", "content": "x"}]})
    assert (seeded.status_code, seeded.json()["error"]) == (400, "validation_error")


def test_a_list_is_newest_first_and_bounded_by_its_limit(ada: Any) -> None:
    ids = [ada.put(f"Note {n}.", ref="order") for n in range(4)]
    assert [entry["id"] for entry in read(ada, "order")] == ids[::-1]
    assert [entry["id"] for entry in read(ada, "order", limit=0)] == ids[::-1]
    assert [entry["id"] for entry in read(ada, "order", limit=2)] == ids[:1:-1]
    assert [entry["id"] for entry in read(ada, "order", limit=50)] == ids[::-1]
    for wrong in ("-1", "x", "1.5"):
        answer = ada.get(f"/v1/memory/order?limit={wrong}")
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_a_tag_is_matched_exactly(ada: Any) -> None:
    kept = ada.put("Tagged.", ref="tags", tags=["Alpha", "beta:1"])
    assert [entry["id"] for entry in read(ada, "tags", tag="Alpha")] == [kept]
    for other in ("alpha", "Alph", "Alpha ", "%", "*", "beta:", "Alpha,beta:1"):
        assert read(ada, "tags", tag=other) == [], other
    for wrong in ("", "x" * 257):
        assert ada.get("/v1/memory/tags", params={"tag": wrong}).status_code == 400


def test_one_entry_is_read_by_id_and_nothing_is_an_empty_list(seamed: Any, ada: Any) -> None:
    kept = ada.put("One of two.", ref="one")
    ada.put("The other.", ref="one")
    elsewhere = ada.put("In another memory.", ref="two")
    assert [entry["content"] for entry in read(ada, "one", id=kept)] == ["One of two."]
    assert read(ada, "one", id=elsewhere) == read(ada, "one", id="none") == []
    assert read(seamed.caller(), "one", id=kept) == []


def test_what_has_expired_is_gone_to_the_millisecond(ada: Any) -> None:
    seed = {
        "memoryRef": "expiry",
        "entries": [
            {"id": "over", "content": "Its time is over.", "expiresAt": "2020-01-01T00:00:00.000Z"},
            {"id": "fresh", "content": "It has time.", "expiresAt": "2099-01-01T00:00:00.000Z"},
        ],
    }
    assert ada.post("/v1/test/memory/seed", seed).status_code == 201
    (entry,) = read(ada, "expiry")
    assert (entry["id"], entry["expiresAt"]) == ("fresh", "2099-01-01T00:00:00.000Z")
    assert read(ada, "expiry", id="over") == []
    assert [entry["id"] for entry in read(ada, "expiry", asOf="2099-01-01T00:00:00Z")] == ["fresh"]
    refused = ada.post("memory/expiry/entries", {"content": "Late.", "expires_at": "2020-01-01T00:00:00Z"})
    assert refused.json()["error"] == "validation_error"


def test_an_instant_shows_what_was_there_then(ada: Any) -> None:
    made = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "2026-02-01T00:00:00.000Z"]
    entries = [{"id": f"e{n}", "content": f"Note {n}.", "createdAt": at} for n, at in enumerate(made)]
    assert ada.post("/v1/test/memory/seed", {"memoryRef": "then", "entries": entries}).status_code == 201
    assert [e["createdAt"] for e in read(ada, "then")] == made[::-1]
    for n, at in enumerate(made):
        assert [e["id"] for e in read(ada, "then", asOf=at)] == [f"e{i}" for i in range(n, -1, -1)]
    assert read(ada, "then", asOf=to_iso(from_iso(made[0]) - 1)) == []
    assert [e["id"] for e in read(ada, "then", asOf=made[2], limit=1)] == ["e2"]
    assert [e["id"] for e in read(ada, "then", asOf=made[1], id="e0")] == ["e0"]
    assert read(ada, "then", asOf=made[0], id="e1") == []
    assert ada.get("/v1/memory/then?asOf=yesterday").status_code == 400


def test_a_delete_is_gone_now_and_there_before(seamed: Any, ada: Any) -> None:
    kept = ada.put("Here today.", ref="delete")
    before = to_iso(seamed.host.parts.clock.now())
    while to_iso(seamed.host.parts.clock.now()) == before:
        pass
    ada.delete(f"memory/delete/entries/{kept}")
    assert read(ada, "delete") == []
    assert [entry["id"] for entry in read(ada, "delete", asOf=before)] == [kept]


def test_forget_reaches_one_memory_of_one_tenant_and_what_was_made_of_it(seamed: Any, ada: Any) -> None:
    rival = seamed.caller()
    for caller in (ada, rival):
        caller.put("Ines takes the early train.", ref="f1", tags=["subject:ines"])
        caller.put("Ines likes window seats.", ref="f1", tags=["subject:ines"])
        caller.put("The station has two exits.", ref="f1")
        caller.put("Ines has a rail pass.", ref="f2", tags=["subject:ines"])
    compact = ada.post("/v1/test/memory/compact", {"memoryRef": "f1"})
    assert compact.status_code == 200
    done = ada.post("/v1/test/memory/forget", {"memoryRef": "f1", "subject": "ines"})
    assert done.status_code == 200
    assert done.json()["forgotten"] >= 1
    assert not any("Ines" in entry["content"] for entry in read(ada, "f1"))
    assert len(read(ada, "f2")) == 1
    assert len(read(rival, "f1")) == 3
    plain = rival.post("/v1/test/memory/forget", {"memoryRef": "f1", "subject": "ines"})
    assert plain.json() == {"forgotten": 2}
    assert rival.post("/v1/test/memory/forget", {"memoryRef": "f1", "subject": "ines"}).json() == {"forgotten": 0}
    for body in ({}, {"memoryRef": "f1"}, {"subject": "ines"}, {"memoryRef": "f1", "subject": ""}):
        assert ada.post("/v1/test/memory/forget", body).json()["error"] == "validation_error"


def op(caller: Any, op: str, *, tenant: str = "t-one", workspace: str = "w", **body: Any) -> Any:
    return caller.post("/v1/host/sample/workspace/op", {"tenant": tenant, "workspace": workspace, "op": op, **body})


def test_the_file_seam_answers_as_the_endpoint_for_the_owner_it_names(ada: Any) -> None:
    made = op(ada, "put", path="a/b.md", content="one")
    assert (made.status_code, made.json()["version"]) == (200, 1)
    assert op(ada, "put", path="a/b.md", content="two", ifMatch=made.json()["etag"]).json()["version"] == 2
    stale = op(ada, "put", path="a/b.md", content="three", ifMatch=made.json()["etag"])
    assert (stale.status_code, stale.json()["error"]) == (409, "workspace_conflict")
    assert op(ada, "get", path="a/b.md").json()["content"] == "two"
    assert op(ada, "get", path="a/b.md", version=1).json()["content"] == "one"
    assert [file["path"] for file in op(ada, "list", prefix="a/").json()["files"]] == ["a/b.md"]
    for other in ({"tenant": "t-two"}, {"workspace": "v"}, {"tenant": "t-one/w", "workspace": ""}):
        assert op(ada, "get", path="a/b.md", **other).status_code == 404
        assert op(ada, "list", **other).json() == {"files": []}
    assert ada.get("/v1/host/workspace/files").json() == {"files": []}
    assert op(ada, "delete", path="a/b.md").status_code == 204
    assert op(ada, "get", path="a/b.md").status_code == 404
    for wrong in ({"op": "move"}, {"op": "put", "path": "a.md"}, {"op": "get", "path": "../x"}):
        refused = ada.post("/v1/host/sample/workspace/op", {"tenant": "t", "workspace": "w", **wrong})
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


def test_the_file_seam_crosses_no_tenant(seamed: Any, ada: Any) -> None:
    rival = seamed.caller()
    ada.send("PUT", "/v1/host/workspace/files/mine.md", json={"content": "private"})
    assert op(rival, "get", tenant=ada.tenant, workspace="default", path="mine.md").status_code == 404
    assert op(ada, "get", tenant=ada.tenant, workspace="default", path="mine.md").json()["content"] == "private"


def test_a_tick_fires_one_run_and_a_missed_window_no_more(ada: Any) -> None:
    for body, most in (
        ({"scenario": "single-tick"}, 1),
        ({"scenario": "missed-window", "missedTicks": 5}, 1),
        ({"scenario": "missed-window", "missedTicks": 5000}, 1),
        ({"scenario": "missed-window", "missedTicks": 0}, 0),
    ):
        answer = ada.post("/v1/host/sample/scheduling/tick", body)
        assert (answer.status_code, answer.json()["runsFired"]) == (200, most), body
        for run in answer.json()["runIds"]:
            assert events(ada, run)[-1]["type"] == "run.completed"
    assert ada.get("schedules").json() == {"schedules": []}
    assert ada.post("/v1/host/sample/scheduling/tick", {"scenario": "never"}).status_code == 400


def test_no_heartbeat_is_claimed_and_its_seam_is_absent(ada: Any) -> None:
    assert "heartbeat" not in ada.get("/.well-known/openwop").json()
    body = {"heartbeatId": "h1", "observedState": "a"}
    assert ada.post("/v1/host/sample/heartbeat/tick", body).status_code == 404


def test_the_log_of_a_run_is_read_by_type_and_node(ada: Any) -> None:
    run = start(ada, "conformance-agent-memory-ttl")["runId"]
    path = f"/v1/host/sample/test/runs/{run}/events"
    assert ada.get(path).json()["events"] == events(ada, run)
    written = ada.get(f"{path}?type=memory.written&nodeId=ttl-probe").json()["events"]
    assert len(written) == 2
    for event in written:
        valid(event, RUN_EVENT)
    assert ada.get(f"{path}?type=memory.written&nodeId=other").json() == {"events": []}


@pytest.mark.parametrize(
    "odd", ["%00", "a%00b", "%F0%9F%90%88", "x" * 2000, "%20", "..%2F..", "%27%3B--", "%25", "a%0Ab"]
)
def test_odd_names_are_no_fault_of_the_host(ada: Any, odd: str) -> None:
    for method, path, body in (
        ("GET", f"/v1/runs/{odd}", None),
        ("GET", f"/v1/runs/{odd}/events", None),
        ("GET", f"/v1/runs/{odd}/events/poll", None),
        ("POST", f"/v1/runs/{odd}/cancel", None),
        ("POST", f"/v1/runs/{odd}:fork", {"mode": "replay"}),
        ("GET", f"/v1/memory/{odd}", None),
        ("GET", f"/v1/memory/plain?id={odd[:300]}", None),
        ("GET", f"/v1/memory/plain?tag={odd[:200]}", None),
        ("GET", f"/v1/host/workspace/files?prefix={odd}", None),
        ("GET", f"/v1/host/workspace/files/{odd}", None),
        ("GET", f"/v1/host/sample/test/runs/{odd}/events?type={odd}&nodeId={odd}", None),
        ("DELETE", f"schedules/{odd}", None),
    ):
        answer = ada.send(method, path, **({"json": body} if body else {}))
        assert answer.status_code in (200, 400, 404), (path, answer.text)
        if answer.status_code != 200:
            valid(answer.json(), ERROR)
