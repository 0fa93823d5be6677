"""The LangGraph store: keys, namespaces, filters, expiry, search, and notes of other doors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.errors import TooLarge
from reverie.host import Host
from reverie.integrations import langgraph as adapter
from reverie.integrations.langgraph import ReverieStore
from reverie.library import Memory
from reverie.providers.tokenizer import TokenCounter
from reverie.store.conformance import HandClock

USERS = ("users", "ann@example", "notes")


@pytest.fixture
def memory(make_host: Callable[..., Host], clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory on each store, whose time goes on by hand."""
    monkeypatch.setattr(adapter, "_now", clock.now)
    host = make_host(embedder=EMBEDDER, tokens=TokenCounter("o200k_base"))
    return Memory(host, Actor(tenant="default", id="local:library", door="library"))


@pytest.fixture
def store(memory: Memory) -> ReverieStore:
    return ReverieStore(memory)


def test_a_value_comes_back_as_it_was_put(store: ReverieStore) -> None:
    value = {"text": "Tea, not coffee.", "n": 3, "deep": {"list": [1, None, True, {"x": 0.5}]}, "empty": {}, "": "odd"}
    store.put(USERS, "taste", value)
    item = store.get(USERS, "taste")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (value, "taste", USERS)
    assert item.created_at == item.updated_at
    assert item.created_at.tzinfo is UTC
    assert store.get(USERS, "other") is None
    assert store.get(USERS[:2], "taste") is None
    store.put(USERS, "none", {})
    assert store.get(USERS, "none").value == {}  # type: ignore[union-attr]


def test_a_second_put_replaces_the_value_and_keeps_created_at(
    store: ReverieStore, memory: Memory, clock: HandClock
) -> None:
    store.put(USERS, "taste", {"text": "Tea."})
    first = store.get(USERS, "taste")
    clock.advance(5000)
    store.put(USERS, "taste", {"text": "Coffee."})
    second = store.get(USERS, "taste")
    assert first is not None
    assert second is not None
    assert second.value == {"text": "Coffee."}
    assert second.created_at == first.created_at
    assert (second.updated_at - first.updated_at).total_seconds() == 5
    assert [item.value for item in store.search(USERS, query="Tea or coffee?")] == [{"text": "Coffee."}]
    assert [count for _, count in memory.refs()] == [1]


def test_none_deletes_and_a_key_can_be_used_again(store: ReverieStore) -> None:
    store.put(USERS, "taste", {"text": "Tea."})
    store.delete(USERS, "taste")
    store.delete(USERS, "taste")
    assert store.get(USERS, "taste") is None
    assert store.search(USERS) == []
    assert store.list_namespaces() == []
    store.put(USERS, "taste", {"text": "Coffee."})
    assert store.get(USERS, "taste").value == {"text": "Coffee."}  # type: ignore[union-attr]


def test_racing_puts_leave_one_item(store: ReverieStore, memory: Memory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.put(USERS, "count", {"n": n}), range(16)))
    assert len(store.search(USERS, limit=50)) == 1
    assert [count for _, count in memory.refs()] == [1]


def test_a_batch_reads_what_was_before_and_answers_in_order(store: ReverieStore) -> None:
    store.put(USERS, "a", {"n": 1})
    answers = store.batch(
        [
            PutOp(USERS, "a", {"n": 2}),
            GetOp(USERS, "a"),
            PutOp(USERS, "b", {"n": 1}),
            PutOp(USERS, "b", {"n": 2}),
            SearchOp(USERS),
            ListNamespacesOp((MatchCondition("prefix", ("users", "*")),)),
        ]
    )
    assert [answers[0], answers[2], answers[3]] == [None, None, None]
    assert answers[1].value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in answers[4]] == [{"n": 1}]  # type: ignore[union-attr]
    assert answers[5] == [USERS]
    assert {item.key: item.value["n"] for item in store.search(USERS)} == {"a": 2, "b": 2}


LABELS = [
    "foo",
    "Foo",
    "foobar",
    "fo",
    "user_1",
    "userX1",
    "a%b",
    "axb",
    "star*",
    "[x]",
    "é",
    "名前",
    "a b",
    "a/b",
    "-",
    "a\n",
    "ann@b",
    "🦉",
    "u00e9",
]


def test_labels_are_literal_and_compared_by_case_and_segment(store: ReverieStore) -> None:
    for label in LABELS:
        store.put((label, "child"), "k", {"label": label})
        store.put((label,), "k", {"label": label})
    for label in LABELS:
        found = store.search((label,))
        assert {item.namespace for item in found} == {(label,), (label, "child")}
        assert {item.value["label"] for item in found} == {label}
        assert store.list_namespaces(prefix=(label,)) == [(label,), (label, "child")]
    assert len(store.list_namespaces(suffix=("child",))) == len(LABELS)
    assert len(store.list_namespaces(prefix=("*", "child"))) == len(LABELS)
    assert store.list_namespaces(prefix=("*",), max_depth=1, limit=3) == sorted((label,) for label in LABELS)[:3]
    assert (
        store.list_namespaces(limit=2, offset=1)
        == sorted([(label,) for label in LABELS] + [(label, "child") for label in LABELS])[1:3]
    )


def test_a_namespace_that_is_too_long_or_not_allowed_is_refused(store: ReverieStore) -> None:
    with pytest.raises(InvalidNamespaceError, match="256"):
        store.put(("x" * 300,), "k", {"n": 1})
    for namespace in ((), ("a.b",), ("",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
    assert store.get(("langgraph", "x"), "k") is None


def test_other_refs_of_the_tenant_are_no_namespaces(store: ReverieStore, memory: Memory) -> None:
    memory.ref("notes").put("Not of a graph.")
    memory.ref("langgraphs/x").put("Neither.")
    store.put(USERS, "taste", {"text": "Tea."})
    assert store.list_namespaces() == [USERS]
    assert len(store.search(())) == 1


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"color": "red"}, {"a", "b"}),
        ({"color": {"$eq": "red"}}, {"a", "b"}),
        ({"color": {"$ne": "red"}}, {"c", "d"}),
        ({"score": {"$gt": 3}}, {"a", "c"}),
        ({"score": {"$gte": 3, "$lt": 4.5}}, {"b", "c"}),
        ({"score": {"$lte": 3}}, {"b"}),
        ({"score": {"$lt": float("inf")}}, {"a", "b", "c"}),
        ({"score": {"$gt": 10**400}}, set()),
        ({"score": {"$eq": float("nan")}}, set()),
        ({"meta.access-level": "x"}, {"a"}),
        ({"meta": {"access-level": "x"}}, {"a"}),
        ({"meta": {"n": {"$gt": 1}}}, {"b"}),
        ({"dotted.key": 1}, {"c"}),
        ({"on": True}, {"a"}),
        ({"on": 1}, {"b"}),
        ({"tags": ["p", "q"]}, {"a"}),
        ({"when": {"$gt": "2026-02"}}, {"d"}),
        ({"color": "red", "score": {"$gt": 4}}, {"a"}),
        ({"color') OR 1=1 --": "x"}, set()),
    ],
)
def test_filters(memory: Memory, condition: dict[str, Any], found: set[str]) -> None:
    store = ReverieStore(memory)
    items: dict[str, dict[str, Any]] = {
        "a": {"color": "red", "score": 4.5, "meta": {"access-level": "x"}, "on": True, "tags": ["p", "q"]},
        "b": {"color": "red", "score": 3, "meta": {"n": 2}, "on": 1, "tags": ["p"], "when": "2026-01-05"},
        "c": {"color": "green", "score": 4.0, "dotted.key": 1, "tags": ["q", "p"]},
        "d": {"when": "2026-03-05"},
    }
    store.batch([PutOp(("docs",), key, value) for key, value in items.items()])
    assert {item.key for item in store.search(("docs",), filter=condition)} == found
    assert {item.key for item in store.search(("docs",), filter=condition, query="red things")} == found


def test_an_unknown_operator_is_refused(store: ReverieStore) -> None:
    store.put(USERS, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(USERS, filter={"n": {"$near": 2}})


def test_what_answers_comes_first_then_the_rest_and_pages_do_not_overlap(store: ReverieStore) -> None:
    facts = {
        "tea": "Ann drinks tea in the morning.",
        "dog": "The dog is called Bruno.",
        "job": "Ann works as a surgeon in Basel.",
        "car": "The car needs winter tyres.",
    }
    for key, text in facts.items():
        store.put(USERS, key, {"text": text, "source": "chat"})
    found = store.search(USERS, query="Which tyres does the car need?")
    assert found[0].key == "car"
    assert found[0].score is not None
    assert {item.key for item in found} == set(facts)
    pages = [store.search(USERS, query="What does Ann drink?", limit=2, offset=at) for at in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 0]
    assert {item.key for page in pages for item in page} == set(facts)
    assert pages[0][0].key == "tea"
    assert len(store.search(("users",), query="x" * 9000)) == 4
    assert len(store.search(USERS, query="  ")) == 4


def test_a_search_over_a_prefix_asks_every_namespace_below_it(store: ReverieStore, clock: HandClock) -> None:
    for name in ("ann", "ben", "cleo"):
        store.put(("users", name), "home", {"text": f"{name.title()} lives at the lake."})
    clock.advance(1)
    store.put(("users", "ben"), "car", {"text": "Ben drives a red van."})
    found = store.search(("users",), query="Who drives a van?", limit=2)
    assert (found[0].namespace, found[0].key) == (("users", "ben"), "car")
    newest = store.search(("users",))
    assert [item.key for item in newest[:1]] == ["car"]


def test_index_chooses_the_text_that_is_searched(memory: Memory) -> None:
    store = ReverieStore(memory, fields=["title"])
    body = {"title": "Annual report", "body": "The otter swims at night.", "parts": [{"t": "lighthouse"}]}
    store.put(USERS, "default", body)
    store.put(USERS, "paths", body, index=["body", "parts[*].t"])
    store.put(USERS, "never", body, index=False)

    def scored(query: str) -> set[str]:
        found = store.search(USERS, query=query)
        assert {item.key for item in found} == {"default", "paths", "never"}
        words = memory.ref("langgraph/users/ann.40example/notes").search(query, mode="words").hits
        return {hit.entry.attributes["langgraph"]["key"] for hit in words}

    assert scored("annual") == {"default"}
    assert scored("otter") == {"paths"}
    assert scored("lighthouse") == {"paths"}
    unranked = [item for item in store.search(USERS, query="annual otter") if item.score is None]
    assert [item.key for item in unranked] == ["never"]


def test_items_expire_and_reads_renew_them(store: ReverieStore, clock: HandClock) -> None:
    store.put(USERS, "short", {"n": 1}, ttl=1)
    store.put(USERS, "read", {"n": 2}, ttl=1)
    store.put(USERS, "found", {"n": 3}, ttl=1)
    store.put(USERS, "stays", {"n": 4})
    clock.advance(40_000)
    assert store.get(USERS, "read") is not None
    assert len(store.search(USERS, filter={"n": 3})) == 1
    assert store.get(USERS, "short", refresh_ttl=False) is not None
    clock.advance(40_000)
    assert {item.key for item in store.search(USERS, refresh_ttl=False)} == {"read", "found", "stays"}
    clock.advance(40_000)
    assert {item.key for item in store.search(USERS)} == {"stays"}
    assert store.get(USERS, "read") is None


def test_a_default_ttl_and_reads_that_do_not_renew(memory: Memory, clock: HandClock) -> None:
    store = ReverieStore(memory, ttl={"default_ttl": 1, "refresh_on_read": False})
    store.put(USERS, "short", {"n": 1})
    store.put(USERS, "stays", {"n": 2}, ttl=None)
    clock.advance(50_000)
    before = memory.snapshot()
    assert store.get(USERS, "short") is not None
    assert memory.snapshot() == before
    clock.advance(20_000)
    assert {item.key for item in store.search(USERS)} == {"stays"}


def test_a_read_right_after_a_read_writes_nothing(store: ReverieStore, memory: Memory, clock: HandClock) -> None:
    store.put(USERS, "short", {"n": 1}, ttl=10)
    before = memory.snapshot()
    clock.advance(100)
    store.get(USERS, "short")
    assert memory.snapshot() == before
    clock.advance(60_000)
    store.get(USERS, "short")
    assert memory.snapshot() == before + 1


def test_notes_of_other_doors_and_dreams_are_items(memory: Memory) -> None:
    store = ReverieStore(memory, pin=False)
    notes = memory.ref("langgraph/team")
    written = notes.put("The release is on Friday.", tags=["plan"]).id
    item = store.get(("team",), written)
    assert item is not None
    assert item.value == {"content": "The release is on Friday.", "kind": "note"}
    assert store.search(("team",), query="When is the release?")[0].key == written
    for n in range(12):
        store.put(("team",), f"k{n}", {"text": f"Parcel {n % 4} left the depot at gate {n % 4}."})
    report = notes.dream(budget=4000, fit=True)
    assert report is not None
    assert {"dream"} <= {item.value.get("kind") for item in store.search(("team",), limit=50)}
    store.delete(("team",), report.output_id)
    assert store.get(("team",), report.output_id) is None


def test_pinned_items_outlive_a_dream(store: ReverieStore, memory: Memory) -> None:
    for n in range(12):
        store.put(("team",), f"k{n}", {"text": f"Parcel {n % 4} left the depot at gate {n % 4}."})
    memory.ref("langgraph/team").dream(budget=4000, fit=True)
    assert all(store.get(("team",), f"k{n}") is not None for n in range(12))


def test_forget_reaches_the_items_of_a_subject(memory: Memory) -> None:
    store = ReverieStore(memory, subject=lambda namespace: namespace[1])
    store.put(("users", "ann"), "a", {"text": "Tea."})
    store.put(("users", "ben"), "a", {"text": "Coffee."})
    memory.forget("ann")
    assert store.get(("users", "ann"), "a") is None
    assert store.list_namespaces() == [("users", "ben")]


def test_secrets_in_values_and_keys_are_redacted_and_the_structure_stays(store: ReverieStore) -> None:
    secret = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
    store.put(USERS, secret, {"text": f"use {secret}", "list": [{"k": secret}], "n": 1})
    item = store.get(USERS, secret)
    assert item is not None
    assert secret not in repr(item)
    assert item.value["n"] == 1
    assert item.value["list"] == [{"k": "[REDACTED:aws-access-key]"}]
    other = "AKIA" + "Z9EGRT5XJ2KQ7WZM"
    assert store.get(USERS, other) is None


def test_a_value_that_is_too_large_is_refused_whole(store: ReverieStore) -> None:
    store.put(USERS, "large", {"text": "word " * 10_000})
    assert len(store.get(USERS, "large").value["text"]) == 50_000  # type: ignore[union-attr]
    with pytest.raises(TooLarge, match="65536"):
        store.batch([PutOp(USERS, "a", {"n": 1}), PutOp(USERS, "b", {"text": "word " * 20_000})])
    assert store.get(USERS, "a") is None


def test_the_async_calls_do_the_same(store: ReverieStore) -> None:
    async def go() -> None:
        await asyncio.gather(*(store.aput(USERS, f"k{n}", {"n": n}) for n in range(8)))
        item = await store.aget(USERS, "k3")
        assert item is not None
        assert item.value == {"n": 3}
        assert len(await store.asearch(USERS, filter={"n": {"$gte": 4}})) == 4
        await store.adelete(USERS, "k3")
        assert await store.aget(USERS, "k3") is None
        assert await store.alist_namespaces(prefix=("users",)) == [USERS]

    asyncio.run(go())


def test_many_calls_at_once_are_few_batches(memory: Memory) -> None:
    sizes: list[int] = []

    class Counted(ReverieStore):
        def batch(self, ops: Any) -> list[Any]:
            sizes.append(len(ops))
            return super().batch(ops)

    store = Counted(memory)

    async def go() -> None:
        puts = [store.aput(USERS, f"key {n % 20}", {"n": n}) for n in range(200)]
        other = store.aput(USERS, "large", {"text": "x" * 200_000})
        gone = asyncio.ensure_future(store.aget(USERS, "cancelled"))
        work = asyncio.gather(*puts, other, return_exceptions=True)
        await asyncio.sleep(0)
        gone.cancel()
        *answers, refused = await work
        assert answers == [None] * 200
        assert isinstance(refused, TooLarge)
        items = await asyncio.gather(*(store.aget(USERS, f"key {n % 20}") for n in range(200)))
        assert [item.value["n"] % 20 for item in items if item] == [n % 20 for n in range(200)]
        assert items[15] is not items[35]
        found = await asyncio.gather(*(store.asearch(USERS, filter={"n": {"$gte": 0}}, limit=50) for _ in range(20)))
        assert {len(one) for one in found} == {20}

    asyncio.run(go())
    assert sum(1 for size in sizes if size > 1) <= 5
    assert max(sizes) > 150


def test_reads_whose_paths_are_lists_are_answered(memory: Memory) -> None:
    store = ReverieStore(memory)
    store.put(("a", "b"), "k", {"n": 1})
    names = ListNamespacesOp(match_conditions=[MatchCondition("prefix", ["a"])])  # type: ignore[arg-type]
    found = SearchOp(["a"])  # type: ignore[arg-type]
    assert store.batch([names, names]) == [[("a", "b")], [("a", "b")]]
    assert [len(items) for items in store.batch([found, found])] == [1, 1]  # type: ignore[arg-type]


def test_a_graph_uses_it(store: ReverieStore) -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.store.base import BaseStore

    def remember(state: dict[str, Any], *, store: BaseStore) -> dict[str, Any]:
        store.put(("users", state["user"]), "said", {"text": state["text"]})
        return {"text": store.search(("users", state["user"]), query="tea")[0].value["text"]}

    builder: Any = StateGraph(dict)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    graph = builder.compile(store=store)
    assert graph.invoke({"user": "ann", "text": "Ann drinks tea."})["text"] == "Ann drinks tea."


@pytest.mark.parametrize("namespace", [("foo.bar",), ("foo", ""), ("foo", 1), ("foo", "a\0b")])
def test_a_batch_with_an_impossible_label_does_nothing(store: ReverieStore, namespace: Any) -> None:
    for op in (
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {}),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("suffix", namespace),)),
    ):
        with pytest.raises(InvalidNamespaceError, match="label"):
            store.batch([PutOp(("valid",), "k", {"text": "Tea."}), op])
    with pytest.raises(TypeError, match="no operation str"):
        store.batch(["put"])  # type: ignore[list-item]
    assert store.get(("valid",), "k") is None


def test_a_query_scores_every_indexed_item(store: ReverieStore) -> None:
    store.put(USERS, "tea", {"text": "Ann drinks Darjeeling tea."})
    store.put(USERS, "zurich", {"text": "The office is in Zurich."})
    store.put(USERS, "plain", {"text": "Nothing to search."}, index=False)
    scores = {item.key: item.score for item in store.search(USERS, query="Which tea does Ann drink?")}
    assert scores["tea"] > scores["zurich"] >= 0.0  # type: ignore[operator]
    assert scores["plain"] is None
    assert {item.score for item in store.search(USERS)} == {None}
