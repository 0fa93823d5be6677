"""Cost of every operation: rows and transactions at 100 entries and at many more are the same, or the table says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REDACTOR
from tests.counting import Counted
from tests.postgres import shared_server

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Source
from reverie.core.run import DISPATCH
from reverie.host import Host
from reverie.providers.static import StaticEmbedder
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.store.cipher import FileCipher
from reverie.store.contract import Store
from reverie.store.postgres import PostgresStore
from reverie.store.sqlite import SqliteStore

FEW = 100
MANY = {"sqlite": 10_000, "postgres": 2_000}
REF = "akashik"
"""The memory is also the Field, so that both kinds of operation see all entries."""
ACTOR = Actor(tenant="acme", id="local:test")
SURE = {"score": 0.8, "reasoning": "seen"}
Act = Callable[["World"], object]


@dataclass
class World:
    """A host with so many entries, some of which belong to a subject and a dream of their own."""

    host: Host
    counted: Counted
    size: int
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def fill(self) -> None:
        host = self.host
        for name in ("me", "mate"):
            self.send("REGISTER", {"id": name, "role": "builder"}, name)
        drafts = [
            Draft(
                f"Crate {n:x} of hall {n % 97} holds {n % 13} valves.",
                kind="finding",
                tags=("crate",),
                source=Source(actor=f"clerk{n % 7}"),
                attributes={"mode": "committed", "relations": 0},
            )
            for n in range(self.size)
        ]
        for start in range(0, self.size, 500):
            host.entries.put(ACTOR, REF, drafts[start : start + 500])
        for n in range(6):
            host.entries.put(ACTOR, "small", [Draft(f"Lena wrote letter {n} about boat {n * 3}.", subject="lena")])
        host.agents.install(ACTOR, {"agentId": "clerk", "persona": "A clerk", "modelClass": "general"})

    def one(self, text: str = "", ref: str = REF) -> str:
        """A new entry, made outside the count."""
        said = text or f"A new crate, number {next(self.numbers):x}, came in."
        return self.host.entries.put(ACTOR, ref, [Draft(said)])[0].id

    def send(self, operation: str, payload: dict[str, Any], agent: str = "me") -> Any:
        return self.host.field.perform(
            ACTOR,
            {
                "protocol": "akashik",
                "version": "0.1.0",
                "id": f"m{next(self.numbers)}",
                "operation": operation,
                "agent_id": agent,
                "session_id": None,
                "epoch": 0,
                "payload": payload,
            },
        )

    def unit(self, **more: Any) -> dict[str, Any]:
        content = f"The weir {next(self.numbers):x} was painted."
        return {"type": "finding", "content": content, "intent": {"purpose": "test"}, "confidence": SURE, **more}

    def cost(self, act: Act) -> tuple[int, int]:
        act(self)  # what is cached is cached
        rows, transactions = self.counted.rows, self.counted.transactions
        act(self)
        return self.counted.rows - rows, self.counted.transactions - transactions


def open_world(folder: Path, store: Store, size: int) -> World:
    counted = Counted(store)
    parts: dict[str, Any] = {"redactor": REDACTOR, "embedder": StaticEmbedder(), "tokens": TokenCounter()}
    host = Host(Services(store=counted, cipher=FileCipher(folder / "key"), **parts))
    world = World(host, counted, size)
    world.fill()
    return world


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    stores: list[Store] = []
    made = []
    for size in (FEW, MANY[request.param]):
        folder = tmp_path_factory.mktemp("costs")
        if request.param == "sqlite":
            stores.append(SqliteStore(folder / "memory.db"))
        else:
            stores.append(PostgresStore(shared_server(tmp_path_factory).make_database()))
        made.append(open_world(folder, stores[-1], size))
    yield made[0], made[1]
    for store in stores:
        store.close()


def _forget(world: World) -> object:
    subject = f"guest{next(world.numbers)}"
    world.host.entries.put(ACTOR, REF, [Draft(f"{subject} stayed {n} nights.", subject=subject) for n in range(3)])
    return world.host.forget.forget(ACTOR, subject)


def _dream(world: World) -> object:
    ref = f"room{next(world.numbers)}"
    world.host.entries.put(ACTOR, ref, [Draft(f"Lamp {n} of the room burns {n * 7} watts.") for n in range(6)])
    return world.host.dreams.run(ACTOR, DreamPlan(ref=ref, least_entries=1))


OPERATIONS: dict[str, Act] = {
    "put": lambda w: w.one(),
    "put of fifty": lambda w: w.host.entries.put(ACTOR, REF, [Draft(f"Box {next(w.numbers):x}") for _ in range(50)]),
    "get": lambda w: w.host.reader.get(ACTOR, "small", w.one(ref="small")),
    "list": lambda w: w.host.reader.page(ACTOR, REF, limit=20),
    "events": lambda w: w.host.reader.events(ACTOR, after=0, limit=20),
    "search": lambda w: w.host.search.search(ACTOR, REF, "Which hall holds crate 1f?"),
    "search by words": lambda w: w.host.search.search(ACTOR, REF, "valves of hall 12", mode="words"),
    "context": lambda w: w.host.search.context(ACTOR, REF, "crates of hall 12", budget=500),
    "pin": lambda w: w.host.lifecycle.pin(ACTOR, REF, w.one()),
    "archive": lambda w: w.host.lifecycle.archive(ACTOR, REF, w.one()),
    "delete": lambda w: w.host.lifecycle.delete(ACTOR, REF, w.one()),
    "forget": _forget,
    "forget, preview": lambda w: w.host.forget.forget(ACTOR, "lena", preview=True),
    "dream of a small memory": _dream,
    "dreams": lambda w: w.host.lineage.page(ACTOR, limit=10),
    "sweep": lambda w: w.host.lifecycle.sweep(ACTOR),
    "schedules": lambda w: w.host.schedules.all(ACTOR),
    "policy": lambda w: w.host.rules.set_policy(ACTOR, {"max_tags": 40}),
    "OpenWOP run": lambda w: w.host.runs.start(ACTOR, "conformance-noop", fixtures=True),
    "OpenWOP agents": lambda w: w.host.agents.all(ACTOR),
    "OpenWOP dispatch": lambda w: w.host.runs.start(
        ACTOR, DISPATCH, inputs={"agentId": "clerk", "task": "Which hall holds crate 1f?", "memoryRef": "small"}
    ),
    "OpenWOP workspace": lambda w: w.host.workspace.put(ACTOR, f"f{next(w.numbers)}.md", "text"),
    "Akashik RECORD": lambda w: w.send("RECORD", w.unit()),
    "Akashik ATTUNE": lambda w: w.send("ATTUNE", {"scope": {"role": "builder", "max_units": 5}}),
    "Akashik DETECT list": lambda w: w.send("DETECT", {"mode": "list"}),
    "Akashik COORDINATE": lambda w: w.send(
        "COORDINATE", {"action": "create", "task": {"id": f"t{next(w.numbers)}", "title": "x"}}
    ),
    "Akashik status": lambda w: w.host.field.status(ACTOR),
}
"""Operations whose rows and transactions do not follow the size of the memory."""

SEARCHES = {"search", "search by words", "context", "Akashik RECORD", "Akashik ATTUNE"}
CANDIDATES = 400
"""A search looks at a fixed number of candidates, which a hundred entries do not fill."""

GROWS: dict[str, tuple[Act, str]] = {
    "dream plan": (
        lambda w: w.host.dreams.plan(ACTOR, DreamPlan(ref=REF)),
        "a plan counts the tokens of every entry it would take",
    ),
    "Akashik HANDOFF": (
        lambda w: w.send("HANDOFF", {"action": "initiate", "task_id": "t", "to_agent": "mate"}),
        "units of a task have no index; they are looked for on a snapshot, outside the write",
    ),
    "audit verify": (lambda w: w.host.audit.verify(ACTOR), "every event is hashed again"),
}
"""Operations that read more when there is more, each with its reason. One that stops growing belongs into the other table."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_cost_does_not_follow_the_size_of_the_memory(worlds: tuple[World, World], name: str) -> None:
    small, large = (world.cost(OPERATIONS[name]) for world in worlds)
    assert large[1] == small[1], "transactions"
    assert large[0] <= small[0] + (CANDIDATES if name in SEARCHES else 4), "rows"


@pytest.mark.parametrize("name", GROWS)
def test_what_grows_is_listed_with_its_reason(worlds: tuple[World, World], name: str) -> None:
    act, reason = GROWS[name]
    small, large = (world.cost(act)[0] for world in worlds)
    assert reason
    assert large > small * 2, f"{name} no longer grows: move it to OPERATIONS"
