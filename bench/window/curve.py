"""The billed cost of one session over trigger policies: 200 turns of a user, each with a tool call, in a small window.

Prices are the usual ratios of providers: an input token costs 1, a cached one a tenth, an output token 8. What the model
itself writes is the same for every policy and is left out; what a pass writes is not.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import OpenAIResponsesCompactionSession
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI, OpenAI
from tests.responses_emulator import MODEL, Emulator, Turn, call, message, thought

import reverie
from reverie.responses import ResponsesWindow, WindowPolicy
from reverie.window.cost import CACHED, OUTPUT

Way = Literal["session", "window"]
CONTEXT = 12_000
TRIGGERS = (2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000)
TOOLS: list[Any] = [{"type": "function", "name": "step", "parameters": {"type": "object", "properties": {}}}]


@dataclass
class Bill:
    """What one session cost."""

    name: str
    turns: int
    finished: int
    facts: int
    facts_known: int
    requests: int
    sent: int
    cached: int
    passes: int
    pass_sent: int
    pass_cached: int
    pass_written: int
    peak: int

    @property
    def billed(self) -> int:
        """In input tokens."""
        full = self.sent - self.cached + self.pass_sent - self.pass_cached
        return round(full + CACHED * (self.cached + self.pass_cached) + OUTPUT * self.pass_written)


def plain(turn: Turn) -> list[dict[str, Any]]:
    """A tool call for every message of the user, then the number of facts it knows."""
    if turn.last.get("type") == "function_call_output":
        return [thought(60), message(f"Done, with {len(turn.facts)} facts.")]
    (number, *_) = re.findall(r"Take step (\d+)", turn.asked) or ["0"]
    return [thought(60), call("step", {"number": int(number)})]


def output(number: int) -> str:
    """The output of a step."""
    return f"fact:step-{number} " + f"What step {number} brought, in some detail. " * 30


@function_tool
def step(number: int) -> str:
    """Do one step of the work."""
    return output(number)


def by_window(name: str, policy: WindowPolicy, turns: int) -> Bill:
    """The session around the plain client."""
    with (
        Emulator(context=CONTEXT, model=plain) as provider,
        tempfile.TemporaryDirectory() as folder,
        OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0) as client,
        ResponsesWindow.open(client, store=folder, scope="bench", policy=policy) as window,
    ):
        said = ""
        for number in range(1, turns + 1):
            asked: list[Any] = [{"role": "user", "content": f"fact:ask-{number} Take step {number}."}]
            while asked:
                answer = window.create(model=MODEL, input=asked, tools=TOOLS, instructions="Work step by step.")
                asked = [
                    {"type": "function_call_output", "call_id": item.call_id, "output": output(number)}
                    for item in answer.output
                    if item.type == "function_call"
                ]
            said = answer.output_text
        return _bill(name, provider, turns, turns, said)


async def by_session(name: str, policy: WindowPolicy | None, turns: int) -> Bill:
    """The session under the Agents SDK's runner: its own compaction session, or ours with `policy`."""
    with Emulator(context=CONTEXT, model=plain) as provider, tempfile.TemporaryDirectory() as folder:
        client = AsyncOpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
        model = OpenAIResponsesModel(model=MODEL, openai_client=client)
        agent = Agent(name="worker", instructions="Work step by step.", tools=[step], model=model)
        memory = reverie.open(folder)
        session: Any = OpenAIResponsesCompactionSession("bench", SQLiteSession("bench"), client=client, model=MODEL)
        config = RunConfig()
        if policy is not None:
            window = await ResponsesWindow.open(client, store=memory, scope="bench", policy=policy)
            session = window.session(model=MODEL)
            config = RunConfig(call_model_input_filter=session.input_filter)
        said, finished = "", 0
        for number in range(1, turns + 1):
            try:
                done = await Runner.run(
                    agent, f"fact:ask-{number} Take step {number}.", session=session, run_config=config
                )
            except Exception:
                continue
            said, finished = str(done.final_output), finished + 1
        await client.close()
        memory.close()
        return _bill(name, provider, turns, finished, said)


def _bill(name: str, provider: Emulator, turns: int, finished: int, said: str) -> Bill:
    answered = [seen for seen in provider.seen if seen.status == 200 and seen.route in ("create", "compact")]
    passes = [
        seen
        for seen in answered
        if seen.route == "compact" or (seen.input[-1:] or [{}])[0].get("type") == "compaction_trigger"
    ]
    bought = set(map(id, passes))
    asked = [seen for seen in answered if id(seen) not in bought]
    return Bill(
        name=name,
        turns=turns,
        finished=finished,
        facts=2 * turns,
        facts_known=int((re.findall(r"(\d+) facts", said) or ["0"])[0]),
        requests=len(asked),
        sent=sum(seen.tokens for seen in asked),
        cached=sum(seen.cached for seen in asked),
        passes=len(passes),
        pass_sent=sum(seen.tokens for seen in passes),
        pass_cached=sum(seen.cached for seen in passes),
        pass_written=sum(seen.written for seen in passes),
        peak=max((seen.tokens for seen in answered), default=0),
    )


def plans(triggers: tuple[int, ...] = TRIGGERS) -> list[tuple[Way, str, WindowPolicy | None]]:
    """Every policy: how the session runs, its name, and the policy."""
    usual, cheap = WindowPolicy(context_window=CONTEXT), WindowPolicy(rule="cost", context_window=CONTEXT)
    alone = WindowPolicy(rule="cost", mode="standalone", context_window=CONTEXT)
    return [
        ("session", "OpenAIResponsesCompactionSession", None),
        ("session", "session, default", usual),
        ("session", 'session, policy="cost"', cheap),
        *[("window", f"window, trigger {n:,}", WindowPolicy(trigger_input_tokens=n)) for n in triggers],
        ("window", "window, default", usual),
        ("window", "window, cost, standalone", alone),
        ("window", 'window, policy="cost"', cheap),
    ]


def bill(plan: tuple[Way, str, WindowPolicy | None], turns: int) -> Bill:
    """One session, in a process of its own."""
    way, name, policy = plan
    set_tracing_disabled(True)
    logging.disable(logging.ERROR)
    if way == "window" and policy is not None:
        return by_window(name, policy, turns)
    return asyncio.run(by_session(name, policy, turns))


def bills(turns: int, *, triggers: tuple[int, ...] = TRIGGERS) -> list[Bill]:
    """Every policy, one session each, two at once. The SDK's client takes a millisecond for each item that it sends:
    200 turns under its runner take some minutes.
    """
    wanted = plans(triggers)
    made = []
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for one in pool.map(bill, wanted, repeat(turns)):
            made.append(one)
            print(f"{len(made)} of {len(wanted)}: {one.name}", file=sys.stderr, flush=True)
    return made


def table(made: list[Bill]) -> str:
    """The bills as a table."""
    head = "| policy | turns finished | facts known | tokens sent | of these not cached | passes | tokens of passes | billed |"
    rows = [
        f"| {b.name} | {b.finished} of {b.turns} | {b.facts_known} of {b.facts} | {b.sent:,} | {b.sent - b.cached:,} "
        f"| {b.passes} | {b.pass_sent:,} | {b.billed:,} |"
        for b in made
    ]
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|---:|---:|", *rows])
