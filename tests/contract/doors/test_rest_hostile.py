"""What bad input gets: a 4xx with the one error body, whatever it is. Never a 500, never a looser look-up."""

from __future__ import annotations

import re
from typing import Any

import pytest

ENTRY = "memory/notes/entries"
JSON = {"Content-Type": "application/json"}
DEEP = 10_000

BODIES: dict[str, bytes] = {
    "empty": b"",
    "not json": b"{",
    "trailing": b'{"content": "x"} {}',
    "comment": b'{"content": "x" /* y */}',
    "single quotes": b"{'content': 'x'}",
    "byte order mark": b'\xef\xbb\xbf{"content": "x"}',
    "utf-16": '{"content": "x"}'.encode("utf-16"),
    "invalid utf-8": b'{"content": "\xff\xfe"}',
    "overlong utf-8": b'{"content": "\xc0\xaf"}',
    "utf-8 surrogate": b'{"content": "\xed\xa0\x80"}',
    "lone surrogate": b'{"content": "\\ud800"}',
    "lone surrogate in a key": b'{"content": "x", "attributes": {"\\udfff": 1}}',
    "nul": b'{"content": "a\\u0000b"}',
    "nul in attributes": b'{"content": "x", "attributes": {"k": ["\\u0000"]}}',
    "raw nul": b'{"content": "a\x00b"}',
    "array": b"[]",
    "null": b"null",
    "string": b'"x"',
    "number": b"1",
    "deep array": b'{"content": "x", "attributes": {"k": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deep object": b'{"content": "x", "attributes": ' + b'{"k": ' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep and unclosed": b"[" * 1_000_000,
    "quite deep": b'{"content": "x", "attributes": {"k": ' + b"[" * 100 + b"]" * 100 + b"}}",
    "nan": b'{"content": "x", "attributes": {"k": NaN}}',
    "infinity": b'{"content": "x", "attributes": {"k": -Infinity}}',
    "float out of range": b'{"content": "x", "attributes": {"k": 1e999}}',
    "huge integer": b'{"content": "x", "attributes": {"k": ' + b"9" * 10_000 + b"}}",
    "integer over 2^53": b'{"content": "x", "attributes": {"k": 9007199254740993}}',
    "duplicate key": b'{"content": "x", "content": "y"}',
    "duplicate nested key": b'{"content": "x", "attributes": {"a": {"b": 1, "b": 2}}}',
    "unknown field": b'{"content": "x", "tenant": "other"}',
    "unknown source field": b'{"content": "x", "source": {"door": "cli"}}',
    "no content": b'{"tags": []}',
    "blank content": b'{"content": "  \\n "}',
    "content of another type": b'{"content": 5}',
    "content null": b'{"content": null}',
    "tags text": b'{"content": "x", "tags": "a"}',
    "tag number": b'{"content": "x", "tags": [1]}',
    "pinned text": b'{"content": "x", "pinned": "true"}',
    "pinned number": b'{"content": "x", "pinned": 1}',
    "trust out of range": b'{"content": "x", "source": {"trust": 11}}',
    "trust text": b'{"content": "x", "source": {"trust": "5"}}',
    "attributes array": b'{"content": "x", "attributes": []}',
    "naive time": b'{"content": "x", "expires_at": "2099-01-01T00:00:00"}',
    "date only": b'{"content": "x", "expires_at": "2099-01-01"}',
    "past expiry": b'{"content": "x", "expires_at": "2001-01-01T00:00:00Z"}',
    "time out of range": b'{"content": "x", "expires_at": "9999-12-31T23:59:59-23:59"}',
    "time before 1970": b'{"content": "x", "created_at": "1850-01-01T00:00:00Z"}',
    "future creation": b'{"content": "x", "created_at": "2999-01-01T00:00:00Z"}',
    "time number": b'{"content": "x", "expires_at": 4102444800}',
    "a credential's name": b'{"content": "x", "source": {"actor": "host:reverie"}}',
    "empty id": b'{"content": "x", "id": ""}',
    "no entries": b'{"entries": []}',
    "both shapes": b'{"content": "x", "entries": [{"content": "y"}]}',
    "entries of another type": b'{"entries": {"content": "x"}}',
    "entry of another type": b'{"entries": ["x"]}',
    "the same id twice": b'{"entries": [{"content": "x", "id": "a"}, {"content": "y", "id": "a"}]}',
}


def refused(answer: Any) -> bool:
    """A 4xx in the one error body."""
    assert 400 <= answer.status_code < 500, f"{answer.status_code} {answer.text[:200]}"
    body = answer.json()
    assert set(body) <= {"error", "message", "details"}
    assert re.fullmatch(r"[a-z_]+", body["error"])
    assert 0 < len(body["message"]) <= 600
    return True


@pytest.mark.parametrize("name", BODIES)
def test_bodies(acme: Any, name: str) -> None:
    assert refused(acme.post(ENTRY, content=BODIES[name], headers=JSON))
    assert acme.get(ENTRY).json()["entries"] == []


def test_ten_megabytes(acme: Any) -> None:
    body = b'{"content": "' + b"x" * 10_000_000 + b'"}'
    answer = acme.post(ENTRY, content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")


def test_content_over_the_entry_limit_points_at_the_field(acme: Any) -> None:
    answer = acme.post(ENTRY, {"content": "x" * 70_000})
    assert (answer.status_code, answer.json()["details"]["pointer"]) == (413, "/content")
    assert "xxx" not in answer.text


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ["t"] * 65},
        {"tags": ["t" * 257]},
        {"subject": "s" * 257},
        {"kind": "k" * 65},
        {"id": "i" * 1501},
        {"attributes": {"k": "v" * 70_000}},
        {"source": {"session": "s" * 257}},
    ],
)
def test_fields_over_their_limits(acme: Any, fields: dict[str, Any]) -> None:
    assert refused(acme.post(ENTRY, {"content": "x", **fields}))


@pytest.mark.parametrize(
    "ref",
    ["..", "%2E%2E", "..%2F..%2Fetc", "a%2F..%2Fb", "%00", "a%00", "%2Fa", "a%2F", "a%2F%2Fb", "-a", "a%20b", "%C3%A9",
     "a" * 257, "a%0Ab", "%25", "%25%32%46", "*", "a'--", "a%22", "%F0%9F%98%80", ".", "a%2F."],
)  # fmt: skip
def test_a_malformed_ref_resolves_to_nothing(acme: Any, ref: str) -> None:
    acme.put("something", ref="a")
    path = f"/v1/host/reverie/memory/{ref}"
    if ref not in ("..", ".", "%2E%2E"):  # a client may resolve dots before it sends them
        assert acme.get(f"{path}/entries").json() == {"entries": [], "cursor": None}
        assert acme.post(f"{path}/search", {"query": "something"}).json()["hits"] == []
        assert acme.post(f"{path}/context", {"purpose": "something"}).json()["included"] == []
    assert refused(acme.post(f"{path}/entries", {"content": "x"}))
    assert refused(acme.get(f"{path}/entries/x"))
    assert refused(acme.patch(f"{path}/entries/x", {"pinned": True}))
    assert refused(acme.delete(f"{path}/entries/x"))
    assert refused(acme.delete(f"{path}/entries/x?erase=true"))
    assert refused(acme.post(f"{path}/entries/x/restore"))


@pytest.mark.parametrize(
    "path", ["memory/%ff/entries", "memory/a/entries/%C0%AF", "memory/%ED%A0%80/entries", "events?type=%ff"]
)
def test_a_path_or_query_that_is_not_utf_8(acme: Any, path: str) -> None:
    assert acme.get(path).status_code == 400


@pytest.mark.parametrize("entry_id", ["%00", "a" * 3000, "%25", "..%2F..", "%F0%9F%98%80", "'", "a%0D%0Ab"])
def test_odd_ids_are_simply_not_there(acme: Any, entry_id: str) -> None:
    assert acme.get(f"{ENTRY}/{entry_id}").status_code == 404
    assert acme.get(f"{ENTRY}/{entry_id}/links").json() == {"links": []}


def test_a_very_long_path(acme: Any) -> None:
    assert refused(acme.get(f"{ENTRY}/{'a' * 20_000}"))


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=1e3",
        "limit=" + "9" * 5000,
        "cursor=x",
        "cursor=",
        "cursor=" + "A" * 40,
        "cursor=" + "A" * 5000,
        "as_of=-1",
        "as_of=99999",
        "as_of=" + "9" * 30,
        "since=once upon a time",
        "since=yesterday and tomorrow",
        "since=2026-13-01",
        "since=2026-01-01T99:00:00Z",
        "since=99999999w",
        "since=yesterday&zone=Mars/Olympus",
        "zone=Mars/Olympus",
        "until=" + "2" * 100,
        "pinned=maybe",
        "archived=2",
        "order=random",
        "subjct=ann",
        "tenant=other",
        "subject=" + "s" * 300,
        "order=oldest&as_of=0",
    ],
)
def test_list_parameters(acme: Any, query: str) -> None:
    acme.put("x")
    answer = acme.get(f"{ENTRY}?{query}")
    assert refused(answer)
    assert answer.json()["details"]["pointer"].startswith("/")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("events?after=-1", {}),
        ("events?after=x", {}),
        ("events?after=" + "9" * 25, {}),
        ("events?limit=0", {}),
        ("events?limit=10001", {}),
        ("events?nope=1", {}),
        ("events", {"Last-Event-ID": "x"}),
        ("events", {"Last-Event-ID": "-1"}),
        ("events", {"Last-Event-ID": "9" * 400}),
        ("events", {"Last-Event-ID": "1", "Accept": "text/event-stream", "Authorization": "Bearer x"}),
    ],
)
def test_event_parameters(acme: Any, path: str, headers: dict[str, str]) -> None:
    assert refused(acme.get(path, headers=headers))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "memory/n/search", {}),
        ("POST", "memory/n/search", {"query": ""}),
        ("POST", "memory/n/search", {"query": " "}),
        ("POST", "memory/n/search", {"query": "x" * 5000}),
        ("POST", "memory/n/search", {"query": 1}),
        ("POST", "memory/n/search", {"query": "x", "limit": 201}),
        ("POST", "memory/n/search", {"query": "x", "limit": 1.5}),
        ("POST", "memory/n/search", {"query": "x", "limit": 10**30}),
        ("POST", "memory/n/search", {"query": "x", "mode": "magic"}),
        ("POST", "memory/n/search", {"query": "x", "filter": {"tenant": "y"}}),
        ("POST", "memory/n/search", {"query": "x", "filter": {"since": "soon"}}),
        ("POST", "memory/n/context", {"purpose": "x", "budget": 0}),
        ("POST", "memory/n/context", {"purpose": "x", "budget": 10**9}),
        ("POST", "memory/forget", {}),
        ("POST", "memory/forget", {"subject": ""}),
        ("POST", "memory/forget", {"subject": "s" * 300}),
        ("POST", "memory/forget", {"subject": "a", "tenant": "b"}),
        ("PATCH", "policy", {"nope": 1}),
        ("PATCH", "policy", {"max_tags": -1}),
        ("PATCH", "policy", {"max_tags": 2**70}),
        ("PATCH", "policy", {"max_tags": None}),
        ("PATCH", "policy", {"max_tags": True}),
        ("PATCH", "policy", {"zone": 5}),
        ("POST", "secrets", {"id": "a b", "value": "12345678"}),
        ("POST", "secrets", {"id": "", "value": "12345678"}),
        ("POST", "secrets", {"id": "a", "value": "short"}),
        ("POST", "secrets", {"id": "a", "value": "x" * 70_000}),
        ("POST", "scan", {"dry_run": "yes"}),
        ("POST", "import", {"x": 1}),
        ("POST", "memory/n/changes", {"change": "pin", "entries": [{"id": "a", "version": 1}] * 1001}),
    ],
)
def test_other_bodies(acme: Any, method: str, path: str, body: Any) -> None:
    assert refused(acme.send(method, path, json=body))


def test_a_long_list_of_objects_in_a_lenient_body(acme: Any) -> None:
    sent = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "ada", "unknown": [{}] * 200}
    assert acme.post("/mem0/v3/memories/add/", sent).status_code == 200
    assert acme.send("PUT", "/mem0/v1/batch/", json={"memories": [{"memory_id": "a"}] * 1001}).status_code == 400


@pytest.mark.parametrize(
    "bundle",
    [
        b"",
        b"\n",
        b"{}",
        b"[" * 5000 + b"\n",
        b"\xff\xfe\n",
        b'{"type": "manifest", "format": "reverie.bundle/1"}\n',
        b'{"type": "manifest", "format": "other"}\n{"type": "end"}\n',
        b"x" * 2_000_000,
    ],
)
def test_bundles(acme: Any, bundle: bytes) -> None:
    assert refused(acme.post("import", content=bundle, headers={"Content-Type": "application/x-ndjson"}))


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_idempotency_keys(acme: Any, key: str) -> None:
    assert refused(acme.post(ENTRY, {"content": "x"}, headers={"Idempotency-Key": key}))


def test_headers_in_strange_bytes(acme: Any) -> None:
    entry = acme.put("x")
    assert acme.post(ENTRY, {"content": "x"}, headers={"Idempotency-Key": b"\xff\xfe"}).status_code == 201
    assert acme.get(f"{ENTRY}/{entry}", headers={"If-None-Match": b"\xff"}).status_code == 200
    assert refused(acme.delete(f"{ENTRY}/{entry}", headers={"If-Match": b"\xff"}))
    assert acme.get("stats", headers={"Accept": b"\xff"}).status_code == 200
