"""The async facade: up to date, complete, and able to serve many callers at once."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import reverie.aio
from reverie import library

ROOT = Path(__file__).resolve().parents[2]


def test_the_file_is_what_the_generator_writes() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_aio.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_method_is_there_with_the_same_signature_and_docstring() -> None:
    for plain, wrapped in ((library.Memory, reverie.aio.AsyncMemory), (library.Ref, reverie.aio.AsyncRef)):
        for name, method in inspect.getmembers(plain, inspect.isfunction):
            if name.startswith("_"):
                continue
            other = getattr(wrapped, name)
            assert other.__doc__ == method.__doc__, name
            assert list(inspect.signature(other).parameters) == list(inspect.signature(method).parameters), name


def test_many_callers_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with await reverie.aio.open(tmp_path / "data") as memory:
            notes = memory.ref("support-bot")
            receipts = await asyncio.gather(*(notes.put(f"Note number {n} about parcels.") for n in range(100)))
            assert len({receipt.id for receipt in receipts}) == 100
            found = await notes.search("parcels", limit=5)
            assert len(found.hits) == 5
            assert (await memory.verify()).ok
            lines = [line async for line in memory.export()]
            assert sum(b'"type":"entry"' in line for line in lines) == 100

    asyncio.run(story())


def test_a_failed_open_leaves_no_threads_behind(tmp_path: Path) -> None:
    import threading

    async def story() -> None:
        try:
            await reverie.aio.open(tmp_path, tenant="Not A Tenant")
        except reverie.ReverieError:
            return
        raise AssertionError("the tenant's name was accepted")

    asyncio.run(story())
    for thread in threading.enumerate():
        if thread.name.startswith("reverie-aio"):
            thread.join(10)
            assert not thread.is_alive()
