"""The proxy between the real SDK and the strict emulator, on real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from tests.relay import Wire, running
from tests.responses_emulator import (
    MODEL,
    Cut,
    Drop,
    Emulator,
    Fail,
    Overflow,
    Raw,
    Stall,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    thought,
)
from tests.responses_emulator.sockets import SocketFront
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.core.errors import Invalid
from reverie.protocols.responses.proxy.application import Proxy
from reverie.protocols.responses.proxy.listen import address
from reverie.protocols.responses.proxy.relay import Upstream
from reverie.protocols.responses.proxy.status import Counts
from reverie.protocols.responses.proxy.turns import WindowTurns
from reverie.window import Base, WindowPolicy
from reverie.window.items import plain

TOOLS: list[Any] = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]


def errand(turn: Turn) -> list[dict[str, Any]]:
    if turn.last.get("type") == "function_call_output":
        return [thought(), message(f"Answer with {len(turn.facts)} facts and {turn.outputs} outputs.")]
    return [thought(), call("step", {"number": turn.outputs + 1})]


class Lab:
    """A proxy over an upstream, and its memory."""

    def __init__(self, memory: Any, root: str, counts: Counts, target: str) -> None:
        self.memory, self.root, self.counts, self.target = memory, root, counts, target

    def client(self, key: str, **more: Any) -> OpenAI:
        return OpenAI(api_key=key, base_url=f"{self.root}/v1", max_retries=0, timeout=20, **more)

    def status(self) -> dict[str, Any]:
        return httpx2.get(f"{self.root}/reverie/status", trust_env=False).json()


Make = Callable[..., Lab]


@pytest.fixture
def make(make_target: Callable[..., str]) -> Iterator[Make]:
    target = make_target()
    with ExitStack() as stack:

        def build(url: str, **policy: Any) -> Lab:
            memory = reverie.open(target)
            stack.callback(memory.close)
            base = Base.of(url)
            upstream, counts = Upstream(base.url), Counts(SystemClock().now())
            actor = Actor(tenant="default", id="local:proxy", door="responses")
            given = WindowPolicy(**{"trigger_input_tokens": 2000, **policy})
            turns = WindowTurns(memory.host, actor, upstream, base=base, policy=given, counts=counts)
            root = stack.enter_context(running(Proxy(upstream, turns, counts=counts)))
            return Lab(memory, root, counts, target)

        yield build


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=6000, model=errand) as started:
        yield started


class Chat:
    """A client that repeats its whole history, and knows nothing of windows."""

    def __init__(self, sdk: OpenAI, scope: str | None, *, stream: bool = False, **body: Any) -> None:
        self.sdk, self.stream, self.body = sdk, stream, body
        self.headers = {"x-reverie-scope": scope} if scope else {}
        self.history: list[Any] = []
        self.facts = 0
        self.answers: list[httpx2.Headers] = []

    def ask(self) -> str:
        """The user speaks; tools are run; the words of the answer."""
        self.facts += 1
        self.history.append({"role": "user", "content": f"fact:ask-{self.facts} " + "please " * 40})
        while True:
            output = self.turn()
            for item in output:
                if item["type"] != "reasoning":
                    self.history.append({k: v for k, v in item.items() if k not in ("id", "status")})
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                return next(item["content"][0]["text"] for item in output if item["type"] == "message")
            for item in calls:
                self.facts += 1
                words = f"fact:out-{self.facts} " + "detail " * 60
                self.history.append({"type": "function_call_output", "call_id": item["call_id"], "output": words})

    def turn(self) -> list[dict[str, Any]]:
        # as extra_body: the SDK takes milliseconds for every item it is given as an argument
        given = {"model": MODEL, "tools": TOOLS, "extra_headers": self.headers, **self.body}
        given["extra_body"] = {"input": self.history}
        if not self.stream:
            raw = self.sdk.responses.with_raw_response.create(**given)
            self.answers.append(raw.headers)
            return json.loads(raw.text)["output"]
        with self.sdk.responses.create(**given, stream=True) as stream:
            self.answers.append(stream.response.headers)
            return [event.item.to_dict() for event in stream if event.type == "response.output_item.done"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [None, False])
def test_a_client_that_repeats_everything_stays_bounded(
    make: Make, provider: Emulator, stream: bool, store: bool | None
) -> None:
    lab = make(provider.url)
    more = {} if store is None else {"store": store}
    chat = Chat(lab.client(provider.key), "agent-1/task-7", stream=stream, **more)
    heard = [chat.ask() for _ in range(20)][-1]
    assert f"{chat.facts} facts" in heard
    assert max(seen.tokens for seen in provider.seen) < 3500
    assert len(provider.requests("compact")) >= 2
    statuses = [headers["x-reverie-window-status"] for headers in chat.answers]
    assert statuses[0] == "fallback_full_request"
    assert set(statuses[1:]) == {"hit"}
    shown = lab.status()
    assert shown["requests"]["windowed"] == 40
    assert shown["remoteCompaction"]["compacted"] == len(provider.requests("compact"))
    assert shown["windows"][0]["scope"] == "agent-1/task-7"
    metrics = httpx2.get(f"{lab.root}/reverie/metrics", trust_env=False).text
    assert 'reverie_window_turns_total{status="hit"} 39.0' in metrics
    assert f'reverie_window_passes_total{{status="compacted"}} {len(provider.requests("compact"))}.0' in metrics
    assert 'reverie_window_tokens_total{kind="input",of="turn"}' in metrics
    whole = metrics + json.dumps(shown) + "".join(str(dict(headers)) for headers in chat.answers)
    assert provider.key not in whole
    assert "fact:" not in whole
    assert "gAAAA" not in whole


def test_the_scope_is_the_header_or_the_cache_key_or_none(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    plain = sdk.responses.with_raw_response.create(model=MODEL, input="hello")
    assert not [name for name in plain.headers if name.startswith("x-reverie")]
    assert json.loads(provider.seen[-1].raw) == {"model": MODEL, "input": "hello"}
    keyed = sdk.responses.with_raw_response.create(model=MODEL, input="hello", prompt_cache_key="talk-1")
    assert keyed.headers["x-reverie-window-status"] == "fallback_full_request"
    both = sdk.responses.with_raw_response.create(
        model=MODEL, input="hello", prompt_cache_key="talk-1", extra_headers={"x-reverie-scope": "talk-2"}
    )
    assert both.headers["x-reverie-window-status"] == "fallback_full_request"
    assert "x-reverie-scope" not in provider.seen[-1].headers
    assert {window["scope"] for window in lab.status()["windows"]} == {"talk-1", "talk-2"}


def test_a_client_that_chains_by_itself_is_left_alone(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    scope = {"x-reverie-scope": "chained"}
    first = sdk.responses.create(model=MODEL, input="fact:one", extra_headers=scope)
    raw = sdk.responses.with_raw_response.create(
        model=MODEL,
        input=[{"type": "function_call_output", "call_id": first.output[1].call_id, "output": "fact:two"}],
        previous_response_id=first.id,
        extra_headers=scope,
    )
    assert raw.headers["x-reverie-window-status"] == "client_managed_chain"
    assert "2 facts" in raw.parse().output_text
    assert lab.status()["requests"]["client_managed_chain"] == 1
    own = sdk.responses.with_raw_response.create(
        model=MODEL,
        input=[{"role": "user", "content": "x"}, {"type": "compaction_trigger"}],
        store=False,
        extra_headers=scope,
    )
    assert own.headers["x-reverie-window-status"] == "client_compaction"
    assert [item.type for item in own.parse().output] == ["compaction"]
    assert sdk.responses.retrieve(first.id).id == first.id


def test_everything_else_passes_through(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    assert MODEL in [model.id for model in sdk.models.list()]
    compacted = sdk.responses.compact(model=MODEL, input="fact:x")
    assert compacted.object == "response.compaction"
    assert sdk.responses.input_tokens.count(model=MODEL, input="hello").input_tokens > 0
    with pytest.raises(openai.AuthenticationError):
        lab.client("wrong").responses.create(model=MODEL, input="x", extra_headers={"x-reverie-scope": "s"})
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="none", input="x", extra_headers={"x-reverie-scope": "s"})


def test_upstream_faults_are_relayed_and_survived(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "faulty")
    chat.ask()
    before = list(chat.history)
    provider.faults["create"] = [Fail(500), Fail(429), Drop(), Cut(), Raw("{broken")]
    for expected in (
        openai.InternalServerError,
        openai.RateLimitError,
        openai.InternalServerError,
        (openai.APIConnectionError, openai.InternalServerError),
        json.JSONDecodeError,
    ):
        with pytest.raises(expected):
            chat.sdk.responses.create(
                model=MODEL, input=[*before, {"role": "user", "content": "x"}], tools=TOOLS, extra_headers=chat.headers
            )
    assert f"{chat.facts + 2} facts" in chat.ask()
    assert chat.answers[-1]["x-reverie-window-status"] == "hit"


def test_a_stream_that_breaks_off_breaks_off_and_changes_nothing(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "streams", stream=True)
    chat.ask()
    generation = lab.status()["windows"][0]["generation"]
    provider.faults["create"] = [Cut(5)]
    chat.history.append({"role": "user", "content": "again"})
    with pytest.raises((httpx2.HTTPError, openai.APIError)):
        chat.turn()
    assert lab.status()["windows"][0]["generation"] == generation
    chat.history.pop()
    assert "facts" in chat.ask()


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_for_length_is_compacted_away_unseen(make: Make, provider: Emulator, stream: bool) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "long", stream=stream)
    for _ in range(8):
        chat.ask()
    provider.faults["create"] = [Overflow()]
    before = len(provider.requests("compact"))
    assert f"{chat.facts + 2} facts" in chat.ask()
    assert len(provider.requests("compact")) == before + 1
    assert "compacted" in [headers.get("x-reverie-window-compaction") for headers in chat.answers[-2:]]


def test_a_failed_pass_never_fails_the_turn(make: Make, provider: Emulator) -> None:
    provider.faults["compact"] = [Fail(500), Twist(empty_output), Raw("no"), Drop()]
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "passes")
    heard = [chat.ask() for _ in range(14)][-1]
    assert f"{chat.facts} facts" in heard


def test_no_upstream_is_a_502_that_says_what_to_do(make: Make) -> None:
    wire = Wire()
    wire.close()
    lab = make(f"http://127.0.0.1:{wire.port}/v1")
    for headers in ({}, {"x-reverie-scope": "s"}):
        with pytest.raises(openai.InternalServerError) as caught:
            lab.client("k").responses.create(model=MODEL, input="x", extra_headers=headers)
        error = caught.value.response.json()["error"]
        assert caught.value.status_code == 502
        assert error["code"] == "upstream_unreachable"
        assert "--upstream" in error["message"]


def test_events_arrive_one_by_one(make: Make) -> None:
    """The upstream sends the next event only after the caller has seen the last."""
    seen = threading.Semaphore(0)
    events = [b'{"type":"response.created","response":{}}', b'{"type":"response.output_text.delta","delta":"a"}']
    chunks = [b"data: " + event + b"\n\n" for event in events]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [head, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), b"0\r\n\r\n"]
    numbers = iter(range(10))

    def between() -> None:
        if next(numbers) > 0:
            assert seen.acquire(timeout=10)

    wire = Wire(parts=parts, between=between)
    lab = make(f"{wire.root}/v1")
    for headers in ({}, {"x-reverie-scope": "one-by-one"}):
        numbers = iter(range(10))
        body = {"model": MODEL, "input": "x", "stream": True}
        with httpx2.stream("POST", f"{lab.root}/v1/responses", json=body, headers=headers, trust_env=False) as answer:
            got = []
            for piece in answer.iter_raw():
                got.append(piece)
                seen.release()
        assert b"".join(got) == b"".join(chunks)
        assert len(got) == 2
    wire.close()


def test_another_account_begins_anew(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "shared")
    chat.ask()
    other = Chat(lab.client(provider.other_key), "shared")
    other.history = list(chat.history)
    other.ask()
    assert other.answers[0]["x-reverie-window-status"] == "reset"
    assert other.answers[0]["x-reverie-window-reset-reason"] == "provider_changed"


def test_credentials_are_forwarded_and_kept_nowhere(
    engine: str,
    make: Make,
    provider: Emulator,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lab = make(provider.url)
    Chat(lab.client(provider.key), "secret").ask()
    assert provider.seen[-1].headers["authorization"] == f"Bearer {provider.key}"
    lab.memory.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert provider.key.encode() not in kept
    if engine == "postgres":
        database = lab.target.partition("@/")[2].partition("?")[0]
        assert request.getfixturevalue("postgres").tables_with([provider.key], database) == []
    out = capfd.readouterr()
    assert provider.key not in out.out + out.err


def test_the_status_page(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    Chat(lab.client(provider.key), "<script>alert(1)</script>").ask()
    page = httpx2.get(f"{lab.root}/reverie/status", headers={"accept": "text/html"}, trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text
    (row,) = [line.split("<td>")[1:] for line in page.text.split("<tr>") if "&lt;script&gt;" in line]
    assert all(cell.removesuffix("</table>") for cell in row), "a column that is never filled"
    strange = httpx2.get(f"{lab.root}/reverie/status", headers={"host": "evil.example"}, trust_env=False)
    assert strange.status_code == 421
    assert httpx2.get(f"{lab.root}/reverie/status.json", headers={"accept": "text/html"}, trust_env=False).json()


@pytest.mark.parametrize("listen", ["0.0.0.0:8485", "example.org:1", "127.0.0.1:x", "192.168.0.1:80", ":::1"])
def test_only_loopback_is_listened_on(listen: str) -> None:
    with pytest.raises(Invalid):
        address(listen)


@pytest.mark.parametrize("listen", ["127.0.0.1:8485", "localhost:0", "[::1]:8485", "8485"])
def test_loopback_in_any_spelling(listen: str) -> None:
    assert address(listen)[1] in (8485, 0)


def test_the_codex_base_behind_the_proxy(make: Make, provider: Emulator) -> None:
    lab = make(provider.codex_url)
    chat = Chat(lab.client(provider.key), "codex", stream=True, store=False, instructions="Work.")
    heard = [chat.ask() for _ in range(12)][-1]
    assert f"{chat.facts} facts" in heard
    assert not provider.requests("compact")  # the route is gone there: the trigger item is used
    assert lab.status()["remoteCompaction"]["compacted"] >= 1
    assert {seen.status for seen in provider.seen} == {200}
    assert all(seen.path.startswith("/backend-api/codex/responses") for seen in provider.requests("create"))


@pytest.mark.parametrize("store", [None, False])
def test_server_side_mode_behind_the_proxy(make: Make, provider: Emulator, store: bool | None) -> None:
    lab = make(provider.url, mode="server_side")
    more = {} if store is None else {"store": store}
    chat = Chat(lab.client(provider.key), "server", **more)
    heard = [chat.ask() for _ in range(14)][-1]
    assert f"{chat.facts} facts" in heard
    assert not provider.requests("compact")
    assert max(seen.tokens for seen in provider.seen) < 3500
    assert {headers["x-reverie-window-status"] for headers in chat.answers[1:]} == {"hit"}


def test_a_caller_that_leaves_frees_the_window(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "leaves")
    chat.ask()
    provider.faults["create"] = [Stall(3, seconds=20)]
    body = {"model": MODEL, "input": [*chat.history, {"role": "user", "content": "x"}], "stream": True, "tools": TOOLS}
    headers = {"authorization": f"Bearer {provider.key}", **chat.headers}
    with httpx2.stream("POST", f"{lab.root}/v1/responses", json=body, headers=headers, trust_env=False) as answer:
        next(answer.iter_raw())
    assert "facts" in chat.ask()  # not stuck behind the one that left
    assert chat.answers[-1]["x-reverie-window-status"] == "hit"


def test_many_scopes_and_callers_at_once(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    chats = [Chat(sdk, f"scope-{number}", stream=number % 2 == 0) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        heard = list(pool.map(lambda chat: [chat.ask() for _ in range(4)][-1], chats))
    assert [f"{chat.facts} facts" in text for chat, text in zip(chats, heard, strict=True)] == [True] * 4
    same = Chat(sdk, "scope-0")
    same.history = list(chats[0].history)
    with ThreadPoolExecutor(3) as pool:  # one scope, three at a time: each gets an answer
        question = {"role": "user", "content": "fact:again"}
        body = {"model": MODEL, "input": [*same.history, question], "tools": TOOLS}
        answers = list(
            pool.map(lambda _: sdk.responses.create(model=MODEL, extra_body=body, extra_headers=same.headers), range(3))
        )
    assert all(answer.status == "completed" for answer in answers)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"{broken", "application/json"),
        (b"[]", "application/json"),
        (b'{"model": "gpt-5.4"}', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"input": 1, "model": "gpt-5.4"}', "application/json"),
        (b'{"input": [1, null, {}], "model": "gpt-5.4"}', "application/json"),
        (b'{"input": {"a": 1}, "model": 7, "prompt_cache_key": "k"}', "application/json"),
        (b'{"input": "x", "model": "gpt-5.4", "stream": "yes"}', "application/json"),
        (b'{"input": ' + b"[" * 5000 + b"]" * 5000 + b', "model": "gpt-5.4"}', "application/json"),
    ],
)
def test_hostile_requests_get_the_upstreams_own_refusal(make: Make, provider: Emulator, raw: bytes, kind: str) -> None:
    lab = make(provider.url)
    headers = {"authorization": f"Bearer {provider.key}", "content-type": kind, "x-reverie-scope": "hostile"}
    answer = httpx2.post(f"{lab.root}/v1/responses", content=raw, headers=headers, trust_env=False, timeout=20)
    assert answer.status_code == 400, answer.text
    assert "error" in answer.json()
    assert "reverie" not in answer.text.lower()
    long = httpx2.post(
        f"{lab.root}/v1/responses",
        json={"model": MODEL, "input": "x"},
        headers={**headers, "x-reverie-scope": "s" * 5000},
        trust_env=False,
    )
    assert long.status_code == 200
    assert long.headers["x-reverie-window-status"] == "window_unavailable"


# background, and conversations kept at the provider


def test_an_answer_in_the_background_enters_the_window_when_it_is_fetched(make: Make, provider: Emulator) -> None:
    provider.model = lambda turn: [message(f"I know {len(turn.facts)}.")]
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    scope = {"x-reverie-scope": "later"}
    asked = sdk.responses.create(model=MODEL, input="fact:one", background=True, extra_headers=scope)
    assert asked.status == "queued"
    history: list[Any] = [{"role": "user", "content": "fact:one"}]
    with pytest.raises(openai.ConflictError) as refused:
        sdk.responses.create(model=MODEL, input=[*history, {"role": "user", "content": "on"}], extra_headers=scope)
    assert refused.value.code == "background_pending"
    answer = sdk.responses.retrieve(asked.id)  # names no scope
    assert answer.output_text == "I know 1."
    history += [{"role": "assistant", "content": "I know 1."}, {"role": "user", "content": "fact:two"}]
    raw = sdk.responses.with_raw_response.create(model=MODEL, input=history, extra_headers=scope)
    assert raw.headers["x-reverie-window-fallback-reason"] == "request_shape_changed"  # `background` is part of it
    assert raw.parse().output_text == "I know 2."
    lost = sdk.responses.create(
        model=MODEL, input=[*history, raw.parse().output[-1].to_dict()], background=True, extra_headers=scope
    )
    assert sdk.responses.cancel(lost.id).status == "cancelled"


@pytest.mark.parametrize("turns", [0, 1])
def test_options_of_another_type_are_for_the_provider_to_refuse(make: Make, provider: Emulator, turns: int) -> None:
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "options")
    for _ in range(turns):
        chat.ask()
    chat.history.append({"role": "user", "content": "go on"})
    answer = httpx2.post(
        f"{lab.root}/v1/responses",
        json={"model": MODEL, "input": plain(chat.history), "prompt_cache_options": 5},
        headers={"authorization": f"Bearer {provider.key}", "x-reverie-scope": "options"},
        trust_env=False,
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_half_an_answer_in_the_background_does_not_end_the_wait_for_it(make: Make, provider: Emulator) -> None:
    provider.polls = 0
    provider.model = lambda turn: [message(f"I know {len(turn.facts)}.")]
    lab = make(provider.url)
    sdk, scope = lab.client(provider.key), {"x-reverie-scope": "later"}
    asked = sdk.responses.create(model=MODEL, input="fact:one", background=True, extra_headers=scope)
    provider.faults["other"] = [Raw('{"id": "resp_')]
    half = httpx2.get(
        f"{lab.root}/v1/responses/{asked.id}",
        headers={"authorization": f"Bearer {provider.key}"},
        trust_env=False,
    )
    assert half.text == '{"id": "resp_'
    said = [("user", "fact:one"), ("assistant", "I know 1."), ("user", "fact:two")]
    history: list[Any] = [{"role": role, "content": text} for role, text in said]
    raw = sdk.responses.with_raw_response.create(model=MODEL, input=history, extra_headers=scope)
    assert raw.headers["x-reverie-window-fallback-reason"] == "request_shape_changed"  # `background` is part of it


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_kept_at_the_provider_is_in_the_ledger(make: Make, provider: Emulator, stream: bool) -> None:
    provider.model = lambda turn: [message(f"I know {len(turn.facts)}.")]
    lab = make(provider.url)
    chat = Chat(lab.client(provider.key), "kept", stream=stream, conversation="conv_1")
    for name in ("one", "two"):
        chat.history = [{"role": "user", "content": f"fact:{name}"}]
        chat.turn()
    assert [headers["x-reverie-window-status"] for headers in chat.answers] == ["client_managed_chain"] * 2
    entries = lab.memory.ref("kept").list(limit=50).items
    found = sorted((entry.attributes["position"], entry.content) for entry in entries if entry.kind == "turn")
    assert [words for _, words in found] == ["fact:one", "I know 1.", "fact:two", "I know 2."]


# WebSocket mode


class Talker:
    """A client over a WebSocket: sends what is new and the id of the last response."""

    def __init__(self, connection: Any, **body: Any) -> None:
        self.connection, self.body = connection, body
        self.last: str | None = None
        self.kinds: list[str] = []

    def say(self, items: list[Any], **more: Any) -> list[Any]:
        chain = {"previous_response_id": self.last} if self.last else {}
        self.connection.response.create(model=MODEL, input=items, tools=TOOLS, **self.body, **chain, **more)
        output: list[Any] = []
        for event in self.connection:
            self.kinds.append(event.type)
            if event.type == "response.output_item.done":
                output.append(event.item)
            if event.type == "response.completed":
                self.last = event.response.id
                return output
            if event.type == "error":
                raise RuntimeError(event.error.code)
        raise AssertionError("the connection ended")

    def ask(self, text: str) -> str:
        output = self.say([{"role": "user", "content": text}])
        while calls := [item for item in output if item.type == "function_call"]:
            words = "fact:out-" + text.split("-")[1].split()[0] + " " + "detail " * 60
            output = self.say(
                [{"type": "function_call_output", "call_id": item.call_id, "output": words} for item in calls]
            )
        return str(output[-1].content[0].text)


def test_a_websocket_client_that_sends_increments_stays_bounded(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key, default_headers={"x-reverie-scope": "socket"})
    with sdk.responses.connect() as connection:
        talker = Talker(connection, store=False)
        heard = [talker.ask(f"fact:ask-{number} please") for number in range(20)][-1]
    assert heard == "Answer with 40 facts and 20 outputs."
    assert len(provider.requests("compact")) >= 2
    assert max(seen.tokens for seen in provider.seen) < 3500
    assert {"response.created", "response.output_item.done", "response.completed"} <= set(talker.kinds)
    with sdk.responses.connect() as connection:  # another connection goes on from the window's latest response
        again = Talker(connection, store=False)
        again.last = talker.last
        assert again.ask("fact:ask-20 please") == "Answer with 42 facts and 21 outputs."
    assert all(seen.status == 200 for seen in provider.seen if seen.route != "other")


def test_errors_come_as_events_and_the_connection_goes_on(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key)
    with sdk.responses.connect() as connection:
        talker = Talker(connection, prompt_cache_key="socket")
        talker.last = "resp_unknown"
        with pytest.raises(RuntimeError, match="previous_response_not_found"):
            talker.say([{"role": "user", "content": "fact:one"}])
        talker.last = None
        provider.faults["create"] = [Fail(500)]
        with pytest.raises(RuntimeError):
            talker.say([{"role": "user", "content": "fact:one"}])
        assert talker.ask("fact:ask-1 please").startswith("Answer with 2 facts")
        connection.response.steer(input=[{"role": "user", "content": "x"}], previous_response_id="resp_1")
        assert next(iter(connection)).error.code == "unsupported_event"


def test_a_websocket_without_a_scope_passes_through(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    with lab.client(provider.key).responses.connect() as connection:
        talker = Talker(connection)
        talker.say([{"role": "user", "content": "fact:one"}])
    assert "windows" in lab.status()
    assert lab.status()["windows"] == []
    assert lab.counts.requests["passed_through"] >= 1


def test_stream_ids_are_turns_one_after_another(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    address_ = lab.root.replace("http://", "ws://") + "/v1/responses"
    headers = {"Authorization": f"Bearer {provider.key}", "x-reverie-scope": "streams"}
    with connect(address_, additional_headers=headers, proxy=None) as socket:
        history = [{"role": "user", "content": "fact:one"}]
        for name in ("first", "second"):
            create = {"type": "response.create", "stream_id": name, "model": MODEL, "input": history}
            socket.send(json.dumps(create))
        frames = []
        while sum(frame["type"] == "response.completed" for frame in frames) < 2:
            frames.append(json.loads(socket.recv(60)))
    names = [frame["stream_id"] for frame in frames]
    assert names == ["first"] * names.count("first") + ["second"] * names.count("second")
    assert {"first", "second"} == set(names)
    assert all("stream_id" not in seen.body for seen in provider.requests("create"))


@pytest.fixture
def front(provider: Emulator) -> Iterator[SocketFront]:
    with SocketFront(provider) as started:
        yield started


def test_turns_go_over_a_websocket_of_the_upstream(make: Make, provider: Emulator, front: SocketFront) -> None:
    lab = make(front.url)
    sdk = lab.client(provider.key, default_headers={"x-reverie-scope": "far"})
    with sdk.responses.connect() as connection:
        talker = Talker(connection, store=False)
        heard = [talker.ask(f"fact:ask-{number} please") for number in range(20)][-1]
    assert heard == "Answer with 40 facts and 20 outputs."
    assert front.connections == 1
    creates = [frame for frame in front.frames if frame["type"] == "response.create"]
    assert len(creates) == 40, "every turn is one frame"
    assert all("stream" not in frame and "background" not in frame for frame in creates)
    assert len(provider.requests("compact")) >= 2, "passes go over HTTP"
    assert max(seen.tokens for seen in provider.seen) < 3500
    assert {"response.created", "response.output_item.done", "response.completed"} <= set(talker.kinds)


def test_a_lost_websocket_of_the_upstream_is_opened_again_with_the_window(
    make: Make, provider: Emulator, front: SocketFront
) -> None:
    lab = make(front.url)
    front.limit = 6
    sdk = lab.client(provider.key, default_headers={"x-reverie-scope": "far"})
    with sdk.responses.connect() as connection:
        talker = Talker(connection, store=False)
        for number in range(10):
            if number == 5:
                front.drop = 1
            heard = talker.ask(f"fact:ask-{number} please")
    assert heard == "Answer with 20 facts and 10 outputs.", "nothing was lost with a connection"
    assert front.connections >= 4
    assert "error" not in talker.kinds
    front.drop = 2
    with sdk.responses.connect() as connection:
        gone = Talker(connection, store=False)
        with pytest.raises(RuntimeError, match="upstream"):
            gone.ask("fact:ask-10 please")
        gone.last = talker.last
        assert gone.ask("fact:ask-11 please").startswith("Answer with 22 facts")


def test_an_overflow_over_a_websocket_of_the_upstream_is_handled(
    make: Make, provider: Emulator, front: SocketFront
) -> None:
    lab = make(front.url, trigger_input_tokens=100_000, context_window=100_000)
    sdk = lab.client(provider.key, default_headers={"x-reverie-scope": "far"})
    with sdk.responses.connect() as connection:
        talker = Talker(connection, store=False)
        heard = [talker.ask(f"fact:ask-{number} please " + "word " * 100) for number in range(30)][-1]
    assert heard.endswith("outputs.")
    assert "error" not in talker.kinds
    assert provider.requests("compact"), "only a refusal for length brings a pass here"


def test_a_stream_refused_for_length_is_repeated_although_the_trigger_is_far(make: Make, provider: Emulator) -> None:
    lab = make(provider.url, trigger_input_tokens=100_000, context_window=100_000)
    chat = Chat(lab.client(provider.key), "far off", stream=True)
    for _ in range(36):
        heard = chat.ask()
    assert heard == "Answer with 72 facts and 36 outputs."
    assert provider.requests("compact"), "only a refusal for length brings a pass here"


def test_frames_of_the_caller_keep_their_way_beside_turns(make: Make, provider: Emulator, front: SocketFront) -> None:
    lab = make(front.url)
    address_ = lab.root.replace("http://", "ws://") + "/v1/responses"
    headers = {"Authorization": f"Bearer {provider.key}"}
    with connect(address_, additional_headers=headers, proxy=None) as socket:
        history = [{"role": "user", "content": "fact:one"}]
        create = {"type": "response.create", "model": MODEL, "input": history, "prompt_cache_key": "mixed"}
        socket.send(json.dumps(create))
        kinds = []
        while "response.completed" not in kinds:
            kinds.append(json.loads(socket.recv(60))["type"])
        socket.send(json.dumps({"type": "response.steer", "input": history}))
        assert json.loads(socket.recv(60))["type"] == "passed.on"
        plain = {"type": "response.create", "stream_id": "own", "model": MODEL, "input": history}
        socket.send(json.dumps(plain))
        frames = [json.loads(socket.recv(60))]
        while frames[-1]["type"] != "response.completed":
            frames.append(json.loads(socket.recv(60)))
        assert {frame["stream_id"] for frame in frames} == {"own"}
    assert front.connections == 1


def test_a_page_gets_no_websocket(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    address_ = lab.root.replace("http://", "ws://") + "/v1/responses"
    for headers, status in (({"Origin": "https://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403)):
        with pytest.raises(InvalidStatus) as refused, connect(address_, additional_headers=headers, proxy=None):
            pass
        assert refused.value.response.status_code == status
    assert lab.counts.requests["forbidden_origin"] == 2
    assert not provider.seen


def test_closing_in_the_middle_cancels_the_turn(make: Make, provider: Emulator) -> None:
    lab = make(provider.url)
    sdk = lab.client(provider.key, default_headers={"x-reverie-scope": "left"})
    provider.faults["create"] = [Stall(2, 20.0)]
    with sdk.responses.connect() as connection:
        connection.response.create(model=MODEL, input="fact:one", tools=TOOLS)
        assert next(iter(connection)).type == "response.created"
    with sdk.responses.connect() as connection:
        assert Talker(connection).ask("fact:ask-1 please").startswith("Answer with 2 facts")
