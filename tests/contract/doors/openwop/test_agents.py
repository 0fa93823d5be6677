"""The inventory: whose agents are seen, and that a host which lacks what they ask for says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.contract.doors.openwop.schemas import ERROR, INVENTORY_ENTRY, valid
from tests.stores import on_one_store

from reverie.core.actor import Actor
from reverie.core.errors import Invalid


def manifest(agent_id: str, **more: Any) -> dict[str, Any]:
    return {
        "agentId": agent_id,
        "persona": "A patient librarian",
        "modelClass": "reasoning",
        "packName": "library.agents",
        "packVersion": "1.2.3",
        "systemPrompt": "You are the prompt that nobody may see.",
        "handoff": {"taskSchemaRef": "schema-that-nobody-may-see"},
        **more,
    }


def admin(caller: Any) -> Actor:
    return Actor(tenant=caller.tenant, id="local:test")


def test_an_entry_is_closed_and_never_holds_the_prompt(server: Any, acme: Any) -> None:
    server.host.agents.install(admin(acme), manifest("a-1", memoryShape={"longTerm": True}, toolAllowlist=["web.get"]))
    answer = acme.get("/v1/agents")
    body = answer.json()
    assert body["total"] == len(body["agents"]) == 1
    (entry,) = body["agents"]
    valid(entry, INVENTORY_ENTRY)
    assert "nobody may see" not in answer.text
    assert entry["label"] == entry["persona"]
    assert entry["hasHandoffSchemas"] is True
    assert entry["toolAllowlist"] == ["web.get"]
    assert not {"memoryDegraded", "degradedMemoryDimensions"} & set(entry)
    assert acme.get("/v1/agents/a-1").json() == entry


def test_agents_are_listed_by_id(server: Any, acme: Any) -> None:
    pack = {"name": "p", "version": "2.0.0", "agents": [manifest("zed"), manifest("Abe"), manifest("abe")]}
    server.host.agents.install(admin(acme), pack)
    ids = [entry["agentId"] for entry in acme.get("/v1/agents").json()["agents"]]
    assert ids == sorted(ids) == ["Abe", "abe", "zed"]


def test_a_foreign_agent_is_as_absent_as_an_unknown_one(server: Any, acme: Any) -> None:
    other = server.caller()
    server.host.agents.install(admin(acme), manifest("mine"))
    mine, unknown = other.get("/v1/agents/mine"), other.get("/v1/agents/nobody")
    assert mine.status_code == unknown.status_code == 404
    assert mine.json() == unknown.json()
    valid(mine.json(), ERROR)
    assert other.get("/v1/agents").json() == {"agents": [], "total": 0}
    assert server.stranger().get("/v1/agents/mine").status_code == 401


SHAPES: list[tuple[dict[str, bool], list[str]]] = [
    ({"longTerm": True}, ["long-term-durability"]),
    ({"longTerm": False, "scratchpad": True}, []),
    ({}, []),
]


@pytest.mark.parametrize(("shape", "missing"), SHAPES)
def test_an_ephemeral_host_stamps_whoever_asks_for_the_long_term(
    make_server: Any, shape: dict[str, bool], missing: list[str]
) -> None:
    server = make_server(database_url="sqlite:///:memory:")
    caller = server.caller()
    server.host.agents.install(admin(caller), manifest("a", memoryShape=shape))
    entry = caller.get("/v1/agents/a").json()
    valid(entry, INVENTORY_ENTRY)
    assert entry.get("degradedMemoryDimensions", []) == missing
    assert entry.get("memoryDegraded") is (True if missing else None)


KEYS: list[tuple[list[str], list[str]]] = [
    (
        ["host.workspace", "memory.search", "memory.search.modes", "limits.maxRequestBodyBytes"],
        [],
    ),
    (["sandbox", "memory"], ["sandbox"]),
    (
        ["aiProviders.toolCalling", "multiAgent.executionModel.verifier"],
        ["aiProviders.toolCalling", "multiAgent.executionModel.verifier"],
    ),
    (["memory.supported.deeper"], ["memory.supported.deeper"]),
    ([], []),
]


@on_one_store
@pytest.mark.parametrize(("keys", "missing"), KEYS)
def test_required_capabilities_that_are_not_advertised_are_named(
    server: Any, acme: Any, keys: list[str], missing: list[str]
) -> None:
    server.host.agents.install(admin(acme), manifest("a", requiresCapabilities=keys))
    entry = acme.get("/v1/agents/a").json()
    valid(entry, INVENTORY_ENTRY)
    assert entry.get("degraded", []) == missing
    assert "memoryDegraded" not in entry


def test_both_projections_can_apply_to_one_agent(make_server: Any) -> None:
    server = make_server(database_url="sqlite:///:memory:")
    caller = server.caller()
    asked = manifest("a", memoryShape={"longTerm": True}, requiresCapabilities=["scheduling", "memory"])
    server.host.agents.install(admin(caller), asked)
    entry = caller.get("/v1/agents/a").json()
    assert entry["degraded"] == ["scheduling"]
    assert entry["degradedMemoryDimensions"] == ["long-term-durability"]


@on_one_store
@pytest.mark.parametrize("wrong", ["x", [1], ["a", "a"], [""], ["a..b"], ["a b"], ["x" * 257], [None]])
def test_requirements_are_names_each_once(server: Any, acme: Any, wrong: Any) -> None:
    with pytest.raises(Invalid, match="requiresCapabilities"):
        server.host.agents.install(admin(acme), manifest("a", requiresCapabilities=wrong))


@pytest.mark.parametrize(
    ("settings", "dimensions"), [({}, None), ({"database_url": "sqlite:///:memory:"}, ["long-term-durability"])]
)
def test_with_seams_a_tenant_without_agents_sees_two(
    make_server: Any, settings: dict[str, Any], dimensions: list[str] | None
) -> None:
    server = make_server(openwop_seams=True, **settings)
    caller = server.caller()
    body = caller.get("/v1/agents").json()
    plain, requiring = body["agents"]
    assert body["total"] == 2
    for entry in (plain, requiring):
        valid(entry, INVENTORY_ENTRY)
        assert caller.get(f"/v1/agents/{entry['agentId']}").json() == entry
    assert not {"degraded", "memoryDegraded"} & set(plain)
    assert requiring["degraded"] == ["sandbox"]
    assert requiring.get("degradedMemoryDimensions") == dimensions
    server.host.agents.install(admin(caller), manifest("own"))
    assert [entry["agentId"] for entry in caller.get("/v1/agents").json()["agents"]] == ["own"]


def test_a_read_only_host_stamps_writers(make_server: Any, tmp_path: Path) -> None:
    writable = make_server(data=tmp_path)
    caller = writable.caller()
    writable.host.agents.install(admin(caller), manifest("w", memoryShape={"conversation": True}))
    writable.host.agents.install(admin(caller), manifest("n"))
    closed = make_server(data=tmp_path, read_only=True)
    caller.app = closed.app
    assert caller.get("/v1/agents/w").json()["degradedMemoryDimensions"] == ["write"]
    assert "memoryDegraded" not in caller.get("/v1/agents/n").json()


def test_the_spelling_of_the_rfc_text_is_a_setting(make_server: Any) -> None:
    server = make_server(database_url="sqlite:///:memory:", openwop_durability="long-term")
    caller = server.caller()
    server.host.agents.install(admin(caller), manifest("a", memoryShape={"longTerm": True}))
    assert caller.get("/v1/agents/a").json()["degradedMemoryDimensions"] == ["long-term"]


def test_agents_of_the_host_are_seen_by_every_tenant(make_server: Any, tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "bot.json").write_text(json.dumps(manifest("from-disk")))
    server = make_server(agents=str(folder))
    server.host.agents.install_for_all(manifest("from-command"))
    for caller in (server.caller(), server.caller()):
        ids = [entry["agentId"] for entry in caller.get("/v1/agents").json()["agents"]]
        assert ids == ["from-command", "from-disk"]
    server.host.agents.remove_for_all("from-command")
    assert server.caller().get("/v1/agents/from-command").status_code == 404


def test_a_folder_of_manifests_that_does_not_exist_is_refused_at_the_start(make_server: Any, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="folder of agent manifests"):
        make_server(agents=str(tmp_path / "misspelt"))


def test_a_bad_manifest_on_disk_is_named_at_the_start(make_server: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{not json")
    with pytest.raises(Invalid, match=r"bad\.json"):
        make_server(agents=str(tmp_path))


@on_one_store
@pytest.mark.parametrize(
    "bad",
    [
        [],
        "text",
        {},
        {"agents": []},
        {"agents": ["x"]},
        {"agents": [manifest("a"), manifest("a")]},
        manifest("../x/.."[0:0]),
        manifest("a", persona=""),
        manifest("a", persona="two\nlines"),
        manifest("a", modelClass=7),
        manifest("a", memoryShape={"longTerm": "yes"}),
        manifest("a", memoryShape=[True]),
        manifest("a", toolAllowlist="all"),
        manifest("a", confidenceThreshold=2),
        manifest("a", confidenceThreshold=True),
    ],
)
def test_what_is_no_manifest_is_refused_whole(server: Any, acme: Any, bad: Any) -> None:
    with pytest.raises(Invalid):
        server.host.agents.install(admin(acme), bad)
    assert acme.get("/v1/agents").json()["total"] == 0


def test_secrets_in_a_manifest_are_not_stored(server: Any, acme: Any) -> None:
    secret = "hunter2-" + "x" * 12
    server.host.rules.register(admin(acme), "vault-key", secret)
    server.host.agents.install(admin(acme), manifest("a", description=f"uses {secret}", toolAllowlist=[secret]))
    answer = acme.get("/v1/agents/a")
    assert secret not in answer.text
    assert "[REDACTED:vault-key]" in answer.json()["description"]
    with pytest.raises(Invalid):
        server.host.agents.install(admin(acme), manifest(secret))
