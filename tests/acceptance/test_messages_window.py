"""The window around the real `anthropic` SDK, over a socket, against a strict Messages API; and the proxy for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from tests.messages_emulator import EDITING, ON_DEMAND, THRESHOLD, Asked, Blocks, Empty, Emulator, Fail, Pause, talker
from tests.relay import running

import reverie
from reverie.anthropic import MemoryTool, MessagesWindow, WindowPolicy
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.core.errors import Invalid
from reverie.protocols.responses.proxy.application import Proxy
from reverie.protocols.responses.proxy.relay import Upstream
from reverie.protocols.responses.proxy.status import Counts
from reverie.protocols.responses.proxy.turns import WindowTurns
from reverie.window import Base

SCOPE = "agent-1/task-7"
TRIGGER = 1500
MODEL = "claude-test"
TOOLS: Any = [{"name": "step", "description": "One step.", "input_schema": {"type": "object", "properties": {}}}]


def recall(asked: Asked) -> str:
    """A summary that holds every fact."""
    words = asked.text.replace('"', " ").replace("\\n", " ").split()
    return "So far: " + " ".join(sorted({word for word in words if word.startswith("fact:")}))


def errand(asked: Asked) -> Blocks:
    """Think, call a tool twice at once, then once, then answer; for ever."""
    results = sum(part["type"] == "tool_result" for part in asked.blocks)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": f"sig-{results}"}
    fresh = not any(part["type"] == "tool_result" for part in asked.last["content"] if isinstance(part, dict))
    if fresh and isinstance(asked.last["content"], str):
        return [thought, _use(results, 1), _use(results, 2)]
    return [thought, *talker(asked)]


def _use(results: int, number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{results}_{number}", "name": "step", "input": {"number": number}}


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=4000, summary=recall) as emulator:
        yield emulator


def client(provider: Emulator, **more: Any) -> Anthropic:
    return Anthropic(api_key=provider.key, base_url=provider.url, max_retries=0, **more)


def opened(provider: Emulator, memory: Any, **policy: Any) -> Any:
    given = WindowPolicy(**{"trigger_input_tokens": TRIGGER, **policy})
    return MessagesWindow.open(client(provider), store=memory, scope=SCOPE, policy=given)


def ask(window: Any, text: str, **more: Any) -> Any:
    given = {"model": MODEL, "max_tokens": 400, "system": "Be brief.", **more}
    return window.create(messages=[{"role": "user", "content": text}], **given)


def fact(number: int) -> str:
    return f"fact:n{number} " + "please " * 60


def passes(memory: reverie.Memory) -> list[dict[str, Any]]:
    return memory.host.windows.passes(memory.actor, SCOPE)


# on demand


def test_a_conversation_stays_in_the_window_and_forgets_nothing(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        for number in range(20):
            said = ask(window, fact(number)).content[0].text
            assert said.startswith(f"I see {number + 1}:")
        compacted = provider.requests("compact")
        assert len(compacted) >= 2
        assert not provider.requests("too_long")
        assert max(asked.tokens for asked in provider.requests("create")) < TRIGGER + 300
        for asked in compacted:
            assert asked.body["compaction"] == {"type": "summarize"}
            assert asked.body["system"] == "Be brief."
            assert ON_DEMAND in asked.betas
        carrying = [a for a in provider.requests("create") if any(p["type"] == "compaction" for p in a.blocks)]
        assert carrying
        assert all(ON_DEMAND in asked.betas and asked.messages[1]["role"] == "user" for asked in carrying)
        assert all(ON_DEMAND not in asked.betas for asked in provider.requests("create") if asked not in carrying)
    rows = passes(memory)
    assert {row["endpoint_kind"] for row in rows} == {"messages_compaction"}
    assert rows[0]["usage"]["input_tokens"] > 0
    assert rows[0]["checkpoint_ref"]


def test_the_block_is_no_memory(provider: Emulator, memory: reverie.Memory) -> None:
    provider.summary = lambda _: "zanzibar quorum " * 8
    with opened(provider, memory) as window:
        for number in range(14):
            ask(window, fact(number))
        assert provider.requests("compact")
    found = memory.ref(SCOPE).search("zanzibar quorum", limit=20)
    assert not [hit for hit in found if "zanzibar" in hit.entry.content]
    kinds = {entry.kind for entry in memory.ref(SCOPE).list(limit=100).items}
    assert kinds == {"turn", "checkpoint"}
    assert "zanzibar" not in json.dumps(memory.host.windows.show(memory.actor, SCOPE))
    assert "zanzibar" not in " ".join(memory.host.windows.texts(memory.actor, SCOPE))


def test_tool_uses_stay_with_their_results(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = errand
    with opened(provider, memory) as window:
        for number in range(12):
            answer = ask(window, fact(number), tools=TOOLS)
            assert answer.stop_reason == "tool_use"
            used = [part.id for part in answer.content if part.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": name, "content": f"out {name}"} for name in used]
            answer = window.create(
                model=MODEL,
                max_tokens=400,
                system="Be brief.",
                tools=TOOLS,
                messages=[{"role": "user", "content": results}],
            )
            assert f"I see {number + 1}:" in answer.content[1].text
        assert provider.requests("compact")
        assert not [seen for seen, _ in provider.seen if seen.startswith("failed") or seen == "too_long"]


def test_a_caller_that_repeats_its_history_is_matched(provider: Emulator, memory: reverie.Memory) -> None:
    history: list[Any] = []
    with opened(provider, memory) as window:
        for number in range(14):
            history.append({"role": "user", "content": fact(number)})
            answer = window.create(model=MODEL, max_tokens=400, messages=list(history), input_is="history")
            history.append({"role": "assistant", "content": answer.content})
            assert answer.content[0].text.startswith(f"I see {number + 1}:")
            assert window.diagnostics["continuation"]["status"] in ("fallback_full_request", "hit")
        assert provider.requests("compact")
        del history[4:]
        history.append({"role": "user", "content": "fact:again"})
        answer = window.create(model=MODEL, max_tokens=400, messages=list(history), input_is="history")
        assert window.diagnostics["continuation"]["reset_reason"] == "not_append_only"
        assert answer.content[0].text.startswith("I see 3:")


def test_another_process_goes_on(provider: Emulator, memory: reverie.Memory) -> None:
    for number in range(16):
        with opened(provider, memory) as window:
            assert ask(window, fact(number)).content[0].text.startswith(f"I see {number + 1}:")
            assert window.diagnostics["continuation"]["status"] == ("hit" if number else "fallback_full_request")


def test_a_dropped_window_is_built_again_from_the_words(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        for number in range(12):
            ask(window, fact(number))
    memory.host.windows.drop(memory.actor, SCOPE)
    with opened(provider, memory) as window:
        ask(window, "fact:after")
        found = window.diagnostics["continuation"]
        assert found["status"] == "reset"
        assert found["reset_reason"] == "semantic_rebuild"
        assert found["seeded_from"] == "checkpoint+ledger"
        sent = provider.requests("create")[-1]
        assert not [part for part in sent.blocks if part["type"] == "compaction"]
        assert "fact:n11" in sent.text


# what goes wrong


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (Empty("max_tokens"), "rejected_empty_output", "max_tokens"),
        (Empty("refusal"), "rejected_empty_output", "refusal"),
        (Fail(529, code="compaction_unavailable"), "failed", "compaction_unavailable"),
        (Fail(400, "x", "compaction_nothing_to_summarize", "invalid_request_error"), "invalid_input", None),
        (Fail(400, "x", "compaction_incomplete_turn", "invalid_request_error"), "skipped_unpaired_tool_call", None),
    ],
)
def test_a_failed_pass_never_fails_the_turn(
    provider: Emulator, memory: reverie.Memory, fault: Any, status: str, code: str | None
) -> None:
    provider.faults["compact"] = [fault]
    reports = []
    with opened(provider, memory) as window:
        for number in range(14):
            assert ask(window, fact(number)).content[0].text.startswith(f"I see {number + 1}:")
            reports.append(window.diagnostics["remote_compaction"])
    failed = next(report for report in reports if report)
    assert failed["status"] == status
    assert code is None or failed["provider_code"] == code
    assert [report["status"] for report in reports if report][-1] == "compacted"


def test_a_summary_that_frees_nothing_is_not_used(provider: Emulator, memory: reverie.Memory) -> None:
    provider.summary = lambda _: "long " * 4000
    with opened(provider, memory) as window:
        for number in range(11):
            ask(window, fact(number))
        assert window.diagnostics["remote_compaction"]["status"] in ("rejected_no_reduction", "skipped_cooldown")
        assert window.state.latest_compaction_index is None


def test_a_server_without_compaction_is_asked_once_and_the_window_is_shortened_here(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.compaction = False
    reports = []
    with opened(provider, memory) as window:
        for number in range(24):
            ask(window, fact(number))
            reports.append((window.diagnostics["remote_compaction"] or {}).get("status"))
    assert reports.count("unsupported_endpoint") == 1
    assert not provider.requests("compact")
    assert not provider.requests("too_long")
    assert max(asked.tokens for asked in provider.requests("create")) < TRIGGER + 400


def test_a_signature_that_is_refused_costs_no_fact(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        for number in range(12):
            ask(window, fact(number))
        assert provider.requests("compact")
        provider._secret = b"another secret.."  # the provider no longer knows what it signed
        said = ask(window, "fact:last").content[0].text
        assert window.diagnostics["continuation"]["reset_reason"] == "encrypted_content_rejected"
        assert "fact:last" in said
        assert "fact:n11" in said


def test_a_refusal_for_length_ends_in_a_smaller_request(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory, trigger_input_tokens=100_000) as window:
        for number in range(40):
            said = ask(window, fact(number)).content[0].text
            assert f"fact:n{number}" in said
    assert provider.requests("too_long")
    assert len(provider.requests("too_long")) < 8


def test_a_tool_loop_that_outgrows_the_window_goes_on(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = lambda asked: [
        {"type": "tool_use", "id": f"toolu_{len(provider.seen)}", "name": "step", "input": {"at": len(asked.messages)}}
    ]
    with opened(provider, memory) as window:
        answer = ask(window, "fact:goal Count the files.", tools=TOOLS)
        for _ in range(40):
            result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "a line " * 90}
            answer = window.create(
                model=MODEL,
                max_tokens=400,
                system="Be brief.",
                tools=TOOLS,
                messages=[{"role": "user", "content": [result]}],
            )
            assert answer.stop_reason == "tool_use"
        assert "fact:goal" in provider.requests("create")[-1].text


def test_errors_are_the_sdks_own_and_change_nothing(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        ask(window, "fact:one")
        before = window.state.generation
        provider.faults["create"] = [Fail(529)]
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask(window, "fact:two")
        assert caught.value.status_code == 529
        assert window.state.generation == before
        assert ask(window, "fact:two").content[0].text.startswith("I see 2:")
        with pytest.raises(anthropic.BadRequestError):
            window.create(model=MODEL, max_tokens=400, messages=[{"role": "user", "content": ""}])
    with pytest.raises(RuntimeError, match="closed"):
        ask(window, "fact:three")


def test_a_mode_of_another_provider_is_refused(provider: Emulator, memory: reverie.Memory) -> None:
    with pytest.raises(Invalid, match="standalone"):
        opened(provider, memory, mode="standalone")
    with pytest.raises(Invalid, match="clear_"):
        WindowPolicy(edits=[{"type": "compact_20260112"}])


# streams


@pytest.mark.parametrize("helper", [True, False])
def test_streams_grow_the_window_once(provider: Emulator, memory: reverie.Memory, helper: bool) -> None:
    given: dict[str, Any] = {"model": MODEL, "max_tokens": 400}
    with opened(provider, memory) as window:
        for number in range(14):
            messages = [{"role": "user", "content": fact(number)}]
            if helper:
                with window.stream(messages=messages, **given) as stream:
                    said = "".join(stream.text_stream)
                    assert stream.get_final_message().stop_reason == "end_turn"
            else:
                deltas = [e.delta for e in window.create(messages=messages, stream=True, **given) if "delta" in e.type]
                said = "".join(getattr(delta, "text", "") for delta in deltas)
            assert said.startswith(f"I see {number + 1}:")
        assert provider.requests("compact")


def test_a_stream_that_is_left_changes_nothing(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        ask(window, "fact:one")
        before = len(window.state.items)
        with window.stream(model=MODEL, max_tokens=400, messages=[{"role": "user", "content": "fact:two"}]) as stream:
            next(iter(stream))
        assert len(window.state.items) == before


def test_streamed_tool_uses_and_thinking_come_back_whole(provider: Emulator, memory: reverie.Memory) -> None:
    provider.model = errand
    with opened(provider, memory) as window:
        with window.stream(
            model=MODEL, max_tokens=400, tools=TOOLS, messages=[{"role": "user", "content": "fact:one"}]
        ) as stream:
            used = [part.id for part in stream.get_final_message().content if part.type == "tool_use"]
        kept = window.state.items[-1].value["content"]
        assert [part["type"] for part in kept] == ["thinking", "tool_use", "tool_use"]
        assert kept[0] == {"type": "thinking", "thinking": "Hm.", "signature": "sig-0"}
        assert kept[2]["input"] == {"number": 2}
        results = [{"type": "tool_result", "tool_use_id": name, "content": "out"} for name in used]
        answer = window.create(
            model=MODEL, max_tokens=400, tools=TOOLS, messages=[{"role": "user", "content": results}]
        )
        assert answer.content[1].text.startswith("I see 1:")


def test_the_awaiting_twin(provider: Emulator, memory: reverie.Memory) -> None:
    async def talk() -> None:
        async with AsyncAnthropic(api_key=provider.key, base_url=provider.url, max_retries=0) as sdk:
            policy = WindowPolicy(trigger_input_tokens=TRIGGER)
            async with await MessagesWindow.open(sdk, store=memory, scope=SCOPE, policy=policy) as window:
                for number in range(14):
                    given: Any = {"model": MODEL, "max_tokens": 400}
                    given["messages"] = [{"role": "user", "content": fact(number)}]
                    if number % 3 == 0:
                        said = (await window.create(**given)).content[0].text
                    elif number % 3 == 1:
                        async with window.stream(**given) as stream:
                            said = await stream.get_final_text()
                    else:
                        raw = await window.messages.with_raw_response.create(**given)
                        said = (await raw.parse()).content[0].text
                    assert said.startswith(f"I see {number + 1}:")
                assert (await window.compact() or {})["status"] == "compacted"
        assert provider.requests("compact")

    asyncio.run(talk())


# server-side


def test_the_provider_compacts_by_itself(provider: Emulator, memory: reverie.Memory) -> None:
    provider.context, provider.model = 120_000, lambda _: [{"type": "text", "text": "Yes. " * 300}]
    with opened(provider, memory, mode="server_side", context_window=120_000) as window:
        for number in range(9):
            ask(window, f"fact:n{number} " + "please " * 20_000)
        assert window.diagnostics["server_threshold_raised"] is True
        sent = provider.requests("create")[-1]
        edits = sent.body["context_management"]["edits"]
        assert edits == [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
        assert THRESHOLD in sent.betas
        assert ON_DEMAND not in sent.betas
        assert [part["type"] for part in sent.messages[0]["content"]] == ["compaction", "text"]
        assert "fact:n0" in sent.text
    assert not provider.requests("compact")
    assert passes(memory)[0]["endpoint_kind"] == "messages_context_management"
    assert passes(memory)[0]["trigger_reason"] == "server_threshold"


@pytest.mark.parametrize("streams", [False, True])
def test_a_pause_after_compaction_is_resumed_unseen(provider: Emulator, memory: reverie.Memory, streams: bool) -> None:
    provider.context = 120_000
    with opened(provider, memory, mode="server_side", context_window=120_000) as window:
        ask(window, "fact:one " + "please " * 20_000)
        provider.faults["create"] = [Pause()]
        text = "fact:two " + "please " * 20_000
        if streams:
            given: Any = {"model": MODEL, "max_tokens": 400, "messages": [{"role": "user", "content": text}]}
            with window.stream(**given) as stream:
                answer = stream.get_final_message()
        else:
            answer = ask(window, text)
        assert answer.stop_reason == "end_turn"
        assert answer.content[-1].text.startswith("I see 2:")
        assert ask(window, "fact:three").content[-1].text.startswith("I see 3:")


def test_the_two_kinds_of_compaction_never_meet(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        for number in range(12):
            ask(window, fact(number))
        assert provider.requests("compact")
    with opened(provider, memory, mode="server_side") as window:
        assert "fact:n11" in ask(window, "fact:other").content[-1].text
        assert window.diagnostics["continuation"]["reset_reason"] == "semantic_rebuild"


def test_context_editing_goes_with_every_request_but_passes(provider: Emulator, memory: reverie.Memory) -> None:
    edits = [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]
    edits.append({"type": "clear_thinking_20251015"})
    tools: Any = [*TOOLS, {"type": "memory_20250818", "name": "memory"}]
    with opened(provider, memory, edits=edits) as window:
        for number in range(12):
            ask(window, fact(number), tools=tools, betas=["my-own-beta"])
    for asked in provider.requests("create"):
        sent = asked.body["context_management"]["edits"]
        assert [edit["type"] for edit in sent] == ["clear_thinking_20251015", "clear_tool_uses_20250919"]
        assert sent[1]["exclude_tools"] == ["memory"]
        assert {"my-own-beta", EDITING} <= set(asked.betas)
    assert all("context_management" not in asked.body for asked in provider.requests("compact"))
    assert all("my-own-beta" in asked.betas for asked in provider.requests("compact"))
    assert provider.requests("compact")


# beside the window


def test_a_caller_that_compacts_itself_is_let_through(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        ask(window, "fact:one")
        history = [{"role": "user", "content": "fact:x"}, {"role": "assistant", "content": "Yes."}]
        answer = window.create(
            model=MODEL, max_tokens=400, messages=history, compaction={"type": "summarize"}, betas=[ON_DEMAND]
        )
        assert answer.stop_reason == "compaction"
        assert window.diagnostics["continuation"]["fallback_reason"] == "client_compaction"
        assert ask(window, "fact:two").content[0].text.startswith("I see 2:")


def test_the_memory_tool_shares_scope_and_session(provider: Emulator, memory: reverie.Memory) -> None:
    with opened(provider, memory) as window:
        tool = MemoryTool(window.memory)
        made = tool.handle({"command": "create", "path": "/memories/a.md", "file_text": "Blue is the colour."})
        assert not made["is_error"]
        again = MemoryTool(memory, store=window.ref)
        assert "Blue" in again.handle({"command": "view", "path": "/memories/a.md"})["content"]
    store = memory.host.memory_stores.named(memory.actor, SCOPE)
    assert store is not None
    kept = memory.ref(f"memstore_{store.id}").list().items
    assert [entry.source.session for entry in kept] == [SCOPE]


def test_a_checkpoint_names_what_no_summary_holds(provider: Emulator, memory: reverie.Memory) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/plan.png"}}
    words = {"type": "text", "text": "fact:plan Look at this."}
    with opened(provider, memory) as window:
        window.create(model=MODEL, max_tokens=400, messages=[{"role": "user", "content": [picture, words]}])
        assert window.compact()["status"] in ("compacted", "rejected_no_reduction")
    checkpoints = [entry for entry in memory.ref(SCOPE).list().items if entry.kind == "checkpoint"]
    assert "image https://example.org/plan.png" in checkpoints[0].content


# the proxy


class Lab:
    def __init__(self, root: str, key: str, counts: Counts) -> None:
        self.root, self.counts = root, counts
        self.sdk = Anthropic(api_key=key, base_url=root, max_retries=0, timeout=60)
        self.history: list[Any] = []

    def ask(self, text: str, *, scope: str | None = SCOPE, **more: Any) -> Any:
        self.history.append({"role": "user", "content": text})
        headers = {"x-reverie-scope": scope} if scope else {}
        raw = self.sdk.messages.with_raw_response.create(
            model=MODEL, max_tokens=400, messages=list(self.history), extra_headers=headers, **more
        )
        self.history.append({"role": "assistant", "content": raw.parse().content})
        return raw


@pytest.fixture
def lab(provider: Emulator, memory: reverie.Memory) -> Iterator[Lab]:
    base = Base.of(provider.url, "messages")
    upstream, counts = Upstream(base.url), Counts(SystemClock().now())
    actor = Actor(tenant="default", id="local:proxy", door="responses")
    policy = WindowPolicy(trigger_input_tokens=TRIGGER)
    turns = WindowTurns(memory.host, actor, upstream, base=base, policy=policy, counts=counts)
    with running(Proxy(upstream, turns, counts=counts, messages=True)) as root:
        yield Lab(root, provider.key, counts)


def test_any_client_of_the_proxy_gains_a_window(provider: Emulator, lab: Lab) -> None:
    for number in range(20):
        raw = lab.ask(fact(number))
        assert raw.parse().content[0].text.startswith(f"I see {number + 1}:")
        assert raw.headers["x-reverie-window-status"] == ("hit" if number else "fallback_full_request")
    assert provider.requests("compact")
    assert max(asked.tokens for asked in provider.requests("create")) < TRIGGER + 300
    shown = httpx2.get(f"{lab.root}/reverie/status", trust_env=False).json()
    assert shown["windows"][0]["scope"] == SCOPE
    assert provider.key not in json.dumps(shown)


def test_streams_of_the_proxy(provider: Emulator, lab: Lab) -> None:
    for number in range(14):
        lab.history.append({"role": "user", "content": fact(number)})
        with lab.sdk.messages.stream(
            model=MODEL, max_tokens=400, messages=list(lab.history), extra_headers={"x-reverie-scope": SCOPE}
        ) as stream:
            answer = stream.get_final_message()
        lab.history.append({"role": "assistant", "content": answer.content})
        assert answer.content[0].text.startswith(f"I see {number + 1}:")  # type: ignore[union-attr]
    assert provider.requests("compact")


def test_without_a_scope_and_with_a_compaction_of_its_own_a_request_passes_through(
    provider: Emulator, lab: Lab
) -> None:
    raw = lab.ask("fact:one", scope=None)
    assert "x-reverie-window-status" not in raw.headers
    del lab.history[2:]
    answer = lab.sdk.beta.messages.with_raw_response.create(
        model=MODEL,
        max_tokens=400,
        messages=list(lab.history),
        compaction={"type": "summarize"},
        betas=[ON_DEMAND],
        extra_headers={"x-reverie-scope": SCOPE},
    )
    assert answer.headers["x-reverie-window-status"] == "client_compaction"
    assert lab.counts.requests["client_compaction"] == 1
    assert provider.requests("compact")
    counted = lab.sdk.messages.count_tokens(model=MODEL, messages=list(lab.history))
    assert counted.input_tokens > 0


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "body",
    [
        {"context_management": {"edits": 5}},
        {"context_management": {"edits": [{}]}},
        {"context_management": 5},
        {"tools": 5},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": _nested(700)}]}]},
        {"messages": [5, None, {"role": "user", "content": "x"}]},
    ],
    ids=["edits", "edit", "context", "tools", "deep", "items"],
)
def test_what_the_proxy_does_not_understand_is_for_the_provider_to_refuse(
    provider: Emulator, lab: Lab, body: dict[str, Any]
) -> None:
    provider.faults["create"] = [Fail(400, "Not that.", kind="invalid_request_error")]
    sent = {"model": MODEL, "max_tokens": 400, "messages": [{"role": "user", "content": "fact:one"}], **body}
    headers = {"x-reverie-scope": SCOPE, "x-api-key": provider.key, "anthropic-version": "2026-10-21"}
    answer = httpx2.post(f"{lab.root}/v1/messages", json=sent, headers=headers, trust_env=False)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Not that.")


@pytest.mark.parametrize("word", [["end_turn"], {}, 5], ids=["list", "object", "number"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_reason_that_is_no_text_ends_nothing(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch, word: Any, stream: bool
) -> None:
    window = opened(provider, memory)
    ask(window, "fact:one")
    created = provider._created
    with monkeypatch.context() as patch:
        patch.setattr(provider, "_created", lambda *args: {**created(*args), "stop_reason": word})
        answer = ask(window, "fact:two", stream=stream)
        assert list(answer) if stream else answer.content
    assert ask(window, "fact:three").content[0].text == "I see 2: fact:one fact:three"
