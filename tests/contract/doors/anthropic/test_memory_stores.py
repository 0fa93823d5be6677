"""Memory stores: create, read, list, change, archive, delete."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from anthropic import Anthropic, BadRequestError, NotFoundError
from tests.contract.doors.anthropic.conftest import Live, refused
from tests.stores import on_one_store


def test_a_store_has_every_field(client: Anthropic) -> None:
    made = client.beta.memory_stores.create(name="notes", description="of the team", metadata={"a": "1"})
    assert re.fullmatch(r"memstore_[0-9A-HJKMNP-TV-Z]{26}", made.id)
    plain = made.to_dict(mode="json")
    assert plain == {
        "id": made.id,
        "type": "memory_store",
        "name": "notes",
        "description": "of the team",
        "metadata": {"a": "1"},
        "created_at": plain["created_at"],
        "updated_at": plain["created_at"],
        "archived_at": None,
    }
    raw = client.beta.memory_stores.with_raw_response.retrieve(made.id).http_response.json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", raw["created_at"])
    assert client.beta.memory_stores.retrieve(made.id) == made
    bare = client.beta.memory_stores.create(name="notes")
    assert (bare.description, bare.metadata) == ("", {})


@on_one_store
@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a\nb"},
        {"name": "a", "description": "x" * 1025},
        {"name": "a", "metadata": {str(n): "v" for n in range(17)}},
        {"name": "a", "metadata": {"": "v"}},
        {"name": "a", "metadata": {"k" * 65: "v"}},
        {"name": "a", "metadata": {"k": "v" * 513}},
        {"name": "a", "metadata": {"k": 1}},
        {"name": "a", "metadata": {"k": None}},
        {"name": 7},
    ],
)
def test_fields_over_their_limits_are_refused(client: Anthropic, fields: Any) -> None:
    refused(lambda: client.beta.memory_stores.create(**fields), 400)
    assert client.beta.memory_stores.list().data == []


def test_unknown_fields_are_refused(client: Anthropic) -> None:
    fault = refused(lambda: client.beta.memory_stores.create(name="a", extra_body={"colour": "red"}), 400)
    assert "colour: Extra inputs are not permitted" in fault.message


def test_an_update_is_a_patch(client: Anthropic) -> None:
    made = client.beta.memory_stores.create(name="a", description="d", metadata={"keep": "1", "go": "2"})
    after = client.beta.memory_stores.update(made.id, metadata={"go": None, "new": "3"})
    assert (after.name, after.description, after.metadata) == ("a", "d", {"keep": "1", "new": "3"})
    assert after.updated_at > made.updated_at
    assert after.created_at == made.created_at
    same = client.beta.memory_stores.update(made.id, name=None, description=None)
    assert same == after
    assert client.beta.memory_stores.update(made.id, description="").description == ""
    many: Any = {str(n): "v" for n in range(15)}
    refused(lambda: client.beta.memory_stores.update(made.id, metadata=many), 400)
    assert client.beta.memory_stores.retrieve(made.id).metadata == {"keep": "1", "new": "3"}


def test_a_subject_that_no_entry_can_have_is_refused(client: Anthropic) -> None:
    stores = client.beta.memory_stores
    refused(lambda: stores.create(name="a", metadata={"reverie.subject": "x" * 257}), 400)
    made = stores.create(name="a", metadata={"reverie.subject": "x" * 256}).id
    stores.memories.create(made, path="/a", content="one")
    refused(lambda: stores.update(made, metadata={"reverie.subject": "y" * 257}), 400)


def test_lists_are_newest_first_and_filtered(client: Anthropic) -> None:
    made = [client.beta.memory_stores.create(name=f"s{n}") for n in range(5)]
    client.beta.memory_stores.archive(made[1].id)
    page = client.beta.memory_stores.list(limit=2)
    assert [one.name for one in page.data] == ["s4", "s3"]
    assert page.next_page is not None
    assert page.next_page.startswith("page_")
    assert [one.name for one in client.beta.memory_stores.list(limit=2)] == ["s4", "s3", "s2", "s0"]
    archived = client.beta.memory_stores.list(include_archived=True)
    assert [one.name for one in archived] == ["s4", "s3", "s2", "s1", "s0"]
    some = client.beta.memory_stores.list(created_at_gte=made[3].created_at, created_at_lte=made[3].created_at)
    assert made[3].id in [one.id for one in some]
    assert made[0].id not in [one.id for one in some] or made[0].created_at == made[3].created_at
    for limit in (0, 101, -1):
        refused(lambda limit=limit: client.beta.memory_stores.list(limit=limit), 400)  # type: ignore[misc]


def test_a_cursor_belongs_to_its_list(live: Live, client: Anthropic) -> None:
    for n in range(3):
        client.beta.memory_stores.create(name=f"s{n}")
    cursor = client.beta.memory_stores.list(limit=1).next_page
    assert cursor is not None
    refused(lambda: client.beta.memory_stores.list(limit=1, page=cursor, include_archived=True), 400)
    refused(lambda: client.beta.memory_stores.list(limit=1, page=cursor[:-2] + "AA"), 400)
    refused(lambda: client.beta.memory_stores.list(page="x"), 400)
    refused(lambda: live.client().beta.memory_stores.list(limit=1, page=cursor), 400)
    assert client.beta.memory_stores.list(limit=2, page=cursor).data[0].name == "s1"


def test_archive_is_one_way_and_read_only(client: Anthropic, store: str) -> None:
    memories = client.beta.memory_stores.memories
    kept = memories.create(store, path="/a", content="one")
    old = kept.memory_version_id
    memories.update(kept.id, memory_store_id=store, content="two")
    archived = client.beta.memory_stores.archive(store)
    assert archived.archived_at is not None
    assert archived.updated_at == archived.archived_at
    assert client.beta.memory_stores.archive(store) == archived
    refused(lambda: memories.create(store, path="/b", content="x"), 400)
    refused(lambda: memories.update(kept.id, memory_store_id=store, content="x"), 400)
    refused(lambda: client.beta.memory_stores.update(store, name="x"), 400)
    assert memories.retrieve(kept.id, memory_store_id=store).content == "two"
    assert client.beta.memory_stores.memory_versions.redact(old, memory_store_id=store).redacted_at is not None
    assert memories.delete(kept.id, memory_store_id=store).type == "memory_deleted"
    assert client.beta.memory_stores.delete(store).type == "memory_store_deleted"


def test_a_deleted_store_is_unreachable_at_once(client: Anthropic, store: str) -> None:
    memory = client.beta.memory_stores.memories.create(store, path="/a", content="one")
    deleted = client.beta.memory_stores.delete(store)
    assert deleted.to_dict() == {"id": store, "type": "memory_store_deleted"}
    stores = client.beta.memory_stores
    for call in (
        lambda: stores.retrieve(store),
        lambda: stores.delete(store),
        lambda: stores.archive(store),
        lambda: stores.memories.retrieve(memory.id, memory_store_id=store),
        lambda: stores.memories.list(store),
        lambda: stores.memory_versions.list(store),
        lambda: stores.memory_versions.retrieve(memory.memory_version_id, memory_store_id=store),
        lambda: stores.memories.create(store, path="/b", content="x"),
    ):
        refused(call, 404, "not_found_error")
    assert stores.list(include_archived=True).data == []


def test_updated_at_does_not_move_with_memories(client: Anthropic, store: str) -> None:
    before = client.beta.memory_stores.retrieve(store)
    client.beta.memory_stores.memories.create(store, path="/a", content="one")
    assert client.beta.memory_stores.retrieve(store) == before


def test_names_with_secrets_are_refused_and_texts_redacted(client: Anthropic, github_token: str) -> None:
    refused(lambda: client.beta.memory_stores.create(name=f"of {github_token}"), 400)
    refused(lambda: client.beta.memory_stores.create(name="a", metadata={github_token: "x"}), 400)
    made = client.beta.memory_stores.create(name="a", description=f"key {github_token}", metadata={"k": github_token})
    assert github_token not in made.to_json()
    assert made.metadata is not None
    assert made.metadata["k"] == "[REDACTED:github-token]"


def test_ids_of_others_are_not_found(live: Live, client: Anthropic, store: str) -> None:
    memory = client.beta.memory_stores.memories.create(store, path="/a", content="one")
    other = live.client()
    with pytest.raises(NotFoundError):
        other.beta.memory_stores.retrieve(store)
    with pytest.raises(NotFoundError):
        other.beta.memory_stores.memories.retrieve(memory.id, memory_store_id=store)
    for name in ("memstore_", "memstore_x", "mem_" + store[9:], store[9:], store + "x", "memstore_%2e%2e"):
        with pytest.raises((NotFoundError, BadRequestError)):
            client.beta.memory_stores.retrieve(name)


def test_the_number_of_stores_is_limited(live: Live) -> None:
    tenant, _ = live.key()
    client = live.client(tenant)
    live.server.host.rules.set_policy(live.server.host.system_actor(tenant), {"max_memory_stores": 2})
    made = [client.beta.memory_stores.create(name="a") for _ in range(2)]
    fault = refused(lambda: client.beta.memory_stores.create(name="a"), 400)
    assert fault.error_code == "memory_store_limit_exceeded"
    client.beta.memory_stores.delete(made[0].id)
    client.beta.memory_stores.create(name="a")


def test_a_repeated_change_of_a_store_is_made_once(live: Live) -> None:
    client = live.client()
    made = client.beta.memory_stores.create(name="first")
    change, archive, delete = ({"Idempotency-Key": uuid4().hex} for _ in range(3))
    stores = client.beta.memory_stores
    for _ in range(2):
        assert stores.update(made.id, name="second", extra_headers=change).name == "second"
    reused = refused(lambda: stores.update(made.id, name="third", extra_headers=change), 409, "conflict_error")
    assert reused.error_code == "idempotency_key_reused"
    times = {stores.archive(made.id, extra_headers=archive).archived_at for _ in range(2)}
    assert len(times) == 1
    gone = [stores.delete(made.id, extra_headers=delete) for _ in range(2)]
    assert [(one.id, one.type) for one in gone] == [(made.id, "memory_store_deleted")] * 2
    refused(lambda: stores.delete(made.id), 404, "not_found_error")
