"""Workspace files over HTTP: versions, tombstones, If-Match, limits, isolation, redaction."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from tests.contract.doors.openwop.schemas import ERROR, FILE, LISTED_FILE, UPDATED, valid
from tests.contract.doors.openwop.test_runs import events, fill, of_type, start
from tests.contract.doors.openwop.test_schedules import late
from tests.stores import on_one_store

from reverie.protocols.openwop.workspace import MAX_FILE_BYTES, MAX_FILES, MAX_VERSIONS

FILES = "/v1/host/workspace/files"


def url(path: str) -> str:
    return f"{FILES}/{quote(path, safe='')}"


def put(caller: Any, path: str, content: str = "text", *, match: str | None = None, **body: Any) -> Any:
    headers = {} if match is None else {"If-Match": match}
    return caller.send("PUT", url(path), json={"content": content, **body}, headers=headers)


def refused(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    valid(answer.json(), ERROR)
    return dict(answer.json().get("details", {}))


def test_a_file_is_created_replaced_listed_and_deleted(acme: Any) -> None:
    assert acme.get(FILES).json() == {"files": []}
    made = put(acme, "notes/a.md", "one")
    assert made.status_code == 200
    valid(made.json(), FILE)
    assert (made.json()["version"], made.json()["contentType"]) == (1, "text/markdown")
    replaced = put(acme, "notes/a.md", "two", contentType="text/plain")
    assert (replaced.json()["version"], replaced.json()["contentType"]) == (2, "text/plain")
    assert replaced.json()["etag"] != made.json()["etag"] == made.headers["etag"]
    put(acme, "other.md", "")
    listed = acme.get(FILES).json()["files"]
    for file in listed:
        valid(file, LISTED_FILE)
    assert [file["path"] for file in listed] == ["notes/a.md", "other.md"]
    assert [file["path"] for file in acme.get(f"{FILES}?prefix=notes/").json()["files"]] == ["notes/a.md"]
    assert acme.get(f"{FILES}?prefix=%25_").json() == {"files": []}
    assert acme.get(url("notes/a.md")).json() == replaced.json()
    assert acme.get(url("notes/a.md") + "?version=1").json() == made.json()
    assert acme.delete(url("notes/a.md")).status_code == 204
    refused(acme.get(url("notes/a.md")), 404, "not_found")
    refused(acme.delete(url("notes/a.md")), 404, "not_found")
    assert put(acme, "notes/a.md", "three").json()["version"] == 4


def test_slashes_in_a_path_may_be_encoded_or_not(acme: Any) -> None:
    put(acme, "a/b/c.md", "x")
    assert acme.get(f"{FILES}/a/b/c.md").json() == acme.get(f"{FILES}/a%2Fb%2Fc.md").json()


@on_one_store
@pytest.mark.parametrize(
    "path",
    [
        "%2E%2E/x",
        "a%2F..%2Fb",
        "a/%2e%2e/b",
        "..%2F..%2Fetc%2Fpasswd",
        "%2Fabs",
        ".hidden",
        "-x",
        "a%00b",
        "a%20b",
        "a%252Fb",
        "caf%C3%A9",
        "a" * 257,
        "a%2F..",
        "",
        "a%5Cb",
    ],
)
def test_a_path_outside_the_grammar_is_refused(acme: Any, path: str) -> None:
    where = f"{FILES}/{path}"
    refused(acme.get(where), 400, "validation_error")
    refused(acme.send("PUT", where, json={"content": "x"}), 400, "validation_error")
    refused(acme.delete(where), 400, "validation_error")
    assert acme.get(FILES).json() == {"files": []}


@on_one_store
@pytest.mark.parametrize("path", ["a%2F%2Fb", "a%2F.%2Fb", "a%2F", "a%2F."])
def test_an_empty_or_dot_segment_is_refused_in_a_new_path(acme: Any, path: str) -> None:
    refused(acme.send("PUT", f"{FILES}/{path}", json={"content": "x"}), 400, "validation_error")
    refused(acme.get(f"{FILES}/{path}"), 404, "not_found")
    assert acme.get(FILES).json() == {"files": []}


@on_one_store
@pytest.mark.parametrize("path", ["a", "A9", "a..b", "a.md", "a/b-c_d.e", "a" * 256, "0/x"])
def test_every_path_of_the_grammar_works(acme: Any, path: str) -> None:
    assert put(acme, path).json()["path"] == path
    assert acme.get(url(path)).status_code == 200


@on_one_store
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": 5},
        {"content": None},
        {"content": "x", "extra": 1},
        {"content": "x", "contentType": 7},
        {"content": "x", "contentType": "not a type"},
        {"content": "x", "contentType": "text/plain\r\nx: y"},
        [],
    ],
    ids=str,
)
def test_the_body_is_closed(acme: Any, body: Any) -> None:
    refused(acme.send("PUT", url("a.md"), json=body), 400, "validation_error")


def test_a_stale_etag_is_a_conflict_that_names_the_current_version(acme: Any) -> None:
    first = put(acme, "a.md", "one").json()["etag"]
    second = put(acme, "a.md", "two", match=first)
    assert second.status_code == 200
    assert refused(put(acme, "a.md", "three", match=first), 409, "workspace_conflict")["currentVersion"] == 2
    assert refused(acme.delete(url("a.md"), headers={"If-Match": first}), 409, "workspace_conflict")
    assert acme.get(url("a.md")).json()["content"] == "two"
    assert refused(put(acme, "none.md", match='"v1"'), 409, "workspace_conflict")["currentVersion"] == 0
    assert refused(put(acme, "none.md", match="*"), 409, "workspace_conflict")["currentVersion"] == 0
    assert acme.delete(url("a.md"), headers={"If-Match": second.json()["etag"]}).status_code == 204
    stale = put(acme, "a.md", "four", match=second.json()["etag"])
    assert refused(stale, 409, "workspace_conflict")["currentVersion"] == 0
    assert put(acme, "a.md", "four").json()["version"] == 4
    assert put(acme, "a.md", "five", match="*").json()["version"] == 5
    assert put(acme, "a.md", "six", match='"zz", "v5"').json()["version"] == 6


def test_of_many_writers_with_one_etag_one_gets_through(acme: Any) -> None:
    etag = put(acme, "race.md", "start").json()["etag"]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: put(acme, "race.md", str(n), match=etag), range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]
    assert acme.get(url("race.md")).json()["version"] == 2


def test_without_a_header_the_last_write_wins_and_each_has_its_version(acme: Any) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: put(acme, "all.md", str(n)), range(6)))
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4, 5, 6]
    told = [e["data"] for e in acme.get("events?type=workspace.updated").json()["events"]]
    assert [data["version"] for data in told] == [1, 2, 3, 4, 5, 6]


def test_old_versions_are_kept_as_far_as_advertised(acme: Any) -> None:
    for n in range(1, MAX_VERSIONS + 3):
        put(acme, "v.md", str(n))
    assert acme.get(url("v.md") + "?version=3").json()["content"] == "3"
    refused(acme.get(url("v.md") + "?version=2"), 404, "not_found")
    refused(acme.get(url("v.md") + "?version=99"), 404, "not_found")
    for wrong in ("0", "-1", "x", "1.5"):
        refused(acme.get(url("v.md") + f"?version={wrong}"), 400, "validation_error")


def test_a_file_has_a_largest_size_in_bytes(acme: Any) -> None:
    assert put(acme, "big.md", "é" * (MAX_FILE_BYTES // 2)).status_code == 200
    refused(put(acme, "big.md", "é" * (MAX_FILE_BYTES // 2) + "x"), 413, "workspace_too_large")
    assert acme.get(url("big.md")).json()["version"] == 1


def test_a_workspace_has_a_largest_number_of_files(server: Any, acme: Any) -> None:
    actor = server.host.system_actor(acme.tenant)
    for n in range(MAX_FILES):
        server.host.workspace.put(actor, f"f{n}.md", "x")
    refused(put(acme, "more.md"), 413, "workspace_too_large")
    assert put(acme, "f0.md", "again").status_code == 200
    acme.delete(url("f0.md"))
    assert put(acme, "more.md").status_code == 200


def test_the_advertised_limits_are_the_enforced_ones(server: Any) -> None:
    family = server.stranger().get("/.well-known/openwop").json()["workspace"]
    assert family == {
        "supported": True,
        "versioned": True,
        "maxFileBytes": MAX_FILE_BYTES,
        "maxFiles": MAX_FILES,
        "maxVersions": MAX_VERSIONS,
    }


def test_a_tenant_sees_nothing_of_another_s_files(server: Any, acme: Any) -> None:
    rival = server.caller()
    etag = put(acme, "mine.md", "private").json()["etag"]
    assert rival.get(FILES).json() == {"files": []}
    refused(rival.get(url("mine.md")), 404, "not_found")
    refused(rival.delete(url("mine.md")), 404, "not_found")
    assert refused(put(rival, "mine.md", "x", match=etag), 409, "workspace_conflict")["currentVersion"] == 0
    assert put(rival, "mine.md", "other").json()["version"] == 1
    assert acme.get(url("mine.md")).json()["content"] == "private"
    refused(server.stranger().get(FILES), 401, "unauthenticated")


def test_secrets_in_a_file_are_marked_and_known_ones_by_their_id(server: Any, acme: Any) -> None:
    value = "correct horse battery"
    server.host.rules.register(server.host.system_actor(acme.tenant), "vault", value)
    shaped = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    content = put(acme, "s.md", f"first {value} then {shaped}").json()["content"]
    assert value not in content
    assert "[REDACTED:vault]" in content
    assert shaped not in content
    assert acme.get(url("s.md")).json()["content"] == content
    named = put(acme, shaped, "x")
    refused(named, 400, "validation_error")
    assert shaped not in named.text


def test_every_write_is_told_without_content_in_the_workspace_s_run(acme: Any) -> None:
    put(acme, "t.md", "zebra crossing")
    put(acme, "t.md", "zebra crossing again")
    acme.delete(url("t.md"))
    logged = acme.get("events?type=workspace.updated").json()["events"]
    (run,) = {event["data"]["run"] for event in logged}
    shown = acme.get(f"/v1/runs/{run}/events").json()
    told = [event["payload"] for event in shown["events"] if event["type"] == "workspace.updated"]
    for payload in told:
        valid(payload, UPDATED)
    assert told == [{"path": "t.md", "version": n} for n in (1, 2, 3)]
    assert [event["sequence"] for event in shown["events"]] == [0, 1, 2, 3]
    assert (shown["runStatus"], shown["isTerminal"]) == ("running", False)
    assert "zebra" not in json.dumps([logged, shown])


def test_a_run_shows_the_files_there_were_at_its_start(acme: Any) -> None:
    put(acme, "a.md", "1")
    put(acme, "b.md", "1")
    put(acme, "b.md", "2")
    put(acme, "c.md", "1")
    acme.delete(url("c.md"))
    run = start(acme, "reverie.memory.compact", inputs={"memoryRef": "empty"})
    assert run["workspace"] == [{"path": "a.md", "version": 1}, {"path": "b.md", "version": 2}]
    put(acme, "a.md", "2")
    assert acme.get(f"/v1/runs/{run['runId']}").json()["workspace"] == run["workspace"]


def test_the_index_is_written_by_dreams_alone(acme: Any) -> None:
    refused(put(acme, "MEMORY-INDEX.json", "{}"), 403, "forbidden")
    refused(acme.delete(url("MEMORY-INDEX.json")), 403, "forbidden")


def test_without_the_family_a_distillation_writes_no_index(make_server: Any) -> None:
    caller = make_server(openwop_workspace=False, openwop_seams=True).caller()
    fill(caller, "notes")
    run = start(caller, "reverie.memory.distill", inputs={"memoryRef": "notes"})["runId"]
    caller.post("/v1/host/sample/memory/distill", {"memoryRef": "notes"}).raise_for_status()
    found = caller.get("events?limit=1000").json()["events"]
    assert "memory.compacted" in {event["type"] for event in found}
    assert "workspace.updated" not in {event["type"] for event in found}
    assert of_type(events(caller, run), "memory.compacted")[0]["payload"]["distillation"]["indexUpdated"] is False


def test_without_the_family_no_run_writes_the_index_and_the_host_s_own_dreams_do(make_server: Any) -> None:
    server = make_server(openwop_workspace=False)
    caller = server.caller()
    fill(caller, "night")
    made = caller.post("schedules", {"cron": "* * * * *", "ref": "night"}).json()
    late(server, caller, made["id"], 120_000)
    server.host.schedules.tick(server.host.system_actor(caller.tenant))
    found = caller.get("events?limit=1000").json()["events"]
    assert "memory.compacted" in {event["type"] for event in found}
    assert "workspace.updated" not in {event["type"] for event in found}
    assert caller.get("index").json()["archives"] == []
    filler = "Thanks everyone, that was a good and long day at the office with many pleasant words."
    texts = [filler if n % 2 else f"We decided that service {n} listens on port {7000 + n}." for n in range(30)]
    caller.post("memory/notes/entries", {"entries": [{"content": text} for text in texts]})
    dream = caller.post("memory/notes/dreams", {"budget": 4000})
    assert dream.status_code == 201, dream.status_code
    assert [item["memoryRef"] for item in caller.get("index").json()["archives"]] == ["notes"]


def test_a_host_without_the_family_says_so_at_every_path(make_server: Any) -> None:
    server = make_server(openwop_workspace=False)
    caller = server.caller()
    document = server.stranger().get("/.well-known/openwop").json()
    assert "workspace" not in document
    assert document["memory"]["distillation"]["indexEmitted"] is False
    for method, path, body in (
        ("GET", FILES, None),
        ("GET", url("a.md"), None),
        ("PUT", url("a.md"), b"{not json"),
        ("DELETE", url("a.md"), None),
        ("GET", f"{FILES}/../x", None),
        ("POST", "/v1/host/workspace/anything", b""),
    ):
        refused(
            caller.send(method, path, **({"content": body} if body is not None else {})), 501, "capability_not_provided"
        )
    refused(server.stranger().get(FILES), 401, "unauthenticated")


def test_scopes_of_a_key_limit_what_it_may_do_with_files(server: Any, acme: Any) -> None:
    put(acme, "a.md")
    reader = server.caller(acme.tenant, scopes=["workspace:read"])
    writer = server.caller(acme.tenant, scopes=["workspace:write"])
    neither = server.caller(acme.tenant, scopes=["runs:read"])
    assert reader.get(url("a.md")).status_code == 200
    assert refused(put(reader, "a.md"), 403, "forbidden")["scopeRequired"] == "workspace:write"
    refused(reader.delete(url("a.md")), 403, "forbidden")
    assert put(writer, "a.md").status_code == 200
    assert refused(writer.get(url("a.md")), 403, "forbidden")["scopeRequired"] == "workspace:read"
    assert refused(neither.get(FILES), 403, "forbidden")["scopeRequired"] == "workspace:read"
