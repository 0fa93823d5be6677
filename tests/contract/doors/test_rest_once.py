"""`Idempotency-Key` in the native API: a retry gets the first answer, and nothing is done twice."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

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
