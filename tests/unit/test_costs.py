"""Cost of every operation of every door: rows and transactions at 100 entries and at many more are the same, or the
table says why not. The OpenAPI document says what there is; an operation that no table names fails a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cost_world import ACTOR, API, MEM0, MEMORY, REF, STORES, Act, World, open_world
from tests.postgres import shared_server

from reverie.core.entry import Draft
from reverie.core.run import DISPATCH
from reverie.protocols.openwop.runs import Runs
from reverie.protocols.openwop.workflow import ActiveRun, Node, Workflow
from reverie.store.contract import Store
from reverie.store.postgres import PostgresStore
from reverie.store.sqlite import SqliteStore

FEW = 100
SOME = 500
"""Enough to see that an operation grows: what reads every entry takes a minute for ten thousand."""
MANY = {"sqlite": 10_000, "postgres": 2_000}


def open_worlds(engine: str, tmp_path_factory: pytest.TempPathFactory, *sizes: int) -> Iterator[tuple[World, ...]]:
    stores: list[Store] = []
    made = []
    for size in sizes:
        folder = tmp_path_factory.mktemp("costs")
        if engine == "sqlite":
            stores.append(SqliteStore(folder / "memory.db"))
        else:
            stores.append(PostgresStore(shared_server(tmp_path_factory).make_database()))
        made.append(open_world(folder, stores[-1], size))
    yield tuple(made)
    for store in stores:
        store.close()


@pytest.fixture(scope="module")
def worlds(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, ...]]:
    yield from open_worlds(engine, tmp_path_factory, FEW, MANY[engine])


@pytest.fixture(scope="module")
def growing_worlds(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, ...]]:
    yield from open_worlds(engine, tmp_path_factory, FEW, SOME)


def _forget(world: World) -> object:
    subject = f"guest{world.new()}"
    world.host.entries.put(ACTOR, REF, [Draft(f"{subject} stayed {n} nights.", subject=subject) for n in range(3)])
    return world.post(f"{API}/memory/forget", {"subject": subject})


def _entry(method: str, tail: str = "", body: Any = None) -> Act:
    return lambda w: w.ask(method, f"{MEMORY}/entries/{w.one()}{tail}", body)


def _dream(method: str, tail: str, *, anywhere: bool = False) -> Act:
    def act(world: World) -> object:
        ref, dream = world.dreamt()
        return world.ask(
            method, f"{API}/dreams/{dream}{tail}" if anywhere else f"{API}/memory/{ref}/dreams/{dream}{tail}"
        )

    return act


def _schedule(method: str, tail: str = "", body: Any = None) -> Act:
    def act(world: World) -> object:
        made = world.post(f"{API}/schedules", {"cron": "0 3 * * *", "ref": f"yard{world.new()}"})
        return world.ask(method, f"{API}/schedules/{made['id']}{tail}", body)

    return act


def _run(method: str, tail: str = "", body: Any = None) -> Act:
    return lambda w: w.ask(method, f"/v1/runs/{w.run()}{tail}", body)


def _in_run(*tails: str) -> Act:
    """Requests about a run, made while its only step goes on."""

    def act(world: World) -> object:
        def body(work: ActiveRun) -> dict[str, Any]:
            with work.node("ask"):
                for tail in tails:
                    world.post(f"/v1/runs/{work.run.id}{tail}")
            return {}

        name = f"test.asking.{world.new()}"
        runs = world.host.use(Runs)
        runs.offer(name, Workflow(body, nodes=(Node("ask", "core.noop", "Ask about this run"),)))
        return runs.start(ACTOR, name)

    return act


def _file(method: str, tail: str = "", body: Any = None) -> Act:
    return lambda w: w.ask(method, w.file() + tail, body)


def _in_store(method: str, tail: str = "", body: Any = None) -> Act:
    return lambda w: w.ask(method, w.file().partition("/memories/")[0] + tail, body)


def _version(method: str, tail: str = "") -> Act:
    def act(world: World) -> object:
        memory = world.file()
        old = world.get(memory)["memory_version_id"]
        world.post(memory, {"content": f"Prefers calls, {world.new()}."})
        return world.ask(method, f"{memory.partition('/memories/')[0]}/memory_versions/{old}{tail}")

    return act


def _file_dream(method: str, tail: str = "") -> Act:
    def act(world: World) -> object:
        store = world.store()
        for _ in range(3):
            world.file(store)
        inputs = [{"type": "memory_store", "memory_store_id": store.rpartition("/")[2]}]
        made = world.post("/anthropic/v1/dreams", {"inputs": inputs, "model": "reverie-extractive"})
        if "undo" in tail or "diff" in tail or "archive" in tail:
            world.host.memory_dreams.work(ACTOR, holder="test")
        return world.ask(method, f"/anthropic/v1/dreams/{made['id']}{tail}") if method else made

    return act


def _mem0(method: str, tail: str = "", body: Any = None) -> Act:
    return lambda w: w.ask(method, f"{MEM0}/v1/memories/{w.remembered()}/{tail}", body)


def _batch(method: str) -> Act:
    return lambda w: w.ask(
        method, f"{MEM0}/v1/batch/", {"memories": [{"memory_id": w.remembered(), "text": f"I sold it in {w.new()}."}]}
    )


def _deleted(world: World) -> str:
    entry = world.one()
    world.ask("DELETE", f"{MEMORY}/entries/{entry}")
    return entry


def _import(world: World) -> object:
    """A bundle of one entry, into another memory."""
    ref, lines = f"cellar{world.new()}", {"Content-Type": "application/x-ndjson"}
    world.one(ref=ref)
    bundle = str(world.get(f"{API}/export?ref={ref}"))
    return lambda: world.ask("POST", f"{API}/import?ref={ref}-again", text=bundle, **lines)


def _checksum(world: World) -> str:
    ref, dream = world.dreamt()
    return str(world.get(f"{API}/memory/{ref}/dreams/{dream}")["checksum"])


def _workspace(world: World) -> str:
    name = f"f{world.new()}.md"
    world.ask("PUT", f"/v1/host/workspace/files/{name}", {"content": "# Plan"})
    return name


def _leave(world: World) -> object:
    name = f"a{world.new()}"
    world.send("REGISTER", {"id": name, "role": "builder"})
    return world.send("DEREGISTER", {"agent_id": name})


def _recorded(world: World, **more: Any) -> str:
    """The id of a new unit."""
    return str(world.send("RECORD", world.unit(**more))["memory_unit_id"])


def _merge(world: World) -> object:
    against = [{"type": "contradicts", "target_id": _recorded(world)}]
    conflict = world.send("RECORD", world.unit(relations=against))["conflicts_detected"][0]
    return world.send(
        "MERGE", {"conflict_id": conflict, "strategy": "last_write_wins", "resolution": {"rationale": "x"}}
    )


OPERATIONS: dict[str, Act] = {
    # entries
    "put_entries": lambda w: w.post(f"{MEMORY}/entries", {"content": f"A crate, number {w.new():x}, came in."}),
    "put_entries, fifty": lambda w: w.post(
        f"{MEMORY}/entries", {"entries": [{"content": f"Box {w.new():x}"} for _ in range(50)]}
    ),
    "list_entries": lambda w: w.get(f"{MEMORY}/entries?limit=20"),
    "get_entry": _entry("GET"),
    "change_entry": _entry("PATCH", body={"pinned": True}),
    "change_entry, archived": _entry("PATCH", body={"archived": True}),
    "delete_entry": _entry("DELETE"),
    "delete_entry, erased": _entry("DELETE", "?erase=true"),
    "restore_entry": lambda w: w.post(f"{MEMORY}/entries/{_deleted(w)}/restore"),
    "supersede_entry": _entry("POST", "/supersede", {"content": "The crate was opened."}),
    "list_ids": lambda w: w.get(f"{MEMORY}/ids?prefix=01M7&limit=5"),
    "entry_states": lambda w: w.post(f"{MEMORY}/states", {"ids": [w.one(), w.one()]}),
    "change_entries": lambda w: w.post(
        f"{MEMORY}/changes", {"change": "retract", "entries": [{"id": w.one(), "version": 1} for _ in range(3)]}
    ),
    "list_links": _entry("GET", "/links"),
    "why": _entry("GET", "/why"),
    "derived": _entry("GET", "/derived"),
    "list_memories": lambda w: w.get(f"{API}/memory"),
    # search
    "search": lambda w: w.post(f"{MEMORY}/search", {"query": "Which hall holds crate 1f?"}),
    "search, by words": lambda w: w.post(f"{MEMORY}/search", {"query": "valves of hall 12", "mode": "words"}),
    "context": lambda w: w.post(f"{MEMORY}/context", {"purpose": "crates of hall 12", "budget": 500}),
    # the tenant
    "me": lambda w: w.get(f"{API}/me"),
    "forget": _forget,
    "forget, preview": lambda w: w.post(f"{API}/memory/forget", {"subject": "lena", "preview": True}),
    "sweep": lambda w: w.post(f"{API}/sweep"),
    "stats": lambda w: w.get(f"{API}/stats"),
    "get_policy": lambda w: w.get(f"{API}/policy"),
    "change_policy": lambda w: w.ask("PATCH", f"{API}/policy", {"max_tags": 40}),
    "list_secrets": lambda w: w.get(f"{API}/secrets"),
    "register_secret": lambda w: w.post(f"{API}/secrets", {"id": "mail", "value": f"correct horse {w.new()}"}),
    "remove_secret": lambda w: (
        w.post(f"{API}/secrets", {"id": "gone", "value": f"battery staple {w.new()}"}),
        w.ask("DELETE", f"{API}/secrets/gone"),
    ),
    "import_bundle": _import,
    "list_events": lambda w: w.get(f"{API}/events?after=0&limit=20"),
    # dreams
    "dream": lambda w: w.dreamt(),
    "list_dreams": lambda w: w.get(f"{MEMORY}/dreams?limit=10"),
    "get_dream": _dream("GET", ""),
    "undo_dream": _dream("POST", "/undo"),
    "diff_dream": _dream("GET", "/diff"),
    "verify_dream": _dream("GET", "/verify"),
    "memory_index": lambda w: w.get(f"{MEMORY}/index"),
    "get_archive": lambda w: w.get(f"{API}/archives/{_checksum(w)}"),
    "consolidate": lambda w: w.post(f"{API}/memory/small/consolidate"),
    "list_all_dreams": lambda w: w.get(f"{API}/dreams?limit=10"),
    "get_any_dream": _dream("GET", "", anywhere=True),
    "undo_any_dream": _dream("POST", "/undo", anywhere=True),
    "diff_any_dream": _dream("GET", "/diff", anywhere=True),
    "verify_any_dream": _dream("GET", "/verify", anywhere=True),
    "tenant_index": lambda w: w.get(f"{API}/index"),
    "list_schedules": lambda w: w.get(f"{API}/schedules"),
    "add_schedule": lambda w: w.post(f"{API}/schedules", {"cron": "0 3 * * *", "ref": f"yard{w.new()}"}),
    "change_schedule": _schedule("PATCH", body={"paused": True}),
    "remove_schedule": _schedule("DELETE"),
    "run_schedule": _schedule("POST", "/run", {}),
    # OpenWOP
    "discover": lambda w: w.get("/.well-known/openwop"),
    "list_agents": lambda w: w.get("/v1/agents"),
    "get_agent": lambda w: w.get("/v1/agents/clerk"),
    "get_workflow": lambda w: w.get(f"/v1/workflows/{DISPATCH}"),
    "start_run": lambda w: w.run(),
    "get_run": _run("GET"),
    "list_run_events": _run("GET", "/events"),
    "poll_run_events": _run("GET", "/events/poll"),
    "pause_run": _in_run(":pause"),
    "resume_run": _in_run(":pause", ":resume"),
    "fork_run": _run("POST", ":fork", {"mode": "replay", "fromSeq": 0}),
    "cancel_run": _run("POST", "/cancel", {}),
    "cancel_runs": lambda w: w.post("/v1/runs:bulk-cancel", {"runIds": [w.run()], "reason": "not needed"}),
    "list_files": lambda w: w.get("/v1/host/workspace/files"),
    "put_file": lambda w: w.ask("PUT", f"/v1/host/workspace/files/f{w.new()}.md", {"content": "# Plan"}),
    "get_file": lambda w: w.get(f"/v1/host/workspace/files/{_workspace(w)}"),
    "delete_file": lambda w: w.ask("DELETE", f"/v1/host/workspace/files/{_workspace(w)}"),
    # Akashik
    "akashik_register": lambda w: w.send("REGISTER", {"id": f"a{w.new()}", "role": "builder"}),
    "akashik_deregister": lambda w: _leave(w),
    "akashik_record": lambda w: w.send("RECORD", w.unit()),
    "akashik_attune": lambda w: w.send("ATTUNE", {"scope": {"role": "builder", "max_units": 5}}),
    "akashik_detect": lambda w: w.send("DETECT", {"mode": "list"}),
    "akashik_attune, of a task": lambda w: w.send(
        "ATTUNE", {"scope": {"role": "builder", "max_units": 5, "active_task_id": "t"}}
    ),
    "akashik_handoff": lambda w: w.send("HANDOFF", {"action": "initiate", "task_id": "t", "to_agent": "mate"}),
    "akashik_detect, check": lambda w: w.send("DETECT", {"mode": "check", "target_id": _recorded(w)}),
    "akashik_merge": _merge,
    "akashik_subscribe": lambda w: w.send(
        "SUBSCRIBE", {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
    ),
    "akashik_coordinate": lambda w: w.send(
        "COORDINATE", {"action": "create", "task": {"id": f"t{w.new()}", "title": "x"}}
    ),
    "akashik_session": lambda w: w.send(
        "SESSION", {"action": "create", "session": {"id": f"s{w.new()}", "goal": "paint the weir"}}
    ),
    "akashik_status": lambda w: w.get("/akashik/v1/field/status"),
    "akashik_log": lambda w: w.get("/akashik/v1/field/log?limit=10"),
    "akashik_agents": lambda w: w.get("/akashik/v1/agents"),
    "akashik_conflicts": lambda w: w.get("/akashik/v1/conflicts"),
    "akashik_unit": lambda w: w.get(f"/akashik/v1/units/{_recorded(w)}"),
    # MCP
    "mcp, remember": lambda w: w.tool("/mcp", "remember", ref=REF, content=f"Crate {w.new():x} came in."),
    "mcp, recall": lambda w: w.tool("/mcp", "recall", ref=REF, query="Which hall holds crate 1f?"),
    "mcp, context": lambda w: w.tool("/mcp", "context", ref=REF, purpose="crates of hall 12", budget=500),
    "mcp, memories": lambda w: w.tool("/mcp", "memories"),
    "mcp_reference, create_entities": lambda w: w.tool(
        "/mcp/reference",
        "create_entities",
        entities=[{"name": f"Clerk {w.new()}", "entityType": "person", "observations": ["counts crates"]}],
    ),
    "mcp_reference, open_nodes": lambda w: w.tool("/mcp/reference", "open_nodes", names=["Lena"]),
    "mcp_reference, search_nodes": lambda w: w.tool("/mcp/reference", "search_nodes", query="Lena"),
    "akashik_mcp": lambda w: w.tool("/akashik/mcp", "akashik_detect", agent_id="me", payload={"mode": "list"}),
    # mem0
    "mem0_ping": lambda w: w.get(f"{MEM0}/v1/ping/"),
    "mem0_add": lambda w: w.remembered(),
    "mem0_get_all": lambda w: w.post(f"{MEM0}/v3/memories/", {"filters": {"user_id": "lena"}, "page_size": 5}),
    "mem0_search": lambda w: w.post(f"{MEM0}/v3/memories/search/", {"query": "boat", "filters": {"user_id": "lena"}}),
    "mem0_get": _mem0("GET"),
    "mem0_update": _mem0("PUT", body={"text": "I sold the boat."}),
    "mem0_delete": _mem0("DELETE"),
    "mem0_history": _mem0("GET", "history/"),
    "mem0_entities": lambda w: w.get(f"{MEM0}/v1/entities/"),
    "mem0_delete_all": lambda w: (w.remembered(), w.ask("DELETE", f"{MEM0}/v1/memories/?user_id=ana")),
    "mem0_delete_entity": lambda w: (w.remembered(), w.ask("DELETE", f"{MEM0}/v2/entities/user/ana/")),
    "mem0_update_batch": _batch("PUT"),
    "mem0_delete_batch": _batch("DELETE"),
    # Anthropic
    "anthropic_create_store": lambda w: w.store(),
    "anthropic_list_stores": lambda w: w.get(f"{STORES}?limit=5"),
    "anthropic_get_store": _in_store("GET"),
    "anthropic_update_store": _in_store("POST", body={"description": "What was learned."}),
    "anthropic_delete_store": _in_store("DELETE"),
    "anthropic_archive_store": _in_store("POST", "/archive"),
    "anthropic_create_memory": lambda w: w.file(),
    "anthropic_list_memories": _in_store("GET", "/memories?limit=5"),
    "anthropic_get_memory": _file("GET"),
    "anthropic_update_memory": _file("POST", body={"content": "Prefers phone calls."}),
    "anthropic_delete_memory": _file("DELETE"),
    "anthropic_list_versions": _in_store("GET", "/memory_versions?limit=5"),
    "anthropic_get_version": _version("GET"),
    "anthropic_redact_version": _version("POST", "/redact"),
    "anthropic_why": _file("GET", "/reverie/why"),
    "anthropic_derived": _file("GET", "/reverie/derived"),
    "anthropic_search": _in_store("POST", "/reverie/search", {"query": "how to reach the customer"}),
    "anthropic_tool": _in_store("POST", "/reverie/tool", {"command": "view", "path": "/memories"}),
    "anthropic_create_dream": _file_dream(""),
    "anthropic_list_dreams": lambda w: w.get("/anthropic/v1/dreams?limit=5"),
    "anthropic_get_dream": _file_dream("GET"),
    "anthropic_cancel_dream": _file_dream("POST", "/cancel"),
    "anthropic_archive_dream": _file_dream("POST", "/archive"),
    "anthropic_diff_dream": _file_dream("GET", "/reverie/diff"),
    "anthropic_undo_dream": _file_dream("POST", "/reverie/undo"),
}
"""Operations by their OpenAPI id, with variants behind a comma. Their rows and transactions do not follow the size of the
memory."""

SEARCHES = {
    "search",
    "search, by words",
    "context",
    "akashik_record",
    "akashik_attune",
    "akashik_attune, of a task",
    "akashik_detect, check",
    "akashik_merge",
    "akashik_unit",
    "mcp, recall",
    "mcp, context",
}
CANDIDATES = 400
"""A search looks at a fixed number of candidates, which a hundred entries do not fill."""

LOG_PAGE = 1000
"""The log of a Field is read by pages, which a hundred entries do not fill."""

GROWS: dict[str, tuple[Act, str]] = {
    "dream, plan": (
        lambda w: w.post(f"{MEMORY}/dreams", {"plan": True}),
        "a plan counts the tokens of every entry it would take",
    ),
    "verify_audit": (lambda w: w.get(f"{API}/audit/verify"), "every event is hashed again"),
    "export_bundle": (lambda w: w.get(f"{API}/export"), "all of it leaves"),
    "akashik_replay": (
        lambda w: w.send("REPLAY", {"target_type": "memory_unit", "target_id": _recorded(w)}),
        "the events of a unit are looked for in the whole log",
    ),
    "akashik_compact": (
        lambda w: w.send("COMPACT", {"strategy": "archive", "reason": "measuring", "dry_run": True}),
        "every unit is looked at",
    ),
    "scan": (lambda w: w.post(f"{API}/scan", {"dry_run": True}), "every text is looked at with the rules of today"),
}
"""Operations that read more when there is more, each with its reason. One that stops growing belongs into the other table."""

ENDLESS = {"akashik_stream": "a stream of what comes next: one look serves all streams of a tenant (test_tail.py)"}
"""Operations that do not end, with where their cost is tested."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_cost_does_not_follow_the_size_of_the_memory(worlds: tuple[World, ...], name: str) -> None:
    small, large = (world.cost(OPERATIONS[name]) for world in worlds)
    assert large[1] == small[1], "transactions"
    more = LOG_PAGE if name == "akashik_log" else CANDIDATES if name in SEARCHES else 4
    assert large[0] <= small[0] + more, "rows"


@pytest.mark.parametrize("name", GROWS)
def test_what_grows_is_listed_with_its_reason(growing_worlds: tuple[World, ...], name: str) -> None:
    act, reason = GROWS[name]
    small, large = (world.cost(act)[0] for world in growing_worlds)
    assert reason
    assert large > small * 2, f"{name} no longer grows: move it to OPERATIONS"


def test_every_operation_of_every_door_is_in_a_table(worlds: tuple[World, ...]) -> None:
    document = worlds[0]._app.openapi()
    there = {one["operationId"] for methods in document["paths"].values() for one in methods.values()}
    named = {name.partition(",")[0] for name in (*OPERATIONS, *GROWS, *ENDLESS)}
    assert named >= {name.removeprefix("root_") for name in there}, "an operation without a row"
    assert named <= there, "a row without an operation"
