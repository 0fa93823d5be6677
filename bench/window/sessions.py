"""One long tool-using session, three ways: nothing, the Agents SDK's own compaction session, and the Reverie window.

Every run asks for some more steps of one long piece of work; every step is a tool call with a fact in its output. In the
second session every other compaction fails, in the ways they do; the third is one long tool loop, which a session alone
cannot shrink. All use the real Agents SDK runner.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.memory import OpenAIResponsesCompactionSession
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from tests.responses_emulator import (
    MODEL,
    Drop,
    Emulator,
    Fail,
    Fault,
    Raw,
    Turn,
    Twist,
    call,
    empty_output,
    message,
    no_compaction,
    thought,
)

CONTEXT = 24_000
TRIGGER = 12_000
TITLES = {"none": "no compaction", "sdk": "OpenAIResponsesCompactionSession", "reverie": "Reverie window"}
FAULTS: list[Fault] = [
    Fail(500),
    None,
    Raw("{broken"),
    None,
    Twist(empty_output),
    None,
    Twist(no_compaction),
    None,
    Drop(),
    None,
    Fail(429),
]


@dataclass
class Figures:
    """What a session cost and whether it got there."""

    runs: int = 0
    finished: int = 0
    failed: list[str] = field(default_factory=list)
    facts: int = 0
    facts_known: int = 0
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    peak_tokens: int = 0
    compactions: int = 0
    compaction_tokens: int = 0
    seconds: float = 0.0


def errand(turn: Turn) -> list[dict[str, Any]]:
    """Calls `step` until the step that was asked for, then says how many facts it knows."""
    words = [str(item["content"]) for item in turn.items if item.get("role") == "user"]
    goal = max((int(number) for text in words for number in re.findall(r"until step (\d+)", text)), default=0)
    if turn.outputs >= goal:
        return [thought(60), message(f"Done, with {len(turn.facts)} facts.")]
    return [thought(60), call("step", {"number": turn.outputs + 1})]


@function_tool
def step(number: int) -> str:
    """Do one step of the work."""
    return f"fact:step-{number} " + f"What step {number} brought, in some detail. " * 30


Way = Callable[[AsyncOpenAI], Any]


@asynccontextmanager
async def nothing(_: AsyncOpenAI) -> AsyncIterator[tuple[Any, RunConfig]]:
    yield SQLiteSession("bench"), RunConfig()


@asynccontextmanager
async def own(client: AsyncOpenAI) -> AsyncIterator[tuple[Any, RunConfig]]:
    kept = SQLiteSession("bench")
    yield OpenAIResponsesCompactionSession("bench", kept, client=client, model=MODEL), RunConfig()


@asynccontextmanager
async def window(client: AsyncOpenAI) -> AsyncIterator[tuple[Any, RunConfig]]:
    import reverie
    from reverie.responses import ResponsesWindow, WindowPolicy

    with tempfile.TemporaryDirectory() as folder:
        memory = reverie.open(folder)
        policy = WindowPolicy(trigger_input_tokens=TRIGGER)
        opened = await ResponsesWindow.open(client, store=memory, scope="bench", policy=policy)
        session = opened.session(model=MODEL)
        yield session, RunConfig(call_model_input_filter=session.input_filter)
        memory.close()


WAYS: dict[str, Way] = {"none": nothing, "sdk": own, "reverie": window}


async def measure(way: str, *, runs: int, steps: int, faults: list[Fault]) -> Figures:
    """One session."""
    figures = Figures(runs=runs, facts=runs * (steps + 1))
    began = time.perf_counter()
    with Emulator(context=CONTEXT, model=errand) as provider:
        provider.faults["compact"] = list(faults)
        client = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
        model = OpenAIResponsesModel(model=MODEL, openai_client=client)
        agent = Agent(name="worker", instructions="Work step by step.", tools=[step], model=model)
        async with WAYS[way](client) as (session, config):
            for run in range(runs):
                asked = f"fact:run-{run} Go on until step {(run + 1) * steps}."
                try:
                    done = await Runner.run(
                        agent, asked, session=session, run_config=config, max_turns=steps * runs + 5
                    )
                except Exception as fault:
                    figures.failed.append(_name(fault))
                    continue
                figures.finished += 1
                figures.facts_known = int(re.findall(r"(\d+) facts", done.final_output)[0])
        await client.close()
        answered = [seen for seen in provider.seen if seen.status == 200]
        figures.requests = len(provider.requests("create"))
        figures.compactions = len(provider.requests("compact"))
        figures.input_tokens = sum(seen.tokens for seen in answered if seen.route == "create")
        figures.cached_tokens = sum(seen.cached for seen in answered if seen.route == "create")
        figures.compaction_tokens = sum(seen.tokens for seen in answered if seen.route == "compact")
        figures.peak_tokens = max(seen.tokens for seen in provider.seen)
    figures.seconds = time.perf_counter() - began
    return figures


def _name(fault: Exception) -> str:
    code = getattr(fault, "code", None)
    return f"{type(fault).__name__}{f' {code}' if code else ''}"


ROWS: list[tuple[str, Callable[[Figures], str]]] = [
    ("runs finished", lambda f: f"{f.finished} of {f.runs}"),
    ("facts the model still knew at the end", lambda f: f"{f.facts_known} of {f.facts}"),
    ("model requests", lambda f: f"{f.requests:,}"),
    ("input tokens of turns", lambda f: f"{f.input_tokens:,}"),
    ("of these not cached", lambda f: f"{f.input_tokens - f.cached_tokens:,}"),
    ("compaction requests", lambda f: f"{f.compactions:,}"),
    ("input tokens of compactions", lambda f: f"{f.compaction_tokens:,}"),
    ("largest prompt", lambda f: f"{f.peak_tokens:,}"),
    ("what failed", lambda f: ", ".join(f"{f.failed.count(n)} x {n}" for n in dict.fromkeys(f.failed)) or "nothing"),
]


def table(figures: dict[str, Figures]) -> str:
    """The figures of one session, side by side."""
    lines = ["| | " + " | ".join(TITLES[way] for way in figures) + " |", "|---|" + "---:|" * len(figures)]
    lines += [f"| {title} | " + " | ".join(cell(f) for f in figures.values()) + " |" for title, cell in ROWS]
    return "\n".join(lines)


def measured(*, quick: bool, only: str) -> dict[str, tuple[str, dict[str, Figures]]]:
    """Every session: its title, and the figures of each way."""
    runs, steps = (8, 6) if quick else (16, 8)
    long = 70 if quick else 100
    plans: dict[str, tuple[str, int, int, list[Fault]]] = {
        "quiet": (f"{runs} runs of {steps} steps", runs, steps, []),
        "faulty": ("The same while every other compaction fails", runs, steps, FAULTS),
        "loop": (f"One run of {long} steps", 1, long, []),
    }
    ways = [way for way in WAYS if way in only.split(",")]
    return {
        name: (title, {way: asyncio.run(measure(way, runs=runs, steps=steps, faults=faults)) for way in ways})
        for name, (title, runs, steps, faults) in plans.items()
    }
