"""A host of a given size, for tests of what operations cost there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from tests.conftest import EMBEDDER, REDACTOR
from tests.counting import Counted

from reverie.app import build_app
from reverie.core.actor import Actor
from reverie.core.entry import Draft, Source
from reverie.core.run import DISPATCH
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.services import Services
from reverie.settings import Settings
from reverie.store.cipher import FileCipher
from reverie.store.contract import Store

REF = "akashik"
"""The memory is also the Field, so that both kinds of operation see all entries."""
ACTOR = Actor(tenant="acme", id="local:test")
API = "/v1/host/reverie"
MEMORY = f"{API}/memory/{REF}"
STORES = "/anthropic/v1/memory_stores"
MEM0 = "/mem0"
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
            self.send("REGISTER", {"id": name, "role": "builder", "authority_level": 10}, name)
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

    @cached_property
    def _app(self) -> Any:
        return build_app(Settings.load({"REVERIE_RATE_PER_SECOND": "0"}, data=":memory:"), self.host)

    @cached_property
    def _key(self) -> str:
        return self.host.keys.create(ACTOR.tenant).key

    def ask(self, method: str, path: str, body: Any = None, *, text: str | None = None, **headers: str) -> Any:
        """The answer to a request, which must succeed."""

        async def go() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self._app)
            sent = {"Authorization": f"Bearer {self._key}", "Accept": "application/json", **headers}
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
                return await client.request(method, path, json=body, content=text, headers=sent)

        answer = asyncio.run(go())
        assert answer.is_success, (method, path, answer.status_code, answer.text[:500])
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else answer.text

    def post(self, path: str, body: Any = None) -> Any:
        return self.ask("POST", path, {} if body is None else body)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def new(self) -> int:
        return next(self.numbers)

    def send(self, operation: str, payload: dict[str, Any], agent: str = "me") -> Any:
        """One message of an agent to the Field."""
        envelope = {"protocol": "akashik", "version": "0.1.0", "id": f"m{self.new()}", "operation": operation}
        envelope |= {"agent_id": agent, "session_id": None, "epoch": 0, "payload": payload}
        return self.post(f"/akashik/v1/{operation.lower()}", envelope)

    def tool(self, path: str, name: str, **arguments: Any) -> Any:
        """One call of an MCP tool."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        answer = self.ask("POST", path, call, Accept="application/json, text/event-stream")
        assert not answer["result"]["isError"], answer
        return answer

    def dreamt(self) -> tuple[str, str]:
        """Ref and id of a new dream over a small memory."""
        ref = f"room{self.new()}"
        lamps = [
            {"content": f"Lamp {n} of the room burns {n * 7} watts and was bought in {1990 + n}."} for n in range(6)
        ]
        self.post(f"{API}/memory/{ref}/entries", {"entries": lamps})
        return ref, self.post(f"{API}/memory/{ref}/dreams", {"fit": False})["id"]

    def run(self) -> str:
        """The id of a run of OpenWOP that is over."""
        body = {"workflowId": DISPATCH, "inputs": {"agentId": "clerk", "task": "Which hall?", "memoryRef": "small"}}
        return str(self.post("/v1/runs", body)["runId"])

    def store(self) -> str:
        """The path of a new memory store."""
        return f"{STORES}/{self.post(STORES, {'name': f'store {self.new()}'})['id']}"

    def file(self, store: str | None = None) -> str:
        """The path of a new memory in a store."""
        where = store or self.store()
        made = self.post(f"{where}/memories", {"path": f"/f{self.new()}.md", "content": "Prefers e-mail."})
        return f"{where}/memories/{made['id']}"

    def remembered(self) -> str:
        """The id of a memory of mem0."""
        body = {
            "messages": [{"role": "user", "content": f"I own boat {self.new():x}."}],
            "user_id": "ana",
            "infer": False,
        }
        return str(self.post(f"{MEM0}/v3/memories/add/", body)["results"][0]["id"])

    def unit(self, **more: Any) -> dict[str, Any]:
        content = f"The weir {next(self.numbers):x} was painted."
        return {"type": "finding", "content": content, "intent": {"purpose": "test"}, "confidence": SURE, **more}

    def cost(self, act: Act) -> tuple[int, int]:
        """Rows and transactions of an act; where it returns a call, of that call alone."""
        for _ in range(2):  # what is cached is cached
            rows, transactions = self.counted.rows, self.counted.transactions
            request = act(self)
            if callable(request):
                rows, transactions = self.counted.rows, self.counted.transactions
                request()
        return self.counted.rows - rows, self.counted.transactions - transactions


def open_world(folder: Path, store: Store, size: int) -> World:
    counted = Counted(store)
    parts: dict[str, Any] = {"redactor": REDACTOR, "embedder": EMBEDDER, "tokens": TokenCounter()}
    host = Host(Services(store=counted, cipher=FileCipher(folder / "key"), **parts))
    world = World(host, counted, size)
    world.fill()
    return world
