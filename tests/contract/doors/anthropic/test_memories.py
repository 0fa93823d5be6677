"""Memories: paths, content, preconditions, lists, secrets."""

from __future__ import annotations

import hashlib
import re
import threading
from typing import Any

import pytest
from anthropic import Anthropic, APIStatusError, ConflictError
from tests.contract.doors.anthropic.conftest import Live, refused

from reverie.core.dream import DreamPlan


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(client: Anthropic, store: str, path: str, content: str = "text") -> Any:
    return client.beta.memory_stores.memories.create(store, path=path, content=content)


def paths(client: Anthropic, store: str, **how: Any) -> list[str]:
    return [str(item.path) for item in client.beta.memory_stores.memories.list(store, **how)]


def test_a_memory_has_every_field(client: Anthropic, store: str) -> None:
    made = client.beta.memory_stores.memories.create(store, path="/a/b.md", content="Grüße\r\n")
    assert re.fullmatch(r"mem_[0-9A-HJKMNP-TV-Z]{26}", made.id)
    assert re.fullmatch(r"memver_[0-9A-HJKMNP-TV-Z]{26}", made.memory_version_id)
    plain = made.to_dict(mode="json")
    assert plain == {
        "id": made.id,
        "type": "memory",
        "memory_store_id": store,
        "memory_version_id": made.memory_version_id,
        "path": "/a/b.md",
        "content": None,
        "content_sha256": sha("Grüße\r\n"),
        "content_size_bytes": len("Grüße\r\n".encode()),
        "created_at": plain["created_at"],
        "updated_at": plain["created_at"],
    }
    memories = client.beta.memory_stores.memories
    read = memories.retrieve(made.id, memory_store_id=store)
    assert read.content == "Grüße\r\n"
    assert memories.retrieve(made.id, memory_store_id=store, view="basic").content is None
    full = memories.create(store, path="/c", content="", view="full")
    assert (full.content, full.content_size_bytes, full.content_sha256) == ("", 0, sha(""))
    assert memories.update(made.id, memory_store_id=store, content="x").content is None
    assert memories.update(made.id, memory_store_id=store, content="y", view="full").content == "y"


def test_blank_text_is_kept_as_it_is(client: Anthropic, store: str) -> None:
    memories = client.beta.memory_stores.memories
    made = memories.create(store, path="/a", content=" \n\t", view="full")
    assert made.content == " \n\t"
    assert memories.retrieve(made.id, memory_store_id=store).content == " \n\t"
    assert memories.update(made.id, memory_store_id=store, content="words", view="full").content == "words"
    assert memories.update(made.id, memory_store_id=store, content="", view="full").content == ""
    versions = client.beta.memory_stores.memory_versions.list(store, view="full")
    assert [one.content for one in versions] == ["", "words", " \n\t"]


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "",
        "/",
        "/a/",
        "/a//b",
        "/./a",
        "/a/..",
        "/" + "/".join("s" * 21),
        "/" + "x" * 1024,
        "/a\u0000b",
        "/a\nb",
        "/a\u200db",
        "/a\u2028b",
        "/cafe\u0301",
    ],
)
def test_paths_that_cannot_be(client: Anthropic, store: str, path: str) -> None:
    refused(lambda: put(client, store, path), 400)
    assert paths(client, store) == []


def test_paths_that_can_be(client: Anthropic, store: str) -> None:
    given = [
        "/" + "/".join("s" * 20),
        "/" + "x" * 1023,
        "/caf\u00e9",
        "/%2e%2e",
        "/a b",
        "/..a",
        "/日本/メモ",
        "/A",
        "/a",
    ]
    for path in given:
        put(client, store, path)
    assert paths(client, store) == sorted(given, key=str.encode)


def test_a_path_is_taken_at_above_and_below(client: Anthropic, store: str) -> None:
    made = put(client, store, "/a/b")
    for path in ("/a/b", "/a", "/a/b/c", "/a/b/c/d"):
        fault = refused(lambda path=path: put(client, store, path), 409, "memory_path_conflict_error")  # type: ignore[misc]
        error: Any = fault.body
        assert error["error"]["conflicting_memory_id"] == made.id
        assert error["error"]["conflicting_path"] == "/a/b"
        assert fault.response.headers["x-should-retry"] == "false"
    put(client, store, "/a/bc")
    other = put(client, store, "/z")
    memories = client.beta.memory_stores.memories
    refused(lambda: memories.update(other.id, memory_store_id=store, path="/a/b"), 409, "memory_path_conflict_error")
    moved = memories.update(other.id, memory_store_id=store, path="/a/c")
    assert (moved.id, moved.path) == (other.id, "/a/c")
    assert paths(client, store) == ["/a/b", "/a/bc", "/a/c"]
    assert memories.update(other.id, memory_store_id=store, path="/a/c/d").path == "/a/c/d"


def test_create_never_overwrites(client: Anthropic, store: str) -> None:
    put(client, store, "/a", "same")
    refused(lambda: put(client, store, "/a", "same"), 409, "memory_path_conflict_error")
    assert len(client.beta.memory_stores.memory_versions.list(store).data) == 1


def test_content_has_a_limit_in_bytes(client: Anthropic, store: str) -> None:
    most = put(client, store, "/most", "ü" * 51_200)
    assert most.content_size_bytes == 102_400
    fault = refused(lambda: put(client, store, "/more", "ü" * 51_200 + "a"), 400)
    assert fault.error_code == "content_too_large"
    memories = client.beta.memory_stores.memories
    refused(lambda: memories.update(most.id, memory_store_id=store, content="a" * 102_401), 400)
    assert memories.retrieve(most.id, memory_store_id=store).content == "ü" * 51_200


@pytest.mark.parametrize("content", ["a\u0000b", None, 7])
def test_content_that_cannot_be(client: Anthropic, store: str, content: Any) -> None:
    refused(lambda: put(client, store, "/a", content), 400)


def test_lone_surrogates_are_refused(live: Live) -> None:
    tenant, key = live.key()
    store = live.client(tenant).beta.memory_stores.create(name="a").id
    body = b'{"path": "/a", "content": "\\ud800"}'
    headers = {"content-type": "application/json"}
    answer = live.send("POST", f"/v1/memory_stores/{store}/memories", key, content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_an_update_without_news_writes_nothing(client: Anthropic, store: str) -> None:
    made = put(client, store, "/a", "text")
    memories, versions = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    for how in ({}, {"content": "text"}, {"path": "/a"}, {"content": "text", "path": "/a"}, {"content": None}):
        same = memories.update(made.id, memory_store_id=store, **how)  # type: ignore[arg-type]
        assert same.memory_version_id == made.memory_version_id
        assert same.updated_at == made.updated_at
    assert len(versions.list(store).data) == 1


def test_preconditions(client: Anthropic, store: str) -> None:
    memories = client.beta.memory_stores.memories
    made = put(client, store, "/a", "one")

    def update(hash_: str, **how: Any) -> Any:
        precondition: Any = {"type": "content_sha256", "content_sha256": hash_}
        return memories.update(made.id, memory_store_id=store, precondition=precondition, **how)

    assert update(sha("one"), content="two").content_sha256 == sha("two")
    fault = refused(lambda: update(sha("one"), content="three"), 409, "memory_precondition_failed_error")
    assert fault.response.headers["x-should-retry"] == "false"
    refused(lambda: update(sha("one"), path="/b"), 409, "memory_precondition_failed_error")
    assert update(sha("one"), content="two").path == "/a"  # it is as asked already
    assert update(sha("two"), path="/b").path == "/b"
    refused(
        lambda: memories.update(made.id, memory_store_id=store, content="x", precondition={"type": "content_sha256"}),
        400,
    )
    refused(
        lambda: memories.delete(made.id, memory_store_id=store, expected_content_sha256=sha("one")),
        409,
        "memory_precondition_failed_error",
    )
    assert memories.delete(made.id, memory_store_id=store, expected_content_sha256=sha("two")).id == made.id
    refused(lambda: memories.delete(made.id, memory_store_id=store), 404, "not_found_error")
    refused(lambda: memories.retrieve(made.id, memory_store_id=store), 404, "not_found_error")


def test_of_two_writers_with_one_hash_one_wins(live: Live) -> None:
    tenant, _ = live.key()
    first = live.client(tenant)
    store = first.beta.memory_stores.create(name="a").id
    made = put(first, store, "/a", "start")
    start = threading.Barrier(4)
    won: list[str] = []
    lost: list[Exception] = []

    def write(text: str, client: Anthropic) -> None:
        start.wait()
        try:
            client.beta.memory_stores.memories.update(
                made.id,
                memory_store_id=store,
                content=text,
                precondition={"type": "content_sha256", "content_sha256": sha("start")},
            )
            won.append(text)
        except ConflictError as fault:
            lost.append(fault)

    threads = [threading.Thread(target=write, args=(f"text {n}", live.client(tenant))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)
    assert first.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store).content == won[0]
    assert len(first.beta.memory_stores.memory_versions.list(store).data) == 2


def test_lists_by_folder(client: Anthropic, store: str) -> None:
    for path in ("/b", "/a/x", "/a/y/1", "/a/y/2", "/a-b", "/c/d/e/f", "/a0"):
        put(client, store, path)
    assert paths(client, store) == ["/a-b", "/a/x", "/a/y/1", "/a/y/2", "/a0", "/b", "/c/d/e/f"]
    assert paths(client, store, path_prefix="/a/") == ["/a/x", "/a/y/1", "/a/y/2"]
    assert paths(client, store, depth=1) == ["/a-b", "/a/", "/a0", "/b", "/c/"]
    assert paths(client, store, path_prefix="/a/", depth=1) == ["/a/x", "/a/y/"]
    assert paths(client, store, path_prefix="/none/") == []
    assert paths(client, store, depth=0) == paths(client, store)
    kinds = {item.type for item in client.beta.memory_stores.memories.list(store, depth=1)}
    assert kinds == {"memory", "memory_prefix"}
    for limit in (1, 2, 3, 100):
        assert paths(client, store, depth=1, limit=limit) == ["/a-b", "/a/", "/a0", "/b", "/c/"]
        assert len(paths(client, store, limit=limit)) == 7
    for bad in ("/a", "a/", "/a//", ""):
        if bad:
            refused(lambda bad=bad: client.beta.memory_stores.memories.list(store, path_prefix=bad), 400)  # type: ignore[misc]
    for depth in (2, -1):
        refused(lambda depth=depth: client.beta.memory_stores.memories.list(store, depth=depth), 400)  # type: ignore[misc]


def test_full_pages_have_at_most_twenty_items(client: Anthropic, store: str) -> None:
    for n in range(23):
        put(client, store, f"/{n:02}", f"text {n}")
    page = client.beta.memory_stores.memories.list(store, view="full", limit=100)
    assert len(page.data) == 20
    assert all(getattr(item, "content", None) for item in page.data)
    assert len(list(page)) == 23
    assert len(client.beta.memory_stores.memories.list(store, limit=100).data) == 23
    assert all(getattr(item, "content", 1) is None for item in client.beta.memory_stores.memories.list(store))


def test_each_memory_is_listed_once_whatever_is_written(client: Anthropic, store: str) -> None:
    for n in range(10):
        put(client, store, f"/{n}")
    page = client.beta.memory_stores.memories.list(store, limit=4)
    seen = [item.path for item in page.data]
    put(client, store, "/00")
    put(client, store, "/99")
    rest = client.beta.memory_stores.memories.list(store, limit=100, page=page.next_page or "")
    seen += [item.path for item in rest.data]
    assert seen == [f"/{n}" for n in range(10)] + ["/99"]


def test_a_store_holds_so_many_memories(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_memories_per_store": 2})
    store = client.beta.memory_stores.create(name="a").id
    first = put(client, store, "/1")
    put(client, store, "/2")
    fault = refused(lambda: put(client, store, "/3"), 400)
    assert fault.error_code == "memory_limit_exceeded"
    memories = client.beta.memory_stores.memories
    memories.update(first.id, memory_store_id=store, content="more", path="/0")
    memories.delete(first.id, memory_store_id=store)
    put(client, store, "/3")


def test_a_full_quota_is_a_bad_request(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_bytes": 10})
    fault = refused(lambda: put(client, store, "/a", "more than ten bytes"), 400)
    assert fault.error_code == "storage_quota_exceeded"


# secrets


def test_secrets_are_replaced_and_the_answer_says_so(client: Anthropic, store: str, github_token: str) -> None:
    text = f"The token is {github_token} for now."
    raw = client.beta.memory_stores.memories.with_raw_response.create(store, path="/a", content=text)
    made = raw.parse()
    stored = "The token is [REDACTED:github-token] for now."
    assert made.content_sha256 == sha(stored)
    assert made.to_dict()["reverie"] == {"redacted": {"github-token": 1}}
    assert raw.headers["reverie-redacted"] == "github-token=1"
    memories, versions = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    read = memories.retrieve(made.id, memory_store_id=store)
    assert read.content == stored
    assert "reverie" not in read.to_dict()
    row = versions.retrieve(made.memory_version_id, memory_store_id=store)
    assert row.to_dict()["reverie"] == {"redacted": {"github-token": 1}}
    again = memories.update(made.id, memory_store_id=store, content=text)
    assert again.memory_version_id == made.memory_version_id
    assert len(versions.list(store).data) == 1
    assert "reverie-redacted" not in memories.with_raw_response.retrieve(made.id, memory_store_id=store).headers


def test_a_policy_can_refuse_secrets(live: Live, github_token: str) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"store_secrets": "refuse"})
    store = client.beta.memory_stores.create(name="a").id
    fault = refused(lambda: put(client, store, "/a", f"token {github_token}"), 400)
    assert fault.error_code == "secret_in_content"
    error: Any = fault.body
    assert error["error"]["details"]["kinds"] == ["github-token"]
    assert github_token not in fault.response.text
    assert paths(client, store) == []


def test_paths_with_secrets_are_refused(client: Anthropic, store: str, github_token: str) -> None:
    fault = refused(lambda: put(client, store, f"/keys/{github_token}"), 400)
    assert github_token not in fault.response.text
    made = put(client, store, "/a")
    memories = client.beta.memory_stores.memories
    refused(lambda: memories.update(made.id, memory_store_id=store, path=f"/{github_token}"), 400)


# one memory, many interfaces


def test_other_interfaces_read_what_is_written_here(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    made = put(client, store, "/people/mira.md", "Mira drinks oolong tea in the afternoon.")
    listed = live.send("GET", f"/v1/host/reverie/memory/{store}/entries", key).json()
    entries = listed["entries"] if "entries" in listed else listed["items"]
    assert [entry["content"] for entry in entries] == ["Mira drinks oolong tea in the afternoon."]
    assert entries[0]["kind"] == "file"
    assert entries[0]["attributes"]["path"] == "/people/mira.md"
    assert entries[0]["attributes"]["memory"] == made.id
    found = client.post(
        f"/v1/memory_stores/{store}/reverie/search", cast_to=object, body={"query": "what does Mira drink"}
    )
    data: Any = found
    assert data["data"][0]["memory"]["id"] == made.id
    client.beta.memory_stores.memories.update(made.id, memory_store_id=store, content="Mira drinks coffee now.")
    listed = live.send("GET", f"/v1/host/reverie/memory/{store}/entries", key).json()
    entries = listed["entries"] if "entries" in listed else listed["items"]
    assert [entry["content"] for entry in entries] == ["Mira drinks coffee now."]


def test_a_bound_store_shows_a_memory_of_the_tenant(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    path = "/v1/host/reverie/memory/team/entries"
    for text in ("The launch is in March.", "Ada leads the launch."):
        assert live.send("POST", path, key, json={"content": text}).status_code == 201
    store = client.beta.memory_stores.create(name="team", metadata={"reverie.ref": "team"}).id
    refused(lambda: client.beta.memory_stores.create(name="b", metadata={"reverie.ref": "team"}), 400)
    memories = client.beta.memory_stores.memories
    shown = list(memories.list(store, view="full"))
    assert {getattr(item, "content", "") for item in shown} == {"The launch is in March.", "Ada leads the launch."}
    assert all(re.fullmatch(r"/entries/note/.+\.md", str(item.path)) for item in shown)
    one: Any = shown[0]
    assert memories.retrieve(one.id, memory_store_id=store).content == one.content
    fault = refused(lambda: memories.update(one.id, memory_store_id=store, content="x"), 400)
    assert fault.error_code == "memory_read_only"
    refused(lambda: memories.delete(one.id, memory_store_id=store), 400)
    refused(lambda: put(client, store, "/entries/note/x.md"), 400)
    put(client, store, "/plan.md", "The plan.")
    assert paths(client, store, depth=1) == ["/entries/", "/plan.md"]
    client.beta.memory_stores.delete(store)
    left = live.send("GET", path, key).json()
    assert len(left["entries"] if "entries" in left else left["items"]) == 2


def test_entries_of_a_bound_store_are_found_by_ids_that_their_writer_chose(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    body = {"content": "The launch is in March.", "id": "launch-1"}
    assert live.send("POST", "/v1/host/reverie/memory/team/entries", key, json=body).status_code == 201
    store = client.beta.memory_stores.create(name="team", metadata={"reverie.ref": "team"}).id
    memories = client.beta.memory_stores.memories
    one: Any = next(iter(memories.list(store)))
    assert one.path == "/entries/note/launch-1.md"
    assert memories.retrieve(one.id, memory_store_id=store).content == "The launch is in March."
    assert (
        refused(lambda: memories.update(one.id, memory_store_id=store, content="x"), 400).error_code
        == "memory_read_only"
    )
    refused(lambda: memories.delete(one.id, memory_store_id=store), 400)


def test_an_entry_retired_elsewhere_is_no_memory(live: Live) -> None:
    tenant, key = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    made = put(client, store, "/a", "first")
    entry = made.memory_version_id.removeprefix("memver_")
    assert live.send("DELETE", f"/v1/host/reverie/memory/{store}/entries/{entry}", key).status_code < 300
    assert paths(client, store) == []
    refused(lambda: client.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store), 404, "not_found_error")
    again = put(client, store, "/a", "second")
    assert again.id != made.id
    assert paths(client, store) == ["/a"]


def test_dreams_and_consolidation_of_a_memory_leave_files_alone(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    for n in range(12):
        put(client, store, f"/{n}", f"We decided that service {n} listens on port {7000 + n}. Thanks a lot, all good!")
    put(client, store, "/same", "The gate opens at nine.")
    put(client, store, "/again", "The gate opens at nine.")
    before = {
        item.path: getattr(item, "content", "") for item in client.beta.memory_stores.memories.list(store, view="full")
    }
    host, actor = live.server.host, live.server.host.system_actor(tenant)
    assert host.dreams.run(actor, DreamPlan(store, fit=True)) is None
    assert host.consolidator.run(actor, store).merged == []
    after = {
        item.path: getattr(item, "content", "") for item in client.beta.memory_stores.memories.list(store, view="full")
    }
    assert after == before


def test_a_secret_that_is_registered_later_is_taken_out_of_every_version(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    store = client.beta.memory_stores.create(name="a").id
    made = put(client, store, "/a", "The word is plugh-4711 today.")
    client.beta.memory_stores.memories.update(made.id, memory_store_id=store, content="Still plugh-4711, tomorrow too.")
    host, actor = live.server.host, live.server.host.system_actor(tenant)
    host.rules.register(actor, "door", "plugh-4711")
    host.rescan.scan(actor)
    read = client.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store)
    assert read.content == "Still [REDACTED:door], tomorrow too."
    assert read.content_sha256 == sha(read.content)
    assert read.content_size_bytes == len(read.content)
    rows = client.beta.memory_stores.memory_versions.list(store, view="full")
    assert all(row.content is not None and row.content_sha256 == sha(row.content) for row in rows)
    assert "plugh" not in str([row.content for row in rows])
    again = client.beta.memory_stores.memories.update(
        made.id, memory_store_id=store, content="Still plugh-4711, tomorrow too."
    )
    assert again.memory_version_id == read.memory_version_id


def test_idempotency_keys(client: Anthropic, store: str) -> None:
    headers = {"Idempotency-Key": "one"}
    memories = client.beta.memory_stores.memories
    first = memories.create(store, path="/a", content="x", extra_headers=headers)
    again = memories.create(store, path="/a", content="x", extra_headers=headers)
    assert again.id == first.id
    fault = refused(
        lambda: memories.create(store, path="/b", content="x", extra_headers=headers), 409, "conflict_error"
    )
    assert fault.error_code == "idempotency_key_reused"
    made = client.beta.memory_stores.create(name="b", extra_headers=headers)
    assert client.beta.memory_stores.create(name="b", extra_headers=headers).id == made.id
    for _ in range(2):
        memories.update(first.id, memory_store_id=store, content="second", extra_headers=headers)
        memories.update(first.id, memory_store_id=store, content="third")
    assert memories.retrieve(first.id, memory_store_id=store).content == "third"
    assert len(client.beta.memory_stores.memory_versions.list(store, memory_id=first.id).data) == 3
    for _ in range(2):
        assert memories.delete(first.id, memory_store_id=store, extra_headers=headers).id == first.id


def test_a_create_sent_again_shows_the_memory_as_it_is_now(client: Anthropic, store: str) -> None:
    memories, headers = client.beta.memory_stores.memories, {"Idempotency-Key": "two"}

    def create() -> Any:
        return memories.create(store, path="/a.md", content="first", view="full", extra_headers=headers)

    made = create()
    assert create() == made
    memories.update(made.id, memory_store_id=store, content="second", path="/b.md")
    assert create() == memories.retrieve(made.id, memory_store_id=store)


def test_status_errors_carry_the_shape(client: Anthropic, store: str) -> None:
    with pytest.raises(APIStatusError) as fault:
        client.beta.memory_stores.memories.retrieve("mem_none", memory_store_id=store)
    body: Any = fault.value.body
    assert set(body) == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert body["error"]["type"] == "not_found_error"
    assert body["error"]["details"]["error_code"] == "not_found"
    assert fault.value.request_id == body["request_id"]
