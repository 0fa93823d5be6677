"""The memory tool: through the SDK's classes, as plain input, and over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, RateLimitError
from anthropic.lib.tools import ToolError
from tests.contract.doors.anthropic.conftest import Live

from reverie.anthropic import AsyncMemoryTool, MemoryTool
from reverie.core.errors import Invalid
from reverie.library import Memory
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import STORE
from reverie.protocols.anthropic.stores import Stores
from reverie.protocols.anthropic.tool import MemoryCommands, ToolFault, _lines_of, located, size_text

Tool = Callable[..., str]


@pytest.fixture
def memory(live: Live) -> Memory:
    """An embedded memory of a new tenant."""
    tenant, _ = live.key()
    host = live.server.host
    return Memory(host, host.system_actor(tenant))


@pytest.fixture
def tool(memory: Memory) -> Tool:
    """`tool(command, **fields)`: the text of the answer; a refusal is raised."""
    made = MemoryTool(memory, store="assistant")

    def run(command: str, **fields: Any) -> str:
        return str(made.call({"command": command, **fields}))

    return run


def said(call: Callable[[], str]) -> str:
    """The text of a refusal."""
    with pytest.raises(ToolError) as fault:
        call()
    return str(fault.value.content)


def test_the_tools_entry(memory: Memory) -> None:
    assert MemoryTool(memory, store="a").to_dict() == {"type": "memory_20250818", "name": "memory"}
    cached = MemoryTool(memory, store="a", cache_control={"type": "ephemeral"}).to_dict()
    assert cached["cache_control"] == {"type": "ephemeral"}


def test_create_and_view(tool: Tool) -> None:
    assert tool("create", path="/memories/a.md", file_text="one\ntwo\n") == (
        "File created successfully at: /memories/a.md"
    )
    assert said(lambda: tool("create", path="/memories/a.md", file_text="x")) == "File /memories/a.md already exists"
    assert tool("view", path="/memories/a.md") == (
        "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo\n     3\t"
    )
    assert tool("view", path="/memories/a.md", view_range=[2, 2]).endswith(":\n     2\ttwo")
    assert tool("view", path="/memories/a.md", view_range=[2, -1]).endswith(":\n     2\ttwo\n     3\t")
    assert tool("view", path="/memories/a.md", view_range=[0, 1]).endswith(":\n     1\tone")
    assert "     3\t" in tool("view", path="/memories/a.md", view_range=[2])
    absent = "The path /memories/x does not exist. Please provide a valid path."
    assert said(lambda: tool("view", path="/memories/x")) == absent
    tool("create", path="/memories/crlf", file_text="a\r\nb")
    assert tool("view", path="/memories/crlf").endswith("     1\ta\r\n     2\tb")


def test_folders_are_listed_two_levels_deep(tool: Tool) -> None:
    header = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items:\n"
    assert tool("view", path="/memories") == header.format("/memories") + "0B\t/memories"
    for path, size in (("b", 1536), ("a/x", 1024), ("a/deep/er/y", 10), (".hidden", 5), ("a/.h/z", 1), ("a-b", 0)):
        tool("create", path=f"/memories/{path}", file_text="x" * size)
    assert tool("view", path="/memories") == header.format("/memories") + "\n".join(
        [
            "2.5K\t/memories",
            "1.0K\t/memories/a/",
            "10B\t/memories/a/deep/",
            "1K\t/memories/a/x",
            "0B\t/memories/a-b",
            "1.5K\t/memories/b",
        ]
    )
    assert tool("view", path="/memories/a") == header.format("/memories/a") + "\n".join(
        [
            "1.0K\t/memories/a",
            "10B\t/memories/a/deep/",
            "10B\t/memories/a/deep/er/",
            "1K\t/memories/a/x",
        ]
    )
    for root in ("/memories/", "/memories/.", "/memories/a/.."):
        assert tool("view", path=root).startswith(header.format(root))


def test_sizes() -> None:
    shown = {0: "0B", 1: "1B", 1023: "1023B", 1024: "1K", 1536: "1.5K", 4096: "4K", 2**20: "1M", 5 * 2**30: "5G"}
    assert {size: size_text(size) for size in shown} == shown


def test_str_replace(tool: Tool) -> None:
    tool("create", path="/memories/a", file_text="1\n2\n3\nfour\n5\n6\n7")
    answer = tool("str_replace", path="/memories/a", old_str="four", new_str="4\n4b")
    assert answer == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t2\n     3\t3\n     4\t4\n     5\t4b\n     6\t5"
    )
    assert said(lambda: tool("str_replace", path="/memories/a", old_str="none", new_str="x")) == (
        "No replacement was performed, old_str `none` did not appear verbatim in /memories/a."
    )
    tool("create", path="/memories/b", file_text="x\ny x\nz\nx")
    assert said(lambda: tool("str_replace", path="/memories/b", old_str="x", new_str="")) == (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 2, 4. Please ensure it is unique"
    )
    assert "empty" in said(lambda: tool("str_replace", path="/memories/b", old_str="", new_str="x"))
    tool("str_replace", path="/memories/b", old_str="z\n")
    assert tool("view", path="/memories/b").endswith("     2\ty x\n     3\tx")
    tool("create", path="/memories/d/e", file_text="x")
    assert said(lambda: tool("str_replace", path="/memories/d", old_str="x", new_str="y")) == (
        "The path /memories/d is not a file."
    )
    assert "does not exist. Please" in said(lambda: tool("str_replace", path="/memories/q", old_str="x", new_str="y"))


def test_insert(tool: Tool) -> None:
    tool("create", path="/memories/a", file_text="one\nthree\n")
    assert tool("insert", path="/memories/a", insert_line=1, insert_text="two\n\n") == (
        "The file /memories/a has been edited."
    )
    assert tool("view", path="/memories/a").endswith("     1\tone\n     2\ttwo\n     3\tthree\n     4\t")
    for line in (-1, 4):
        assert said(lambda line=line: tool("insert", path="/memories/a", insert_line=line, insert_text="x")) == (  # type: ignore[misc]
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 3]."
        )
    tool("create", path="/memories/b", file_text="x")
    tool("insert", path="/memories/b", insert_line=0, insert_text="first")
    assert tool("view", path="/memories/b").endswith("     1\tfirst\n     2\tx\n     3\t")
    assert "is not a file" in said(lambda: tool("insert", path="/memories", insert_line=0, insert_text="x"))


def test_delete(tool: Tool) -> None:
    for path in ("a", "d/1", "d/2/3", "dd"):
        tool("create", path=f"/memories/{path}", file_text="x")
    assert tool("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert tool("delete", path="/memories/d") == "Successfully deleted /memories/d"
    assert said(lambda: tool("delete", path="/memories/d")) == "The path /memories/d does not exist"
    for root in ("/memories", "/memories/", "/memories/x/.."):
        assert said(lambda root=root: tool("delete", path=root)) == "Cannot delete the /memories directory itself"  # type: ignore[misc]
    assert tool("view", path="/memories").endswith("1B\t/memories/dd")


def test_rename(tool: Tool, memory: Memory) -> None:
    for path in ("a", "d/1", "d/2/3"):
        tool("create", path=f"/memories/{path}", file_text=path)
    assert tool("rename", old_path="/memories/a", new_path="/memories/new/deep/a") == (
        "Successfully renamed /memories/a to /memories/new/deep/a"
    )
    host, actor = memory.host, memory.actor
    store = host.memory_stores.named(actor, "assistant")
    assert store is not None
    before = {m.content: m.file.id for m in host.memories.list(actor, "memstore_" + store.id).items}
    tool("rename", old_path="/memories/d", new_path="/memories/e")
    after = {m.content: m.file.id for m in host.memories.list(actor, "memstore_" + store.id).items}
    assert after == before
    assert {m.file.path for m in host.memories.list(actor, "memstore_" + store.id).items} == {
        "/e/1",
        "/e/2/3",
        "/new/deep/a",
    }
    taken = said(lambda: tool("rename", old_path="/memories/e", new_path="/memories/new"))
    assert taken == "The destination /memories/new already exists"
    assert said(lambda: tool("rename", old_path="/memories/x", new_path="/memories/new")) == taken
    assert said(lambda: tool("rename", old_path="/memories/x", new_path="/memories/y")) == (
        "The path /memories/x does not exist"
    )
    assert said(lambda: tool("rename", old_path="/memories", new_path="/memories/y")) == (
        "Cannot rename the /memories directory itself"
    )
    assert "itself" in said(lambda: tool("rename", old_path="/memories/e", new_path="/memories/e/f/g"))
    assert "is a file" in said(lambda: tool("rename", old_path="/memories/e/1", new_path="/memories/new/deep/a/b"))
    assert "is a file" in said(lambda: tool("create", path="/memories/e/1/x", file_text="x"))


@pytest.mark.parametrize(
    "path", ["memories/a", "/etc/passwd", "/memoriesx", "/memory", "", "/", "//memories/a", "/MEMORIES/a", "\\memories"]
)
def test_paths_outside_are_refused(path: str) -> None:
    with pytest.raises(ToolFault, match="Path must start with /memories, got: "):
        located(path)


@pytest.mark.parametrize(
    "path",
    [
        "/memories/..",
        "/memories/../x",
        "/memories/a/../../b",
        "/memories/../memories/a",
        "/memories/./../../etc/passwd",
    ],
)
def test_paths_that_lead_out_are_refused(path: str) -> None:
    with pytest.raises(ToolFault, match="would escape /memories directory"):
        located(path)


@pytest.mark.parametrize(
    "path", ["/memories/a\x00", "/memories/a\u202eb", "/memories/" + "x" * 1025, "/memories/e\u0301"]
)
def test_paths_that_cannot_be_stored_are_refused(path: str) -> None:
    with pytest.raises(ToolFault, match="is not valid: "):
        located(path)


def test_percent_signs_are_plain_characters() -> None:
    assert located("/memories/%2e%2e/%2fetc") == "/%2e%2e/%2fetc"
    assert located("/memories/..%2fx") == "/..%2fx"
    assert located("/memories/...") == "/..."
    assert located("/memories//a///b/") == "/a/b"


def test_too_large_and_secrets(tool: Tool, github_token: str) -> None:
    assert said(lambda: tool("create", path="/memories/a", file_text="x" * 102_401)) == (
        "File /memories/a would exceed the limit of 102,400 bytes."
    )
    answer = tool("create", path="/memories/a", file_text=f"token {github_token}")
    assert answer == ("File created successfully at: /memories/a\nNote: 1 secret was replaced (github-token).")
    assert github_token not in tool("view", path="/memories/a")
    refusal = said(lambda: tool("create", path=f"/memories/{github_token}", file_text="x"))
    assert "secret" in refusal


def test_overwrite_and_view_limit(memory: Memory) -> None:
    tool = MemoryTool(memory, store="a", on_exists="overwrite", view_limit=80)
    tool.call({"command": "create", "path": "/memories/a", "file_text": "one"})
    tool.call({"command": "create", "path": "/memories/a", "file_text": "two " * 50})
    shown = str(tool.call({"command": "view", "path": "/memories/a"}))
    assert "two" in shown
    assert "view_range" in shown
    assert len(shown) < 130
    tool.call({"command": "create", "path": "/memories/d/x", "file_text": "one"})
    with pytest.raises(ToolError, match="already exists"):
        tool.call({"command": "create", "path": "/memories/d", "file_text": "one"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert str(MemoryTool(memory, store="a").call({"command": "view", "path": "/memories"})).endswith("0B\t/memories")


def test_unknown_commands(memory: Memory) -> None:
    tool = MemoryTool(memory, store="a")
    with pytest.raises(NotImplementedError, match="Unknown command: explode"):
        tool.call({"command": "explode"})
    assert tool.handle({"command": "explode"}) == {"content": "Unknown command: explode", "is_error": True}
    for broken in (
        {},
        {"command": 7},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "insert", "path": "/memories/a", "insert_text": "x", "insert_line": "1"},
    ):
        assert tool.handle(broken)["is_error"] is True


def test_a_session_shows_in_the_versions(memory: Memory, live: Live) -> None:
    tool = MemoryTool(memory, store="a", session="night-7")
    tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
    tool.call({"command": "delete", "path": "/memories/a"})
    client = live.client(memory.actor.tenant)
    store = client.beta.memory_stores.list().data[0].id
    actors: Any = [row.created_by for row in client.beta.memory_stores.memory_versions.list(store)]
    assert {actor.session_id for actor in actors} == {"sesn_night-7"}


def test_two_editors_of_one_file_lose_nothing(memory: Memory) -> None:
    tools = [MemoryTool(memory, store="a") for _ in range(2)]
    tools[0].call({"command": "create", "path": "/memories/a", "file_text": "a\nb\n"})
    start = threading.Barrier(2)
    refusals: list[str] = []

    def edit(tool: MemoryTool, name: str) -> None:
        start.wait()
        for n in range(10):
            answer = tool.handle(
                {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": f"{name}{n}"}
            )
            if answer["is_error"]:
                refusals.append(f"{name}{n}")

    threads = [threading.Thread(target=edit, args=(tool, name)) for tool, name in zip(tools, "xy", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown = str(tools[0].call({"command": "view", "path": "/memories/a"}))
    lines = {line.partition("\t")[2] for line in shown.split("\n")[1:]}
    wanted = {f"{name}{n}" for name in "xy" for n in range(10)} - set(refusals)
    assert wanted <= lines
    assert not lines & set(refusals)


def test_over_http(client: Anthropic, store: str) -> None:
    path = f"/v1/memory_stores/{store}/reverie/tool"

    def call(**body: Any) -> Any:
        return client.post(path, cast_to=object, body=body)

    assert call(command="create", path="/memories/a", file_text="x") == {
        "content": "File created successfully at: /memories/a",
        "is_error": False,
    }
    assert call(command="view", path="/memories/../a")["is_error"] is True
    assert client.beta.memory_stores.memories.list(store).data[0].path == "/a"


def test_an_edit_that_is_sent_again_with_its_key_is_made_once(client: Anthropic, store: str) -> None:
    path = f"/v1/memory_stores/{store}/reverie/tool"

    def twice(**body: Any) -> Any:
        options: Any = {"headers": {"Idempotency-Key": uuid4().hex}}
        first, second = (client.post(path, cast_to=object, body=body, options=options) for _ in range(2))
        assert first["content"].startswith(second["content"])
        return second

    def text() -> str | None:
        (found,) = client.beta.memory_stores.memories.list(store, view="full").data
        return getattr(found, "content", None)

    assert twice(command="create", path="/memories/a", file_text="one\n")["is_error"] is False
    twice(command="insert", path="/memories/a", insert_line=0, insert_text="zero")
    assert text() == "zero\none\n"
    twice(command="str_replace", path="/memories/a", old_str="one", new_str="one one")
    assert text() == "zero\none one\n"
    assert twice(command="insert", path="/memories/a", insert_line=9, insert_text="x")["is_error"] is True
    twice(command="rename", old_path="/memories/a", new_path="/memories/b")
    assert twice(command="view", path="/memories/b")["content"].endswith("     3\t")
    assert twice(command="delete", path="/memories/b") == {
        "content": "Successfully deleted /memories/b",
        "is_error": False,
    }
    assert client.beta.memory_stores.memories.list(store).data == []


@pytest.mark.parametrize(
    "edit",
    [
        {"command": "insert", "insert_line": 0, "insert_text": "zero"},
        {"command": "str_replace", "old_str": "one", "new_str": "zero one"},
    ],
    ids=["insert", "str_replace"],
)
def test_an_edit_that_a_dead_process_made_is_not_made_again(memory: Memory, edit: dict[str, Any]) -> None:
    made = MemoryTool(memory, store="assistant")
    made.call({"command": "create", "path": "/memories/a", "file_text": "one\n"})
    store = STORE + memory.host.use(Stores).named(memory.actor, "assistant").id  # type: ignore[union-attr]
    for _ in range(2):
        commands = MemoryCommands(memory.host.use(Memories), memory.actor, store, idempotency_key="01")
        answer = commands.handle({"path": "/memories/a", **edit})
        assert answer["is_error"] is False
        assert answer["content"].startswith(
            ("The file /memories/a has been edited.", "The memory file has been edited.")
        )
    assert str(made.call({"command": "view", "path": "/memories/a"})).count("zero") == 1


def test_an_edit_whose_answer_is_lost_is_made_once(client: Anthropic) -> None:
    class Lossy(httpx2.HTTPTransport):
        """Loses the answer to every first edit."""

        lost = 0

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            answer = super().handle_request(request)
            if b'"insert"' in request.read() and not self.lost:
                self.lost += 1
                answer.close()
                raise httpx2.ReadError("lost", request=request)
            return answer

    transport = Lossy()
    with Anthropic(
        base_url=client.base_url, api_key=client.api_key, http_client=httpx2.Client(transport=transport)
    ) as theirs:
        tool = MemoryTool(theirs, store="assistant")
        tool.call({"command": "create", "path": "/memories/a", "file_text": "one\n"})
        tool.call({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "zero"})
        assert str(tool.call({"command": "view", "path": "/memories/a"})).count("zero") == 1
    assert transport.lost == 1


def test_edits_of_the_tool_count_as_entries(make_live: Callable[..., Live]) -> None:
    client = make_live(entries_per_second=1).client()
    store = client.beta.memory_stores.create(name="notes").id
    path = f"/v1/memory_stores/{store}/reverie/tool"

    def edit(count: int) -> None:
        for number in range(count):
            body = {"command": "create", "path": f"/memories/{number}", "file_text": "x"}
            client.post(path, cast_to=object, body=body)

    with pytest.raises(RateLimitError):
        edit(100)
    client.post(path, cast_to=object, body={"command": "view", "path": "/memories"})


def test_the_asynchronous_tool(memory: Memory) -> None:
    import asyncio

    tool = AsyncMemoryTool(memory, store="a")

    async def go() -> tuple[Any, Any]:
        await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
        shown = await tool.call({"command": "view", "path": "/memories/a"})
        with pytest.raises(ToolError):
            await tool.call({"command": "delete", "path": "/memories"})
        return shown, await tool.clear_all_memory()

    shown, cleared = asyncio.run(go())
    assert shown.endswith("     1\tx")
    assert cleared == "All memory cleared"


def test_the_asynchronous_tool_takes_the_asynchronous_client(client: Anthropic) -> None:
    import asyncio

    async def go() -> Any:
        async with AsyncAnthropic(base_url=client.base_url, api_key=client.api_key) as theirs:
            tool = AsyncMemoryTool(theirs, store="assistant")
            await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
            return await tool.handle({"command": "view", "path": "/memories/a"})

    assert asyncio.run(go())["content"].endswith("     1\tx")
    assert [store.name for store in client.beta.memory_stores.list().data] == ["assistant"]


def test_the_tool_says_what_it_takes() -> None:
    with pytest.raises(Invalid, match=r"reverie\.open"):
        MemoryTool("./memory", store="a")  # type: ignore[arg-type]


def test_the_tool_on_a_host(live: Live, client: Anthropic) -> None:
    tool = MemoryTool(client, store="assistant", session="walk")
    assert tool.call({"command": "create", "path": "/memories/a/b", "file_text": "x"}) == (
        "File created successfully at: /memories/a/b"
    )
    with pytest.raises(ToolError, match="File /memories/a/b already exists"):
        tool.call({"command": "create", "path": "/memories/a/b", "file_text": "y"})
    again = MemoryTool(client, store="assistant", on_exists="overwrite")
    again.call({"command": "create", "path": "/memories/a/b", "file_text": "y"})
    assert str(again.call({"command": "view", "path": "/memories/a/b"})).endswith("     1\ty")
    stores = client.beta.memory_stores.list().data
    assert [store.name for store in stores] == ["assistant"]
    actors: Any = [row.created_by for row in client.beta.memory_stores.memory_versions.list(stores[0].id)]
    assert actors[-1].session_id == "sesn_walk"
    assert again.clear_all_memory() == "All memory cleared"
    assert client.beta.memory_stores.memories.list(stores[0].id).data == []


def test_lines_of_matches_that_overlap_are_found_in_one_pass() -> None:
    began = time.process_time()
    assert _lines_of("a\n" + "a" * 400_000, "a" * 200_000) == [2] * 200_001
    assert time.process_time() - began < 5  # 100 s when every match is looked for anew
    text = "aab\naa\naab\n" * 3
    for old in ("a", "aa", "aab\na", "\n", "b\naa\naab", "no"):
        assert _lines_of(text, old) == [
            text.count("\n", 0, at) + 1 for at in range(len(text)) if text.startswith(old, at)
        ]
