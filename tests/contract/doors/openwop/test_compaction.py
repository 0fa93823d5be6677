"""Compaction (RFC 0012) over HTTP: one entry for many, one event, nothing lost in between, no secret carried forward."""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.contract.doors.openwop.schemas import COMPACTED, ERROR, MEMORY_ENTRY, valid
from tests.stores import on_one_store

from reverie.core.dream import RedactionFailed

COMPACT = "/v1/test/memory/compact"
MARKER = re.compile(r"\[REDACTED:[A-Za-z0-9_.-]+\]")


def fresh(name: str = "notes") -> str:
    return f"{name}/{uuid4().hex}"


def seed(caller: Any, ref: str, *entries: Any, **more: Any) -> Any:
    """Plant texts, or whole entries."""
    told = [{"id": f"e{n}", "content": item} if isinstance(item, str) else item for n, item in enumerate(entries)]
    answer = caller.post("/v1/test/memory/seed", {"memoryRef": ref, "entries": told, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def compact(caller: Any, ref: str, **more: Any) -> Any:
    answer = caller.post(COMPACT, {"memoryRef": ref, **more})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    valid(body["payload"], COMPACTED)
    return body


def stored(caller: Any, ref: str, **asked: Any) -> list[dict[str, Any]]:
    answer = caller.get(f"/v1/memory/{quote(ref, safe='')}", params={"limit": 500, **asked})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["entries"]
    for entry in entries:
        valid(entry, MEMORY_ENTRY)
    return entries


def run_events(caller: Any, run_id: str, kind: str | None = None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = caller.get(f"/v1/runs/{run_id}/events/poll").json()["events"]
    return [event for event in events if kind is None or event["type"] == kind]


def test_many_become_one_with_one_event(ada: Any) -> None:
    ref = fresh()
    planted = seed(
        ada, ref, "Tea is served at four.", "Coffee is served at ten, naïvely ☕.", "The kitchen closes at six."
    )
    body = compact(ada, ref)
    payload = body["payload"]
    assert body["type"] == "memory.compacted"
    assert payload["memoryRef"] == ref
    assert payload["sourceCount"] == 3
    assert sorted(payload["sourceIds"]) == sorted(planted["plantedIds"])
    assert payload["trigger"] == "host-managed"
    assert payload["byteSize"] == len(body["outputContent"].encode())
    assert "distillation" not in payload
    (entry,) = stored(ada, ref)
    assert entry["id"] == payload["outputId"]
    assert entry["content"] == body["outputContent"]
    (tag,) = [tag for tag in entry["tags"] if tag.startswith("compacted-from:")]
    assert tag == f"compacted-from:{body['runId']}"
    assert re.fullmatch(r"compacted-from:[^\s:][^\s]*", tag)
    (event,) = run_events(ada, body["runId"], "memory.compacted")
    assert event["payload"] == payload
    assert stored(ada, ref, id=payload["outputId"]) == [entry]
    assert run_events(ada, body["runId"])[-1]["type"] == "run.completed"


def test_events_hold_no_text(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "the zanzibar ledger", "the mombasa ledger")
    run = compact(ada, ref)["runId"]
    told = ada.get(f"/v1/runs/{run}/events/poll").text + ada.get("/v1/host/reverie/events?limit=1000").text
    assert "zanzibar" not in told
    assert "ledger" not in told


@pytest.mark.parametrize(("count", "named"), [(2, True), (100, True), (101, False)])
def test_sources_are_all_named_up_to_a_hundred(ada: Any, count: int, named: bool) -> None:
    ref = fresh()
    planted = seed(ada, ref, *(f"fact number {n}" for n in range(count)))["plantedIds"]
    payload = compact(ada, ref)["payload"]
    assert payload["sourceCount"] == count
    assert sorted(payload.get("sourceIds", [])) == (sorted(planted) if named else [])
    assert ("sourceIds" in payload) is named


def test_fewer_than_two_live_entries_are_left_alone(ada: Any) -> None:
    ref = fresh()
    assert ada.post(COMPACT, {"memoryRef": ref}).status_code == 204
    past = "2020-01-01T00:00:00Z"
    seed(ada, ref, "alone", {"id": "gone", "content": "expired", "expiresAt": past})
    answer = ada.post(COMPACT, {"memoryRef": ref})
    assert answer.status_code == 204
    assert answer.content == b""
    assert [entry["id"] for entry in stored(ada, ref)] == ["e0"]
    assert "memory.compacted" not in ada.get("/v1/host/reverie/events?limit=1000").text


def test_expired_entries_are_no_sources(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "one", "two", {"id": "gone", "content": "stale news", "expiresAt": "2020-01-01T00:00:00Z"})
    body = compact(ada, ref)
    assert sorted(body["payload"]["sourceIds"]) == ["e0", "e1"]
    assert "stale" not in body["outputContent"]


def test_an_earlier_output_is_a_source_like_any_other(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "one", "two")
    first = compact(ada, ref)["payload"]["outputId"]
    seed(ada, ref, {"id": "late", "content": "three"})
    payload = compact(ada, ref)["payload"]
    assert sorted(payload["sourceIds"]) == sorted([first, "late"])
    assert payload["outputId"] != first
    assert len(stored(ada, ref)) == 1


def test_at_most_so_many_entries_the_oldest(ada: Any) -> None:
    ref = fresh()
    times = [f"2024-01-0{n}T00:00:00Z" for n in range(1, 6)]
    seed(ada, ref, *({"id": f"d{n}", "content": f"day {n}", "createdAt": at} for n, at in enumerate(times)))
    payload = compact(ada, ref, maxInputEntries=3)["payload"]
    assert sorted(payload["sourceIds"]) == ["d0", "d1", "d2"]
    assert {entry["id"] for entry in stored(ada, ref)} == {payload["outputId"], "d3", "d4"}


@on_one_store
@pytest.mark.parametrize("most", [1, 2, 3, 17, 18, 19, 40, 77])
def test_a_cut_splits_no_character_and_no_marker(ada: Any, most: int) -> None:
    ref = fresh()
    seed(ada, ref, "Good morning!", "Thanks, bye.")
    text = "☕☕☕ [BYOK:abc] ☕☕ [REDACTED:x] ☕\nünïcödé <REDACTED:label> ☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕☕"
    body = compact(ada, ref, maxOutputBytes=most, summarizerOutput=text)
    text = body["outputContent"]
    assert body["payload"]["byteSize"] == len(text.encode()) <= most
    assert "\ufffd" not in text
    assert "BYOK" not in text
    assert "REDACTED" not in MARKER.sub("", text)


RULES = [
    "Never deploy on a Friday evening.",
    "Mira is allergic to peanuts and cashews.",
    "Do not log request bodies in production.",
    "The launch review must be signed by Tomas before 3 March.",
    "Always run the migration script before the tests.",
    "We decided to use PostgreSQL 16 for the billing service.",
]


def test_what_must_be_kept_is_in_the_output_or_left_to_a_further_run(ada: Any) -> None:
    ref, most = fresh(), 130
    chatter = [f"Good morning number {n}, thanks, see you!" for n in range(6)]
    seed(ada, ref, *(text for pair in zip(RULES, chatter, strict=True) for text in pair))
    outputs: list[str] = []
    for _ in range(12):
        answer = ada.post(COMPACT, {"memoryRef": ref, "maxOutputBytes": most})
        if answer.status_code == 204:
            break
        body = answer.json()
        outputs.append(body["payload"]["outputId"])
        assert body["payload"]["byteSize"] <= most
        live = "\n".join(entry["content"] for entry in stored(ada, ref))
        assert [rule for rule in RULES if rule.rstrip(".") not in live] == []
    assert len(outputs) > 1
    assert len(set(outputs)) == len(outputs)
    left = {entry["id"] for entry in stored(ada, ref)}
    assert len(left) < 12


def test_an_entry_that_is_too_large_is_not_taken(ada: Any) -> None:
    ref = fresh()
    rule = "Never ship the crane controller without the signed checklist of the harbour office in Porto."
    seed(ada, ref, rule, "Good morning!", "Thanks, bye.")
    body = compact(ada, ref, maxOutputBytes=40)
    assert sorted(body["payload"]["sourceIds"]) == ["e1", "e2"]
    assert rule in [entry["content"] for entry in stored(ada, ref)]


def test_the_output_expires_only_if_every_source_does(ada: Any) -> None:
    ref, other = fresh(), fresh()
    early, late = "2100-01-01T00:00:00.000Z", "2101-01-01T00:00:00.000Z"
    seed(ada, ref, {"id": "a", "content": "a", "expiresAt": late}, {"id": "b", "content": "b", "expiresAt": early})
    seed(ada, other, {"id": "a", "content": "a", "expiresAt": late}, "forever")
    compact(ada, ref)
    compact(ada, other)
    assert stored(ada, ref)[0]["expiresAt"] == late
    assert "expiresAt" not in stored(ada, other)[0]


def test_the_output_is_about_everyone_its_sources_were_about(ada: Any) -> None:
    ref = fresh()
    seed(
        ada,
        ref,
        {"id": "a", "content": "about ann", "tags": ["subject:ann", "x"]},
        {"id": "b", "content": "about bob and ann", "tags": ["subject:bob", "subject:ann"]},
    )
    compact(ada, ref)
    tags = stored(ada, ref)[0]["tags"]
    assert [tag for tag in tags if tag.startswith("subject:")] == ["subject:ann", "subject:bob"]


def test_forget_reaches_what_was_made_from_it(ada: Any) -> None:
    ref = fresh()
    seed(
        ada,
        ref,
        {"id": "a", "content": "Ann lives in Utrecht.", "tags": ["subject:ann"]},
        {"id": "b", "content": "The office is in Delft.", "tags": []},
    )
    compact(ada, ref)
    answer = ada.post("/v1/test/memory/forget", {"memoryRef": ref, "subject": "ann"})
    assert answer.json() == {"forgotten": 1}
    left = stored(ada, ref)
    assert all("Utrecht" not in entry["content"] for entry in left)
    assert not any("subject:ann" in entry["tags"] for entry in left)
    assert any("Delft" in entry["content"] for entry in left)
    assert ada.post("/v1/test/memory/forget", {"memoryRef": ref, "subject": "ann"}).json() == {"forgotten": 0}


def test_another_tenant_is_neither_taken_nor_seen(seamed: Any, ada: Any) -> None:
    other, ref = seamed.caller(), fresh()
    seed(ada, ref, "mine one", "mine two")
    assert other.post(COMPACT, {"memoryRef": ref}).status_code == 204
    seed(other, ref, "theirs one", "theirs two")
    body = compact(ada, ref)
    assert "theirs" not in body["outputContent"]
    assert len(stored(other, ref)) == 2
    assert other.get(f"/v1/runs/{body['runId']}").status_code == 404
    assert stored(other, ref, id=body["payload"]["outputId"]) == []


def test_two_at_once_never_take_one_entry_twice(seamed: Any, ada: Any) -> None:
    ref = fresh()
    taken: list[list[str]] = []
    start = threading.Barrier(5)

    def dream() -> None:
        start.wait()
        for _ in range(3):
            answer = ada.post(COMPACT, {"memoryRef": ref, "maxInputEntries": 4})
            assert answer.status_code in (200, 204), answer.text
            if answer.status_code == 200:
                taken.append(answer.json()["payload"]["sourceIds"])

    seed(ada, ref, *(f"fact {n}" for n in range(40)))
    threads = [threading.Thread(target=dream) for _ in range(4)]
    for thread in threads:
        thread.start()
    start.wait()
    for thread in threads:
        thread.join()
    names = [name for names in taken for name in names]
    assert len(names) == len(set(names))
    assert len(names) >= 8
    left = {entry["id"] for entry in stored(ada, ref)}
    assert not left & set(names)


BYOK = [
    "[BYOK:sk-live-inner]",
    "[byok:sk-live-inner]",
    "[ BYOK : sk-live-inner ]",
    "[B\u200bYO\u00adK:sk-live-inner]",
    "［ＢＹＯＫ：sk-live-inner］",
    "<BYOK:sk-live-inner>",
    "{BYOK:sk-live-inner}",
    "(BYOK:sk-live-inner)",
    "&#91;BYOK:sk-live-inner&#93;",
    "&lt;BYOK:sk-live-inner&gt;",
    "\\u005bBYOK:sk-live-inner\\u005d",
    "[BYOK:sk-[live]-inner]",
    "[BYOK:sk-live-inner and never closed",
]
MARKERS = [
    ("<REDACTED:label>", "label"),
    ("<redacted:label>", "label"),
    ("< REDACTED : label >", "label"),
    ("<REDACTED>", "source"),
    ("<REDACTED:>", "source"),
    ("{REDACTED:label}", "label"),
    ("&lt;REDACTED:label&gt;", "label"),
    ("＜REDACTED:label＞", "label"),
    ("<REDACTED:not a plain label!>", "source"),
]


@on_one_store
@pytest.mark.parametrize("by_model", [False, True])
@pytest.mark.parametrize("leak", BYOK)
def test_a_byok_leak_is_marked_and_never_named(ada: Any, leak: str, by_model: bool) -> None:
    ref = fresh()
    if by_model:
        seed(ada, ref, "one", "two")
        text = compact(ada, ref, summarizerOutput=f"before {leak}\nafter")["outputContent"]
    else:
        seed(ada, ref, f"before {leak}", "after")
        text = compact(ada, ref)["outputContent"]
    assert "[REDACTED:byok]" in text
    assert "inner" not in text
    assert "byok" not in MARKER.sub("", text).casefold()
    assert "before" in text
    assert "after" in text


@on_one_store
@pytest.mark.parametrize("by_model", [False, True])
@pytest.mark.parametrize(("leak", "label"), MARKERS)
def test_a_look_alike_becomes_canonical(ada: Any, leak: str, label: str, by_model: bool) -> None:
    ref = fresh()
    if by_model:
        seed(ada, ref, "one", "two")
        text = compact(ada, ref, summarizerOutput=f"x {leak} y")["outputContent"]
    else:
        seed(ada, ref, f"x {leak} y", "other")
        text = compact(ada, ref)["outputContent"]
    assert f"x [REDACTED:{label}] y" in text


def test_a_canonical_marker_stays_as_it_is(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "a [REDACTED:vault-7] b", "c")
    assert "a [REDACTED:vault-7] b" in compact(ada, ref)["outputContent"]


def test_seeds_go_in_as_given_but_for_registered_secrets(ada: Any) -> None:
    ref, secret = fresh(), f"Zq{uuid4().hex}"
    leak = "raw [BYOK:abc] <REDACTED:x>"
    planted = seed(
        ada,
        ref,
        leak,
        {"id": "s", "content": f"value {secret}!", "tags": [f"t-{secret}", ""]},
        secrets=[{"secretId": "vault.a", "value": secret}, {"secretId": "short", "value": "value"}],
    )
    assert planted["secretsRegistered"] == 2
    by_id = {entry["id"]: entry for entry in stored(ada, ref)}
    assert by_id["e0"]["content"] == leak
    assert by_id["s"]["content"] == "value [REDACTED:vault.a]!"
    assert by_id["s"]["tags"] == ["t-[REDACTED:vault.a]"]


def test_the_registry_of_the_run_is_applied_longest_first(ada: Any) -> None:
    ref = fresh()
    short, long = "abcdefgh-1", "abcdefgh-1-and-more"
    seed(ada, ref, f"x {long} y", {"id": "t", "content": f"{short} z", "tags": [f"subject:{short}"]})
    body = compact(ada, ref, secrets=[{"secretId": "short", "value": short}, {"secretId": "long", "value": long}])
    assert "x [REDACTED:long] y" in body["outputContent"]
    assert "[REDACTED:short] z" in body["outputContent"]
    assert "subject:[REDACTED:short]" in stored(ada, ref)[0]["tags"]
    assert short not in str(stored(ada, ref))


def test_the_registry_dies_with_the_run(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "the-word-of-the-day", "two")
    compact(ada, ref, secrets=[{"secretId": "w", "value": "another-value"}])
    seed(ada, ref, {"id": "n", "content": "another-value"})
    assert "another-value" in compact(ada, ref)["outputContent"]


def test_a_value_cut_across_two_entries_is_not_whole_in_the_output(ada: Any) -> None:
    ref, secret = fresh(), "k3y-" + "w0rd" * 6
    first, second = "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"
    seed(
        ada,
        ref,
        {"id": "a", "content": f"ends with {secret[:12]}", "createdAt": first},
        {"id": "b", "content": f"{secret[12:]} begins", "createdAt": second},
    )
    text = compact(ada, ref, secrets=[{"secretId": "v", "value": secret}])["outputContent"]
    assert secret not in "".join(text.split())
    assert "[REDACTED:v]" in text


@on_one_store
@pytest.mark.parametrize("told", ["", " ", "\n", "x" * 70_000, "[" * 5000, "<REDACTED:" * 500, "é" * 9], ids=range(7))
def test_whatever_a_summariser_says_one_entry_comes_of_it(ada: Any, told: str) -> None:
    ref = fresh()
    seed(ada, ref, "one", "two")
    body = compact(ada, ref, summarizerOutput=told)
    assert 0 < body["payload"]["byteSize"] <= 65_536
    assert len(stored(ada, ref)) == 1


def test_memories_without_words_become_one_too(ada: Any) -> None:
    ref = fresh()
    seed(ada, ref, "", " ")
    assert compact(ada, ref)["payload"]["sourceCount"] == 2
    assert len(stored(ada, ref)) == 1


def test_a_redaction_that_fails_changes_nothing(seamed: Any, ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = fresh()
    seed(ada, ref, "one", "two")
    before = stored(ada, ref)

    def broken(*_: Any) -> str:
        raise RedactionFailed

    with monkeypatch.context() as patch:
        patch.setattr(seamed.host.dreams._gates, "clean", broken)
        answer = ada.post(COMPACT, {"memoryRef": ref})
    assert answer.status_code == 500
    valid(answer.json(), ERROR)
    assert answer.json()["error"] == "compaction_redaction_failed"
    assert stored(ada, ref) == before
    assert "memory.compacted" not in ada.get("/v1/host/reverie/events?limit=1000").text
    assert compact(ada, ref)["payload"]["sourceCount"] == 2


@on_one_store
@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"memoryRef": ""},
        {"memoryRef": 7},
        {"memoryRef": None},
        {"memoryRef": "../up"},
        {"memoryRef": "a//b"},
        {"memoryRef": "x" * 257},
        {"memoryRef": "ok", "maxInputEntries": 0},
        {"memoryRef": "ok", "maxInputEntries": "3"},
        {"memoryRef": "ok", "maxOutputBytes": -1},
        {"memoryRef": "ok", "secrets": [{"secretId": "a"}]},
        {"memoryRef": "ok", "secrets": "x"},
        {"memoryRef": "ok", "summarizerOutput": 1},
        [],
        "text",
    ],
)
def test_what_makes_no_sense_is_refused(ada: Any, bad: Any) -> None:
    answer = ada.post(COMPACT, bad)
    assert answer.status_code == 400, answer.text
    valid(answer.json(), ERROR)
    assert answer.json()["error"] == "validation_error"


@on_one_store
@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"memoryRef": "ok"},
        {"memoryRef": "ok", "entries": []},
        {"memoryRef": "ok", "entries": [{"content": "no id"}]},
        {"memoryRef": "ok", "entries": [{"id": "", "content": "x"}]},
        {"memoryRef": "ok", "entries": [{"id": "x" * 1501, "content": "x"}]},
        {"memoryRef": "ok", "entries": [{"id": "a", "content": 1}]},
        {"memoryRef": "ok", "entries": [{"id": "a", "content": "x" * 65_537}]},
        {"memoryRef": "ok", "entries": [{"id": "a", "content": "x", "tags": ["t" * 257]}]},
        {"memoryRef": "ok", "entries": [{"id": "a", "content": "x", "createdAt": "yesterday"}]},
        {"memoryRef": "no/../way", "entries": [{"id": "a", "content": "x"}]},
    ],
)
def test_a_bad_seed_plants_nothing(ada: Any, bad: Any) -> None:
    answer = ada.post("/v1/test/memory/seed", bad)
    assert answer.status_code == 400, answer.text
    valid(answer.json(), ERROR)
    assert stored(ada, "ok") == []


SEAMS = [
    "/v1/test/memory/seed",
    "/v1/test/memory/compact",
    "/v1/test/memory/forget",
    "/v1/host/sample/memory/distill",
    "/v1/host/sample/memory/consolidate",
    "/v1/host/sample/commitment/fire",
]


@on_one_store
@pytest.mark.parametrize("path", SEAMS)
def test_seams_that_are_off_are_not_there_and_those_that_are_on_want_a_key(
    server: Any, acme: Any, seamed: Any, path: str
) -> None:
    body = {"memoryRef": "conformance-off"}
    off = acme.post(path, body)
    assert off.status_code == 404
    valid(off.json(), ERROR)
    assert seamed.stranger().post(path, body).status_code == 401


def test_one_switch_of_two_is_no_switch(make_server: Any) -> None:
    for alone in ("openwop_compaction", "openwop_trigger_compaction"):
        caller = make_server(**{alone: True}).caller()
        assert caller.post(COMPACT, {"memoryRef": "x"}).status_code == 404
        assert caller.post("/v1/test/memory/seed", {"memoryRef": "x"}).status_code == 404
