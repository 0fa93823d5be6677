"""The async facade: up to date, complete, and able to serve many callers at once."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import reverie.aio
from reverie import library
from reverie.core.errors import Invalid, StoreUnavailable

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
            said = (inspect.getdoc(method) or "").partition("\n\n>>>")[0]  # examples are for the library that blocks
            assert inspect.getdoc(other) == said, name
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


def test_puts_that_wait_together_share_a_commit_and_nobodys_fault(tmp_path: Path) -> None:
    async def story() -> None:
        async with await reverie.aio.open(tmp_path / "data") as memory:
            notes = memory.ref("notes")
            texts = ["", *(f"Parcel {n} is on its way." for n in range(200)), "\x00"]
            answers = await asyncio.gather(*map(notes.put, texts), return_exceptions=True)
            assert [type(answers[0]), type(answers[-1])] == [Invalid, Invalid]
            stored = [answer for answer in answers if not isinstance(answer, BaseException)]
            assert sorted(receipt.seq for receipt in stored) == list(range(1, 201))
            same = [await notes.put("Once only.", idempotency_key="k") for _ in range(2)]
            assert [receipt.replayed for receipt in same] == [False, True]
            assert (await memory.verify()).ok

    asyncio.run(story())


def test_a_put_after_the_end_is_refused_and_hangs_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        memory = await reverie.aio.open(tmp_path / "data")
        notes = memory.ref("notes")
        await notes.put("In time.")
        await memory.close()
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(notes.put("Too late."), 30)

    asyncio.run(story())
