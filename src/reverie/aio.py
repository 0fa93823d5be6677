"""Reverie for programs that use asyncio. Written by tools/generate_aio.py from the library; do not edit.

import reverie.aio

async with reverie.aio.open("./memory") as memory:
    notes = memory.ref("support-bot")
    await notes.put("The customer prefers e-mail.")
    found = await notes.search("how to reach the customer")

Every call runs in a thread of the memory's own pool, so the event loop never waits for a disk; puts that wait at the
same time share one thread and one commit. A call that is cancelled is not undone: what was already given to a thread
is carried out.
"""


# ruff: noqa: A001, A002, B008

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from reverie import library
from reverie.core.draft import When
from reverie.core.dream import DreamReport, Estimate
from reverie.core.entry import Entry, Link, Receipt, Source
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.core.ports import Clock, Embedder
from reverie.core.query import Filter, Page
from reverie.distil.request import Distiller
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Diff, Verified, Why
from reverie.jobs.timetable import Due, Schedule
from reverie.library import Age
from reverie.memory.audit import Verdict
from reverie.memory.hits import Context, SearchResult
from reverie.privacy.forget import Forgotten

T = TypeVar("T")


CALLERS = 64
"""Maximum number of concurrent calls of one memory; others wait in turn, without blocking the loop."""


def open(
    target: str | Path | None = None,
    *,
    tenant: str | None = None,
    actor: str = "library",
    key: str | None = None,
    embedder: Embedder | None = None,
    distiller: Distiller | None = None,
    clock: Clock | None = None,
) -> Opening:
    """Open a memory: a folder (made when missing), a database URL, or the address of a running host with a `key`.

    Without a target: REVERIE_URL with REVERIE_KEY, else REVERIE_DATABASE_URL, else REVERIE_DATA. The default tenant is
    `default`; on a host the key decides, and a `tenant` that is given must be the key's. `embedder`, `distiller` and
    `clock` are implementations of those ports, for an embedded memory. Safe to share between threads; close it, or use
    it as a context manager.

    `async with open(...) as memory`, or `memory = await open(...)` and `await memory.close()`.
    """
    return Opening(
        functools.partial(
            library.open,
            target,
            tenant=tenant,
            actor=actor,
            key=key,
            embedder=embedder,
            distiller=distiller,
            clock=clock,
        )
    )


class Opening:
    """A memory that is about to be opened: await it, or enter it."""

    def __init__(self, call: Callable[[], library.Memory]) -> None:
        self._call = call
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> AsyncMemory:
        pool = ThreadPoolExecutor(max_workers=CALLERS, thread_name_prefix="reverie-aio")
        try:
            memory = await asyncio.get_running_loop().run_in_executor(pool, self._call)
        except BaseException:
            pool.shutdown(wait=False)
            raise
        return AsyncMemory(memory, pool)


async def _each(lines: Iterator[T], run: Callable[..., Awaitable[T | None]]) -> AsyncIterator[T]:
    while (line := await run(functools.partial(next, lines, None))) is not None:
        yield line


class AsyncMemory:
    """One tenant's memory."""

    def __init__(self, memory: library.Memory, pool: ThreadPoolExecutor) -> None:
        self._memory = memory
        self._pool = pool
        self.dreams = AsyncDreams(self, memory.dreams)
        """Reports of dreams: list, get, diff, verify, undo."""

    def __repr__(self) -> str:
        return f"<Async{repr(self._memory)[1:]}"

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def ref(self, name: str) -> AsyncRef:
        """One named memory of the tenant, for example an agent's."""
        return AsyncRef(self, self._memory.ref(name))

    async def close(self) -> None:
        """Finish all accepted work, then release the store."""
        await self._run(self._memory.close)
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def refs(self, prefix: str = "") -> list[tuple[str, int]]:
        """Every named memory with the number of its entries; with `prefix`, those whose names begin with it."""
        return await self._run(functools.partial(self._memory.refs, prefix))

    async def forget(
        self, subject: str, *, ref: str | None = None, mentions: bool = False, preview: bool = False
    ) -> Forgotten:
        """Destroy everything about a subject, in every ref or in one. Cannot be undone.

        `mentions`: also entries that mention its words without being labelled with it. `preview` only counts.
        """
        return await self._run(
            functools.partial(self._memory.forget, subject, ref=ref, mentions=mentions, preview=preview)
        )

    async def events(self, *, after: int = 0, limit: int = 1000, types: Iterable[str] | None = None) -> list[Event]:
        """The log after a position: what happened, without text."""
        return await self._run(functools.partial(self._memory.events, after=after, limit=limit, types=types))

    async def follow(self, *, after: int | None = None, types: Iterable[str] | None = None) -> AsyncIterator[Event]:
        """Events after a position (by default: from now on) as they happen, each once and in order.

        Continues until the memory is closed.
        """
        lines = await self._run(functools.partial(self._memory.follow, after=after, types=types))
        async for line in _each(lines, self._run):
            yield line

    async def snapshot(self) -> int:
        """The log position now, for reads `as_of` it."""
        return await self._run(self._memory.snapshot)

    async def stats(self) -> Mapping[str, Any]:
        """Counts and sizes."""
        return await self._run(self._memory.stats)

    async def verify(self) -> Verdict:
        """Prove the log, and that every stored text is the one that was written."""
        return await self._run(self._memory.verify)

    async def policy(self) -> TenantPolicy:
        """The tenant's policy."""
        return await self._run(self._memory.policy)

    async def set_policy(self, **changes: Any) -> TenantPolicy:
        """Change the tenant's policy."""
        return await self._run(functools.partial(self._memory.set_policy, **changes))

    async def register_secret(self, secret_id: str, value: str) -> None:
        """Replace `value` by `[REDACTED:<secret_id>]` in everything stored from now on. Kept sealed."""
        return await self._run(functools.partial(self._memory.register_secret, secret_id, value))

    async def sweep(self) -> int:
        """Destroy entries that have expired or outlived their retention; returns their number."""
        return await self._run(self._memory.sweep)

    async def dream(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.get(id)`."""
        return await self._run(functools.partial(self._memory.dream, dream_id))

    async def undo(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.undo(id)`."""
        return await self._run(functools.partial(self._memory.undo, dream_id))

    async def diff(self, dream_id: str) -> Diff:
        """Deprecated: `memory.dreams.diff(id)`."""
        return await self._run(functools.partial(self._memory.diff, dream_id))

    async def verify_dream(self, dream_id: str) -> Verified:
        """Deprecated: `memory.dreams.verify(id)`."""
        return await self._run(functools.partial(self._memory.verify_dream, dream_id))

    async def archive(self, checksum: str) -> bytes:
        """The canonical bytes of an archive; their SHA-256 is the checksum."""
        return await self._run(functools.partial(self._memory.archive, checksum))

    async def index(self, ref: str | None = None) -> Mapping[str, Any]:
        """Return MEMORY-INDEX.json, which the next session loads at its start."""
        return await self._run(functools.partial(self._memory.index, ref))

    async def schedules(self) -> Sequence[Due]:
        """List the schedules: last outcome, next due time, and the reason when one did not run."""
        return await self._run(self._memory.schedules)

    async def schedule(
        self,
        cron: str,
        *,
        ref: str | None = None,
        zone: str | None = None,
        kind: Literal["dream", "consolidate"] = "dream",
        budget: int | None = None,
        fit: bool = True,
        older_than: Age | None = None,
        least_entries: int = 2,
        least_tokens: int = 0,
        jitter: Age | None = None,
        missed: Literal["once", "skip"] = "once",
        paused: bool = False,
    ) -> Schedule:
        """Schedule dreams of one memory or (without `ref`) of each of the tenant's. A running server runs them."""
        return await self._run(
            functools.partial(
                self._memory.schedule,
                cron,
                ref=ref,
                zone=zone,
                kind=kind,
                budget=budget,
                fit=fit,
                older_than=older_than,
                least_entries=least_entries,
                least_tokens=least_tokens,
                jitter=jitter,
                missed=missed,
                paused=paused,
            )
        )

    async def unschedule(self, schedule_id: str) -> None:
        """Remove a schedule."""
        return await self._run(functools.partial(self._memory.unschedule, schedule_id))

    async def export(self, *, ref: str | None = None) -> AsyncIterator[bytes]:
        """The lines of a bundle."""
        lines = await self._run(functools.partial(self._memory.export, ref=ref))
        async for line in _each(lines, self._run):
            yield line


class AsyncDreams:
    """The dreams of a memory: `memory.dreams`."""

    def __init__(self, memory: AsyncMemory, dreams: library.Dreams) -> None:
        self._dreams = dreams
        self._run = memory._run

    async def __call__(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Deprecated: `memory.dreams.list(ref)`."""
        return await self._run(functools.partial(self._dreams, ref, limit=limit))

    async def list(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Reports of dreams, newest first."""
        return await self._run(functools.partial(self._dreams.list, ref, limit=limit))

    async def get(self, dream_id: str) -> DreamReport:
        """The report of one dream. Raises NotFound."""
        return await self._run(functools.partial(self._dreams.get, dream_id))

    async def undo(self, dream_id: str) -> DreamReport:
        """Put the sources of a dream back exactly, while they exist. All of it, or nothing."""
        return await self._run(functools.partial(self._dreams.undo, dream_id))

    async def diff(self, dream_id: str) -> Diff:
        """List the entries by fate: kept, shortened, merged, retired."""
        return await self._run(functools.partial(self._dreams.diff, dream_id))

    async def verify(self, dream_id: str) -> Verified:
        """Dream again from the same sources and compare bytes. Changes nothing."""
        return await self._run(functools.partial(self._dreams.verify, dream_id))


class AsyncRef:
    """One named memory."""

    def __init__(self, memory: AsyncMemory, ref: library.Ref) -> None:
        self.memory = memory
        self.name = ref.name
        self._ref = ref
        self._run = memory._run

    def __repr__(self) -> str:
        return f"<AsyncRef {self.name} of {self.memory!r}>"

    async def put(
        self,
        content: str,
        *,
        kind: str = "note",
        tags: Iterable[str] = (),
        subject: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        id: str | None = None,
        source: Source | Mapping[str, Any] | None = None,
        created_at: When | None = None,
        expires_at: When | None = None,
        pinned: bool = False,
        replaces: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one entry. Returns after it is durable.

        `replaces`, one of its tags: readable entries with this tag are deleted in the same transaction.
        """
        return await self._ref._put(
            self.memory._pool,
            content,
            kind=kind,
            tags=tags,
            subject=subject,
            attributes=attributes,
            id=id,
            source=source,
            created_at=created_at,
            expires_at=expires_at,
            pinned=pinned,
            replaces=replaces,
            idempotency_key=idempotency_key,
        )

    async def put_many(
        self, entries: Iterable[str | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[Receipt]:
        """Store many entries in one transaction: all of them, or none."""
        return await self._run(functools.partial(self._ref.put_many, entries, idempotency_key=idempotency_key))

    async def supersede(
        self,
        entry_id: str,
        content: str,
        *,
        kind: str = "note",
        tags: Iterable[str] = (),
        subject: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        expected: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store an entry in place of a readable one, in one transaction: the new one links to the old one.

        The old entry leaves every read and rests in cold storage. `expected` is the version you saw. Raises NotFound,
        and Conflict when the entry has changed.
        """
        return await self._run(
            functools.partial(
                self._ref.supersede,
                entry_id,
                content,
                kind=kind,
                tags=tags,
                subject=subject,
                attributes=attributes,
                expected=expected,
                idempotency_key=idempotency_key,
            )
        )

    async def get(self, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound."""
        return await self._run(functools.partial(self._ref.get, entry_id, as_of=as_of, cold=cold))

    async def list(
        self,
        where: Filter = Filter(),
        *,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Page[Entry]:
        """Entries newest first; follow `cursor` to the end.

        `since` and `until` are times or words such as "yesterday", "3d" and "2026-11-01", read in the time zone `zone`.
        """
        return await self._run(
            functools.partial(
                self._ref.list, where, limit=limit, cursor=cursor, as_of=as_of, since=since, until=until, zone=zone
            )
        )

    async def entries(
        self,
        where: Filter = Filter(),
        *,
        as_of: int | None = None,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> AsyncIterator[Entry]:
        """Every entry, newest first, read page by page."""
        lines = await self._run(
            functools.partial(self._ref.entries, where, as_of=as_of, since=since, until=until, zone=zone)
        )
        async for line in _each(lines, self._run):
            yield line

    async def search(
        self,
        query: str,
        *,
        where: Filter = Filter(),
        limit: int = 10,
        mode: Literal["hybrid", "words", "meaning"] = "hybrid",
        explain: bool = False,
        include: Literal["superseded"] | None = None,
        zone: str | None = None,
        deep: Literal["auto", "never", "always"] = "auto",
        since: When | None = None,
        until: When | None = None,
    ) -> SearchResult:
        """The passages that best answer a query, best first; `weak` marks those that hardly do.

        `since` and `until` are times or words ("yesterday", "3d", "2026-11-01"). They and dates in the query are read
        in the time zone `zone`, such as "Europe/Lisbon"; by default that of the tenant's policy. With
        `include="superseded"`, superseded entries follow their successors. When nothing answers well, the sources of
        dreams are searched too: such hits are `cold` and name the `dream` that holds them. With `deep="always"` or
        `"never"` they are searched always, or never.
        """
        return await self._run(
            functools.partial(
                self._ref.search,
                query,
                where=where,
                limit=limit,
                mode=mode,
                explain=explain,
                include=include,
                zone=zone,
                deep=deep,
                since=since,
                until=until,
            )
        )

    async def context(
        self,
        purpose: str,
        *,
        budget: int = 2000,
        where: Filter = Filter(),
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Context:
        """The best entries for a purpose within a token budget, ready to paste into a prompt."""
        return await self._run(
            functools.partial(
                self._ref.context, purpose, budget=budget, where=where, since=since, until=until, zone=zone
            )
        )

    async def pin(self, entry_id: str) -> Entry:
        """Keep this entry out of dreams."""
        return await self._run(functools.partial(self._ref.pin, entry_id))

    async def unpin(self, entry_id: str) -> Entry:
        """Let dreams take it again."""
        return await self._run(functools.partial(self._ref.unpin, entry_id))

    async def archive(self, entry_id: str) -> Entry:
        """Take it out of recall and keep it."""
        return await self._run(functools.partial(self._ref.archive, entry_id))

    async def retract(self, entry_id: str) -> Entry:
        """Withdraw it."""
        return await self._run(functools.partial(self._ref.retract, entry_id))

    async def restore(self, entry_id: str) -> Entry:
        """Make an archived, retracted or deleted entry readable again."""
        return await self._run(functools.partial(self._ref.restore, entry_id))

    async def delete(self, entry_id: str) -> Entry:
        """Take it out of every read; its text is destroyed after the undo window."""
        return await self._run(functools.partial(self._ref.delete, entry_id))

    async def renew(self, entry_id: str, expires_at: When) -> Entry:
        """Change its expiry."""
        return await self._run(functools.partial(self._ref.renew, entry_id, expires_at))

    async def erase(self, entry_id: str) -> int:
        """Destroy its text now. Cannot be undone."""
        return await self._run(functools.partial(self._ref.erase, entry_id))

    async def links(self, entry_id: str, *, incoming: bool = False) -> Sequence[Link]:
        """The links from an entry, or to it."""
        return await self._run(functools.partial(self._ref.links, entry_id, incoming=incoming))

    async def plan_dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str | None = None,
        after: Literal["cold", "archive", "purge"] = "cold",
        older_than: Age | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        session: str | None = None,
    ) -> Estimate:
        """Estimate the effect of `dream` with the same arguments now. Changes nothing."""
        return await self._run(
            functools.partial(
                self._ref.plan_dream,
                budget,
                fit=fit,
                distiller=distiller,
                after=after,
                older_than=older_than,
                kinds=kinds,
                tags=tags,
                session=session,
            )
        )

    async def dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str | None = None,
        after: Literal["cold", "archive", "purge"] = "cold",
        older_than: Age | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        session: str | None = None,
        instructions: str | None = None,
        progress: Progress | None = None,
    ) -> DreamReport | None:
        """Distil many entries into one, within `budget` tokens of input and output. None: nothing to do.

        All or nothing. Pinned and held entries stay as they are. `fit` takes the oldest part that the budget can hold;
        call it again for the others. A dream without a budget does so where not everything fits. `instructions`
        say what to keep, to drop and how to word it: a model reads them, and `report.instructions_applied` says
        whether one did. `progress(step, done, total)` is called as it proceeds.
        """
        return await self._run(
            functools.partial(
                self._ref.dream,
                budget,
                fit=fit,
                distiller=distiller,
                after=after,
                older_than=older_than,
                kinds=kinds,
                tags=tags,
                session=session,
                instructions=instructions,
                progress=progress,
            )
        )

    async def why(self, entry_id: str) -> Why:
        """The tree from an entry down to the original words it was made from."""
        return await self._run(functools.partial(self._ref.why, entry_id))

    async def derived(self, entry_id: str) -> Sequence[str]:
        """Ids of everything made from this entry, directly or through others."""
        return await self._run(functools.partial(self._ref.derived, entry_id))

    async def consolidate(self) -> Consolidated:
        """Merge duplicates and supersede outdated statements. A second pass changes nothing."""
        return await self._run(self._ref.consolidate)
