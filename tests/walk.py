"""A walk over every operation of the OpenAPI document: each is asked, and each answer is held against its description."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2
from tests.described import Described

SEAMS = ("openwop_seams", "openwop_compaction", "openwop_trigger_compaction", "akashik_faults")
"""Settings that switch every operation on."""
NATIVE = "/v1/host/reverie"
RPC = {"Accept": "application/json, text/event-stream"}
_MESSAGES = count(1)


class Walker:
    """A caller that holds every answer against the document."""

    def __init__(self, url: str, key: str, *, patience: float = 60) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=patience, trust_env=False)
        self.document = Described(self._client.get("/v1/openapi.json").content)

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200, **options: Any) -> Any:
        if body is not None:
            options["json"] = body
        answer = self._client.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:400]}"
        media = answer.headers.get("content-type", "").partition(";")[0]
        read = answer.json() if media == "application/json" and answer.content else answer.text
        self.document.check(method, path.partition("?")[0], answer.status_code, media, read)
        return read

    def enter(self) -> None:
        """Begin a group of operations that belong to one tenant."""

    def stream(self, path: str) -> None:
        """A stream, looked at and left."""
        with self._client.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
            assert answer.status_code == 200
            self.document.check("GET", path.partition("?")[0], 200, "text/event-stream", b"")

    def field(self, operation: str, agent: str = "scout", *, within: str | None = None, **payload: Any) -> Any:
        """One message to the Akashik Field."""
        message = {
            "protocol": "akashik",
            "version": "0.1.0",
            "id": f"walk-{next(_MESSAGES)}",
            "operation": operation,
            "agent_id": agent,
            "session_id": within,
            "epoch": 0,
            "payload": payload,
        }
        return self("POST", f"/akashik/v1/{operation.lower()}", message)

    def close(self) -> None:
        self._client.close()


def entries(go: Walker) -> None:
    at = f"{NATIVE}/memory/notes/entries"
    made = go("POST", at, {"content": "Ana prefers tea.", "subject": "ana", "tags": ["taste"]}, status=201)
    go("POST", at, {"entries": [{"content": "The pump leaks."}, {"content": "The valve is new."}]}, status=201)
    one = f"{at}/{made['id']}"
    go("GET", at)
    go("GET", one)
    go("PATCH", one, {"pinned": True})
    go("GET", f"{one}/links")
    go("GET", f"{one}/why")
    go("GET", f"{one}/derived")
    go("GET", f"{NATIVE}/memory/notes/ids?prefix={made['id'][:4]}")
    go("POST", f"{NATIVE}/memory/notes/search", {"query": "what does Ana drink", "explain": True})
    go("POST", f"{NATIVE}/memory/notes/context", {"purpose": "make tea", "budget": 500})
    other = go("GET", f"{at}?limit=1")["entries"][0]["id"]
    (state,) = go("POST", f"{NATIVE}/memory/notes/states", {"ids": [other]})["states"]
    seen = {"id": other, "version": state["version"]}
    changed = go("POST", f"{NATIVE}/memory/notes/changes", {"change": "archive", "entries": [seen]})
    assert changed == {"changed": 1, "left": {}}
    newer = go("POST", f"{one}/supersede", {"content": "Ana prefers coffee.", "subject": "ana"}, status=201)
    go("DELETE", f"{at}/{newer['id']}")
    go("POST", f"{at}/{newer['id']}/restore")
    go("DELETE", f"{at}/{newer['id']}?erase=true")
    go("GET", f"{NATIVE}/memory")
    go("POST", f"{NATIVE}/memory/forget", {"subject": "ana", "preview": True})
    go("POST", f"{NATIVE}/memory/forget", {"subject": "ana"})


def tenant(go: Walker) -> None:
    for name in ("me", "stats", "policy", "secrets", "audit/verify", "events"):
        go("GET", f"{NATIVE}/{name}")
    go.stream(f"{NATIVE}/events")
    go("PATCH", f"{NATIVE}/policy", {"max_entries": 100_000})
    go("POST", f"{NATIVE}/secrets", {"id": "mail", "value": "correct horse battery"}, status=201)
    go("DELETE", f"{NATIVE}/secrets/mail")
    go("POST", f"{NATIVE}/sweep")
    go("POST", f"{NATIVE}/scan", {"dry_run": True})
    bundle = go("GET", f"{NATIVE}/export")
    go("POST", f"{NATIVE}/import?ref=copy", content=bundle, headers={"Content-Type": "application/x-ndjson"})


def dreams(go: Walker) -> None:
    memory = f"{NATIVE}/memory/night"
    notes = [{"content": f"The club with number {n} pays {n * 10} euros for its moorings."} for n in range(12)]
    go("POST", f"{memory}/entries", {"entries": [*notes, *notes[:3]]}, status=201)
    go("POST", f"{memory}/dreams", {"budget": 8000, "plan": True})
    first = go("POST", f"{memory}/dreams", {"budget": 8000}, status=201)
    for where in (f"{memory}/dreams", f"{NATIVE}/dreams"):
        go("GET", where)
        go("GET", f"{where}/{first['id']}")
        go("GET", f"{where}/{first['id']}/diff")
        go("GET", f"{where}/{first['id']}/verify")
    go("GET", f"{NATIVE}/archives/{first['checksum']}")
    go("GET", f"{memory}/index")
    go("GET", f"{memory}/index", headers={"Accept": "text/markdown"})
    go("GET", f"{NATIVE}/index")
    go("POST", f"{memory}/dreams/{first['id']}/undo")
    again = go("POST", f"{memory}/dreams", {"budget": 8000}, status=201)
    go("POST", f"{NATIVE}/dreams/{again['id']}/undo")
    go("POST", f"{memory}/consolidate")


def schedules(go: Walker) -> None:
    made = go("POST", f"{NATIVE}/schedules", {"cron": "0 3 * * *", "ref": "night"}, status=201)
    go("GET", f"{NATIVE}/schedules")
    go("PATCH", f"{NATIVE}/schedules/{made['id']}", {"paused": True})
    go("POST", f"{NATIVE}/schedules/{made['id']}/run")
    go("DELETE", f"{NATIVE}/schedules/{made['id']}")


def runs(go: Walker) -> None:
    go("GET", "/.well-known/openwop")
    for agent in go("GET", "/v1/agents")["agents"]:
        go("GET", f"/v1/agents/{agent['agentId']}")
        go("POST", f"/v1/host/sample/agents/{agent['agentId']}/dispatch", {"task": "what is known?"})
    for workflow in ("reverie.memory.distill", "reverie.agent.dispatch", "conformance-multi-node"):
        go("GET", f"/v1/workflows/{workflow}")
    failed = go("POST", "/v1/runs", {"workflowId": "conformance-failure"}, status=201)["runId"]
    made = go("POST", "/v1/runs", {"workflowId": "conformance-agent-memory-roundtrip"}, status=201)["runId"]
    for run in (failed, made):
        go("GET", f"/v1/runs/{run}")
        go("GET", f"/v1/runs/{run}/events")
        go("GET", f"/v1/runs/{run}/events/poll")
        go("GET", f"/v1/host/sample/test/runs/{run}/events")
    go.stream(f"/v1/runs/{made}/events")
    go("POST", f"/v1/runs/{made}/cancel")
    go("POST", "/v1/runs:bulk-cancel", {"runIds": [made, "nobody"]})
    go("POST", f"/v1/runs/{made}:fork", {"mode": "replay"}, status=201)
    slow = {"workflowId": "conformance-delay", "inputs": {"delayMs": 30_000}}
    waiting = go("POST", "/v1/runs", slow, status=201)["runId"]
    go("POST", f"/v1/runs/{waiting}:pause", {"drainPolicy": "immediate"}, status=202)
    go("POST", f"/v1/runs/{waiting}:resume", {"reason": "after lunch"}, status=202)
    go("POST", f"/v1/runs/{waiting}/cancel")


def workspace(go: Walker) -> None:
    at = f"/v1/host/workspace/files/{quote('plans/a.md', safe='')}"
    go("PUT", at, {"content": "# Plan"})
    go("GET", at)
    go("GET", "/v1/host/workspace/files")
    go("DELETE", at, status=204)


def seams(go: Walker) -> None:
    planted = [{"id": f"m{n}", "content": f"Reading {n} of the meter.", "tags": ["subject:bo"]} for n in range(3)]
    go("POST", "/v1/test/memory/seed", {"memoryRef": "seamed", "entries": planted}, status=201)
    go("GET", "/v1/memory/seamed?limit=50")
    go("POST", "/v1/test/memory/compact", {"memoryRef": "seamed"})
    go("POST", "/v1/test/memory/forget", {"memoryRef": "seamed", "subject": "bo"})
    go("POST", "/v1/host/sample/memory/distill", {"memoryRef": "conformance-distill", "tokenBudget": 8000})
    go("POST", "/v1/host/sample/memory/consolidate", {"memoryRef": "c", "includeSecretCanary": True})
    go("POST", "/v1/host/sample/commitment/fire", {"memoryRef": "c", "condition": "time"})
    go("POST", "/v1/host/sample/scheduling/tick", {"scenario": "single-tick"})
    owner = {"tenant": "acme", "workspace": "w", "path": "a.md"}
    for op in ({"op": "put", "content": "x"}, {"op": "list"}, {"op": "get"}):
        go("POST", "/v1/host/sample/workspace/op", {**owner, **op})
    go("POST", "/v1/host/sample/workspace/op", {**owner, "op": "delete"}, status=204)


SURE = {"score": 0.8, "reasoning": "seen twice"}
WHY = {"purpose": "to be known"}


def field(go: Walker) -> None:
    for agent in ("scout", "guide"):
        go.field("REGISTER", agent, id=agent, role="researcher", authority_level=10)
    one = go.field("RECORD", type="finding", content="The pump runs at 40 bar.", intent=WHY, confidence=SURE)
    other = go.field(
        "RECORD",
        "guide",
        type="finding",
        content="The pump runs at 55 bar.",
        intent=WHY,
        confidence={**SURE, "score": 0.5},
        tags=["pump"],
        subject="pump",
        relations=[{"type": "contradicts", "target_id": one["memory_unit_id"]}],
    )
    for form in ("full", "summary", "ids_only"):
        go.field("ATTUNE", scope={"role": "researcher", "max_units": 5, "include_own": True}, format=form)
    known = go.field("DETECT", mode="list")["conflicts"][0]
    go("GET", "/akashik/v1/conflicts")
    go.field(
        "MERGE", conflict_id=known["id"], strategy="confidence_weighted", resolution={"rationale": "counted twice"}
    )
    go.field("REPLAY", target_type="memory_unit", target_id=other["memory_unit_id"], depth="full_trace")
    go("GET", f"/akashik/v1/units/{other['memory_unit_id']}")
    for question in ("field/status", "field/log", "agents"):
        go("GET", f"/akashik/v1/{question}")
    made = go.field("SUBSCRIBE", action="subscribe", subscription={"events": ["memory.recorded"]})
    go.field("SUBSCRIBE", action="list")
    go.stream(httpx2.URL(made["sse_url"]).raw_path.decode())
    go.field("SUBSCRIBE", action="unsubscribe", subscription={"id": made["subscription"]["id"]})
    go("POST", "/akashik/v1/test/faults", {"kind": "enrichment", "on": True})
    go.field("RECORD", type="observation", content="It rains.", intent=WHY, confidence=SURE)
    go("POST", "/akashik/v1/test/faults", {"kind": "enrichment", "on": False})


def field_of_many(go: Walker) -> None:
    task = go.field("COORDINATE", action="create", task={"title": "Load the ship"})["task"]
    go.field("COORDINATE", action="list")
    handed = go.field("HANDOFF", action="initiate", task_id=task["id"], to_agent="guide", reason="end of shift")
    go.field("HANDOFF", "guide", action="accept", handoff_id=handed["handoff"]["id"])
    go.field("HANDOFF", "guide", action="list")
    go.field("SESSION", action="create", session={"id": "trip", "goal": "plan the trip"})
    go.field("SESSION", action="list")
    go.field("RECORD", within="trip", type="finding", content="The ferry is late.", intent=WHY, confidence=SURE)
    for strategy in ("summarize", "archive", "purge"):
        go.field("COMPACT", within="trip", strategy=strategy)
    go.field("DEREGISTER", "guide", agent_id="guide")


def memory_stores(go: Walker) -> None:
    _memory_stores(go, "/anthropic/v1")


def memory_stores_at_the_root(go: Walker) -> None:
    _memory_stores(go, "/v1")


def _memory_stores(go: Walker, root: str) -> None:
    store = go("POST", f"{root}/memory_stores", {"name": f"notes of {root}", "metadata": {"a": "1"}})["id"]
    at = f"{root}/memory_stores/{store}"
    go("GET", f"{root}/memory_stores")
    go("GET", at)
    go("POST", at, {"description": "What was learned."})
    memory = go("POST", f"{at}/memories?view=full", {"path": "/a.md", "content": "Mira drinks tea."})["id"]
    go("POST", f"{at}/memories", {"path": "/people/b.md", "content": "Bo lives in Porto."})
    go("GET", f"{at}/memories?depth=1")
    go("GET", f"{at}/memories/{memory}")
    changed = go("POST", f"{at}/memories/{memory}", {"content": "Mira drinks coffee."})
    go("GET", f"{at}/memories/{memory}/reverie/why")
    go("GET", f"{at}/memories/{memory}/reverie/derived")
    go("POST", f"{at}/reverie/search", {"query": "coffee"})
    go("POST", f"{at}/reverie/tool", {"command": "view", "path": "/memories"})
    versions = go("GET", f"{at}/memory_versions")["data"]
    go("GET", f"{at}/memory_versions/{changed['memory_version_id']}")
    older = next(one["id"] for one in versions if one["memory_id"] == memory and one["operation"] == "created")
    go("POST", f"{at}/memory_versions/{older}/redact")
    asked: dict[str, Any] = {
        "inputs": [{"type": "memory_store", "memory_store_id": store}],
        "model": "reverie-extractive",
        "output_behavior": {"type": "update_existing", "memory_store_id": store},
    }
    told = [{"id": "t1", "text": "user: The launch moved to April 9.\nassistant: Noted."}]
    dream = go("POST", f"{root}/dreams", {**asked, "reverie": {"wait_seconds": 30, "transcripts": told}})
    go("GET", f"{root}/dreams")
    go("GET", f"{root}/dreams/{dream['id']}")
    go("GET", f"{root}/dreams/{dream['id']}/reverie/diff")
    go("POST", f"{root}/dreams/{dream['id']}/reverie/undo")
    go("POST", f"{root}/dreams/{dream['id']}/archive")
    other = go("POST", f"{root}/dreams", {**asked, "output_behavior": {"type": "create_new"}})
    go("POST", f"{root}/dreams/{other['id']}/cancel")
    go("DELETE", f"{at}/memories/{memory}")
    go("POST", f"{at}/archive")
    go("DELETE", at)


def mem0(go: Walker) -> None:
    go("GET", "/mem0/v1/ping/")
    said = {"messages": [{"role": "user", "content": "I am vegetarian."}], "user_id": "ana"}
    first, second, third = (go("POST", "/mem0/v3/memories/add/", said)["results"][0]["id"] for _ in range(3))
    go("POST", "/mem0/v3/memories/", {"filters": {"user_id": "ana"}})
    go("POST", "/mem0/v3/memories/search/", {"query": "vegetarian", "filters": {"user_id": "ana"}})
    at = f"/mem0/v1/memories/{quote(first, safe='')}/"
    go("GET", at)
    go("PUT", at, {"text": "I am vegan."})
    go("GET", f"{at}history/")
    go("GET", "/mem0/v1/entities/")
    go("DELETE", at)
    go("PUT", "/mem0/v1/batch/", {"memories": [{"memory_id": second, "text": "I eat fish."}]})
    go("DELETE", "/mem0/v1/batch/", {"memories": [{"memory_id": third}]})
    go("DELETE", "/mem0/v1/memories/?user_id=ana")
    go("DELETE", "/mem0/v2/entities/user/ana/")


def mcp(go: Walker) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for path in ("/mcp", "/mcp/reference", "/akashik/mcp"):
        tools = go("POST", path, message, headers=RPC)
        assert json.dumps(tools["result"]["tools"])


PARTS: tuple[tuple[Callable[[Walker], None], ...], ...] = (
    (entries, tenant),
    (dreams, schedules),
    (runs,),
    (workspace,),
    (seams,),
    (field, field_of_many),
    (memory_stores,),
    (memory_stores_at_the_root,),
    (mem0,),
    (mcp,),
)
"""Those of a group belong to one tenant."""


def walk(go: Walker) -> None:
    """Ask everything once. Fails when an operation was left out."""
    for group in PARTS:
        go.enter()
        for part in group:
            part(go)
    missed = go.document.operations - go.document.seen
    assert not missed, f"never asked: {sorted(missed)}"
