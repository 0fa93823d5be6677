"""How a peer is driven: a child process that reads one JSON command per line and answers one JSON line.

Standard library only, since it runs inside every peer's own environment. All peers get the same loops and the same
entries; a peer says only how it stores, gets, lists and searches.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bench.peers.corpus import memories, questions

DIMENSIONS = 256


class Peer(Protocol):
    """A memory store under measurement. Writes return when they are as durable as the peer can make them."""

    def put(self, text: str) -> str:
        """Store one entry; its id."""

    def put_many(self, texts: list[str]) -> list[str]:
        """Store entries at once, the fastest way the peer has; their ids."""

    def get(self, entry_id: str) -> str:
        """The text of an entry."""

    def newest(self, count: int) -> int:
        """List `count` entries, newest first where the peer has an order; how many came."""

    def search(self, query: str) -> list[str]:
        """The texts of the best ten, best first."""

    def close(self) -> None:
        """Release every resource."""


@runtime_checkable
class AsyncPeer(Protocol):
    """A peer that has a form for asyncio as well."""

    def opened(self, folder: Path) -> AbstractAsyncContextManager[Callable[[str], Awaitable[object]]]:
        """What stores one entry."""


def serve(make: Callable[[Path], Peer], versions: dict[str, str]) -> None:
    """Answer commands until there are none. Whatever a library prints goes to the error stream."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(versions), file=answers, flush=True)
    loaded = _Loaded(make)
    for line in sys.stdin:
        command = json.loads(line)
        act = command.pop("do")
        try:
            answer = getattr(loaded, act)(**command) if hasattr(loaded, act) else _ACTS[act](make, **command)
        except Exception as fault:
            answer = {"error": f"{type(fault).__name__}: {str(fault)[:200]}"}
        print(json.dumps(answer), file=answers, flush=True)
    loaded.close()


class _Watch:
    """Wall and processor time of what ran, by operation. Processor time counts all threads of the process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def figures(self, count: int) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"per_second": count / wall, "cpu_us": cpu / count * 1e6}


def single(make: Callable[[Path], Peer], folder: str, count: int, seconds: float) -> dict[str, Any]:
    """One client, one entry per call, up to `count` entries or `seconds`."""
    with _fresh(make, folder) as peer:
        texts = memories(count + 20, seed=11)
        for text in texts[:20]:
            peer.put(text)
        watch, until, done = _Watch(), time.perf_counter() + seconds, 0
        for text in texts[20:]:
            peer.put(text)
            done += 1
            if time.perf_counter() > until:
                break
        return watch.figures(done)


def clients(make: Callable[[Path], Peer], folder: str, threads: int, count: int, seconds: float) -> dict[str, Any]:
    """Many clients (threads), one entry per call, together up to `count` entries or `seconds`."""
    with _fresh(make, folder) as peer:
        texts = memories(count, seed=12)
        peer.put(texts[0])
        done = [0] * threads
        faults: list[str] = []
        start = threading.Barrier(threads + 1)
        end = [0.0]

        def work(number: int) -> None:
            own = texts[number::threads]
            start.wait()
            try:
                for text in own:
                    peer.put(text)
                    done[number] += 1
                    if time.perf_counter() > end[0]:
                        break
            except Exception as fault:
                faults.append(f"{type(fault).__name__}: {str(fault)[:120]}")

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        end[0] = time.perf_counter() + seconds
        watch = _Watch()
        start.wait()
        for worker in workers:
            worker.join()
        if faults:
            return {"error": f"{len(faults)} of {threads} clients failed: {faults[0]}"}
        return watch.figures(sum(done))


def tasks(make: Callable[[Path], Peer], folder: str, tasks: int, count: int, seconds: float) -> dict[str, Any]:
    """Many clients in one event loop, for peers that have a form for asyncio (`opened`: a put that is awaited)."""
    with _fresh(make, folder) as peer:
        if not isinstance(peer, AsyncPeer):
            return {"error": "has no form for asyncio"}
        texts = memories(count, seed=15)

        async def story() -> dict[str, Any]:
            async with peer.opened(Path(folder)) as put:
                await put(texts[0])
                watch, until, done = _Watch(), time.perf_counter() + seconds, [0] * tasks

                async def work(number: int) -> None:
                    for text in texts[number::tasks]:
                        await put(text)
                        done[number] += 1
                        if time.perf_counter() > until:
                            break

                await asyncio.gather(*map(work, range(tasks)))
                return watch.figures(sum(done))

        return asyncio.run(story())


def batches(make: Callable[[Path], Peer], folder: str, size: int, count: int, seconds: float) -> dict[str, Any]:
    """One client, `size` entries per call, up to `count` calls or `seconds`."""
    with _fresh(make, folder) as peer:
        texts = memories(size * count, seed=13)
        peer.put_many(texts[:10])
        watch, until, done = _Watch(), time.perf_counter() + seconds, 0
        for at in range(0, len(texts), size):
            peer.put_many(texts[at : at + size])
            done += size
            if time.perf_counter() > until:
                break
        return watch.figures(done)


def answers(make: Callable[[Path], Peer], folder: str, notes: list[str], asked: list[str]) -> dict[str, Any]:
    """What each question finds among the notes: the texts of the first three. Vectors are those of a real model."""
    global _model
    _model = _static()
    with _fresh(make, folder) as peer:
        for note in notes:  # one by one: the order of notes is their order in time
            peer.put(note)
        return {"found": [peer.search(question)[:3] for question in asked]}


_ACTS: dict[str, Callable[..., dict[str, Any]]] = {
    "single": single,
    "clients": clients,
    "tasks": tasks,
    "batches": batches,
    "answers": answers,
}


class _Loaded:
    """One store that grows between measurements of reading."""

    def __init__(self, make: Callable[[Path], Peer]) -> None:
        self._make = make
        self._peer: Peer | None = None
        self._ids: list[str] = []

    def load(self, folder: str, entries: int, seconds: float) -> dict[str, Any]:
        """Grow to `entries`, unless that takes longer than `seconds`; how many there are."""
        if self._peer is None:
            Path(folder).mkdir(parents=True)
            self._peer = self._make(Path(folder))
        until = time.perf_counter() + seconds
        texts = memories(entries, seed=14)
        while len(self._ids) < entries and time.perf_counter() < until:
            size = min(500 if self._ids else 50, entries - len(self._ids))
            self._ids += self._peer.put_many(texts[len(self._ids) : len(self._ids) + size])
        return {"entries": len(self._ids)}

    def size(self, folder: str) -> dict[str, Any]:
        """Bytes on disk for each entry, with what a reader needs beside the database, and memory of the process."""
        used = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        room = sum(path.stat().st_size for path in Path(folder).rglob("*-reserve"))  # room kept back, not used
        text = sum(len(one.encode()) for one in memories(len(self._ids), seed=14))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        count = len(self._ids)
        return {"bytes": (used - room) / count, "text": text / count, "process_mb": peak / 1e6}

    def read(self, gets: int, lists: int) -> dict[str, Any]:
        """Entries by id, spread over the store, and lists of 100."""
        peer = self._peer
        assert peer is not None
        step = max(1, len(self._ids) // gets)
        ids = self._ids[::step][:gets]
        peer.get(ids[0])
        peer.newest(100)
        watch = _Watch()
        for entry_id in ids:
            assert peer.get(entry_id)
        got = watch.figures(len(ids))
        watch = _Watch()
        for _ in range(lists):
            assert peer.newest(100) == 100
        return {"get": got, "list": watch.figures(lists)}

    def find(self, queries: int, seconds: float) -> dict[str, Any]:
        """Searches for the best ten: the spread of their times."""
        peer = self._peer
        assert peer is not None
        asked = questions(queries + 5)
        for query in asked[:5]:
            peer.search(query)
        times: list[float] = []
        watch, until, found = _Watch(), time.perf_counter() + seconds, 0
        for query in asked[5:]:
            start = time.perf_counter()
            found += len(peer.search(query))
            times.append(time.perf_counter() - start)
            if time.perf_counter() > until:
                break
        times.sort()
        return {
            "p50_ms": times[len(times) // 2] * 1000,
            "p99_ms": times[min(len(times) - 1, int(len(times) * 0.99))] * 1000,
            "cpu_us": watch.figures(len(times))["cpu_us"],
            "queries": len(times),
            "hits": found / len(times),
        }

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()


class _fresh:  # noqa: N801  (used as `with _fresh(...)`)
    """A peer on an empty folder, gone afterwards."""

    def __init__(self, make: Callable[[Path], Peer], folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True)
        self._peer = make(self._folder)

    def __enter__(self) -> Peer:
        return self._peer

    def __exit__(self, *_: object) -> None:
        self._peer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


_model: Callable[[str], list[float]] | None = None


def _static() -> Callable[[str], list[float]]:
    """Reverie's built-in table of word vectors, which needs numpy: every peer gets the same model."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
    from reverie.providers.static import LENGTH, StaticEmbedder

    table = StaticEmbedder()
    return lambda text: [number / LENGTH for number in memoryview(table.embed([text])[0]).cast("b")]


def embed(text: str) -> list[float]:
    """Words hashed into a vector: stands in for a model where a peer wants one. Costs next to nothing."""
    if _model is not None:
        return _model(text)
    vector = [0.0] * DIMENSIONS
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector
