"""Keys with few rights: what they may do, they may do on every way in, and a refusal stores nothing."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "tonight"}], ids=["plain", "with-a-key"])
def test_a_key_that_may_only_dream_dreams_with_and_without_an_idempotency_key(
    server: Any, headers: dict[str, str]
) -> None:
    writer = server.caller()
    for n in [*range(12), *range(12)]:
        writer.put(f"Mara: berth {n} costs {n + 10} euros a day.")
    dreamer = server.caller(writer.tenant, rights=["dream"])
    answer = dreamer.post("memory/notes/dreams", {"fit": True}, headers=headers)
    assert answer.status_code == 201, answer.text
    if headers:
        again = dreamer.post("memory/notes/dreams", {"fit": True}, headers=headers)
        assert (again.status_code, again.json()["id"]) == (201, answer.json()["id"])


def test_a_key_that_may_only_write_adds_through_mem0_what_it_is_told_was_added(server: Any) -> None:
    writer = server.caller(rights=["write"])
    body = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "bob"}
    answer = writer.post("/mem0/v3/memories/add/", body)
    assert answer.status_code == 200, answer.text
    assert [row["memory"] for row in answer.json()["results"]] == ["I like tea."]
    assert writer.post("/mem0/v3/memories/", {"filters": {"user_id": "bob"}}).status_code == 403


def test_what_a_key_may_not_add_through_mem0_is_not_stored(server: Any) -> None:
    reader = server.caller(rights=["read"])
    body = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "bob"}
    assert reader.post("/mem0/v3/memories/add/", body).status_code == 403
    assert reader.get("stats").json()["entries"] == 0
