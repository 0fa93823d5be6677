"""The mem0 routes, driven by the real mem0ai client over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.contract.library.conftest import Running, running  # noqa: F401

from reverie.core.actor import Actor


@pytest.fixture
def engine() -> str:
    """One store: the routes use nothing but the host."""
    return "sqlite"


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return f"mem0-{abs(hash(request.node.name)) % 10**9}"


@pytest.fixture
def mem0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The package, imported by the process that needs it: it takes two seconds."""
    monkeypatch.setenv("MEM0_TELEMETRY", "false")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    import mem0

    return mem0


@pytest.fixture
def client(running: Running, tenant: str, mem0: Any) -> Iterator[Any]:  # noqa: F811
    made = mem0.MemoryClient(host=f"{running.url}/mem0", api_key=running.key(tenant))
    yield made
    made.client.close()


def test_a_program_written_for_mem0(client: Any, mem0: Any) -> None:
    messages = [
        {"role": "user", "content": "I am vegetarian and allergic to nuts."},
        {"role": "assistant", "content": "Noted: vegetarian, no nuts."},
        {"role": "user", "content": "My dog is called Bruno."},
    ]
    added = client.add(messages, user_id="ann@example.com", agent_id="chef", metadata={"source": "chat"})["results"]
    assert [row["event"] for row in added] == ["ADD"] * 3
    client.add("Ben collects stamps.", user_id="ben")
    found = client.search("What is the name of the dog?", filters={"user_id": "ann@example.com"})["results"]
    assert found[0]["memory"] == "My dog is called Bruno."
    assert found[0]["user_id"] == "ann@example.com"
    assert 0 < found[0]["score"] <= 1
    assert client.search("stamps", filters={"user_id": "ann@example.com"})["results"] == []
    one = client.get(added[2]["id"])
    assert (one["memory"], one["metadata"], one["agent_id"]) == ("My dog is called Bruno.", {"source": "chat"}, "chef")
    changed = client.update(added[2]["id"], text="My dog is called Rex.")
    assert (changed["id"], changed["memory"], changed["created_at"]) == (
        one["id"],
        "My dog is called Rex.",
        one["created_at"],
    )
    history = client.history(added[2]["id"])
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in history] == [
        ("ADD", None, "My dog is called Bruno."),
        ("UPDATE", "My dog is called Bruno.", "My dog is called Rex."),
    ]
    assert client.delete(added[0]["id"])["message"]
    with pytest.raises(mem0.exceptions.MemoryError):
        client.get(added[0]["id"])
    everything = client.get_all(filters={"user_id": "ann@example.com"})
    assert everything["count"] == 2
    assert {row["name"]: row["total_memories"] for row in client.users()["results"]} == {"ann@example.com": 2, "ben": 1}
    client.delete_all(user_id="ann@example.com")
    assert client.get_all(filters={"user_id": "ann@example.com"})["count"] == 0
    assert client.get_all(filters={"user_id": "ben"})["count"] == 1
    client.reset()
    assert client.users()["results"] == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"user_id": "ann"}, {"a", "b"}),
        ({"agent_id": "x"}, {"a", "c"}),
        ({"AND": [{"user_id": "ann"}, {"agent_id": "x"}]}, {"a"}),
        ({"OR": [{"user_id": "ben"}, {"run_id": "r"}]}, {"b", "c"}),
        ({"AND": [{"user_id": "*"}, {"NOT": [{"agent_id": "x"}]}]}, {"b"}),
        ({"user_id": {"in": ["ann", "cleo"]}}, {"a", "b"}),
        ({"metadata": {"n": {"gte": 2}}}, {"b", "c"}),
        ({"created_at": {"gte": "2020-01-01T00:00:00Z"}}, {"a", "b", "c"}),
        ({"user_id": "cleo"}, set()),
    ],
)  # fmt: skip
def test_filters(client: Any, filters: dict[str, Any], found: set[str]) -> None:
    client.add("a", user_id="ann", agent_id="x", metadata={"n": 1})
    client.add("b", user_id="ann", run_id="r", metadata={"n": 2})
    client.add("c", user_id="ben", agent_id="x", metadata={"n": 3})
    assert {row["memory"] for row in client.get_all(filters=filters)["results"]} == found


def test_pages_batches_and_an_expiry(client: Any, mem0: Any) -> None:
    ids = [client.add(f"Note {n}.", user_id="ann")["results"][0]["id"] for n in range(5)]
    page = client.get_all(filters={"user_id": "ann"}, page=2, page_size=2)
    assert (page["count"], len(page["results"])) == (5, 2)
    assert page["next"]
    with pytest.raises(mem0.exceptions.MemoryError):
        client.batch_update([{"memory_id": ids[0], "text": "Half."}, {"memory_id": "user-ann~none", "text": "Lost."}])
    assert client.get(ids[0])["memory"] == "Note 0."
    client.batch_update([{"memory_id": ids[0], "text": "Changed."}])
    client.batch_delete([{"memory_id": ids[1]}])
    texts = {row["memory"] for row in client.get_all(filters={"user_id": "ann"})["results"]}
    assert texts == {"Changed.", "Note 2.", "Note 3.", "Note 4."}
    row = client.add("Until then.", user_id="ann", expiration_date="2099-01-31")["results"][0]
    assert client.get(row["id"])["expiration_date"] == "2099-01-31"


def test_the_deletion_of_one_user_is_no_wildcard(client: Any) -> None:
    client.add("Ann rows.", user_id="ann")
    client.add("An agent rows too.", agent_id="cox")
    client.add("Nobody knows whose this is.", user_id="*")
    client.delete_users(user_id="*")
    assert [row["memory"] for row in client.get_all(filters={"user_id": "ann"})["results"]] == ["Ann rows."]
    assert {row["name"] for row in client.users()["results"]} == {"ann", "cox"}


def test_secrets_and_bad_input(client: Any, mem0: Any, running: Running) -> None:  # noqa: F811
    secret = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
    assert secret not in str(client.add(f"The key is {secret}", user_id="ann"))
    for wrong in (
        lambda: client.add("Whose?"),
        lambda: client.add([{"role": "user", "content": ""}], user_id="ann"),
        lambda: client.get("nothing"),
        lambda: client.get("user-ann~nothing"),
        lambda: client.get("../../x~y"),
        lambda: client.get_all(filters={"user_id": {"near": 1}}),
        lambda: client.search("Who is it?"),
        lambda: client.search("Who is it?", filters={"user_id": "*"}),
    ):
        with pytest.raises(mem0.exceptions.MemoryError):
            wrong()
    with pytest.raises(ValueError, match="key"):
        mem0.MemoryClient(host=f"{running.url}/mem0", api_key="wrong")


def test_other_doors_read_it_and_are_read(client: Any, running: Running, tenant: str) -> None:  # noqa: F811
    import reverie

    client.add("Ann prefers trains to planes.", user_id="ann")
    with reverie.open(running.url, key=running.key(tenant), tenant=tenant) as memory:
        assert [row["name"] for row in client.users()["results"]] == ["ann"]
        notes = memory.ref(client.users()["results"][0]["id"])
        assert notes.search("How does Ann travel?").hits[0].entry.subject == "ann"
        written = notes.put("Ann lives in Basel.").id
        rows = client.get_all(filters={"user_id": "ann"})["results"]
        assert {row["memory"] for row in rows} == {"Ann prefers trains to planes.", "Ann lives in Basel."}
        own = next(row for row in rows if row["memory"] == "Ann lives in Basel.")
        assert own["id"].endswith(written)
        client.update(own["id"], text="Ann lives in Bern.")
        assert client.get(own["id"])["memory"] == "Ann lives in Bern."
        memory.forget("ann")
        assert client.get_all(filters={"user_id": "ann"})["results"] == []


def test_a_dream_of_memories_is_still_of_its_user(client: Any, running: Running, tenant: str) -> None:  # noqa: F811
    import reverie

    for n in range(40):
        client.add(f"Order {n} of hall {n % 7} holds {n * 13} crates of valves for the usual customer.", user_id="ann")
        client.add(f"Order {n} of hall {n % 7} holds {n * 13} crates of valves for the usual customer.", agent_id="x")
    with reverie.open(running.url, key=running.key(tenant), tenant=tenant) as memory:
        for row in client.users()["results"]:
            assert memory.ref(row["id"]).dream(budget=2_000) is not None
    assert {row["name"]: row["type"] for row in client.users()["results"]} == {"ann": "user", "x": "agent"}
    everything = client.get_all(filters={"user_id": "ann"})["results"]
    assert everything
    assert {row["user_id"] for row in everything} == {"ann"}
    assert {row["agent_id"] for row in client.get_all(filters={"agent_id": "x"})["results"]} == {"x"}


def test_what_a_stranger_sends_is_never_a_fault_of_the_host(running: Running, tenant: str) -> None:  # noqa: F811
    headers = {"Authorization": f"Token {running.key(tenant)}"}
    with httpx2.Client(base_url=f"{running.url}/mem0", headers=headers, trust_env=False) as caller:
        asked = {"filters": {"user_id": "ana"}}
        assert caller.post("/v3/memories/", json=asked, params={"page": str(10**20)}).status_code == 400
        plain = {"Content-Type": "text/plain"}
        assert caller.post("/v3/memories/add/", content=b"{}", headers=plain).status_code == 415
        described = httpx2.get(f"{running.url}/v1/openapi.json", trust_env=False).json()["paths"]
        assert "415" in described["/mem0/v3/memories/add/"]["post"]["responses"]
        running.host.rules.set_policy(Actor(tenant, "ada"), {"max_entries": 1})
        said = {"messages": [{"role": "user", "content": "I am here."}] * 2, "user_id": "ana"}
        assert caller.post("/v3/memories/add/", json=said).status_code == 429
