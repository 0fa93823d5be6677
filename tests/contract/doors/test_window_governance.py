"""Provider windows are not memory: no door indexes, searches, returns or even names what is in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.contract.doors.conftest import Caller, Server

import reverie
from reverie.core.actor import Actor
from reverie.core.errors import UnsupportedRef
from reverie.host import Host
from reverie.window import Base, Item, WindowPolicy, WindowState

REF = "provider_window:agent-1%2Ftask-7"
PAYLOAD = "gAAAAopaquepayload" * 4
SAID = "The harbour opens at seven."
BODIES: dict[str, Any] = {
    "search": {"query": "harbour"},
    "context": {"purpose": "harbour", "budget": 100},
    "dreams": {"budget": 1000},
    "entries": {"content": "x"},
    "consolidate": {},
    "restore": {},
    "supersede": {"content": "x"},
    "states": {"ids": ["x"]},
    "changes": {"change": "pin", "entries": [{"id": "x", "version": 1}]},
}


def a_window(host: Host, actor: Actor, scope: str = "agent-1/task-7", *, subject: str | None = None) -> WindowState:
    """A window with a compaction in it, kept by the host as a wrapper would."""
    keeper = host.windows.keeper(actor, scope, policy=WindowPolicy(), subject=subject)
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone")
    state.plan([{"role": "user", "content": SAID}], model="m")
    output = [
        {"id": "cmp_1", "type": "compaction", "encrypted_content": PAYLOAD},
        {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
    ]
    turn = state.accept({"id": "resp_1", "status": "completed", "output": output, "usage": {"input_tokens": 10}})
    return keeper.save_turn(state, turn)


def test_every_rest_route_of_a_memory_refuses_the_namespace(server: Server) -> None:
    caller = server.caller()
    routes = [r for r in server.app.routes if "/memory/{ref}" in getattr(r, "path", "")]
    asked = 0
    for route in routes:
        for method in sorted(getattr(route, "methods", ())):
            path = route.path.replace("{ref}", REF).replace("{id}", "x")  # type: ignore[attr-defined]
            body = BODIES.get(path.rsplit("/", 1)[-1], {"pinned": True} if method == "PATCH" else None)
            options = {"json": body} if method in ("POST", "PATCH") else {}
            options |= {"params": {"prefix": "01M7"}} if path.endswith("/ids") else {}
            answer = caller.send(method, path, **options)
            assert answer.status_code == 400, (method, path, answer.text)
            assert "unsupported_ref_namespace" in answer.text, (method, path, answer.text)
            asked += 1
    assert asked >= 12


def test_an_id_of_that_namespace_is_refused_too(server: Server) -> None:
    caller = server.caller()
    for method in ("GET", "DELETE"):
        answer = caller.send(method, f"memory/notes/entries/{REF}")
        assert answer.status_code == 400, answer.text
        assert "unsupported_ref_namespace" in answer.text
    answer = caller.post("memory/notes/entries", {"content": "x", "id": "provider_window:1"})
    assert "unsupported_ref_namespace" in answer.text


def test_an_akashik_unit_of_that_namespace_is_refused(server: Server) -> None:
    answer = server.caller().get(f"/akashik/v1/units/{REF}")
    assert answer.status_code in (400, 404), answer.text
    assert PAYLOAD not in answer.text


def test_nothing_a_tenant_can_read_holds_a_payload(server: Server) -> None:
    caller = server.caller()
    actor = Actor(tenant=caller.tenant, id="local:test")
    a_window(server.host, actor)
    reads: list[Caller | Any] = [
        caller.get("memory"),
        caller.get("memory/agent-1%2Ftask-7/entries"),
        caller.post("memory/agent-1%2Ftask-7/search", {"query": SAID}),
        caller.post("memory/agent-1%2Ftask-7/search", {"query": PAYLOAD[:18]}),
        caller.post("memory/agent-1%2Ftask-7/context", {"purpose": SAID, "budget": 500}),
        caller.get("events?limit=1000"),
    ]
    for answer in reads:
        assert answer.status_code == 200, answer.text
        assert PAYLOAD not in answer.text
        assert "cmp_1" not in answer.text
    assert SAID in reads[1].text
    assert SAID in reads[2].text
    assert "provider_window_updated" in reads[5].text
    assert SAID not in reads[5].text
    exported = b"".join(server.host.bundles.export(actor))
    assert SAID.encode() in exported
    assert PAYLOAD.encode() not in exported
    assert PAYLOAD not in json.dumps(server.host.windows.show(actor, "agent-1/task-7"))


def test_a_checkpoint_is_an_ordinary_memory(server: Server) -> None:
    caller = server.caller()
    actor = Actor(tenant=caller.tenant, id="local:test")
    state = a_window(server.host, actor)
    keeper = server.host.windows.keeper(actor, "agent-1/task-7")
    keeper.work["constraints"] = ["Never sail at night."]
    keeper.clear(state, "cleared")
    found = caller.post("memory/agent-1%2Ftask-7/search", {"query": "sail at night"}).json()["hits"]
    hit = next(hit for hit in found if hit["entry"]["kind"] == "checkpoint")
    record = hit["entry"]["attributes"]["checkpoint"]
    assert record["objective"] == SAID
    assert record["constraints"] == ["Never sail at night."]
    assert record["reason"] == "cleared"
    assert record["next_action"] == ""
    assert record["covered_range"] == [0, 2]
    report = server.host.dreams.run(actor, _plan("agent-1/task-7"))
    assert report is not None


def _plan(ref: str) -> Any:
    from reverie.core.dream import DreamPlan

    return DreamPlan(ref=ref, budget=4000)


def test_forgetting_a_subject_takes_its_window_along(server: Server) -> None:
    actor = Actor(tenant=server.caller().tenant, id="local:test")
    a_window(server.host, actor, "one", subject="ada")
    a_window(server.host, actor, "two", subject="bob")
    server.host.forget.forget(actor, "ada")
    assert [row.scope for row in server.host.windows.all(actor).items] == ["two"]


def test_a_window_can_be_dropped_and_the_words_stay(server: Server) -> None:
    caller = server.caller()
    actor = Actor(tenant=caller.tenant, id="local:test")
    a_window(server.host, actor)
    assert server.host.windows.drop(actor, "agent-1/task-7")
    assert not server.host.windows.drop(actor, "agent-1/task-7")
    assert SAID in caller.get("memory/agent-1%2Ftask-7/entries").text
    rebuilt = server.host.windows.rebuild(actor, "agent-1/task-7")
    assert [item["role"] for item in rebuilt] == ["developer", "user", "assistant"]  # a note, then the words
    assert rebuilt[1]["content"][0]["text"] == SAID


def test_the_library_and_the_command_line_refuse_it(tmp_path: Path) -> None:
    with reverie.open(tmp_path / "data") as memory:
        ref = memory.ref("provider_window:x")
        with pytest.raises(UnsupportedRef):
            memory.forget("x", ref="provider_window:x")
        for call in (lambda: ref.put("x"), lambda: ref.search("x"), ref.list, lambda: ref.get("x")):
            with pytest.raises(UnsupportedRef):
                call()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    done = subprocess.run(
        [sys.executable, "-m", "reverie.api.cli.main", "list", "--ref", "provider_window:x"],
        env={**kept, "REVERIE_DATA": str(tmp_path / "data")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert b"provider window" in done.stderr


def test_nothing_of_a_window_can_be_read_in_the_file(tmp_path: Path) -> None:
    secret = "sk-" + "q7Zp" * 12
    with reverie.open(tmp_path / "data") as memory:
        keeper = memory.host.windows.keeper(memory.actor, "s")
        state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone")
        state.plan([{"role": "user", "content": f"my key is {secret}"}], model="m", instructions="Quiet please.")
        payload = {"type": "compaction", "encrypted_content": PAYLOAD}
        turn = state.accept({"id": "resp_1", "status": "completed", "output": [payload]})
        keeper.save_turn(state, turn)
        assert keeper.refresh(state).items[0].value["content"] == f"my key is {secret}"
    data = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file())
    for text in (secret, PAYLOAD, "Quiet please"):
        assert text.encode() not in data


def test_a_window_that_was_tampered_with_is_not_used(tmp_path: Path) -> None:
    with reverie.open(tmp_path / "data") as memory:
        a_window(memory.host, memory.actor)
        host, scope = memory.host, "agent-1/task-7"
        from reverie.core.entry import Scope
        from reverie.core.event import NewEvent
        from reverie.window.sealed import WINDOW_SPACE, seal, unseal

        def tamper(tx: Any) -> None:
            document = tx.load(WINDOW_SPACE, scope)
            clear = unseal(host.parts, "default", document).replace(b"gAAAAopaque", b"gBBBBopaque")
            seq = tx.append(NewEvent("document.saved", "TEST", "local:test"))
            tx.save(WINDOW_SPACE, scope, seal(host.parts, "default", WINDOW_SPACE, clear), seq=seq, meta=document.meta)

        host.parts.store.write(Scope("default"), tamper)
        keeper = host.windows.keeper(memory.actor, scope)
        state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone")
        assert [reset.reason for reset in state.resets] == ["corrupt_state"]
        assert state.items == []
        assert host.windows.show(memory.actor, scope)["state"] == "corrupt_state"


def test_the_text_of_an_item_is_kept_to_the_byte(tmp_path: Path) -> None:
    raw = '{ "type":"compaction" ,"encrypted_content" : "a\\u00e9\\/b é", "n": 1.50e+1 }'
    with reverie.open(tmp_path / "data") as memory:
        keeper = memory.host.windows.keeper(memory.actor, "s")
        state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="x")
        state.plan("hello", model="m")
        turn = state.accept('{"id": "r", "status":"completed", "output":[' + raw + "]}")
        keeper.save_turn(state, turn)
        again = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="x")
        assert again.items[1].text == raw
        assert isinstance(again.items[1], Item)


def test_a_long_output_becomes_several_entries_and_one_item_again(server: Server) -> None:
    actor = Actor(tenant=server.caller().tenant, id="local:test")
    keeper = server.host.windows.keeper(actor, "long")
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="x")
    words = "é word " * 20_000
    state.plan([{"role": "user", "content": words}], model="m")
    keeper.save_turn(state, state.accept({"id": "r", "status": "completed", "output": []}))
    (item,) = server.host.windows.rebuild(actor, "long", most_tokens=10**6)
    assert item["content"][0]["text"] == words


def test_a_full_quota_keeps_the_window_and_not_the_words(server: Server) -> None:
    actor = Actor(tenant=server.caller().tenant, id="local:test")
    a_window(server.host, actor)
    server.host.rules.set_policy(actor, {"max_entries": 1})
    keeper = server.host.windows.keeper(actor, "agent-1/task-7")
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone")
    before = len(state.items)
    state.plan("more", input_is="items", model="m")
    state = keeper.save_turn(state, state.accept({"id": "r", "status": "completed", "output": []}))
    again = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone")
    assert len(again.items) == before + 1


def test_a_window_of_another_tenant_is_not_there(server: Server) -> None:
    one, two = (Actor(tenant=server.caller().tenant, id="local:test") for _ in range(2))
    a_window(server.host, one)
    assert not server.host.windows.all(two).items
    assert not server.host.windows.drop(two, "agent-1/task-7")
    keeper = server.host.windows.keeper(two, "agent-1/task-7")
    assert keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="someone").items == []
