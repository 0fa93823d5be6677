"""`Idempotency-Key` in the native API: a retry gets the first answer, and nothing is done twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from reverie.core.canonical import canonical
from reverie.core.errors import IdempotencyReused, StoreBusy
from reverie.memory.idempotency import StoredAnswer

ROOT = "/v1/host/reverie"
REPLAYED = "openwop-idempotent-replay"


@pytest.fixture
def caller(server: Any) -> Any:
    return server.caller()


def send(caller: Any, method: str, path: str, body: Any, key: str) -> Any:
    return caller.send(method, ROOT + path, json=body, headers={"Idempotency-Key": key})


def test_a_repeated_request_makes_one_schedule(caller: Any) -> None:
    key, body = uuid4().hex, {"ref": "notes", "cron": "0 3 * * *"}
    first = send(caller, "POST", "/schedules", body, key)
    again = send(caller, "POST", "/schedules", body, key)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert len(caller.get(f"{ROOT}/schedules").json()["schedules"]) == 1
    other = send(caller, "POST", "/schedules", {**body, "cron": "0 4 * * *"}, key)
    assert other.status_code == 409
    assert first.json()["id"] not in other.text


def test_a_path_is_part_of_the_request(caller: Any) -> None:
    made = [caller.post(f"{ROOT}/schedules", {"ref": ref, "cron": "0 3 * * *"}).json()["id"] for ref in "ab"]
    key = uuid4().hex
    assert send(caller, "DELETE", f"/schedules/{made[0]}", None, key).status_code == 200
    assert send(caller, "DELETE", f"/schedules/{made[0]}", None, key).headers[REPLAYED] == "true"
    assert send(caller, "DELETE", f"/schedules/{made[1]}", None, key).status_code == 409


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/memory/forget", {"subject": "ada"}),
        ("POST", "/sweep", None),
        ("PATCH", "/policy", {"recorded_searches": 7}),
        ("POST", "/secrets", {"id": "door", "value": f"a value of nobody's {uuid4().hex}"}),
        ("POST", "/memory/notes/consolidate", None),
    ],
)
def test_every_other_change_is_answered_again(caller: Any, method: str, path: str, body: Any) -> None:
    caller.post(f"{ROOT}/memory/notes/entries", {"content": "Ada likes tea.", "subject": "ada"})
    key = uuid4().hex
    first, again = (send(caller, method, path, body, key) for _ in range(2))
    assert first.status_code < 300, first.text
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers[REPLAYED] == "true"


def test_a_key_has_visible_characters_only(caller: Any) -> None:
    assert send(caller, "POST", "/sweep", None, "a key").status_code == 400
    assert send(caller, "POST", "/sweep", None, "x" * 256).status_code == 400


def test_a_repeated_dream_is_one_dream_and_one_undo(caller: Any) -> None:
    for n in range(3):
        for tank in range(4):
            text = f"The tank {tank} in the north cellar holds {tank + 3} litres of rain water."
            caller.post(f"{ROOT}/memory/notes/entries", {"content": text, "id": f"e{n}-{tank}"})
    dream, plan = uuid4().hex, uuid4().hex
    planned = [send(caller, "POST", "/memory/notes/dreams", {"plan": True}, plan) for _ in range(2)]
    assert planned[0].json() == planned[1].json()
    first, again = (send(caller, "POST", "/memory/notes/dreams", {}, dream) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201), first.text
    assert again.json() == first.json()
    assert again.headers[REPLAYED] == "true"
    assert len(caller.get(f"{ROOT}/memory/notes/dreams").json()["dreams"]) == 1
    path, undo = f"/memory/notes/dreams/{first.json()['id']}/undo", uuid4().hex
    undone, repeated = (send(caller, "POST", path, None, undo) for _ in range(2))
    assert (undone.status_code, repeated.status_code) == (200, 200), undone.text
    assert repeated.json() == undone.json()
    assert send(caller, "POST", path, None, uuid4().hex).status_code == 409
    streamed = caller.send(
        "POST",
        f"{ROOT}/memory/notes/dreams",
        json={},
        headers={"Idempotency-Key": dream, "Accept": "text/event-stream"},
    )
    assert streamed.json() == first.json()


def test_a_dream_that_was_committed_before_its_process_died_is_not_dreamt_again(
    caller: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        caller.post(f"{ROOT}/memory/notes/entries", {"content": "The tank in the north cellar holds 30 litres."})
    key = uuid4().hex

    class Died(BaseException):
        """No answer is kept, and none is sent."""

    def die(*answer: Any) -> StoredAnswer:
        if len(answer) > 1:
            raise Died
        return StoredAnswer(*answer)

    with monkeypatch.context() as patch:
        patch.setattr("reverie.memory.idempotency.StoredAnswer", die)
        patch.setattr("reverie.memory.idempotency.LEASE_MS", 1)
        with pytest.raises(Died):
            send(caller, "POST", "/memory/notes/dreams", {}, key)
    again = send(caller, "POST", "/memory/notes/dreams", {}, key)
    assert again.status_code == 201, again.text
    assert [dream["id"] for dream in caller.get(f"{ROOT}/dreams").json()["dreams"]] == [again.json()["id"]]


def test_a_dream_whose_answer_could_not_be_recorded_is_not_dreamt_again(
    caller: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        caller.post(f"{ROOT}/memory/notes/entries", {"content": "The tank in the north cellar holds 30 litres."})
    key = uuid4().hex

    def fail(*answer: Any) -> StoredAnswer:
        if len(answer) > 1:
            raise StoreBusy()
        return StoredAnswer(*answer)

    with monkeypatch.context() as patch:
        patch.setattr("reverie.memory.idempotency.StoredAnswer", fail)
        patch.setattr("reverie.memory.idempotency.LEASE_MS", 1)
        assert send(caller, "POST", "/memory/notes/dreams", {}, key).status_code == 503
    again = send(caller, "POST", "/memory/notes/dreams", {}, key)
    assert again.status_code == 201, again.text
    assert [dream["id"] for dream in caller.get(f"{ROOT}/dreams").json()["dreams"]] == [again.json()["id"]]


@pytest.mark.parametrize(
    ("method", "path", "media", "body"),
    [
        ("POST", "/v1/runs", "application/json", b'{"workflowId": "w", "inputs": {"x": [' + b"0.5, " * 9000 + b"1]}}"),
        ("POST", f"{ROOT}/import", "application/x-ndjson", b"{}\n" * 9000),
    ],
)
def test_a_large_request_is_compared_in_a_thread(
    caller: Any, monkeypatch: pytest.MonkeyPatch, method: str, path: str, media: str, body: bytes
) -> None:
    """It takes the event loop half a second for 250,000 values, in which no tenant gets an answer."""
    loops = []

    def watched(document: Any) -> bytes:
        with suppress(RuntimeError):
            loops.append(asyncio.get_running_loop())
        return canonical(document)

    monkeypatch.setattr("reverie.http.once.canonical", watched)
    headers = {"Idempotency-Key": uuid4().hex, "Content-Type": media}
    assert caller.send(method, path, content=body, headers=headers).status_code in (400, 404)
    assert not loops


def test_a_change_of_an_entry_is_made_once_and_its_text_is_not_kept(caller: Any) -> None:
    entry = caller.post(f"{ROOT}/memory/notes/entries", {"content": "Ada keeps bees.", "subject": "ada"}).json()
    path, key, tag = f"/memory/notes/entries/{entry['id']}", uuid4().hex, f'"{entry["version"]}"'
    options = {"json": {"pinned": True}, "headers": {"Idempotency-Key": key, "If-Match": tag}}
    first = caller.send("PATCH", ROOT + path, **options)
    again = caller.send("PATCH", ROOT + path, **options)  # without the key: 409, the version has moved
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, first.json(), first.headers["etag"])
    assert again.headers[REPLAYED] == "true"
    key = uuid4().hex
    gone, repeated = (send(caller, "DELETE", path, None, key) for _ in range(2))
    assert (repeated.status_code, repeated.json()) == (gone.status_code, gone.json()) == (200, gone.json())
    back, key = uuid4().hex, uuid4().hex
    restored = [send(caller, "POST", f"{path}/restore", None, back) for _ in range(2)]
    assert [answer.status_code for answer in restored] == [200, 200]
    erased, repeated = (send(caller, "DELETE", f"{path}?erase=true", None, key) for _ in range(2))
    assert repeated.json() == erased.json() != {"id": entry["id"], "erased_bytes": 0}
    assert "bees" not in send(caller, "POST", f"{path}/restore", None, back).text


def test_a_repeated_import_and_a_repeated_scan_answer_the_same(caller: Any) -> None:
    caller.post(f"{ROOT}/memory/notes/entries", {"content": "Ada likes tea."})
    bundle = caller.get(f"{ROOT}/export").content
    key, headers = uuid4().hex, {"Content-Type": "application/x-ndjson"}
    answers = [
        caller.send("POST", f"{ROOT}/import?ref=copy", content=bundle, headers={**headers, "Idempotency-Key": key})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers[REPLAYED] == "true"
    other = caller.send(
        "POST", f"{ROOT}/import?ref=copy", content=bundle + b"\n", headers={**headers, "Idempotency-Key": key}
    )
    assert other.status_code == 409
    key = uuid4().hex
    scans = [send(caller, "POST", "/scan", {"dry_run": True}, key) for _ in range(2)]
    assert scans[0].json() == scans[1].json()
    assert scans[1].headers[REPLAYED] == "true"


def test_a_refusal_by_the_rate_of_entries_gives_its_key_back_once(
    make_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second time would give back the key of a retry that began in between."""
    server = make_server(entries_per_second=1)
    caller = server.caller()
    actor, idempotency = server.host.keys.authenticate(caller.key, door="rest"), server.host.idempotency
    release = idempotency.release
    releases: list[Any] = []

    def retried(*arguments: Any) -> None:
        release(*arguments)
        if not releases:
            assert idempotency.claim(actor, "rest.import_bundle", "monday", "the retry") is not None
        releases.append(arguments)

    monkeypatch.setattr(idempotency, "release", retried)
    bundle, headers = b"{}\n", {"Content-Type": "application/x-ndjson", "Idempotency-Key": "monday"}
    server.app.state.limits.entries.take(caller.key.split("_")[1], 1000)
    assert caller.send("POST", "import", content=bundle, headers=headers).status_code == 429
    assert len(releases) == 1
    with pytest.raises(IdempotencyReused):
        idempotency.claim(actor, "rest.import_bundle", "monday", "another request")
