"""No route, parameter, cursor, id, ETag, idempotency key or error lets one tenant see, count or change another's."""

from __future__ import annotations

import re
from typing import Any

import pytest

WORD = "Zanzibar"
UNKNOWN = "01ZZZZZZZZZZZZZZZZZZZZZZZZ"

CASES: dict[str, tuple[str, str, Any]] = {
    "put_entries": ("POST", "memory/{ref}/entries", {"content": "mine", "id": "{id}"}),
    "list_entries": ("GET", "memory/{ref}/entries", None),
    "get_entry": ("GET", "memory/{ref}/entries/{id}?cold=true", None),
    "change_entry": ("PATCH", "memory/{ref}/entries/{id}", {"pinned": True}),
    "delete_entry": ("DELETE", "memory/{ref}/entries/{id}?erase=true", None),
    "restore_entry": ("POST", "memory/{ref}/entries/{id}/restore", None),
    "list_ids": ("GET", "memory/{ref}/ids?prefix={id}", None),
    "entry_states": ("POST", "memory/{ref}/states", {"ids": ["{id}"]}),
    "change_entries": (
        "POST",
        "memory/{ref}/changes",
        {"change": "retract", "entries": [{"id": "{id}", "version": 0}, {"id": "{id}", "version": 1}]},
    ),
    "list_links": ("GET", "memory/{ref}/entries/{id}/links", None),
    "search": ("POST", "memory/{ref}/search", {"query": WORD, "explain": True}),
    "context": ("POST", "memory/{ref}/context", {"purpose": f"about {WORD}"}),
    "forget": ("POST", "memory/forget", {"subject": "{subject}", "memoryRef": "{ref}"}),
    "list_memories": ("GET", "memory", None),
    "list_events": ("GET", "events", None),
    "stats": ("GET", "stats", None),
    "get_policy": ("GET", "policy", None),
    "change_policy": ("PATCH", "policy", {"max_tags": 9}),
    "list_secrets": ("GET", "secrets", None),
    "register_secret": ("POST", "secrets", {"id": "{secret}", "value": "another-value-here"}),
    "remove_secret": ("DELETE", "secrets/{secret}", None),
    "verify_audit": ("GET", "audit/verify", None),
    "export_bundle": ("GET", "export", None),
    "scan": ("POST", "scan", {"dry_run": True}),
    "dream": ("POST", "memory/{ref}/dreams", {"plan": True}),
    "list_dreams": ("GET", "memory/{ref}/dreams", None),
    "get_dream": ("GET", "memory/{ref}/dreams/{dream}", None),
    "undo_dream": ("POST", "memory/{ref}/dreams/{dream}/undo", None),
    "diff_dream": ("GET", "memory/{ref}/dreams/{dream}/diff", None),
    "verify_dream": ("GET", "memory/{ref}/dreams/{dream}/verify", None),
    "list_all_dreams": ("GET", "dreams?ref={ref}", None),
    "get_any_dream": ("GET", "dreams/{dream}", None),
    "undo_any_dream": ("POST", "dreams/{dream}/undo", None),
    "diff_any_dream": ("GET", "dreams/{dream}/diff", None),
    "verify_any_dream": ("GET", "dreams/{dream}/verify", None),
    "tenant_index": ("GET", "index?ref={ref}", None),
    "me": ("GET", "me", None),
    "sweep": ("POST", "sweep", None),
    "supersede_entry": ("POST", "memory/{ref}/entries/{id}/supersede", {"content": "The ferry runs again."}),
    "memory_index": ("GET", "memory/{ref}/index", None),
    "get_archive": ("GET", "archives/{checksum}", None),
    "why": ("GET", "memory/{ref}/entries/{id}/why", None),
    "derived": ("GET", "memory/{ref}/entries/{id}/derived", None),
    "consolidate": ("POST", "memory/{ref}/consolidate", None),
    "list_schedules": ("GET", "schedules", None),
    "add_schedule": ("POST", "schedules", {"cron": "0 3 * * *", "ref": "{ref}"}),
    "change_schedule": ("PATCH", "schedules/{schedule}", {"paused": True}),
    "remove_schedule": ("DELETE", "schedules/{schedule}", None),
    "run_schedule": ("POST", "schedules/{schedule}/run", None),
}
NOT_BY_NAME = {"import_bundle": "takes a bundle, and has its own test below"}


def filled(value: Any, names: dict[str, str]) -> Any:
    """`{name}` replaced, everywhere."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], value)
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return {key: filled(item, names) for key, item in value.items()} if isinstance(value, dict) else value


def shape(body: Any) -> Any:
    """What an answer says, without what differs between any two answers: ids, times, hashes, positions."""
    text = re.sub(r"01[0-9A-Z]{24}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT[0-9:.]+Z|key:\w+|tenant-\d+|theirs|nobodys", "*", body)
    return re.sub(r'"(position|seq|head|next)":\d+', r'"\1":*', text)


class Owner:
    """A tenant with something in every place."""

    def __init__(self, server: Any) -> None:
        self.caller = server.caller()
        self.id = self.caller.put(f"{WORD} is warm.", ref="theirs", subject="theirs", tags=["theirs"], pinned=True)
        self.caller.put(f"{WORD} is an island.", ref="theirs", pinned=True)
        days = [
            {"content": f"On day {n} the ferry to {WORD} left at {n + 5} o'clock, and it rained."} for n in range(20)
        ]
        self.caller.post("memory/theirs/entries", {"entries": days})
        dream = self.caller.post("memory/theirs/dreams", {})
        assert dream.status_code == 201, dream.text
        schedule = self.caller.post("schedules", {"cron": "0 3 * * *", "ref": "theirs"})
        assert schedule.status_code == 201, schedule.text
        self.caller.post("secrets", {"id": "theirs", "value": "a-value-to-hide"})
        self.caller.patch("policy", {"max_tags": 33})
        self.names = {"ref": "theirs", "id": self.id, "subject": "theirs", "secret": "theirs"}
        self.names |= {"dream": dream.json()["id"], "checksum": dream.json()["checksum"]}
        self.names |= {"schedule": schedule.json()["id"]}

    def everything(self) -> str:
        """All that the tenant has, for comparing before and after."""
        bundle = self.caller.get("export").text
        rest = [self.caller.get(path).text for path in ("policy", "secrets", "schedules", "memory/theirs/dreams")]
        return re.sub(r'"created_at":"[^"]*","head"|"sha256":"\w+"', "", bundle) + "\n".join(rest)


@pytest.fixture(scope="module")
def owner(server: Any) -> Owner:
    """One for all operations: none of them may change what it has."""
    return Owner(server)


@pytest.mark.parametrize("operation", CASES)
def test_a_foreign_name_answers_as_an_unknown_one(server: Any, owner: Owner, operation: str) -> None:
    before = owner.everything()
    unknown = {"ref": "nobodys", "id": UNKNOWN, "subject": "nobodys", "secret": "nobodys"}
    unknown |= {"dream": UNKNOWN, "schedule": UNKNOWN, "checksum": "0" * 64}
    answers = []
    for names in (owner.names, unknown):
        stranger = server.caller()  # a new one each time: both start from nothing
        stranger.put("mine")
        method, path, body = CASES[operation]
        options = {} if body is None else {"json": filled(body, names)}
        answers.append(stranger.send(method, filled(path, names), **options))
    foreign, absent = answers
    assert foreign.status_code == absent.status_code
    assert shape(foreign.text) == shape(absent.text)
    assert set(foreign.headers) == set(absent.headers)
    assert "is warm" not in foreign.text
    assert "is an island" not in foreign.text
    assert owner.caller.tenant not in foreign.text
    assert owner.everything() == before


def test_every_operation_is_tried(server: Any) -> None:
    document = server.stranger().get("/v1/openapi.json").json()
    native = [path for name, path in document["paths"].items() if name.startswith("/v1/host/reverie/")]
    operations = {op["operationId"] for path in native for op in path.values()}
    assert operations == set(CASES) | set(NOT_BY_NAME)


def test_importing_into_a_ref_of_the_same_name_stays_with_the_importer(server: Any) -> None:
    owner = Owner(server)
    before = owner.everything()
    stranger = server.caller()
    media = {"Content-Type": "application/x-ndjson"}
    bundle = owner.caller.get("export").content
    assert stranger.post("import", content=bundle, headers=media).json()["skipped"] == 0
    assert owner.everything() == before


def test_a_foreign_cursor_is_as_good_as_a_made_up_one(server: Any) -> None:
    owner = Owner(server)
    cursor = owner.caller.get("memory/theirs/entries?limit=1").json()["cursor"]
    stranger = server.caller()
    foreign = stranger.get(f"memory/theirs/entries?limit=1&cursor={cursor}")
    made_up = stranger.get(f"memory/theirs/entries?limit=1&cursor={'A' * len(cursor)}")
    assert foreign.status_code == made_up.status_code == 400
    assert foreign.text == made_up.text


def test_every_bit_of_a_cursor_counts(server: Any) -> None:
    owner = Owner(server)
    cursor = owner.caller.get("memory/theirs/entries?limit=1").json()["cursor"]
    for at in range(len(cursor) - 1):
        changed = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        assert owner.caller.get(f"memory/theirs/entries?limit=1&cursor={changed}").status_code == 400


def test_a_cursor_tells_nothing(server: Any) -> None:
    """The store's cursor counts the rows of every tenant; the one a caller holds is sealed."""
    owner = Owner(server)
    pages = [owner.caller.get("memory/theirs/entries?limit=1").json()["cursor"] for _ in range(2)]
    assert pages[0] != pages[1]


def test_a_foreign_etag_is_no_oracle(server: Any) -> None:
    owner, stranger = Owner(server), server.caller()
    path = f"memory/theirs/entries/{owner.id}"
    for tag in ('"1"', '"2"', "*"):
        assert stranger.patch(path, {"pinned": True}, headers={"If-Match": tag}).status_code == 404
        assert stranger.delete(path, headers={"If-Match": tag}).status_code == 404
        assert stranger.get(path, headers={"If-None-Match": tag}).status_code == 404


def test_idempotency_keys_of_two_tenants_do_not_meet(server: Any) -> None:
    owner, stranger = server.caller(), server.caller()
    key = {"Idempotency-Key": "the-same"}
    first = owner.post("memory/notes/entries", {"content": "one"}, headers=key)
    second = stranger.post("memory/notes/entries", {"content": "two"}, headers=key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["replayed"] is False


def test_log_positions_count_the_tenants_own_events(server: Any) -> None:
    busy, quiet = server.caller(), server.caller()
    for number in range(5):
        busy.put(f"number {number}")
    quiet.put("one")
    assert quiet.get("events").json()["next"] == 1
    busy.put("more")
    assert quiet.get("stats").json()["events"] == 1
    assert quiet.get("memory/notes/entries?as_of=2").status_code == 400


def test_one_tenants_words_do_not_move_anothers_scores(server: Any) -> None:
    scores = []
    for noise in (0, 40):
        other, caller = server.caller(), server.caller()
        if noise:
            other.post("memory/notes/entries", {"entries": [{"content": f"kite number {n}"} for n in range(noise)]})
        same_day = {"created_at": "2026-01-01T10:00:00Z"}
        caller.put("A red kite over the hill.", **same_day)
        caller.put("A green hill.", **same_day)
        found = caller.post("memory/notes/search", {"query": "kite hill"}).json()
        scores.append([hit["score"] for hit in found["hits"]])
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_a_registered_secret_of_one_tenant_is_not_looked_for_in_another(server: Any) -> None:
    owner, stranger = Owner(server), server.caller()
    entry = stranger.put("the phrase a-value-to-hide is public here")
    assert "a-value-to-hide" in stranger.get(f"memory/notes/entries/{entry}").json()["content"]
    assert owner.caller.get("secrets").json() == {"secrets": ["theirs"]}
