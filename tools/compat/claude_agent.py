"""The conformance kit of the Claude Agent SDK, run on the session store."""

from __future__ import annotations

import asyncio
import tempfile

from claude_agent_sdk.testing import run_session_store_conformance

import reverie
from reverie.integrations.claude_agent import ReverieSessionStore


def test_the_kit_passes() -> None:
    """All fourteen contracts: no optional method is left out."""
    asyncio.run(
        run_session_store_conformance(lambda: ReverieSessionStore(reverie.open(tempfile.mkdtemp())))  # type: ignore[arg-type]
    )


def test_a_large_line_and_a_line_twice() -> None:
    """A tool's answer of 300 KB comes back whole; a line that is sent again is stored once."""

    async def go() -> None:
        store = ReverieSessionStore(reverie.open(tempfile.mkdtemp()))
        key = {"project_key": "-home-ann-" + "x" * 200, "session_id": "s", "subpath": "subagents/agent-1"}
        large = {
            "type": "user",
            "uuid": "u1",
            "message": {"content": [{"type": "tool_result", "content": "ls " * 100_000}]},
        }
        await store.append(key, [large])
        await store.append(key, [large, {"type": "assistant", "uuid": "u2", "message": {"content": "Done."}}])
        loaded = await store.load(key)
        assert loaded is not None
        assert [line["uuid"] for line in loaded] == ["u1", "u2"]
        assert loaded[0] == large
        assert await store.list_subkeys(key) == ["subagents/agent-1"]

    asyncio.run(go())
