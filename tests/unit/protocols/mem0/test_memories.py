"""mem0's memories: a page costs a page, and a batch is one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.counting import Counted

from reverie.core.actor import Actor
from reverie.core.errors import Held, Invalid, NotFound
from reverie.host import Host
from reverie.protocols.mem0.memories import Memories
from reverie.store.contract import Store

ACTOR = Actor(tenant="team", id="local:test")


@pytest.fixture
def counted(make_store: Callable[..., Store]) -> Counted:
    return Counted(make_store())


@pytest.fixture
def host(make_host: Callable[..., Host], counted: Counted) -> Host:
    return make_host(store=counted)


def added(memories: Memories, texts: list[str], user: str = "ann") -> list[str]:
    given = [("user", text) for text in texts]
    rows = memories.add(given, {"user_id": user}, metadata={}, created_at=None, expires_at=None)
    return [row["id"] for row in rows]


def texts(memories: Memories, user: str = "ann") -> set[str]:
    return {row["memory"] for row in memories.page({"user_id": user}, start=0, size=1000)[1]}


def test_a_page_reads_a_page(host: Host, counted: Counted) -> None:
    memories = Memories(host, ACTOR)
    costs = []
    for more in (600, 900):
        added(memories, [f"Crate {n} holds valves." for n in range(more)])
        before = counted.rows
        count, shown = memories.page({"user_id": "ann"}, start=20, size=10)
        costs.append(counted.rows - before)
        assert len(shown) == 10
    assert count == 1500
    assert costs[0] == costs[1] < 600


def test_pages_follow_each_other_over_users(host: Host) -> None:
    memories = Memories(host, ACTOR)
    for user in ("ann", "ben", "cy"):
        added(memories, [f"{user} note {n}" for n in range(3)], user)
    everyone = [memories.page({}, start=start, size=2) for start in range(0, 10, 2)]
    assert {count for count, _ in everyone} == {9}
    ids = [row["id"] for _, shown in everyone for row in shown]
    assert len(ids) == len(set(ids)) == 9
    pages = [memories.page({"memory": {"contains": "note 1"}}, start=start, size=1) for start in range(4)]
    assert {count for count, _ in pages} == {3}
    assert sorted(row["memory"] for _, shown in pages for row in shown) == ["ann note 1", "ben note 1", "cy note 1"]


def test_a_batch_changes_all_or_nothing(host: Host) -> None:
    memories = Memories(host, ACTOR)
    ids = added(memories, ["One.", "Two."]) + added(memories, ["Three."], "ben")
    wrong = "user-ann~nothing"
    with pytest.raises(NotFound):
        memories.update([(ids[0], "Changed.", None), (wrong, "Lost.", None)])
    with pytest.raises(NotFound):
        memories.delete([ids[0], ids[2], wrong])
    assert texts(memories) == {"One.", "Two."}
    assert texts(memories, "ben") == {"Three."}
    memories.update([(ids[0], "Changed.", {"a": 1}), (ids[2], None, {"b": 2}), (ids[0], None, {"c": 3})])
    assert memories.get(ids[0])["memory"] == "Changed."
    assert memories.get(ids[0])["metadata"] == {"a": 1, "c": 3}
    assert memories.get(ids[2])["metadata"] == {"b": 2}
    assert [row["event"] for row in memories.history(ids[0])] == ["ADD", "UPDATE"]
    memories.delete([ids[0], ids[2], ids[0]])
    assert texts(memories) == {"Two."}
    assert texts(memories, "ben") == set()


def test_a_batch_fails_as_a_whole_where_one_is_held(host: Host) -> None:
    memories = Memories(host, ACTOR)
    ids = added(memories, ["One.", "Two."])
    ((ref, _),) = host.reader.refs(ACTOR, "mem0/")
    host.lifecycle.hold(ACTOR, ref, host.reader.page(ACTOR, ref).items[0].id)
    with pytest.raises(Held):
        memories.delete(ids)
    assert texts(memories) == {"One.", "Two."}


def test_an_update_after_another_changes_the_newest(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = Memories(host, ACTOR)
    (one,) = added(memories, ["One."])
    stale = memories._find(one)
    memories.update([(one, "Two.", {"a": 1})])
    real, looks = memories._find, [stale]
    monkeypatch.setattr(memories, "_find", lambda wanted: looks.pop() if looks else real(wanted))
    memories.update([(one, "Three.", {"b": 2})])
    assert texts(memories) == {"Three."}
    assert memories.get(one)["metadata"] == {"a": 1, "b": 2}
    memories.delete([one])
    with pytest.raises(NotFound):
        memories.update([(one, "Four.", None)])
    assert texts(memories) == set()


def found(memories: Memories, filters: dict[str, Any]) -> set[str]:
    return {row["memory"] for row in memories.search("Who likes tea?", filters, limit=10, threshold=0.0)}


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"user_id": "*"},
        {"OR": [{"user_id": "*"}]},
        {"NOT": [{"user_id": "ann"}]},
        {"metadata": {"n": 1}},
        {"AND": [{"agent_id": "*"}, {"NOT": {"run_id": "r"}}]},
    ],
)
def test_a_search_that_names_nobody_is_refused(host: Host, counted: Counted, filters: dict[str, Any]) -> None:
    memories = Memories(host, ACTOR)
    added(memories, ["Ann likes tea."])
    before = counted.rows
    with pytest.raises(Invalid, match="at least one of user_id"):
        found(memories, filters)
    assert counted.rows == before


def test_a_search_reads_the_memories_of_the_users_it_names(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = Memories(host, ACTOR)
    for user in ("ann", "ben", "cy", "dee"):
        given = [("user", f"{user} likes tea.")]
        whose = {"user_id": user, "agent_id": "waiter"}
        memories.add(given, whose, metadata={}, created_at=None, expires_at=None)
    searched, search = list[str](), host.search.search

    def counting(actor: Actor, ref: str, *given: Any, **named: Any) -> Any:
        searched.append(ref)
        return search(actor, ref, *given, **named)

    monkeypatch.setattr(host.search, "search", counting)
    two: list[dict[str, Any]] = [
        {"user_id": {"in": ["ann", "ben"]}},
        {"OR": [{"user_id": "ann"}, {"user_id": {"eq": "ben"}}]},
        {"AND": [{"user_id": {"in": ["ann", "ben", "cy"]}}, {"user_id": {"in": ["ann", "ben"]}}]},
        {"user_id": {"in": ["ann", "ben"]}, "NOT": [{"user_id": "cy"}]},
    ]
    for filters in two:
        searched.clear()
        assert found(memories, filters) == {"ann likes tea.", "ben likes tea."}
        assert len(searched) == 2
    assert len(found(memories, {"agent_id": "waiter"})) == 4
    assert found(memories, {"OR": [{"user_id": "ann"}, {"agent_id": "waiter"}], "user_id": "dee"}) == {"dee likes tea."}
    monkeypatch.setattr("reverie.protocols.mem0.memories._MOST_SEARCHED", 3)
    searched.clear()
    with pytest.raises(Invalid, match="leave 4 users"):
        found(memories, {"agent_id": "waiter"})
    assert not searched
    assert found(memories, {"agent_id": "waiter", "user_id": "cy"}) == {"cy likes tea."}
