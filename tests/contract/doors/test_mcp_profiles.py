"""The sets of MCP tools: the nine of the reference memory server with its cases as data, resources, prompts, sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from reverie.api.mcp import memory_profile, reference_profile
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.mcp.toolset import Profile, make_server
from reverie.providers.tokenizer import TokenCounter

ANN = Actor(tenant="acme", id="key:ann", door="mcp")


def spoken(host: Host, profile: Profile, talk: Callable[[Client], Any]) -> Any:
    """What a client hears that speaks to the server in this process."""

    async def here(_: Any, work: Callable[[], Any]) -> Any:
        return work()

    async def go() -> Any:
        async with Client(make_server(host, ANN, profile, version="1", run=here)) as client:
            return await talk(client)

    return anyio.run(go)


def called(host: Host, name: str, profile: Profile | None = None, **arguments: Any) -> dict[str, Any]:
    async def talk(client: Client) -> dict[str, Any]:
        result = await client.call_tool(name, arguments)
        assert result.structured_content is None
        (only,) = result.content
        return {**json.loads(only.text), **({"refused": True} if result.is_error else {})}  # type: ignore[union-attr]

    return dict(spoken(host, profile or reference_profile(), talk))


def person(name: str, *facts: str, kind: str = "person") -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(facts)}


def arrow(start: str, kind: str, end: str) -> dict[str, str]:
    return {"from": start, "to": end, "relationType": kind}


ALICE, BOB, CHARLIE = person("Alice"), person("Bob"), person("Charlie")
KNOWS, WORKS = arrow("Alice", "knows", "Bob"), arrow("Alice", "works_with", "Bob")
FIRM = (
    ("create_entities", {"entities": [
        person("Alice", "works at Acme Corp", "likes programming"),
        person("Bob", "works at TechCo"),
        person("Acme Corp", "tech company", kind="company"),
    ]}),
    ("create_relations", {"relations": [arrow("Alice", "works_at", "Acme Corp"), arrow("Bob", "competitor", "Acme Corp")]}),
)  # fmt: skip
THREE = (
    ("create_entities", {"entities": [ALICE, BOB, CHARLIE]}),
    ("create_relations", {"relations": [KNOWS, arrow("Bob", "knows", "Charlie")]}),
)
Step = tuple[str, dict[str, Any]]
EMPTY: dict[str, Any] = {"entities": [], "relations": []}


def graph(entities: list[str], relations: int) -> dict[str, Any]:
    return {"names": entities, "count": relations}


CASES: dict[str, tuple[tuple[Step, ...], Any]] = {
    "create: new": ((("create_entities", {"entities": [person("Alice", "works at Acme Corp"), person("Bob", "likes programming")]}),), {"entities": [person("Alice", "works at Acme Corp"), person("Bob", "likes programming")]}),
    "create: read back": ((("create_entities", {"entities": [ALICE, BOB]}), ("read_graph", {})), graph(["Alice", "Bob"], 0)),
    "create: again": ((("create_entities", {"entities": [ALICE]}), ("create_entities", {"entities": [person("Alice", "other")]})), {"entities": []}),
    "create: again, read": ((("create_entities", {"entities": [ALICE]}), ("create_entities", {"entities": [ALICE]}), ("read_graph", {})), graph(["Alice"], 0)),
    "create: none": ((("create_entities", {"entities": []}),), {"entities": []}),
    "relate: new": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS]})), {"relations": [KNOWS]}),
    "relate: read": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS]}), ("read_graph", {})), graph(["Alice", "Bob"], 1)),
    "relate: again": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS]}), ("create_relations", {"relations": [KNOWS]})), {"relations": []}),
    "relate: again, read": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS]}), ("create_relations", {"relations": [KNOWS]}), ("read_graph", {})), graph(["Alice", "Bob"], 1)),
    "relate: none": ((("create_relations", {"relations": []}),), {"relations": []}),
    "observe: new": ((("create_entities", {"entities": [person("Alice", "works at Acme Corp")]}), ("add_observations", {"observations": [{"entityName": "Alice", "contents": ["likes coffee", "has a dog"]}]})), {"results": [{"entityName": "Alice", "addedObservations": ["likes coffee", "has a dog"]}]}),
    "observe: read": ((("create_entities", {"entities": [person("Alice", "one")]}), ("add_observations", {"observations": [{"entityName": "Alice", "contents": ["two", "three"]}]}), ("open_nodes", {"names": ["Alice"]})), {"entities": [person("Alice", "one", "two", "three")], "relations": []}),
    "observe: again": ((("create_entities", {"entities": [ALICE]}), ("add_observations", {"observations": [{"entityName": "Alice", "contents": ["likes coffee"]}]}), ("add_observations", {"observations": [{"entityName": "Alice", "contents": ["likes coffee", "has a dog"]}]})), {"results": [{"entityName": "Alice", "addedObservations": ["has a dog"]}]}),
    "observe: nobody": ((("add_observations", {"observations": [{"entityName": "NonExistent", "contents": ["x"]}]}),), {"code": "not_found", "message": "Entity with name NonExistent not found", "refused": True}),
    "delete: entity": ((("create_entities", {"entities": [ALICE, BOB]}), ("delete_entities", {"entityNames": ["Alice"]}), ("read_graph", {})), graph(["Bob"], 0)),
    "delete: its relations": ((*THREE, ("delete_entities", {"entityNames": ["Bob"]}), ("read_graph", {})), graph(["Alice", "Charlie"], 0)),
    "delete: nobody": ((("delete_entities", {"entityNames": ["NonExistent"]}), ("read_graph", {})), EMPTY),
    "forgo: observation": ((("create_entities", {"entities": [person("Alice", "works at Acme Corp", "likes coffee")]}), ("delete_observations", {"deletions": [{"entityName": "Alice", "observations": ["likes coffee"]}]}), ("read_graph", {})), {"entities": [person("Alice", "works at Acme Corp")], "relations": []}),
    "forgo: nobody's": ((("delete_observations", {"deletions": [{"entityName": "NonExistent", "observations": ["x"]}]}), ("read_graph", {})), EMPTY),
    "unrelate: one of two": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS, WORKS]}), ("delete_relations", {"relations": [KNOWS]}), ("read_graph", {})), {"entities": [ALICE, BOB], "relations": [WORKS]}),
    "read: empty": ((("read_graph", {}),), EMPTY),
    "read: to itself": ((("create_entities", {"entities": [person("Alice", "works at Acme Corp")]}), ("create_relations", {"relations": [arrow("Alice", "self", "Alice")]}), ("read_graph", {})), {"entities": [person("Alice", "works at Acme Corp")], "relations": [arrow("Alice", "self", "Alice")]}),
    "search: name": ((*FIRM, ("search_nodes", {"query": "Alice"})), graph(["Alice"], 1)),
    "search: type": ((*FIRM, ("search_nodes", {"query": "company"})), graph(["Acme Corp"], 2)),
    "search: observation": ((*FIRM, ("search_nodes", {"query": "programming"})), graph(["Alice"], 1)),
    "search: case": ((*FIRM, ("search_nodes", {"query": "ALICE"})), graph(["Alice"], 1)),
    "search: either end": ((*FIRM, ("search_nodes", {"query": "Acme"})), graph(["Acme Corp", "Alice"], 2)),
    "search: part of a word": ((*FIRM, ("search_nodes", {"query": "ogramm"})), graph(["Alice"], 1)),
    "search: nothing": ((*FIRM, ("search_nodes", {"query": "NonExistent"})), EMPTY),
    "open: two": ((*THREE, ("open_nodes", {"names": ["Alice", "Bob"]})), graph(["Alice", "Bob"], 2)),
    "open: middle": ((*THREE, ("open_nodes", {"names": ["Bob"]})), graph(["Bob"], 2)),
    "open: outgoing": ((*THREE, ("open_nodes", {"names": ["Alice"]})), {"entities": [ALICE], "relations": [KNOWS]}),
    "open: incoming": ((*THREE, ("open_nodes", {"names": ["Charlie"]})), {"entities": [CHARLIE], "relations": [arrow("Bob", "knows", "Charlie")]}),
    "open: nobody": ((*THREE, ("open_nodes", {"names": ["NonExistent"]})), EMPTY),
    "open: none": ((*THREE, ("open_nodes", {"names": []})), EMPTY),
    "kept: for another server": ((("create_entities", {"entities": [person("Alice", "persistent data")]}), ("read_graph", {})), {"entities": [person("Alice", "persistent data")], "relations": []}),
    "shape: search": ((("create_entities", {"entities": [person("Alice", "works at Acme")]}), ("create_relations", {"relations": [arrow("Alice", "self", "Alice")]}), ("search_nodes", {"query": "Alice"})), {"entities": [person("Alice", "works at Acme")], "relations": [arrow("Alice", "self", "Alice")]}),
    "shape: open": ((("create_entities", {"entities": [ALICE, BOB]}), ("create_relations", {"relations": [KNOWS]}), ("open_nodes", {"names": ["Alice", "Bob"]})), {"entities": [ALICE, BOB], "relations": [KNOWS]}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_reference_servers_cases(name: str, make_host: Callable[..., Host]) -> None:
    host = make_host()
    steps, expected = CASES[name]
    answer: dict[str, Any] = {}
    for tool, arguments in steps:  # each by a client and a server of its own: nothing is kept but in the store
        answer = called(host, tool, **arguments)
    if "names" in expected:
        assert sorted(entity["name"] for entity in answer["entities"]) == sorted(expected["names"])
        assert len(answer["relations"]) == expected["count"]
    else:
        assert answer == expected


@pytest.fixture
def engine() -> str:
    """One store: the tools use nothing but the host."""
    return "sqlite"


def test_relations_with_odd_attributes_do_not_end_the_graph(make_host: Callable[..., Host]) -> None:
    host = make_host()
    called(host, "create_entities", entities=[ALICE])
    odd: tuple[Any, ...] = ("Alice", ["Alice"], {"from": "Alice"}, {"from": ["Alice"], "to": {}}, None)
    ends = ("subject:Alice",)
    drafts = [Draft("x", kind="relation", tags=ends, attributes={"relation": value}) for value in odd]
    host.entries.put(ANN, "graph", [*drafts, Draft("y", kind="entity", subject="Eve", attributes={"entity": "x"})])
    assert "refused" not in called(host, "read_graph")
    assert [one["from"] for one in called(host, "open_nodes", names=["Alice"])["relations"]] == ["Alice"]


def test_many_relations_of_one_entity_are_compared_in_one_pass(
    make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, pages = make_host(), 0
    read = host.reader.page

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal pages
        pages += 1
        return read(*arguments, **named)

    monkeypatch.setattr(host.reader, "page", counted)
    relations = [arrow("Alice", "knows", f"Bob {number}") for number in range(50)]
    made = called(host, "create_relations", relations=[*relations, relations[0]])
    assert len(made["relations"]) == 50
    called(host, "delete_relations", relations=relations)
    assert called(host, "read_graph")["relations"] == []
    assert pages <= 3


def test_the_graph_is_memory_like_any_other(make_host: Callable[..., Host]) -> None:
    host = make_host()
    secret = "AKIA" + "Q3EGRT5XJ2KQ7WZL"
    made = called(host, "create_entities", entities=[person("Ann", f"uses {secret}"), BOB])
    assert secret not in json.dumps(made)
    called(host, "create_relations", relations=[arrow("Ann", "knows", "Bob")])
    host.entries.put(ANN, "graph", [Draft("Ann moved to Basel.", subject="Ann")])
    (ann,) = called(host, "open_nodes", names=["Ann"])["entities"]
    assert ann["observations"] == ["uses [REDACTED:aws-access-key]", "Ann moved to Basel."]
    host.forget.forget(ANN, "Ann")
    assert called(host, "read_graph") == {"entities": [BOB], "relations": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"entities": "x"},
        {"entities": ["x"]},
        {"entities": [{"name": "x"}]},
        {"entities": [{**ALICE, "more": 1}]},
        {"entities": [{**ALICE, "observations": [1]}]},
        {"entities": [{**ALICE, "name": 7}]},
        {},
    ],
)
def test_wrong_arguments_are_refused(make_host: Callable[..., Host], wrong: dict[str, Any]) -> None:
    host = make_host()
    assert called(host, "create_entities", **wrong)["code"] == "validation_error"
    assert called(host, "read_graph") == EMPTY


@pytest.mark.parametrize("profile", [memory_profile, reference_profile])
def test_a_set_of_tools_is_small(profile: Callable[[], Profile]) -> None:
    tools = [tool.described() for tool in profile().tools]
    size = sum(len(tool.description or "") + len(json.dumps(tool.input_schema)) for tool in tools)
    assert len(tools) <= 10
    assert size <= 5000


def test_instructions_say_when_to_recall_and_when_to_remember(make_host: Callable[..., Host]) -> None:
    async def talk(client: Client) -> str:
        return str(client.instructions)

    text = spoken(make_host(), memory_profile(), talk)
    for word in ("Recall at the start", "Remember when you learn", "quoted data"):
        assert word in text


def test_recall_takes_times_and_lists_the_newest_first(make_host: Callable[..., Host], clock: Any) -> None:
    host, day = make_host(), 86_400_000
    now = clock.now()
    for age in (9, 3, 1):
        host.entries.put(
            ANN, "default", [Draft(f"The lighthouse was painted {age} days ago.", created_at=now - age * day)]
        )

    def recalled(**arguments: Any) -> list[str]:
        answer = called(host, "recall", memory_profile(), **arguments)
        return [memory["content"].split()[4] for memory in answer["memories"]]

    assert recalled() == ["1", "3", "9"]
    assert recalled(limit=1) == ["1"]
    assert recalled(since="5d") == ["1", "3"]
    assert recalled(until="5d") == ["9"]
    assert set(recalled(query="lighthouse painted", since="5d")) == {"1", "3"}
    assert called(host, "recall", memory_profile(), since="once upon a time")["code"] == "validation_error"


def test_a_dream_is_undone_by_its_tool_and_its_report_is_a_resource(make_host: Callable[..., Host]) -> None:
    host = make_host(tokens=TokenCounter("o200k_base"))
    host.entries.put(ANN, "default", [Draft(f"Parcel {n % 4} left the depot at gate {n % 4}.") for n in range(12)])
    dream = called(host, "dream", memory_profile())
    assert dream["dreamt"] is True

    async def talk(client: Client) -> tuple[Any, ...]:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        read = [
            json.loads((await client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]
            for uri in (
                "reverie://index",
                "reverie://memory/default",
                f"reverie://dream/{dream['dream']}",
                f"reverie://memory/default/{dream['memory']}",
            )
        ]
        for missing in ("reverie://dream/none", "reverie://memory/default/none", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(missing)
        return listed, templates, read

    listed, templates, (index, memory, report, entry) = spoken(host, memory_profile(), talk)
    assert listed == ["reverie://index", "reverie://memory/default"]
    assert len(templates) == 3
    assert index
    assert memory["entries"][0]["kind"] == "dream"
    assert report["id"] == dream["dream"]
    assert entry["id"] == dream["memory"]
    undone = called(host, "dream", memory_profile(), undo=dream["dream"])
    assert undone == {"undone": dream["dream"], "restored": dream["from"]}
    assert called(host, "dream", memory_profile(), undo="none")["refused"]


def test_prompts_begin_with_what_is_known(make_host: Callable[..., Host]) -> None:
    host = make_host(tokens=TokenCounter("o200k_base"))
    host.entries.put(ANN, "default", [Draft("Ann drinks Darjeeling tea.")])

    async def talk(client: Client) -> list[str]:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        texts = [
            (await client.get_prompt(name, arguments)).messages[0].content.text  # type: ignore[union-attr]
            for name, arguments in (("recall", {"topic": "Which tea does Ann drink?"}), ("wrap-up", {}))
        ]
        with pytest.raises(MCPError):
            await client.get_prompt("recall", {})
        return [*names, *texts]

    *names, recalled, wrap_up = spoken(host, memory_profile(), talk)
    assert names == ["recall", "wrap-up"]
    assert "Darjeeling" in recalled
    assert "remember" in wrap_up
