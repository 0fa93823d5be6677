"""The native REST API: what a well-behaved caller sees."""

from __future__ import annotations

from typing import Any

import pytest


def test_an_entry_is_stored_and_read_back(acme: Any) -> None:
    answer = acme.post("memory/notes/entries", {"content": "Tea, not coffee.", "tags": ["taste"], "subject": "ann"})
    assert answer.status_code == 201
    receipt = answer.json()
    assert receipt["findings"] == {}
    assert receipt["seq"] == 1
    assert answer.headers["etag"] == '"1"'
    read = acme.get(answer.headers["location"])
    assert read.status_code == 200
    entry = read.json()
    assert (entry["content"], entry["tags"], entry["subject"]) == ("Tea, not coffee.", ["taste"], "ann")
    assert entry["source"]["door"] == "rest"
    assert entry["created_at"].endswith("Z")


def test_many_entries_are_stored_together_or_not_at_all(acme: Any) -> None:
    answer = acme.post("memory/notes/entries", {"entries": [{"content": "one"}, {"content": "two"}]})
    assert answer.status_code == 201
    assert len(answer.json()["receipts"]) == 2
    refused = acme.post("memory/notes/entries", {"entries": [{"content": "three"}, {"content": " "}]})
    assert refused.status_code == 400
    assert refused.json()["details"]["pointer"] == "/entries/1/content"
    assert len(acme.get("memory/notes/entries").json()["entries"]) == 2


def test_refs_are_listed_by_prefix(acme: Any) -> None:
    for ref in ("team/a", "team/b", "teams"):
        acme.put("A note.", ref=ref)
    listed = acme.get("memory?prefix=team%2F").json()["refs"]
    assert [row["ref"] for row in listed] == ["team/a", "team/b"]
    assert acme.get("memory?prefix=%00").json() == {"refs": []}


def test_a_ref_with_slashes_travels_percent_encoded(acme: Any) -> None:
    acme.put("in a team", ref="mem://team/notes")
    listed = acme.get("memory/mem%3A%2F%2Fteam%2Fnotes/entries").json()["entries"]
    assert [entry["ref"] for entry in listed] == ["mem://team/notes"]
    assert acme.get("memory").json() == {"refs": [{"ref": "mem://team/notes", "entries": 1}]}


def test_a_path_is_decoded_exactly_once(acme: Any) -> None:
    acme.put("in a team", ref="team/notes")
    assert len(acme.get("memory/team%2Fnotes/entries").json()["entries"]) == 1
    assert acme.get("memory/team%252Fnotes/entries").json()["entries"] == []
    assert acme.get("memory/team/notes/entries").status_code == 404


def test_an_id_may_hold_anything_that_can_be_encoded(acme: Any) -> None:
    acme.put("odd", id="a/b?c#d é%2F")
    assert acme.get("memory/notes/entries/a%2Fb%3Fc%23d%20%C3%A9%252F").json()["content"] == "odd"


def test_secrets_are_replaced_and_counted(acme: Any) -> None:
    registered = acme.post("secrets", {"id": "db", "value": "correct-horse-battery"})
    assert registered.status_code == 201
    answer = acme.post("memory/notes/entries", {"content": "login with correct-horse-battery please"})
    assert sum(answer.json()["findings"].values()) == 1
    assert "correct-horse" not in acme.get("memory/notes/entries").text
    assert acme.get("secrets").json() == {"secrets": ["db"]}
    assert acme.delete("secrets/db").status_code == 200
    assert acme.delete("secrets/db").status_code == 404


class TestIdempotency:
    def test_a_retry_stores_nothing_again(self, acme: Any) -> None:
        first = acme.post("memory/notes/entries", {"content": "once"}, headers={"Idempotency-Key": "k1"})
        again = acme.post("memory/notes/entries", {"content": "once"}, headers={"Idempotency-Key": "k1"})
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == {**first.json(), "replayed": True}
        assert again.headers["idempotent-replayed"] == "true"
        assert acme.get("stats").json()["entries"] == 1

    def test_the_same_key_for_another_request_is_refused(self, acme: Any) -> None:
        acme.post("memory/notes/entries", {"content": "once"}, headers={"Idempotency-Key": "k1"})
        other = acme.post("memory/notes/entries", {"content": "twice"}, headers={"Idempotency-Key": "k1"})
        assert (other.status_code, other.json()["error"]) == (409, "idempotency_key_reused")


class TestLists:
    def test_pages_lead_to_the_end_newest_first(self, acme: Any) -> None:
        acme.post("memory/notes/entries", {"entries": [{"content": f"number {n}"} for n in range(7)]})
        seen, cursor = [], None
        while True:
            page = acme.get(
                "memory/notes/entries", params={"limit": 3, **({"cursor": cursor} if cursor else {})}
            ).json()
            seen += [entry["content"] for entry in page["entries"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert seen == [f"number {n}" for n in reversed(range(7))]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("tag=red", ["c", "a"]),
            ("tag=red&tag=big", ["c"]),
            ("any_tag=big&any_tag=blue", ["c", "b"]),
            ("kind=fact", ["b"]),
            ("subject=ann", ["a"]),
            ("session=s1", ["b"]),
            ("actor=bot", ["b"]),
            ("pinned=true", ["c"]),
            ("since=2026-01-02T00:00:00Z", ["c", "b"]),
            ("until=2026-01-02T00:00:00Z", ["a"]),
            ("since=2026-01-02T00:00:00Z&until=2026-01-03T00:00:00%2B00:00", ["b"]),
            ("as_of=2", ["b", "a"]),
            ("order=oldest", ["a", "b", "c"]),
        ],
    )
    def test_filters(self, acme: Any, query: str, expected: list[str]) -> None:
        acme.put("a", tags=["red"], subject="ann", created_at="2026-01-01T10:00:00Z")
        acme.put(
            "b", tags=["blue"], kind="fact", source={"actor": "bot", "session": "s1"}, created_at="2026-01-02T10:00:00Z"
        )
        acme.put("c", tags=["red", "big"], pinned=True, created_at="2026-01-03T10:00:00Z")
        listed = acme.get(f"memory/notes/entries?{query}")
        assert listed.status_code == 200, listed.text
        assert [entry["content"] for entry in listed.json()["entries"]] == expected

    def test_a_cursor_belongs_to_its_question(self, acme: Any) -> None:
        acme.post("memory/notes/entries", {"entries": [{"content": f"n{n}", "tags": ["t"]} for n in range(4)]})
        cursor = acme.get("memory/notes/entries?limit=2&tag=t").json()["cursor"]
        assert acme.get(f"memory/notes/entries?limit=1&tag=t&cursor={cursor}").status_code == 200
        for path in (f"notes/entries?cursor={cursor}", f"other/entries?tag=t&cursor={cursor}"):
            refused = acme.get(f"memory/{path}")
            assert (refused.status_code, refused.json()["details"]["pointer"]) == (400, "/cursor")

    def test_a_cursor_works_in_another_process_on_the_same_data(self, make_server: Any, tmp_path: Any) -> None:
        one = make_server(tmp_path)
        caller = one.caller("acme")
        caller.post("memory/notes/entries", {"entries": [{"content": "a"}, {"content": "b"}]})
        cursor = caller.get("memory/notes/entries?limit=1").json()["cursor"]
        caller.app = make_server(tmp_path).app
        page = caller.get(f"memory/notes/entries?limit=1&cursor={cursor}")
        assert [entry["content"] for entry in page.json()["entries"]] == ["a"]


class TestVersions:
    def test_what_the_caller_has_already_is_not_sent_again(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        same = acme.get(path, headers={"If-None-Match": '"1"'})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", '"1"')
        assert acme.get(path, headers={"If-None-Match": '"7"'}).status_code == 200

    def test_a_change_on_a_stale_version_is_refused(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        pinned = acme.patch(path, {"pinned": True}, headers={"If-Match": '"1"'})
        assert (pinned.status_code, pinned.headers["etag"]) == (200, '"2"')
        stale = acme.patch(path, {"pinned": False}, headers={"If-Match": '"1"'})
        assert (stale.status_code, stale.json()["error"]) == (409, "version_conflict")
        assert acme.delete(path, headers={"If-Match": '"1"'}).status_code == 409
        assert acme.delete(path, headers={"If-Match": "nonsense"}).status_code == 400
        assert acme.delete(path, headers={"If-Match": "*"}).status_code == 200


class TestLife:
    def test_archive_and_back(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        assert acme.patch(path, {"archived": True}).json()["archived"] is True
        assert acme.get(path).status_code == 404
        assert acme.get(f"{path}?cold=true").status_code == 200
        assert len(acme.get("memory/notes/entries?archived=true").json()["entries"]) == 1
        assert acme.patch(path, {"archived": False}).status_code == 200
        assert acme.get(path).status_code == 200

    def test_delete_and_restore(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        assert acme.delete(path).json()["state"] == "deleted"
        assert acme.get(path).status_code == 404
        assert acme.post(f"{path}/restore").status_code == 200
        assert acme.post(f"{path}/restore").json()["error"] == "already_readable"

    def test_erase_is_final(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('xyz')}"
        assert acme.delete(f"{path}?erase=true").json()["erased_bytes"] == 3
        assert acme.post(f"{path}/restore").status_code == 404

    def test_a_hold_forbids_erasing(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x', subject='ann')}"
        assert acme.patch(path, {"held": True}).json()["held"] is True
        assert acme.delete(path).json()["error"] == "held"
        assert acme.post("memory/forget", {"subject": "ann"}).status_code == 409
        assert acme.patch(path, {"held": False}).status_code == 200

    def test_retract(self, acme: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        assert acme.patch(path, {"state": "retracted"}).json()["state"] == "retracted"
        assert acme.patch(path, {"state": "active"}).json()["state"] == "active"

    @pytest.mark.parametrize("body", [{}, {"pinned": True, "archived": True}, {"pinned": None}, {"state": "erased"}])
    def test_one_change_at_a_time(self, acme: Any, body: Any) -> None:
        path = f"memory/notes/entries/{acme.put('x')}"
        assert acme.patch(path, body).status_code == 400

    def test_forget_previews_and_then_destroys(self, acme: Any) -> None:
        acme.put("x", subject="ann")
        acme.put("y", ref="other", tags=["subject:ann"])
        assert acme.post("memory/forget", {"subject": "ann", "preview": True}).json()["forgotten"] == 2
        assert acme.post("memory/forget", {"subject": "ann", "memoryRef": "other"}).json()["forgotten"] == 1
        done = acme.post("memory/forget", {"subject": "ann"}).json()
        assert (done["forgotten"], done["preview"]) == (1, False)
        assert done["certificate"] > 0
        assert acme.get("memory").json() == {"refs": []}

    def test_forget_reaches_mentions_on_request_and_says_by_which_way(self, acme: Any) -> None:
        acme.put("Ann called.", ref="other", subject="ANN ")
        acme.put("I saw Ann.")
        acme.put("An annex.")
        one = acme.post("memory/forget", {"subject": "ann", "ref": "other"}).json()
        assert (one["forgotten"], one["ways"]) == (1, {"subject": 1})
        none = acme.post("memory/forget", {"subject": "ann"}).json()
        assert (none["forgotten"], none["mentioned"], none["certificate"]) == (0, 1, None)
        done = acme.post("memory/forget", {"subject": "ann", "mentions": True}).json()
        assert (done["forgotten"], done["ways"]) == (1, {"mention": 1})
        both = {"subject": "ann", "ref": "one", "memoryRef": "two"}
        assert acme.post("memory/forget", both).status_code == 400

    def test_a_memory_may_be_called_forget(self, acme: Any) -> None:
        acme.put("x", ref="forget")
        assert len(acme.get("memory/forget/entries").json()["entries"]) == 1


class TestRecall:
    def test_search_and_its_reasons(self, acme: Any) -> None:
        acme.put("The customer prefers e-mail to phone calls.")
        acme.put("Lunch is at noon.", tags=["food"])
        found = acme.post("memory/notes/search", {"query": "how to reach the customer", "explain": True}).json()
        assert found["hits"][0]["entry"]["content"].startswith("The customer")
        assert found["degraded"] == []
        assert found["explanation"]["cut"]["limit"] == 10
        food = acme.post("memory/notes/search", {"query": "customer", "filter": {"tags": ["food"]}}).json()
        assert all(hit["entry"]["tags"] == ["food"] for hit in food["hits"])

    @pytest.mark.parametrize("mode", ["hybrid", "words", "meaning"])
    def test_modes(self, acme: Any, mode: str) -> None:
        acme.put("A red kite over the hill.")
        found = acme.post("memory/notes/search", {"query": "red kite", "mode": mode, "limit": 1}).json()
        assert (found["mode"], len(found["hits"])) == (mode, 1)

    def test_context_names_what_it_left_out_and_why(self, acme: Any) -> None:
        for _ in range(2):
            acme.post("memory/twice/entries", {"content": "Kites fly best in the afternoon wind by the sea."})
        packed = acme.post("memory/twice/context", {"purpose": "kites", "budget": 300}).json()
        (left,) = packed["left_out"]
        assert set(left) == {"id", "reason"}
        assert left["reason"] == f"repeats {packed['included'][0]}"

    def test_context_keeps_to_its_budget(self, acme: Any) -> None:
        acme.post("memory/notes/entries", {"entries": [{"content": f"Fact {n} about kites. " * 10} for n in range(20)]})
        packed = acme.post("memory/notes/context", {"purpose": "kites", "budget": 300}).json()
        assert 0 < packed["tokens"] <= 300
        assert packed["included"]


class TestTenant:
    def test_events_follow_what_happened(self, acme: Any) -> None:
        entry = acme.put("x")
        acme.patch(f"memory/notes/entries/{entry}", {"pinned": True})
        page = acme.get("events").json()
        assert [event["type"] for event in page["events"]] == ["memory.written", "memory.pinned"]
        assert page["next"] == 2
        assert acme.get("events?after=1").json()["events"][0]["seq"] == 2
        assert acme.get("events?since=2").json() == {"events": [], "next": 2}
        assert [e["seq"] for e in acme.get("events?type=memory.pinned").json()["events"]] == [2]

    def test_policy(self, acme: Any) -> None:
        assert acme.patch("policy", {"max_entry_bytes": 10}).json()["max_entry_bytes"] == 10
        assert acme.get("policy").json()["max_entry_bytes"] == 10
        refused = acme.post("memory/notes/entries", {"content": "more than ten bytes"})
        assert (refused.status_code, refused.json()["error"]) == (413, "too_large")

    def test_a_quota_answers_429_and_when_to_try_again(self, acme: Any) -> None:
        acme.patch("policy", {"max_entries": 1})
        acme.put("x")
        refused = acme.post("memory/notes/entries", {"content": "y"})
        assert (refused.status_code, refused.json()["error"]) == (429, "quota_exceeded")
        assert int(refused.headers["retry-after"]) >= 1

    def test_the_log_is_proved(self, acme: Any) -> None:
        acme.put("x")
        verdict = acme.get("audit/verify").json()
        assert (verdict["ok"], verdict["events"], verdict["entries"]) == (True, 1, 1)

    def test_a_bundle_goes_out_and_in(self, server: Any, acme: Any) -> None:
        acme.put("x", tags=["t"])
        bundle = acme.get("export")
        assert bundle.headers["content-type"] == "application/x-ndjson"
        other = server.caller()
        media = {"Content-Type": "application/x-ndjson"}
        assert other.post("import", content=bundle.content, headers=media).json()["entries"] == 1
        assert other.post("import", content=bundle.content, headers=media).json()["skipped"] == 1
        damaged = other.post("import", content=bundle.content.replace(b'"x"', b'"y"'), headers=media)
        assert (damaged.status_code, damaged.json()["error"]) == (400, "validation_error")

    def test_scan_and_stats(self, acme: Any) -> None:
        acme.put("x")
        assert acme.post("scan", {"dry_run": True}).json()["affected"] == 0
        assert acme.get("stats").json()["entries"] == 1


def test_an_entry_replaces_the_one_with_the_same_mark(acme: Any) -> None:
    first = acme.put("Tea.", tags=["~key:1"], replaces="~key:1")
    second = acme.put("Coffee.", tags=["~key:1"], replaces="~key:1")
    assert [entry["id"] for entry in acme.get("memory/notes/entries?tag=~key:1").json()["entries"]] == [second]
    assert acme.get(f"memory/notes/entries/{first}").status_code == 404
    refused = acme.post("memory/notes/entries", {"content": "Tea.", "replaces": "~key:2"})
    assert (refused.status_code, refused.json()["details"]["pointer"]) == (400, "/replaces")


def test_an_expiry_is_moved(acme: Any) -> None:
    entry = acme.put("Tea.", expires_at="2099-01-01T00:00:00Z")
    changed = acme.patch(f"memory/notes/entries/{entry}", {"expires_at": "2099-06-01T00:00:00Z"})
    assert (changed.status_code, changed.json()["expires_at"]) == (200, "2099-06-01T00:00:00.000Z")
    assert acme.patch(f"memory/notes/entries/{entry}", {"expires_at": "2001-01-01T00:00:00Z"}).status_code == 400
    assert acme.patch(f"memory/notes/entries/{entry}", {"expires_at": "soon"}).status_code == 400


def test_an_entry_is_superseded_in_one_step(acme: Any) -> None:
    old = acme.put("The office is in Lyon.")
    answer = acme.post(
        f"memory/notes/entries/{old}/supersede",
        {"content": "The office is in Nantes."},
        headers={"Idempotency-Key": "move"},
    )
    assert answer.status_code == 201
    new = answer.json()["id"]
    assert [entry["id"] for entry in acme.get("memory/notes/entries").json()["entries"]] == [new]
    links = acme.get(f"memory/notes/entries/{new}/links").json()["links"]
    assert [(link["to_id"], link["type"]) for link in links] == [(old, "supersedes")]
    assert acme.get(f"memory/notes/entries/{old}?cold=true").json()["state"] == "superseded"
    again = acme.post(
        f"memory/notes/entries/{old}/supersede",
        {"content": "The office is in Nantes."},
        headers={"Idempotency-Key": "move"},
    )
    assert (again.status_code, again.json()["id"], again.json()["replayed"]) == (201, new, True)
    assert acme.get("audit/verify").json()["ok"]


def test_superseding_what_is_not_there_stores_nothing(acme: Any) -> None:
    kept = acme.put("Stays.")
    missing = acme.post("memory/notes/entries/nothing/supersede", {"content": "New."})
    assert missing.status_code == 404
    stale = acme.post(f"memory/notes/entries/{kept}/supersede", {"content": "New."}, headers={"If-Match": '"7"'})
    assert stale.status_code == 409
    assert [entry["id"] for entry in acme.get("memory/notes/entries").json()["entries"]] == [kept]


def test_a_key_says_whose_it_is(acme: Any) -> None:
    shown = acme.get("me").json()
    assert shown["tenant"] == acme.tenant
    assert shown["rights"] == ["admin", "dream", "read", "write"]
    assert shown["version"]


def test_a_sweep_destroys_what_has_expired(acme: Any) -> None:
    acme.put("Stays.")
    assert acme.post("sweep").json() == {"destroyed": 0}
