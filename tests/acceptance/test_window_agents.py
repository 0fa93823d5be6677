"""The window under the real Agents SDK runner, against the strict emulator."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import Agent, ModelSettings, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.memory.session import is_openai_responses_compaction_aware_session
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from tests.responses_emulator import (
    MODEL,
    Drop,
    Emulator,
    Fail,
    Raw,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    no_compaction,
    thought,
)

import reverie
from reverie.core.query import Filter
from reverie.responses import AsyncWindow, ResponsesWindow, WindowPolicy, WindowSession

TRIGGER, CONTEXT = 2000, 3500


def errand(turn: Turn) -> list[dict[str, Any]]:
    """Calls `step` up to the step the user asked for, then says what it knows."""
    words = [str(item["content"]) for item in turn.items if item.get("role") == "user"]
    goal = max((int(number) for text in words for number in re.findall(r"until step (\d+)", text)), default=0)
    if turn.outputs >= goal:
        return [thought(), message(f"Done: {turn.outputs} steps, {len(turn.facts)} facts.")]
    return [thought(), call("step", {"number": turn.outputs + 1})]


@function_tool
def step(number: int) -> str:
    """Do a step."""
    return f"fact:step-{number} " + "detail " * 100


@pytest.fixture(autouse=True)
def _quiet() -> None:
    set_tracing_disabled(True)


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=CONTEXT, model=errand) as running:
        yield running


class Lab:
    """A window over the emulator."""

    def __init__(self, provider: Emulator, memory: reverie.Memory) -> None:
        self.provider = provider
        self.memory = memory
        self.client = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
        settings = ModelSettings(store=False)
        model = OpenAIResponsesModel(model=MODEL, openai_client=self.client)
        self.agent = Agent(name="w", instructions="Work.", tools=[step], model=model, model_settings=settings)

    def play(self, body: Coroutine[Any, Any, None]) -> None:
        """Run the body of a test, and let go of the connections."""

        async def played() -> None:
            async with self.client:
                await body

        asyncio.run(played())

    async def window(self, scope: str = "agent-1/run", **policy: Any) -> Any:
        given = WindowPolicy(**{"trigger_input_tokens": TRIGGER, **policy})
        return await ResponsesWindow.open(self.client, store=self.memory, scope=scope, policy=given)

    async def run(self, text: str, *, session: Any = None, input_filter: Any = None, turns: int = 80) -> str:
        config = RunConfig(call_model_input_filter=input_filter)
        done = await Runner.run(self.agent, text, session=session, run_config=config, max_turns=turns)
        return str(done.final_output)


@pytest.fixture
def lab(provider: Emulator, memory: reverie.Memory) -> Lab:
    return Lab(provider, memory)


def test_the_session_is_one_to_the_sdk(lab: Lab) -> None:
    async def body() -> None:
        session = (await lab.window()).session()
        assert isinstance(session, Session)
        assert is_openai_responses_compaction_aware_session(session)

    lab.play(body())


def test_sixty_tool_calls_in_one_run_stay_bounded(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        window = await lab.window()
        session = window.session(model=MODEL)
        said = await lab.run("fact:ask go on until step 60", session=session, input_filter=window.input_filter)
        assert said == "Done: 60 steps, 61 facts."
        assert max(seen.tokens for seen in provider.seen) < CONTEXT
        assert len(provider.requests("compact")) >= 3
        assert all(seen.status == 200 for seen in provider.seen)
        kept = await session.get_items()
        assert kept[-1]["content"][0]["text"] == said
        assert sum(item.get("type") == "function_call_output" for item in kept) < 30
        # the words of all of it can be read in the memory
        page = lab.memory.ref(window.ref).list(where=Filter(kinds=("turn",)), limit=500)
        told = [entry.content for entry in page.items]
        assert sum("fact:step-" in text for text in told) == 60

    lab.play(body())


def test_without_the_filter_the_same_run_overflows(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        provider.lenient_ids = True
        session = (await lab.window()).session(model=MODEL)
        with pytest.raises(Exception, match="context window"):
            await lab.run("go on until step 60", session=session)

    lab.play(body())


def test_the_filter_alone_is_enough_for_one_run(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        window = await lab.window()
        said = await lab.run("fact:ask go on until step 24", input_filter=window.input_filter)
        assert said == "Done: 24 steps, 25 facts."
        assert max(seen.tokens for seen in provider.seen) < CONTEXT
        # another run is another conversation
        assert "2 steps" in await lab.run("fact:other go on until step 2", input_filter=window.input_filter)

    lab.play(body())


def test_runs_go_on_where_the_last_one_ended(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        for number in range(1, 6):
            window = await lab.window()  # as after a restart
            said = await lab.run(
                f"fact:ask-{number} go on until step {number * 5}",
                session=window.session(model=MODEL),
                input_filter=window.input_filter,
            )
            assert said == f"Done: {number * 5} steps, {number * 6} facts."
        assert max(seen.tokens for seen in provider.seen) < CONTEXT

    lab.play(body())


def test_failing_passes_fail_no_run(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        faults = [Fail(500), Raw("{"), Twist(empty_output), Twist(no_compaction), Drop(), Fail(429)]
        provider.faults["compact"] = [fault for pair in zip(faults, [None] * 6, strict=True) for fault in pair]
        provider.context = 8000
        window = await lab.window()
        said = await lab.run("fact:ask go on until step 40", session=window.session(), input_filter=window.input_filter)
        assert said == "Done: 40 steps, 41 facts."

    lab.play(body())


def test_run_compaction_never_raises(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        session = (await lab.window()).session(model=MODEL)
        await session.run_compaction()
        await session.run_compaction({"force": True})
        await session.add_items(
            [{"role": "user", "content": "word " * 400}, {"role": "assistant", "content": "yes " * 900}]
        )
        provider.faults["compact"] = [Fail(500), Raw("no"), Drop()]
        for _ in range(3):
            await session.run_compaction({"force": True, "response_id": "resp_x", "store": False})
        lab.memory.close()
        await session.run_compaction({"force": True})

    lab.play(body())


def test_popping_past_a_compaction_restores_the_generation_before(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        session = (await lab.window()).session(model=MODEL)
        said = []
        for number in range(10):
            pair = [
                {"role": "user", "content": f"question {number}"},
                {"role": "assistant", "content": f"answer {number} " + "word " * 120},
            ]
            await session.add_items(pair)
            said += pair
        before = await session.get_items()
        assert [item["content"] for item in before] == [item["content"] for item in said]
        await session.run_compaction({"force": True})
        compacted = await session.get_items()
        assert [item["type"] for item in compacted].count("compaction") == 1
        after = {"role": "user", "content": "after"}
        await session.add_items([after])
        assert (await session.pop_item())["content"] == "after"
        assert await session.get_items() == compacted
        popped = await session.pop_item()
        assert popped["content"] == said[-1]["content"]
        assert [item["content"] for item in await session.get_items()] == [item["content"] for item in said[:-1]]

    lab.play(body())


def test_get_items_gives_the_latest(lab: Lab) -> None:
    async def body() -> None:
        session = (await lab.window()).session()
        await session.add_items([{"role": "user", "content": str(number)} for number in range(5)])
        assert [item["content"] for item in await session.get_items(2)] == ["3", "4"]
        assert await session.get_items(0) == []
        assert len(await session.get_items(99)) == 5
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None

    lab.play(body())


def test_no_id_of_the_provider_is_replayed(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        window = await lab.window()
        await lab.run("go on until step 20", session=window.session(model=MODEL), input_filter=window.input_filter)
        for seen in provider.requests("create"):
            assert not [item for item in seen.input if "id" in item and item["type"] != "compaction"]

    lab.play(body())


def test_streamed_runs_are_bounded_too(lab: Lab, provider: Emulator) -> None:
    async def body() -> None:
        window = await lab.window()
        config = RunConfig(call_model_input_filter=window.input_filter)
        run = Runner.run_streamed(
            lab.agent, "fact:a until step 20", session=window.session(model=MODEL), run_config=config, max_turns=50
        )
        async for _ in run.stream_events():
            pass
        assert run.final_output == "Done: 20 steps, 21 facts."
        assert max(seen.tokens for seen in provider.seen) < CONTEXT

    lab.play(body())


def test_a_session_is_shared_by_threads_with_their_own_event_loops(
    make_target: Callable[..., str], provider: Emulator
) -> None:
    client = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
    window = asyncio.run(_opened(client, make_target()))
    session = window.session(model=MODEL, session_settings={"limit": 3})
    texts = [f"Message {number}" for number in range(10)]

    def add(text: str) -> None:
        asyncio.run(session.add_items([{"role": "user", "content": text}]))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(add, texts))
    every = asyncio.run(session.get_items(limit=100))
    assert sorted(item["content"] for item in every) == texts
    assert asyncio.run(session.get_items()) == every[-3:]
    asyncio.run(window.aclose())
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(session.add_items([]))
    with pytest.raises(TypeError, match="limitt"):
        WindowSession(window, session_settings={"limitt": 1})


async def _opened(client: AsyncOpenAI, store: str) -> AsyncWindow:
    return await ResponsesWindow.open(client, store=store, scope="agent-1/threads")
