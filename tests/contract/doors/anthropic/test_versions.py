"""Versions: the history of memories, redaction, retention, forget."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import Anthropic
from tests.contract.doors.anthropic.conftest import Live, refused

from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import Scope
from reverie.memory.files import DUE_SPACE, KEPT_VERSIONS, file_count, paths, versions
from reverie.privacy.reach import all_entries
from reverie.protocols.anthropic.versions import VersionFilter


def test_every_change_is_one_version(client: Anthropic, store: str) -> None:
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    made = memories.create(store, path="/a", content="one")
    memories.update(made.id, memory_store_id=store, content="two")
    memories.update(made.id, memory_store_id=store, path="/b")
    memories.delete(made.id, memory_store_id=store)
    rows = list(history.list(store, view="full"))
    assert [(row.operation, row.path, row.content) for row in rows] == [
        ("deleted", "/b", None),
        ("modified", "/b", "two"),
        ("modified", "/a", "two"),
        ("created", "/a", "one"),
    ]
    assert {row.memory_id for row in rows} == {made.id}
    assert (rows[0].content_sha256, rows[0].content_size_bytes) == (None, None)
    assert rows[-1].id == made.memory_version_id
    assert all(row.redacted_at is None and row.redacted_by is None for row in rows)
    assert set(history.retrieve(rows[1].id, memory_store_id=store).to_dict()) == {
        "id",
        "type",
        "memory_id",
        "memory_store_id",
        "operation",
        "created_at",
        "created_by",
        "path",
        "content",
        "content_sha256",
        "content_size_bytes",
        "redacted_at",
        "redacted_by",
    }
    assert history.retrieve(rows[1].id, memory_store_id=store, view="basic").content is None
    assert all(row.content is None for row in history.list(store))


def test_filters_work_on_deleted_memories(live: Live) -> None:
    tenant, _ = live.key()
    one, two = live.client(tenant), live.client(tenant)
    store = one.beta.memory_stores.create(name="a").id
    history = one.beta.memory_stores.memory_versions
    first = one.beta.memory_stores.memories.create(store, path="/a", content="x")
    second = two.beta.memory_stores.memories.create(
        store, path="/b", content="y", extra_body={"reverie": {"session": "walk"}}
    )
    two.beta.memory_stores.memories.delete(first.id, memory_store_id=store)

    def ids(**how: Any) -> list[tuple[str, str]]:
        return [(row.memory_id, row.operation) for row in history.list(store, **how)]

    assert ids(memory_id=first.id) == [(first.id, "deleted"), (first.id, "created")]
    assert ids(memory_id=first.id, limit=1) == [(first.id, "deleted"), (first.id, "created")]
    assert ids(operation="created") == [(second.id, "created"), (first.id, "created")]
    assert ids(session_id="sesn_walk") == [(second.id, "created")]
    rows = list(history.list(store))
    created: Any = [row.created_by for row in rows]
    assert [actor.type for actor in created] == ["api_actor", "session_actor", "api_actor"]
    assert created[0].api_key_id.startswith("apikey_")
    assert created[0].api_key_id != created[2].api_key_id
    assert ids(api_key_id=created[2].api_key_id) == [(first.id, "created")]
    assert ids(created_at_gte=rows[0].created_at)[0] == (first.id, "deleted")
    assert ids(created_at_lte=rows[2].created_at)[-1] == (first.id, "created")
    assert len(ids(created_at_lte=rows[2].created_at)) < 3 or rows[0].created_at == rows[2].created_at
    assert ids(service_account_id="svac_x") == []
    refused(lambda: history.list(store, operation="moved"), 400)  # type: ignore[arg-type]
    refused(lambda: history.list(store, memory_id="mem_x"), 404, "not_found_error")


def test_redact_destroys_a_version_for_good(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    made = memories.create(store, path="/old-name", content="a private sentence")
    head = memories.update(made.id, memory_store_id=store, content="public", path="/new").memory_version_id
    fault = refused(lambda: history.redact(head, memory_store_id=store), 400)
    assert fault.error_code == "version_is_head"
    gone = history.redact(made.memory_version_id, memory_store_id=store)
    assert (gone.content, gone.path, gone.content_sha256, gone.content_size_bytes) == (None, None, None, None)
    by: Any = gone.redacted_by
    assert gone.redacted_at is not None
    assert by.type == "api_actor"
    assert history.redact(made.memory_version_id, memory_store_id=store) == gone
    assert history.retrieve(made.memory_version_id, memory_store_id=store) == gone
    assert memories.retrieve(made.id, memory_store_id=store).content == "public"
    memories.delete(made.id, memory_store_id=store)
    assert history.redact(head, memory_store_id=store).redacted_at is not None
    host = live.server.host
    kept = host.parts.store.read(
        Scope(tenant),
        lambda tx: [d.key + str(d.body) for space in (paths, versions) for d in tx.documents(space(store[9:])).items],
    )
    assert "old-name" not in "".join(kept)
    assert host.audit.verify(host.system_actor(tenant)).ok


def test_a_hold_keeps_a_version(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    made = memories.create(store, path="/a", content="one")
    host, entry = live.server.host, made.memory_version_id[7:]
    host.lifecycle.hold(host.system_actor(tenant), store, entry)
    fault = refused(lambda: memories.delete(made.id, memory_store_id=store), 409, "conflict_error")
    assert fault.error_code == "held"
    assert fault.response.headers["x-should-retry"] == "false"
    memories.update(made.id, memory_store_id=store, content="two")
    refused(lambda: history.redact(made.memory_version_id, memory_store_id=store), 409, "conflict_error")
    host.lifecycle.release(host.system_actor(tenant), store, entry)
    assert history.redact(made.memory_version_id, memory_store_id=store).redacted_at is not None


def test_forget_reaches_stores_and_versions(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a", metadata={"reverie.subject": "Mira"}).id
    other = client.beta.memory_stores.create(name="b").id
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    first = memories.create(store, path="/mira.md", content="She likes tea.")
    memories.update(first.id, memory_store_id=store, content="She likes coffee.")
    kept = memories.create(other, path="/x", content="Tomas likes tea.")
    named = memories.create(other, path="/y", content="Old: Mira called.")
    memories.update(named.id, memory_store_id=other, content="Nobody called.")
    body = {"subject": "mira", "mentions": True}
    answer = live.send("POST", "/v1/host/reverie/memory/forget", key, json=body)
    assert answer.status_code == 200
    assert answer.json()["forgotten"] == 3
    assert [item.path for item in memories.list(store)] == []
    refused(lambda: memories.retrieve(first.id, memory_store_id=store), 404, "not_found_error")
    rows = list(history.list(store, view="full"))
    assert {row.content for row in rows} == {None}
    assert {row.path for row in rows} == {None}
    assert all(row.redacted_at is not None for row in rows)
    by: Any = rows[-1].redacted_by
    assert by.type == "api_actor"
    assert memories.retrieve(kept.id, memory_store_id=other).content == "Tomas likes tea."
    assert memories.retrieve(named.id, memory_store_id=other).content == "Nobody called."
    old = history.retrieve(named.memory_version_id, memory_store_id=other)
    assert (old.content, old.path) == (None, None)
    assert live.server.host.audit.verify(live.server.host.system_actor(tenant)).ok


def test_forget_by_mention_reaches_the_paths_of_deleted_files(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    store = client.beta.memory_stores.create(name="a").id
    for path in ("/mira.md", "/tomas.md"):
        memories.delete(memories.create(store, path=path, content="Likes tea.").id, memory_store_id=store)
    body = {"subject": "mira", "mentions": True}
    assert live.send("POST", "/v1/host/reverie/memory/forget", key, json=body).status_code == 200
    rows = list(history.list(store, view="full"))
    assert {row.path for row in rows} == {None, "/tomas.md"}
    assert all((row.redacted_at is None) == (row.path is not None) for row in rows)
    assert len(rows) == 4


def test_versions_are_kept_as_long_as_they_must(make_host: Any, ada: Any, clock: Any) -> None:
    host = make_host()
    store = "memstore_" + host.memory_stores.create(ada, "a").id
    memory = "mem_" + host.memories.create(ada, store, "/a", "text 0").file.id
    for n in range(1, 15):
        clock.advance(1000)
        host.memories.update(ada, store, memory, content=f"text {n}")
    blank = "mem_" + host.memories.create(ada, store, "/gone", "").file.id
    host.memories.delete(ada, store, blank)

    def texts(memory_id: str) -> list[str | None]:
        rows = host.memory_versions.list(ada, store, VersionFilter(memory_id=memory_id), limit=100).items
        return [row.content for row in rows]

    clock.advance(30 * MS_PER_DAY - 20_000)
    assert host.file_retention.sweep(ada) == 0
    assert len(texts(memory)) == 15
    clock.advance(40_000)
    assert host.file_retention.sweep(ada) == 15 - KEPT_VERSIONS
    assert texts(memory) == [f"text {n}" for n in range(14, 4, -1)]
    assert texts(blank) == []
    host.memories.delete(ada, store, memory)
    clock.advance(30 * MS_PER_DAY + 1)
    host.file_retention.sweep(ada)
    host.lifecycle.retain(ada)
    assert texts(memory) == []
    assert host.parts.store.read(Scope("acme"), lambda tx: tx.documents(DUE_SPACE).items) == []
    assert host.audit.verify(ada).ok


def test_a_deleted_store_is_destroyed_after_the_undo_window(make_host: Any, ada: Any, clock: Any) -> None:
    host = make_host()
    store = "memstore_" + host.memory_stores.create(ada, "a").id
    for n in range(3):
        host.memories.create(ada, store, f"/{n}", f"text {n}")
    host.memory_stores.delete(ada, store)
    assert host.reader.page(ada, store).items == []
    clock.advance(7 * MS_PER_DAY + 1)
    assert host.file_retention.sweep(ada) == 3
    spaces = (paths(store[9:]), versions(store[9:]), DUE_SPACE)
    left = host.parts.store.read(Scope("acme"), lambda tx: [tx.documents(space).items for space in spaces])
    assert left == [[], [], []]
    assert host.audit.verify(ada).ok


def test_a_deleted_store_is_destroyed_behind_the_files_of_its_predecessor(make_host: Any, ada: Any, clock: Any) -> None:
    """The store bound to the same ref before it left more files than one look at them reads, and they rest longer."""
    host = make_host()
    first = "memstore_" + host.memory_stores.create(ada, "a", metadata={"reverie.ref": "notes"}).id
    for n in range(200):
        host.memories.create(ada, first, f"/{n}", f"text {n}")
    host.memory_stores.delete(ada, first)
    host.rules.set_policy(ada, {"undo_window_ms": MS_PER_DAY})
    second = "memstore_" + host.memory_stores.create(ada, "b", metadata={"reverie.ref": "notes"}).id
    memory = "mem_" + host.memories.create(ada, second, "/a", "The old gate code is heron.").file.id
    host.memories.update(ada, second, memory, content="The new gate code is otter.")
    host.memory_stores.delete(ada, second)
    clock.advance(MS_PER_DAY + 1)
    assert host.file_retention.sweep(ada) == 2
    left = host.parts.store.read(Scope("acme", "notes"), lambda tx: list(all_entries(tx, "notes")))
    assert len(left) == 200
    assert not any("gate code" in entry.content for entry in left)


@pytest.mark.parametrize("then", ["kept", "changed", "moved", "deleted"])
def test_forget_by_mention_reaches_the_paths_of_empty_files(live: Live, then: str) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    store = client.beta.memory_stores.create(name="a").id
    memories.create(store, path="/tomas.md", content="")
    made = memories.create(store, path="/people/mira.md", content="")
    if then == "changed":
        memories.update(made.id, memory_store_id=store, content="Likes tea.")
    elif then == "moved":
        memories.update(made.id, memory_store_id=store, path="/people/somebody.md")
    elif then == "deleted":
        memories.delete(made.id, memory_store_id=store)
    body = {"subject": "mira", "mentions": True}
    assert live.send("POST", "/v1/host/reverie/memory/forget", key, json=body).status_code == 200
    assert {row.path for row in history.list(store, view="full")} <= {None, "/tomas.md", "/people/somebody.md"}
    left = [item.path for item in memories.list(store)]
    assert left == (["/people/somebody.md"] if then == "moved" else []) + ["/tomas.md"]
    number = live.server.host.parts.store.read(Scope(tenant), lambda tx: file_count(tx, store.partition("_")[2]))
    assert number == len(left)
    kept = live.server.host.parts.store.read(Scope(tenant), lambda tx: tx.documents(paths(store.partition("_")[2])))
    assert "mira" not in str([(one.key, one.body) for one in kept.items])
    assert live.server.host.audit.verify(live.server.host.system_actor(tenant)).ok


@pytest.mark.parametrize("emptied", [False, True])
def test_forget_reaches_the_paths_of_files_of_which_nothing_is_left(live: Live, emptied: bool) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    store = client.beta.memory_stores.create(name="a", metadata={"reverie.subject": "Mira"}).id
    made = memories.create(store, path="/asthma.md", content="Since 2019.")
    if emptied:
        memories.update(made.id, memory_store_id=store, content="")
    memories.delete(made.id, memory_store_id=store)
    other = client.beta.memory_stores.create(name="b").id
    kept = memories.create(other, path="/tomas.md", content="Likes tea.")
    memories.delete(kept.id, memory_store_id=other)
    assert live.send("POST", "/v1/host/reverie/memory/forget", key, json={"subject": "mira"}).status_code == 200
    rows = list(history.list(store, view="full"))
    assert {row.path for row in rows} == {None}
    assert all(row.redacted_at is not None for row in rows)
    assert {row.path for row in history.list(other)} == {"/tomas.md"}
    assert live.server.host.audit.verify(live.server.host.system_actor(tenant)).ok


def test_forget_leaves_the_path_of_a_file_that_others_wrote_in(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    memories, history = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    store = client.beta.memory_stores.create(name="a").id
    made = memories.create(store, path="/notes.md", content="Mira called.")
    memories.update(made.id, memory_store_id=store, content="Nobody called.")
    memories.delete(made.id, memory_store_id=store)
    body = {"subject": "mira", "mentions": True}
    assert live.send("POST", "/v1/host/reverie/memory/forget", key, json=body).status_code == 200
    assert [row.path for row in history.list(store)] == ["/notes.md", "/notes.md", None]
