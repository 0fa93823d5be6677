"""Five weeks of history for a store that is kept: weekly dreams, a schedule, a conversation, agents, a disagreement.

Everything goes through the use cases of any caller, under a clock that walks through the five weeks up to now, so that
every page of the console has real data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import reverie
from reverie.core.clock import MS_PER_DAY, SystemClock, from_iso, to_iso
from reverie.demo.corpus import entries
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.field import Field
from reverie.protocols.openwop.agents import Agents
from reverie.window.policy import Base

DESK, CHAT = "harbour-desk", "chat/club-otter"
_AGENTS = (
    {
        "agentId": "harbour-desk",
        "label": "Harbour desk",
        "persona": "calm and exact",
        "modelClass": "small",
        "description": "Answers the clubs' questions about boats, lanes and bookings.",
        "memoryShape": {"scratchpad": True, "conversation": True, "longTerm": True},
    },
    {
        "agentId": "night-watch",
        "label": "Night watch",
        "persona": "terse",
        "modelClass": "small",
        "description": "Watches the nightly jobs and wakes somebody when one fails.",
        "memoryShape": {"longTerm": True},
        "requiresCapabilities": ["host.calendar"],
    },
)
_QUESTIONS = (
    "Which database do we use?",
    "How many boats does the free plan allow?",
    "When must we not deploy?",
    "Who has to confirm a booking of a junior?",
    "How long are backups kept?",
    "When does the launch take place?",
)
"""Questions asked before each weekly dream; the dream replays them."""
_TALK = (
    ("Good morning, can club Otter have two more lanes on Saturday?", "Lanes 3 and 4 are free from ten to noon."),
    ("Then book both, please. And who unlocks the boathouse?", "Booked. Lena unlocks the boathouse at half past nine."),
    ("What does the second lane cost?", "The second lane is free for clubs on the paid plan."),
    ("Please remind me on Friday.", "I will remind you on Friday at noon."),
)


class WalkingClock:
    """A clock that is advanced from day to day."""

    def __init__(self, start: int) -> None:
        self._now = start

    def now(self) -> int:
        """The instant it was set to."""
        return self._now

    def reach(self, instant: int) -> None:
        """Advance to an instant."""
        self._now = max(self._now + 1, instant)


def fill(data: Path, *, tenant: str, progress: Callable[[str, int, int], None] | None = None) -> None:
    """Fill a new store. The last day is yesterday."""
    today = SystemClock().now() // MS_PER_DAY * MS_PER_DAY
    days = list(_days(today))
    clock = WalkingClock(days[0][0])
    with reverie.open(data, tenant=tenant, actor="demo", clock=clock) as memory:
        notes = memory.ref(DESK)
        memory.schedule("0 3 * * 1", ref=DESK)
        memory.host.use(Agents).install(memory.actor, {"name": "harbour", "version": "1.0.0", "agents": list(_AGENTS)})
        for number, (day, said) in enumerate(days):
            clock.reach(day + 20 * 3_600_000)
            notes.put_many(said)
            if number + 1 < len(days) and days[number + 1][0] - day > MS_PER_DAY:  # the weekend; the last week is hot
                clock.reach(day + 27 * 3_600_000)
                for question in _QUESTIONS:
                    notes.search(question)
                notes.dream(progress=progress)
        _talk(memory, clock)
        _disagree(memory)
        clock.reach(clock.now() + 60_000)
        notes.put("The visitor Quill asked for a call back and left a number.", subject="quill")
        memory.forget("quill")


def _days(today: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (midnight, messages) of each day of the corpus, moved so that the last one is yesterday."""
    rows = entries()
    last = from_iso(rows[-1]["created_at"]) // MS_PER_DAY * MS_PER_DAY
    moved = today - MS_PER_DAY - last
    moved -= moved % (7 * MS_PER_DAY)  # whole weeks: a Monday stays a Monday
    for day, group in groupby(rows, key=lambda row: from_iso(row["created_at"]) // MS_PER_DAY * MS_PER_DAY):
        said = []
        for row in group:
            at = from_iso(row["created_at"]) + moved
            said.append({**row, "id": row["id"].replace("demo", "desk"), "created_at": to_iso(at)})
        yield day + moved, said


def _talk(memory: reverie.Memory, clock: WalkingClock) -> None:
    """A conversation with a provider, compacted once by its server."""
    keeper = memory.host.windows.keeper(memory.actor, CHAT, subject="club-otter")
    state = keeper.open(provider="openai", base=Base.of("http://127.0.0.1:1/v1"), account="demo")
    tokens = 5200
    for number, (asked, answered) in enumerate(_TALK):
        clock.reach(clock.now() + 3_600_000)
        state.plan([{"role": "user", "content": asked}], model="demo-model", input_is="items")
        output: list[dict[str, Any]] = [
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": answered}],
            }
        ]
        if number == 2:
            output.insert(0, {"id": "cmp_1", "type": "compaction", "encrypted_content": "ZGVtbw==" * 40})
            tokens = 2100
        tokens += 1900
        usage = {"input_tokens": tokens, "output_tokens": 60, "total_tokens": tokens + 60}
        turn = state.accept({"id": f"resp_{number}", "status": "completed", "output": output, "usage": usage})
        state = keeper.save_turn(state, turn)


def _disagree(memory: reverie.Memory) -> None:
    """Two agents of a Field say different things, and a task waits."""

    def perform(agent: str, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        message = {
            "protocol": PROTOCOL,
            "version": VERSION,
            "id": memory.host.parts.ids.new(),
            "operation": operation,
            "agent_id": agent,
            "session_id": None,
            "epoch": 0,
            "payload": payload,
        }
        return memory.host.use(Field).perform(memory.actor, message)

    for agent, role in (("scout", "surveys the harbour"), ("ledger", "keeps the accounts")):
        perform(agent, "REGISTER", {"id": agent, "role": role, "interests": ["harbour"]})
    said = {"mode": "committed", "type": "finding", "intent": {"purpose": "plan the season"}}
    plate = {"score": 0.7, "reasoning": "the plate"}
    words = "The slipway carries boats up to 12 tons."
    first = perform("scout", "RECORD", {**said, "content": words, "confidence": plate})
    against = [{"type": "contradicts", "target_id": first["memory_unit_id"]}]
    perform(
        "ledger",
        "RECORD",
        {
            **said,
            "content": "The slipway carries boats up to 9 tons since the repair.",
            "confidence": {"score": 0.8, "reasoning": "the repair report"},
            "relations": against,
        },
    )
    task = {"id": "measure", "title": "Measure the slipway", "description": "Load test before the season."}
    perform("scout", "COORDINATE", {"action": "create", "task": task})
