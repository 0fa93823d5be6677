"""One caller never stops another: rights before bodies, counts before parsing, limits of work, no work on the loop.

Nothing here measures the clock: a block of the event loop is measured in processor time of its thread, and the price
of a request in processor time of the process.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from tests.contract.doors.conftest import API, Caller, Server

from reverie.core.actor import Right
from reverie.http.routes import Route

ENTRIES = f"{API}/memory/notes/entries"
LONGEST_BLOCK = 0.25
"""Seconds of processor time between two turns of the event loop."""


def envelope(operation: str, **payload: Any) -> dict[str, Any]:
    return {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": "m-1",
        "operation": operation,
        "agent_id": "a",
        "session_id": None,
        "epoch": 0,
        "payload": payload,
    }


INVALID = json.dumps({"entries": [{"content": 1, "more": 2}] * 150_000}).encode()
TINY = b'{"entries":[' + b",".join([b'{"content":"a"}'] * 200_000) + b"]}"
TEXT = "the quick brown fox, jumping; over it. " * 130_000
UNKNOWN = json.dumps({"query": "fox", "more": TEXT}).encode()
UNKNOWN_LIST = json.dumps({"query": "fox", "more": [{"a": 1}] * 500_000}).encode()
RECORD = json.dumps(envelope("RECORD", content=TEXT, mode="committed", type="finding")).encode()
TOOL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"content": TEXT}},
    }
).encode()
ATTACKS = {
    "invalid entries": (ENTRIES, INVALID, {413}),
    "tiny entries": (ENTRIES, TINY, {413}),
    "unknown member": (f"{API}/memory/notes/search", UNKNOWN, {400}),
    "unknown list": (f"{API}/memory/notes/search", UNKNOWN_LIST, {413}),
    "akashik": ("/akashik/v1/record", RECORD, {400}),
    "mcp": ("/mcp", TOOL, {200}),
}


class Measured:
    """The longest turn of the event loop, by the processor time of its thread, and how often the host was healthy."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.longest = 0.0
        self.healthy = 0

    async def turns(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest, before = max(self.longest, now - before), now

    async def health(self) -> None:
        while True:
            self.healthy += (await self._client.get("/healthz")).status_code == 200
            await asyncio.sleep(0.001)


async def attacked(app: Starlette, path: str, body: bytes, key: str | None) -> tuple[httpx2.Response, Measured]:
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as client:
        await client.get("/healthz")
        measured = Measured(client)
        around = [asyncio.ensure_future(measured.turns()), asyncio.ensure_future(measured.health())]
        answer = await client.post(path, content=body, headers=headers)
        for task in around:
            task.cancel()
        await asyncio.gather(*around, return_exceptions=True)
        return answer, measured


@pytest.mark.parametrize("rights", [list(Right), [Right.READ]], ids=["all rights", "read only"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_large_request_leaves_the_event_loop_alone(server: Server, attack: str, rights: list[Right]) -> None:
    path, body, statuses = ATTACKS[attack]
    caller = server.caller(rights=rights)
    caller.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"})  # the first call imports the SDK
    started = time.process_time()
    answer, measured = asyncio.run(attacked(server.app, path, body, caller.key))
    spent = time.process_time() - started
    assert answer.status_code in statuses | ({403} if Right.WRITE not in rights else set()), answer.text[:300]
    assert measured.longest < LONGEST_BLOCK
    assert measured.healthy > 0
    assert spent < 4.0
    assert len(answer.content) < 4000


def _bodies(app: Starlette) -> list[Route]:
    return [route for route in app.routes if isinstance(route, Route) and route.body]


async def _refused_unread(app: Starlette, method: str, path: str, key: str) -> tuple[int, dict[str, Any]]:
    """The answer to a request whose body must not be asked for."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {key}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", b"5000000"),
        ],
        "state": {},
    }
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent))


def test_rights_are_checked_before_a_byte_of_the_body_is_read(server: Server) -> None:
    checked = 0
    for route in _bodies(server.app):
        path = route.path.replace("{ref}", "notes").replace("{id}", "1").replace("{run_id}", "1")
        path = path.replace("{path:path}", "a.md")
        lacking = [right for right in Right if right not in route.needs.rights]
        assert len(lacking) < len(Right), route.path  # every route with a body says what it needs
        key = server.caller(rights=lacking[:1]).key
        status, body = asyncio.run(_refused_unread(server.app, "".join(route.methods), path, str(key)))
        assert (status, body.get("error", body.get("code"))) == (403, "forbidden"), route.path
        checked += 1
    assert checked >= 12
    for operation, right in (("record", Right.READ), ("attune", Right.WRITE), ("compact", Right.READ)):
        key = server.caller(rights=[right]).key
        status, body = asyncio.run(_refused_unread(server.app, "POST", f"/akashik/v1/{operation}", str(key)))
        assert (status, body["code"]) == (403, "INSUFFICIENT_AUTHORITY")


VALID: dict[str, tuple[str, str, dict[str, Any]]] = {
    "put_entries": ("POST", "memory/notes/entries", {"content": "x"}),
    "change_entry": ("PATCH", "memory/notes/entries/1", {"pinned": True}),
    "supersede_entry": ("POST", "memory/notes/entries/1/supersede", {"content": "x"}),
    "entry_states": ("POST", "memory/notes/states", {"ids": ["1"]}),
    "change_entries": ("POST", "memory/notes/changes", {"change": "pin", "entries": [{"id": "1", "version": 1}]}),
    "search": ("POST", "memory/notes/search", {"query": "x"}),
    "context": ("POST", "memory/notes/context", {"purpose": "x"}),
    "forget": ("POST", "memory/forget", {"subject": "x"}),
    "change_policy": ("PATCH", "policy", {"max_tags": 5}),
    "register_secret": ("POST", "secrets", {"id": "a", "value": "long enough to be one"}),
    "scan": ("POST", "scan", {}),
    "dream": ("POST", "memory/notes/dreams", {}),
    "add_schedule": ("POST", "schedules", {"memoryRef": "notes", "cron": "0 3 * * *"}),
    "change_schedule": ("PATCH", "schedules/1", {"enabled": False}),
}


def test_the_early_look_at_rights_refuses_nobody_the_host_would_serve(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = {route.operation.id: route for route in _bodies(server.app) if route.operation}
    assert VALID.keys() == {name for name, route in routes.items() if route.path.startswith(API)}
    early = {(name, right): right not in routes[name].needs.rights for name in VALID for right in Right}
    monkeypatch.setattr("reverie.http.call.Needs.check", lambda *_: None)
    for right in Right:
        caller = server.caller(rights=[right])
        for name, (method, path, body) in VALID.items():
            refused = caller.send(method, path, json=body).status_code == 403
            assert refused or not early[name, right], (name, right)


def test_at_most_ten_faults_are_shown_and_the_rest_counted(acme: Caller) -> None:
    answer = acme.post("memory/notes/entries", {"entries": [{"content": "x"}] * 200 + [{"content": 1}] * 500})
    assert answer.status_code == 400
    details = answer.json()["details"]
    assert details["pointer"] == "/entries/200/content"
    assert [fault["pointer"] for fault in details["faults"]] == [f"/entries/{200 + n}/content" for n in range(10)]
    assert details["more"] == 490


def test_more_entries_than_a_batch_holds_are_refused_before_they_are_looked_at(acme: Caller) -> None:
    answer = acme.post("memory/notes/entries", {"entries": [{"content": 1}] * 10_001})
    assert answer.status_code == 413
    assert answer.json()["details"]["pointer"] == "/entries"


def test_a_body_of_many_values_is_refused_in_every_doors_shape(make_server: Callable[..., Server]) -> None:
    caller = make_server(max_request_values=1000).caller()
    many = list(range(20_000))
    rest = caller.post("memory/notes/entries", {"content": "x", "attributes": {"a": many}})
    assert (rest.status_code, rest.json()["error"]) == (413, "too_large")
    field = caller.post("/akashik/v1/record", envelope("RECORD", content=many))
    assert (field.status_code, field.json()["code"]) == (400, "INVALID_REQUEST")
    tools = caller.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": many}})
    assert (tools.status_code, tools.json()["error"]) == (413, "too_large")


# limits


@pytest.mark.usefixtures("no_refill")
def test_bytes_are_limited_per_key(make_server: Callable[..., Server]) -> None:
    server = make_server(bytes_per_second=1000)
    greedy, other = server.caller(), server.caller()
    text = {"content": "words " * 1000}
    statuses = [greedy.post("memory/notes/entries", text) for _ in range(3)]
    assert [answer.status_code for answer in statuses] == [201, 429, 429]
    assert statuses[1].json()["error"] == "rate_limited"
    assert int(statuses[1].headers["Retry-After"]) >= 1
    assert other.post("memory/notes/entries", text).status_code == 201


@pytest.mark.usefixtures("no_refill")
def test_bytes_of_a_body_without_a_length_count_too(make_server: Callable[..., Server]) -> None:
    caller = make_server(bytes_per_second=1000).caller()

    async def pieces() -> Any:
        for _ in range(2):
            yield b" " * 4000
        yield b'{"content":"x"}'

    def send() -> int:
        headers = {"Content-Type": "application/json"}
        return caller.send("POST", "memory/notes/entries", content=pieces(), headers=headers).status_code

    assert [send(), send()] == [201, 429]


@pytest.mark.usefixtures("no_refill")
def test_entries_are_limited_per_key(make_server: Callable[..., Server]) -> None:
    server = make_server(entries_per_second=10)
    greedy, other = server.caller(), server.caller()
    batch = {"entries": [{"content": f"number {n}"} for n in range(60)]}
    answers = [greedy.post("memory/notes/entries", batch) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 429]
    assert int(answers[1].headers["Retry-After"]) >= 1
    assert greedy.get("memory/notes/entries").status_code == 200
    assert other.post("memory/notes/entries", batch).status_code == 201


@pytest.mark.usefixtures("no_refill")
@pytest.mark.parametrize(
    ("path", "tool", "arguments"),
    [
        ("/mcp", "remember", {"content": "number {n}"}),
        (
            "/mcp/reference",
            "create_entities",
            {"entities": [{"name": "{n}", "entityType": "x", "observations": ["a"]}]},
        ),
        ("/mcp/reference", "create_relations", {"relations": [{"from": "a", "to": "{n}", "relationType": "x"}] * 2}),
    ],
)
def test_entries_of_tools_are_limited_per_key(
    make_server: Callable[..., Server], path: str, tool: str, arguments: dict[str, Any]
) -> None:
    caller = make_server(entries_per_second=1).caller()
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

    def stored(number: int) -> bool:
        given = json.loads(json.dumps(arguments).replace("{n}", str(number)))
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
        result = caller.post(path, asked, headers=headers).json()["result"]
        assert not result["isError"] or json.loads(result["content"][0]["text"])["code"] == "rate_limited"
        return not result["isError"]

    answers = [stored(number) for number in range(11)]
    assert answers[0]
    assert not answers[-1]


@pytest.mark.usefixtures("no_refill")
@pytest.mark.parametrize("over_mcp", [False, True])
def test_units_that_agents_record_are_limited_per_key(make_server: Callable[..., Server], over_mcp: bool) -> None:
    server = make_server(entries_per_second=1)
    caller = server.caller()
    messages = count()
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

    def send(operation: str, payload: dict[str, Any], who: Any = caller) -> dict[str, Any]:
        given = {"agent_id": "scout", "payload": payload}
        if over_mcp:
            named = {"name": f"akashik_{operation.lower()}", "arguments": given}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": named}
            answer = who.post("/akashik/mcp", asked, headers=headers).json()["result"]["structuredContent"]
        else:
            envelope = {"protocol": "akashik", "version": "0.1.0", "id": f"m{next(messages)}", "operation": operation}
            sent = who.post(f"/akashik/v1/{operation.lower()}", {**envelope, "session_id": None, "epoch": 0, **given})
            answer = sent.json()
            assert (sent.status_code == 429) == (answer.get("code") == "RATE_LIMITED")
            assert sent.status_code != 429 or int(sent.headers["Retry-After"]) >= 1
        return dict(answer)

    sure = {"score": 0.8, "reasoning": "seen"}
    unit = {"type": "finding", "content": "The weir is open.", "intent": {"purpose": "test"}, "confidence": sure}
    for who in (caller, other := server.caller()):
        assert send("REGISTER", {"id": "scout", "role": "r", "authority_level": 10}, who)["status"] == "registered"
    answers = [send("RECORD", {**unit, "content": f"Weir {n} is open."}) for n in range(11)]
    assert [answer["status"] for answer in answers] == ["accepted"] * 10 + ["rejected"]
    assert answers[-1]["code"] == "RATE_LIMITED"
    merge = {"conflict_id": "none", "strategy": "synthesis", "resolution": {"rationale": "r", "synthesis": "Open."}}
    assert send("MERGE", merge)["code"] == "RATE_LIMITED"
    assert send("MERGE", {**merge, "strategy": "last_write_wins"})["code"] == "CONFLICT_NOT_FOUND"
    assert send("ATTUNE", {"scope": {"role": "r", "max_units": 5}})["status"] == "ok"
    assert send("RECORD", unit, other)["status"] == "accepted"


def test_heavy_operations_at_once_are_limited_per_key(make_server: Callable[..., Server]) -> None:
    server = make_server(heavy_per_key=1)
    greedy, other = server.caller(), server.caller()
    with server.app.state.limits.heavy.one(_id(greedy)):
        for method, path in (("GET", "audit/verify"), ("GET", "export"), ("POST", "memory/notes/consolidate")):
            answer = greedy.send(method, path)
            assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited"), path
            assert int(answer.headers["Retry-After"]) >= 1
        answer = greedy.post("/akashik/v1/compact", envelope("COMPACT", strategy="archive"))
        assert (answer.status_code, answer.json()["code"]) == (429, "RATE_LIMITED")
        assert int(answer.headers["Retry-After"]) >= 1
        tool = {"name": "dream", "arguments": {}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        for padding in ("", " " * 20_000):
            answer = greedy.post("/mcp", content=json.dumps(asked) + padding, headers=accept)
            assert answer.json()["result"]["isError"], f"padded with {len(padding)}"
            assert json.loads(answer.json()["result"]["content"][0]["text"])["code"] == "rate_limited"
        assert greedy.get("memory").status_code == 200
        assert other.get("audit/verify").status_code == 200
    assert greedy.get("audit/verify").status_code == 200
    assert greedy.get("export").status_code == 200


async def _opened(app: Starlette, path: str, key: str | None) -> tuple[int, Callable[[], Any]]:
    """The status of a stream that stays open, and a function that closes it."""
    begun, left = asyncio.Event(), asyncio.Event()
    status = 0

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        begun.set()

    path, _, query = path.partition("?")
    headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")] + (
        [(b"authorization", f"Bearer {key}".encode())] if key else []
    )
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "state": {},
    }
    task = asyncio.ensure_future(app(scope, receive, send))
    await begun.wait()

    async def close() -> None:
        left.set()
        await task

    return status, close


def test_open_streams_are_limited_per_key(make_server: Callable[..., Server]) -> None:
    server = make_server(streams_per_key=3)
    greedy, other = server.caller(), server.caller()

    async def go() -> None:
        opened = [await _opened(server.app, f"{API}/events", greedy.key) for _ in range(5)]
        assert [status for status, _ in opened] == [200, 200, 200, 429, 429]
        neighbour = await _opened(server.app, f"{API}/events", other.key)
        assert neighbour[0] == 200
        await opened[0][1]()
        again = await _opened(server.app, f"{API}/events", greedy.key)
        assert again[0] == 200
        for _, close in [*opened[1:], neighbour, again]:
            await close()

    asyncio.run(asyncio.wait_for(go(), 60))
    greedy.headers = {"Accept": "text/event-stream"}
    with_limit = server.app.state.limits.streams
    with with_limit.one(_id(greedy)), with_limit.one(_id(greedy)), with_limit.one(_id(greedy)):
        answer = greedy.get("events")
        assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
        assert int(answer.headers["Retry-After"]) >= 1


def _id(caller: Caller) -> str:
    return str(caller.key)[4:16]


def test_an_akashik_stream_counts_too_and_its_ticket_does_not_name_the_tenant(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(streams_per_key=1)
    caller = server.caller(tenant="customer-of-ours")
    caller.post("/akashik/v1/register", envelope("REGISTER", id="a", role="r"))

    def address() -> str:
        asked = envelope("SUBSCRIBE", action="subscribe", subscription={"events": ["memory.recorded"]})
        answer = caller.post("/akashik/v1/subscribe", asked | {"id": f"m-{time.monotonic_ns()}"})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["sse_url"]).removeprefix("http://localhost")

    paths = [address(), address()]
    tickets = [path.partition("ticket=")[2] for path in paths]
    assert all(re.fullmatch("[A-Za-z0-9_-]{22,}", ticket) for ticket in tickets), "random bits and nothing else"
    assert all(_id(caller) not in path and "customer-of-ours" not in path for path in paths)

    async def go() -> None:
        async with AsyncExitStack() as stack:
            status, close = await _opened(server.app, paths[0], None)
            stack.push_async_callback(close)
            assert status == 200
            transport = httpx2.ASGITransport(app=server.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
                refused = await client.get(paths[1])
            assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
            assert int(refused.headers["Retry-After"]) >= 1

    asyncio.run(asyncio.wait_for(go(), 60))
