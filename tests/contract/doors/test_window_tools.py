"""Provider windows are not memory for tools either: MCP refuses their names and finds nothing of them."""

from __future__ import annotations

from typing import Any

from tests.contract.doors.conftest import Caller, Server
from tests.contract.doors.test_window_governance import PAYLOAD, SAID, a_window

from reverie.core.actor import Actor

ACCEPT = {"accept": "application/json, text/event-stream"}
DUMMY: dict[str, Any] = {"string": "x", "integer": 100, "number": 1, "boolean": False, "array": ["x"], "object": {}}


def rpc(caller: Caller, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = caller.post("/mcp", body, headers=ACCEPT)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def arguments(tool: dict[str, Any], ref: str) -> dict[str, Any]:
    schema = tool["inputSchema"]
    wanted = {name: schema["properties"][name] for name in schema.get("required", ())}
    given = {name: form.get("enum", [DUMMY.get(form.get("type"), "x")])[0] for name, form in wanted.items()}
    if "subject" in schema["properties"]:
        given["subject"] = "someone"
    return given | {"ref": ref}


def test_every_tool_that_takes_a_ref_refuses_the_namespace(server: Server) -> None:
    caller = server.caller()
    tools = [tool for tool in rpc(caller, "tools/list")["tools"] if "ref" in tool["inputSchema"]["properties"]]
    assert len(tools) >= 3
    for tool in tools:
        found = rpc(caller, "tools/call", name=tool["name"], arguments=arguments(tool, "provider_window:agent-1"))
        assert found["isError"], tool["name"]
        assert "unsupported_ref_namespace" in str(found), (tool["name"], found)


def test_tools_find_the_words_and_never_the_payload(server: Server) -> None:
    caller = server.caller()
    a_window(server.host, Actor(tenant=caller.tenant, id="local:test"))
    told = ""
    for tool in rpc(caller, "tools/list")["tools"]:
        names = tool["inputSchema"]["properties"]
        asked = next((name for name in ("query", "purpose") if name in names), None)
        if asked is None or "ref" not in names:
            continue
        for words in (SAID, PAYLOAD[:18]):
            given = arguments(tool, "agent-1/task-7") | {asked: words}
            told += str(rpc(caller, "tools/call", name=tool["name"], arguments=given))
    assert SAID in told
    assert PAYLOAD not in told
    assert "cmp_1" not in told
