"""Handlers of memory stores, memories and versions."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.routing import Route

from reverie.core.actor import Right
from reverie.core.errors import Invalid
from reverie.protocols.anthropic.http import PREFIX, dreams
from reverie.protocols.anthropic.http.call import AnthropicCall, NotDone, route
from reverie.protocols.anthropic.http.documents import memory_document, store_document, version_document
from reverie.protocols.anthropic.http.wire import (
    MemoryIn,
    MemoryPatch,
    SearchIn,
    StoreIn,
    StorePatch,
    ToolIn,
    ToolOptions,
    session_of,
)
from reverie.protocols.anthropic.listing import Memory
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import MEMORY, STORE, VERSION
from reverie.protocols.anthropic.stores import Stores
from reverie.protocols.anthropic.tool import MemoryCommands, success_text
from reverie.protocols.anthropic.versions import VersionFilter, Versions

OPERATIONS = ("created", "modified", "deleted")


def routes(base: str) -> list[Route]:
    """Every route of the protocol below a base."""
    stores = f"{base}/v1/memory_stores"
    store, memory = f"{stores}/{{store}}", f"{stores}/{{store}}/memories/{{memory}}"
    version = f"{store}/memory_versions/{{version}}"
    all_dreams = f"{base}/v1/dreams"
    dream = f"{all_dreams}/{{dream}}"
    read, write = Right.READ, Right.WRITE
    return [
        route("POST", stores, create_store, right=write),
        route("GET", stores, list_stores, right=read),
        route("GET", store, get_store, right=read),
        route("POST", store, update_store, right=write, retried=get_store),
        route("DELETE", store, delete_store, right=write, retried=deleted_store),
        route("POST", f"{store}/archive", archive_store, right=write, retried=get_store),
        route("POST", f"{store}/memories", create_memory, right=write),
        route("GET", f"{store}/memories", list_memories, right=read),
        route("GET", memory, get_memory, right=read),
        route("POST", memory, update_memory, right=write),
        route("DELETE", memory, delete_memory, right=write),
        route("GET", f"{store}/memory_versions", list_versions, right=read),
        route("GET", version, get_version, right=read),
        route("POST", f"{version}/redact", redact_version, right=write),
        route("GET", f"{memory}/reverie/why", why, right=read),
        route("GET", f"{memory}/reverie/derived", derived, right=read),
        route("POST", f"{store}/reverie/search", search, right=read),
        route("POST", f"{store}/reverie/tool", tool, right=read, retried=tool_again),
        route("POST", all_dreams, dreams.create_dream, right=Right.DREAM),
        route("GET", all_dreams, dreams.list_dreams, right=read),
        route("GET", dream, dreams.get_dream, right=read),
        route("POST", f"{dream}/cancel", dreams.cancel_dream, right=Right.DREAM, retried=dreams.get_dream),
        route("POST", f"{dream}/archive", dreams.archive_dream, right=Right.DREAM, retried=dreams.get_dream),
        route("GET", f"{dream}/reverie/diff", dreams.diff_dream, right=read),
        route("POST", f"{dream}/reverie/undo", dreams.undo_dream, right=Right.DREAM, retried=dreams.get_dream),
    ]


def scope_of(method: str, path: str) -> str | None:
    """The scope that a method on a path needs."""
    family = path.removeprefix(PREFIX).removeprefix("/v1/").partition("/")[0]
    asks = method in ("GET", "HEAD") or path.endswith("/reverie/search")
    return f"{family}:{'read' if asks else 'write'}" if family in ("memory_stores", "dreams") else None


# stores


def create_store(call: AnthropicCall) -> Any:
    """Create a memory store."""
    given = call.read(StoreIn)
    record = call.host.use(Stores).create(
        call.actor,
        given.name,
        description=given.description,
        metadata=given.metadata,
        idempotency_key=call.idempotency_key,
    )
    return store_document(record)


def list_stores(call: AnthropicCall) -> Any:
    """Memory stores, newest first."""
    query = call.query
    page = call.host.use(Stores).list(
        call.actor,
        since=query.instant("created_at[gte]"),
        until=query.instant("created_at[lte]"),
        archived=query.flag("include_archived"),
        limit=query.limit(),
        after=call.cursor("stores"),
    )
    return call.page([store_document(record) for record in page.items], page.after, "stores")


def get_store(call: AnthropicCall) -> Any:
    """One memory store."""
    return store_document(call.host.use(Stores).get(call.actor, call.path["store"]))


def update_store(call: AnthropicCall) -> Any:
    """Change the name, description or metadata of a memory store."""
    given = call.read(StorePatch)
    record = call.host.use(Stores).update(
        call.actor,
        call.path["store"],
        name=given.name,
        description=given.description,
        metadata=given.metadata,
    )
    return store_document(record)


def archive_store(call: AnthropicCall) -> Any:
    """Archive a memory store: its memories become read-only."""
    call.no_body()
    return store_document(call.host.use(Stores).archive(call.actor, call.path["store"]))


def delete_store(call: AnthropicCall) -> Any:
    """Delete a memory store with its memories."""
    call.no_body()
    deleted = call.host.use(Stores).delete(call.actor, call.path["store"])
    return {"id": STORE + deleted, "type": "memory_store_deleted"}


def deleted_store(call: AnthropicCall) -> Any:
    return {"id": call.path["store"], "type": "memory_store_deleted"}


# memories


def create_memory(call: AnthropicCall) -> Any:
    """Create a memory at a path."""
    given, full = call.read(MemoryIn), call.query.full("basic")
    memory = call.host.use(Memories).create(
        call.actor,
        call.path["store"],
        given.path,
        given.content,
        session=session_of(given.reverie),
        idempotency_key=call.idempotency_key,
    )
    return _write_answer(call, memory, full)


def list_memories(call: AnthropicCall) -> Any:
    """Memories of a store, by path."""
    query = call.query
    full = query.full("basic")
    depth = query.number("depth", 0, 0, 1)
    page = call.host.use(Memories).list(
        call.actor,
        call.path["store"],
        prefix=query.text("path_prefix") or "/",
        depth=depth,
        limit=query.limit(full=full),
        after=call.cursor("memories", call.path["store"]),
    )
    items = [memory_document(item, full=full) for item in page.items]
    return call.page(items, page.after, "memories", call.path["store"])


def get_memory(call: AnthropicCall) -> Any:
    """One memory."""
    full = call.query.full("full")
    return memory_document(call.host.use(Memories).get(call.actor, call.path["store"], call.path["memory"]), full=full)


def update_memory(call: AnthropicCall) -> Any:
    """Change the content or the path of a memory."""
    given, full = call.read(MemoryPatch), call.query.full("basic")
    memory = call.host.use(Memories).update(
        call.actor,
        call.path["store"],
        call.path["memory"],
        content=given.content,
        path=given.path,
        expected=given.precondition.content_sha256 if given.precondition else None,
        session=session_of(given.reverie),
        idempotency_key=call.idempotency_key,
    )
    return _write_answer(call, memory, full)


def delete_memory(call: AnthropicCall) -> Any:
    """Delete a memory."""
    call.no_body()
    deleted = call.host.use(Memories).delete(
        call.actor,
        call.path["store"],
        call.path["memory"],
        expected=call.query.text("expected_content_sha256"),
        idempotency_key=call.idempotency_key,
    )
    return {"id": MEMORY + deleted, "type": "memory_deleted"}


def _write_answer(call: AnthropicCall, memory: Memory, full: bool) -> Any:
    if memory.findings:
        found = sorted(memory.findings.items())
        call.headers["reverie-redacted"] = ", ".join(f"{kind}={count}" for kind, count in found)
    return memory_document(memory, full=full)


# versions


def list_versions(call: AnthropicCall) -> Any:
    """Versions of the memories of a store, newest first."""
    query = call.query
    full = query.full("basic")
    wanted = VersionFilter(
        memory_id=query.text("memory_id"),
        operation=query.choice("operation", OPERATIONS),
        api_key_id=query.text("api_key_id"),
        session_id=query.text("session_id"),
        service_account_id=query.text("service_account_id"),
        since=query.instant("created_at[gte]"),
        until=query.instant("created_at[lte]"),
    )
    store = call.path["store"]
    after, limit = call.cursor("versions", store), query.limit(full=full)
    page = call.host.use(Versions).list(call.actor, store, wanted, limit=limit, after=after)
    return call.page([version_document(one, full=full) for one in page.items], page.after, "versions", store)


def get_version(call: AnthropicCall) -> Any:
    """One version of a memory."""
    full = call.query.full("full")
    version = call.host.use(Versions).get(call.actor, call.path["store"], call.path["version"])
    return version_document(version, full=full)


def redact_version(call: AnthropicCall) -> Any:
    """Destroy the content of a version; the version itself stays."""
    call.no_body()
    version = call.host.use(Versions).redact(call.actor, call.path["store"], call.path["version"])
    return version_document(version, full=True)


# what Reverie adds


def why(call: AnthropicCall) -> Any:
    """The sources of a memory, down to the original words."""
    memory = call.host.use(Memories).get(call.actor, call.path["store"], call.path["memory"])
    if not memory.file.text:
        raise Invalid("A memory without text was made from nothing.")
    version = call.host.use(Versions).get(call.actor, call.path["store"], VERSION + memory.file.version)
    tree = call.host.lineage.why(call.actor, memory.store.ref, memory.file.version)
    return {**msgspec.to_builtins(tree), "made_from": list(version.row.made_from)}


def derived(call: AnthropicCall) -> Any:
    """Everything that was made from a memory."""
    memory = call.host.use(Memories).get(call.actor, call.path["store"], call.path["memory"])
    results = call.host.lineage.derived(call.actor, memory.store.ref, memory.file.version) if memory.file.text else []
    return {"data": results}


def search(call: AnthropicCall) -> Any:
    """The memories of a store that best answer a query."""
    given = call.read(SearchIn)
    record = call.host.use(Stores).get(call.actor, call.path["store"])
    result = call.host.search.search(call.actor, record.ref, given.query, limit=given.limit)
    hits = []
    for hit in result.hits:
        memory = call.host.use(Memories).of_entry(call.actor, record, hit.entry)
        if memory is not None:
            hits.append({"score": hit.score, "memory": memory_document(memory, full=True)})
    return {"data": hits}


def tool(call: AnthropicCall) -> Any:
    """Run one command of the memory tool."""
    given = call.read(ToolIn)
    if given.command != "view":
        call.actor.require(Right.WRITE)
        call.charge()
    call.host.use(Stores).get(call.actor, call.path["store"])
    options = given.reverie or ToolOptions()
    commands = MemoryCommands(
        call.host.use(Memories),
        call.actor,
        call.path["store"],
        session=session_of(options),
        on_exists=options.on_exists,
        view_limit=options.view_limit,
        idempotency_key=call.work_id,
    )
    answer = commands.handle(msgspec.to_builtins(given))
    if answer["is_error"]:
        raise NotDone(answer)
    return answer


def tool_again(call: AnthropicCall) -> Any:
    given = call.read(ToolIn)
    if given.command == "view":
        return tool(call)
    return {"content": success_text(msgspec.to_builtins(given)), "is_error": False}
