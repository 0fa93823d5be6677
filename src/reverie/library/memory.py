"""Reverie as a library, embedded or on a running host.

import reverie

memory = reverie.open("./memory")                             # or reverie.open("http://127.0.0.1:8484", key=...)
notes = memory.ref("support-bot")
notes.put("The customer prefers e-mail.", tags=["preference"])
for hit in notes.search("how to reach the customer"):
    print(hit.score, hit.text)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from reverie.app import build_host
from reverie.client import connect
from reverie.core.actor import Actor
from reverie.core.clock import parse_duration
from reverie.core.draft import When, to_draft, to_ms
from reverie.core.dream import After, DreamPlan, DreamReport, Estimate, Selector
from reverie.core.entry import Entry, Link, Receipt, Source, valid_tenant
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.core.ports import Clock, Embedder
from reverie.core.query import Filter, Page
from reverie.distil.request import Distiller
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Diff, Verified, Why
from reverie.host import Host
from reverie.jobs.timetable import Due, Schedule
from reverie.memory.audit import Verdict
from reverie.memory.search import Context, SearchResult
from reverie.privacy.forget import Forgotten
from reverie.settings import Settings, client_setting

if TYPE_CHECKING:
    from concurrent.futures import Executor

Age = timedelta | str | int
_PAGE = 500


def open(  # noqa: A001
    target: str | Path | None = None,
    *,
    tenant: str | None = None,
    actor: str = "library",
    key: str | None = None,
    embedder: Embedder | None = None,
    distiller: Distiller | None = None,
    clock: Clock | None = None,
) -> Memory:
    """Open a memory: a folder (made when missing), a database URL, or the address of a running host with a `key`.

    Without a target: REVERIE_URL with REVERIE_KEY, else REVERIE_DATABASE_URL, else REVERIE_DATA. The default tenant is
    `default`; on a host the key decides, and a `tenant` that is given must be the key's. `embedder`, `distiller` and
    `clock` are implementations of those ports, for an embedded memory. Safe to share between threads; close it, or use
    it as a context manager.

    >>> with reverie.open("./memory") as opened:
    ...     opened.ref("notes").put("Stored in a folder.").ref
    'notes'
    """
    text = (client_setting("REVERIE_URL") or None) if target is None else str(target)
    if text and text.startswith(("http://", "https://")):
        if embedder or distiller or clock:
            raise Invalid("embedder, distiller and clock are the host's own: configure them there.")
        remote = connect(text, key=key or client_setting("REVERIE_KEY"), tenant=tenant)
        return Memory(cast("Host", remote), remote.actor, location=text)
    if not text:
        settings = Settings.load()
    elif "://" in text:
        settings = Settings.load(database_url=text)
    else:
        settings = Settings.load(data=text, database_url="")
    tenant = "default" if tenant is None else tenant
    if not valid_tenant(tenant):
        raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -")
    host = build_host(settings, embedder=embedder, distiller=distiller, clock=clock)
    named = None if distiller is None else distiller.name
    who = Actor(tenant=tenant, id=f"local:{actor}", door="library")
    return Memory(host, who, location=settings.database, distiller=named)


class Memory:
    """One tenant's memory, embedded or on a running host.

    >>> memory
    <Memory of tenant default at ...>
    """

    def __init__(self, host: Host, actor: Actor, *, location: str = "", distiller: str | None = None) -> None:
        self.host = host
        self.actor = actor
        self.dreams = Dreams(self)
        """Reports of dreams: list, get, diff, verify, undo."""
        self._location = location
        self._distiller = distiller
        self._over = threading.Event()

    def __repr__(self) -> str:
        where = f" at {self._location}" if self._location else ""
        return f"<Memory of tenant {self.actor.tenant}{where}>"

    def ref(self, name: str) -> Ref:
        """One named memory of the tenant, for example an agent's.

        >>> memory.ref("support-bot").put("The customer prefers e-mail.").seq
        4
        """
        return Ref(self, name)

    def refs(self, prefix: str = "") -> list[tuple[str, int]]:
        """Every named memory with the number of its entries; with `prefix`, those whose names begin with it.

        >>> memory.refs()
        [('notes', 3)]
        """
        return self.host.reader.refs(self.actor, prefix)

    def forget(
        self, subject: str, *, ref: str | None = None, mentions: bool = False, preview: bool = False
    ) -> Forgotten:
        """Destroy everything about a subject, in every ref or in one. Cannot be undone.

        `mentions`: also entries that say its words without being labelled with it. `preview` only counts.

        >>> memory.forget("ana", preview=True).forgotten
        1
        >>> memory.forget("ana").certificate is not None
        True
        """
        return self.host.forget.forget(self.actor, subject, ref=ref, mentions=mentions, preview=preview)

    def events(self, *, after: int = 0, limit: int = 1000, types: Iterable[str] | None = None) -> list[Event]:
        """The log after a position: what happened, without text.

        >>> [event.type for event in memory.events(limit=2)]
        ['memory.written', 'memory.written']
        """
        wanted = None if types is None else tuple(types)
        return self.host.reader.events(self.actor, after=after, limit=limit, types=wanted)

    def follow(self, *, after: int | None = None, types: Iterable[str] | None = None) -> Iterator[Event]:
        """Events after a position (by default: from now on) as they happen, each once and in order.

        Goes on until the memory is closed.

        >>> following = memory.follow(after=0)
        >>> next(following).entry_id == first.id
        True
        """
        wanted = None if types is None else tuple(types)
        start = self.snapshot() if after is None else after
        return self.host.reader.follow(self.actor, after=start, types=wanted, over=self._over)

    def snapshot(self) -> int:
        """The log position now, for reads `as_of` it.

        >>> before = memory.snapshot()
        >>> _ = notes.delete(first.id)
        >>> notes.get(first.id, as_of=before).content
        'Ana prefers e-mail to phone calls.'
        """
        return self.host.reader.snapshot(self.actor)

    def stats(self) -> Mapping[str, Any]:
        """Counts and sizes.

        >>> memory.stats()["entries"]
        3
        """
        return self.host.reader.stats(self.actor)

    def verify(self) -> Verdict:
        """Prove the log, and that every stored text is the one that was written.

        >>> memory.verify().ok
        True
        """
        return self.host.audit.verify(self.actor)

    def policy(self) -> TenantPolicy:
        """The tenant's policy.

        >>> memory.policy().dream_budget
        8000
        """
        return self.host.rules.policy(self.actor)

    def set_policy(self, **changes: Any) -> TenantPolicy:
        """Change the tenant's policy.

        >>> memory.set_policy(max_tags=8).max_tags
        8
        """
        return self.host.rules.set_policy(self.actor, changes)

    def register_secret(self, secret_id: str, value: str) -> None:
        """Replace `value` by `[REDACTED:<secret_id>]` in everything stored from now on. Kept sealed.

        >>> memory.register_secret("door-code", "not-a-real-code-4711")
        >>> notes.get(notes.put("It is not-a-real-code-4711.").id).content
        'It is [REDACTED:door-code].'
        """
        self.host.rules.register(self.actor, secret_id, value)

    def sweep(self) -> int:
        """Destroy what has expired or outlived its retention; returns how many entries.

        >>> memory.sweep()
        0
        """
        return self.host.lifecycle.sweep(self.actor)

    def dream(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.get(id)`."""
        _renamed("memory.dream(id)", "memory.dreams.get(id)")
        return self.dreams.get(dream_id)

    def undo(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.undo(id)`."""
        _renamed("memory.undo(id)", "memory.dreams.undo(id)")
        return self.dreams.undo(dream_id)

    def diff(self, dream_id: str) -> Diff:
        """Deprecated: `memory.dreams.diff(id)`."""
        _renamed("memory.diff(id)", "memory.dreams.diff(id)")
        return self.dreams.diff(dream_id)

    def verify_dream(self, dream_id: str) -> Verified:
        """Deprecated: `memory.dreams.verify(id)`."""
        _renamed("memory.verify_dream(id)", "memory.dreams.verify(id)")
        return self.dreams.verify(dream_id)

    def archive(self, checksum: str) -> bytes:
        """The canonical bytes of an archive; their SHA-256 is the checksum.

        >>> memory.archive(dream.checksum)[:1]
        b'{'
        """
        return self.host.archives.get(self.actor, checksum)

    def index(self, ref: str | None = None) -> Mapping[str, Any]:
        """MEMORY-INDEX.json: what the next session loads at its start.

        >>> sorted(memory.index())[:2]
        ['archives', 'schema']
        """
        return self.host.archives.index(self.actor, ref=ref)

    def schedules(self) -> Sequence[Due]:
        """Every schedule: how it last went, when it is due next, why it did not run.

        >>> _ = memory.schedule("0 3 * * *", ref="notes")
        >>> [due.schedule.cron for due in memory.schedules()]
        ['0 3 * * *']
        """
        return self.host.schedules.all(self.actor)

    def schedule(
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
        """Dream by the clock: one memory, or (without `ref`) each of the tenant's. A running server does it.

        >>> memory.schedule("30 2 * * sun", ref="notes", kind="consolidate").cron
        '30 2 * * sun'
        """
        fields = {
            "cron": cron,
            "ref": ref,
            "kind": kind,
            "budget": budget,
            "fit": fit,
            "older_than_ms": age_ms(older_than, "/older_than"),
            "least_entries": least_entries,
            "least_tokens": least_tokens,
            "jitter_ms": age_ms(jitter, "/jitter"),
            "missed": missed,
            "paused": paused,
        }
        return self.host.schedules.save(self.actor, fields if zone is None else {**fields, "zone": zone})

    def unschedule(self, schedule_id: str) -> None:
        """Remove a schedule.

        >>> memory.unschedule(memory.schedule("30 2 * * sun").id)
        """
        self.host.schedules.drop(self.actor, schedule_id)

    def export(self, *, ref: str | None = None) -> Iterator[bytes]:
        """The lines of a bundle.

        >>> len(list(memory.export())) > 3
        True
        """
        return self.host.bundles.export(self.actor, ref=ref)

    def close(self) -> None:
        """Finish what was accepted, then let go of the store.

        >>> memory.close()
        """
        self._over.set()
        self.host.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Dreams:
    """The dreams of a memory: `memory.dreams`.

    >>> [report.ref for report in memory.dreams.list()]
    ['days']
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._host = memory.host
        self._actor = memory.actor

    def __repr__(self) -> str:
        return f"<Dreams of {self._memory!r}>"

    def __call__(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Deprecated: `memory.dreams.list(ref)`."""
        _renamed("memory.dreams()", "memory.dreams.list()")
        return self.list(ref, limit=limit)

    def list(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Reports of dreams, newest first.

        >>> memory.dreams.list("days")[0].id == dream.id
        True
        """
        return self._host.lineage.reports(self._actor, ref=ref, limit=limit)

    def get(self, dream_id: str) -> DreamReport:
        """The report of one dream. Raises NotFound.

        >>> memory.dreams.get(dream.id).state
        'done'
        """
        return self._host.lineage.report(self._actor, dream_id)

    def undo(self, dream_id: str) -> DreamReport:
        """Put the sources of a dream back exactly, while they exist. All of it, or nothing.

        >>> memory.dreams.undo(dream.id).state
        'undone'
        """
        return self._host.lineage.undo(self._actor, dream_id)

    def diff(self, dream_id: str) -> Diff:
        """What a dream kept, shortened, merged and retired.

        >>> len(memory.dreams.diff(dream.id).texts)
        12
        """
        return self._host.lineage.diff(self._actor, dream_id)

    def verify(self, dream_id: str) -> Verified:
        """Dream again from the same sources and compare bytes. Changes nothing.

        >>> memory.dreams.verify(dream.id).ok
        True
        """
        return self._host.lineage.verify(self._actor, dream_id)


class Ref:
    """One named memory.

    >>> notes
    <Ref notes of <Memory of tenant default at ...>>
    """

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory = memory
        self.name = name
        self._host = memory.host
        self._actor = memory.actor

    def __repr__(self) -> str:
        return f"<Ref {self.name} of {self.memory!r}>"

    def put(
        self,
        content: str,
        *,
        kind: str = "note",
        tags: Iterable[str] = (),
        subject: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002
        source: Source | Mapping[str, Any] | None = None,
        created_at: When | None = None,
        expires_at: When | None = None,
        pinned: bool = False,
        replaces: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one memory. Returns after it is durable.

        `replaces`, one of its tags: readable entries with this tag are deleted in the same transaction.

        >>> receipt = notes.put("We meet on Mondays.", tags=["meeting"], subject="team")
        >>> receipt.ref, receipt.replayed
        ('notes', False)
        """
        draft = to_draft(
            {
                "content": content,
                "kind": kind,
                "tags": tags,
                "subject": subject,
                "attributes": attributes,
                "id": id,
                "source": source,
                "created_at": created_at,
                "expires_at": expires_at,
                "pinned": pinned,
                "replaces": replaces,
            }
        )
        return self._host.entries.put(self._actor, self.name, [draft], idempotency_key=idempotency_key)[0]

    async def _put(self, pool: Executor, content: str, *, idempotency_key: str | None, **fields: Any) -> Receipt:
        """`put` for the asyncio facade: its callers share a thread and a commit instead of taking a thread each."""
        draft = to_draft({"content": content, **fields})
        entries, actor = self._host.entries, self._actor
        return (await entries.put_soon(pool, actor, self.name, [draft], idempotency_key=idempotency_key))[0]

    def put_many(
        self, entries: Iterable[str | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[Receipt]:
        """Store many memories in one transaction: all of them, or none.

        >>> len(notes.put_many(["One.", {"content": "Two.", "tags": ["even"]}]))
        2
        """
        drafts = [to_draft({"content": entry} if isinstance(entry, str) else entry) for entry in entries]
        return self._host.entries.put(self._actor, self.name, drafts, idempotency_key=idempotency_key)

    def supersede(
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
        """Store a memory in place of a readable one, in one transaction: the new one links to the old one.

        The old entry leaves every read and rests in cold storage. `expected` is the version you saw. Raises NotFound,
        and Conflict when the entry has changed.

        >>> new = notes.supersede(first.id, "Ana prefers to be called.", subject="ana")
        >>> notes.get(new.id).content
        'Ana prefers to be called.'
        """
        draft = to_draft({"content": content, "kind": kind, "tags": tags, "subject": subject, "attributes": attributes})
        return self._host.entries.supersede(
            self._actor, self.name, entry_id, draft, expected=expected, idempotency_key=idempotency_key
        )

    def get(self, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound.

        >>> notes.get(first.id).tags
        ('preference',)
        """
        return self._host.reader.get(self._actor, self.name, entry_id, as_of=as_of, cold=cold)

    def list(
        self,
        where: Filter = Filter(),  # noqa: B008  (immutable)
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

        >>> [entry.content for entry in notes.list(limit=1).items]
        ['The office is in Nantes.']
        """
        return self._host.reader.page(
            self._actor,
            self.name,
            where,
            limit=limit,
            cursor=cursor,
            as_of=as_of,
            since=since,
            until=until,
            zone=zone,
        )

    def entries(
        self,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        *,
        as_of: int | None = None,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Iterator[Entry]:
        """Every entry, newest first, read page by page.

        >>> len(list(notes.entries()))
        3
        """
        cursor: str | None = None
        while True:
            page = self.list(where, limit=_PAGE, cursor=cursor, as_of=as_of, since=since, until=until, zone=zone)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def search(
        self,
        query: str,
        *,
        where: Filter = Filter(),  # noqa: B008  (immutable)
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
        `include="superseded"` entries that consolidation replaced follow their successors. When nothing answers well,
        the sources of dreams are searched too: such hits are `cold` and name the `dream` that holds them; `deep` can
        say never or always.

        >>> found = notes.search("how to reach Ana", limit=1)
        >>> found[0].text
        'Ana prefers e-mail to phone calls.'
        """
        return self._host.search.search(
            self._actor,
            self.name,
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

    def context(
        self,
        purpose: str,
        *,
        budget: int = 2000,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Context:
        """The best memory for a purpose within a token budget, ready to paste into a prompt.

        >>> packed = notes.context("write to Ana", budget=300)
        >>> packed.tokens <= 300, "prefers e-mail" in packed.text
        (True, True)
        """
        return self._host.search.context(
            self._actor, self.name, purpose, budget=budget, where=where, since=since, until=until, zone=zone
        )

    def pin(self, entry_id: str) -> Entry:
        """Never dream this away.

        >>> notes.pin(first.id).pinned
        True
        """
        return self._host.lifecycle.pin(self._actor, self.name, entry_id)

    def unpin(self, entry_id: str) -> Entry:
        """Treat it like the others again.

        >>> notes.unpin(first.id).pinned
        False
        """
        return self._host.lifecycle.unpin(self._actor, self.name, entry_id)

    def archive(self, entry_id: str) -> Entry:
        """Take it out of recall and keep it.

        >>> notes.archive(first.id).archived
        True
        """
        return self._host.lifecycle.archive(self._actor, self.name, entry_id)

    def retract(self, entry_id: str) -> Entry:
        """Withdraw it.

        >>> notes.retract(first.id).state.value
        'retracted'
        """
        return self._host.lifecycle.retract(self._actor, self.name, entry_id)

    def restore(self, entry_id: str) -> Entry:
        """Make an archived, retracted or deleted entry readable again.

        >>> _ = notes.delete(first.id)
        >>> notes.restore(first.id).state.value
        'active'
        """
        return self._host.lifecycle.restore(self._actor, self.name, entry_id)

    def delete(self, entry_id: str) -> Entry:
        """Take it out of every read; its text is destroyed after the undo window.

        >>> notes.delete(first.id).state.value
        'deleted'
        """
        return self._host.lifecycle.delete(self._actor, self.name, entry_id)

    def renew(self, entry_id: str, expires_at: When) -> Entry:
        """Give it another expiry.

        >>> notes.renew(first.id, "2099-01-01T00:00:00Z").version
        2
        """
        when = to_ms(expires_at, "/expires_at")
        if when is None:
            raise Invalid("expires_at is a time.", pointer="/expires_at")
        return self._host.lifecycle.renew(self._actor, self.name, entry_id, when)

    def erase(self, entry_id: str) -> int:
        """Destroy its text now. Cannot be undone.

        >>> notes.erase(first.id)
        34
        """
        return self._host.lifecycle.erase(self._actor, self.name, entry_id)

    def links(self, entry_id: str, *, incoming: bool = False) -> Sequence[Link]:
        """The arrows from an entry, or to it.

        >>> new = notes.supersede(first.id, "Ana prefers to be called.")
        >>> [link.type for link in notes.links(new.id)]
        ['supersedes']
        """
        return self._host.reader.links(self._actor, self.name, entry_id, incoming=incoming)

    def plan_dream(
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
        """What `dream` would do with the same arguments now. Touches nothing.

        >>> notes.plan_dream().sources
        3
        """
        distiller = self.memory._distiller if distiller is None else distiller
        plan = _plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session)
        return self._host.dreams.plan(self._actor, plan)

    def dream(
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
        progress: Progress | None = None,
    ) -> DreamReport | None:
        """Distil many memories into one, within `budget` tokens of input and output. None: nothing to do.

        All of it happens, or nothing. Pinned and held memories stay as they are. `fit` takes the oldest part that
        the budget can hold; call it again for the rest. `progress(step, done, total)` is called on the way.

        >>> days = memory.ref("weather")
        >>> _ = days.put_many([f"Day {n}: the ferry left at {n + 5} o'clock, and it rained." for n in range(12)])
        >>> report = days.dream(budget=4000)
        >>> report.output_tokens < report.tokens_before
        True
        """
        distiller = self.memory._distiller if distiller is None else distiller
        plan = _plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session)
        return self._host.dreams.run(self._actor, plan, progress=progress)

    def why(self, entry_id: str) -> Why:
        """The tree from a memory down to the original words it was made from.

        >>> len(memory.ref("days").why(dream.output_id).sources)
        12
        """
        return self._host.lineage.why(self._actor, self.name, entry_id)

    def derived(self, entry_id: str) -> Sequence[str]:
        """Ids of everything made from this memory, directly or through others.

        >>> list(notes.derived(first.id))
        []
        """
        return self._host.lineage.derived(self._actor, self.name, entry_id)

    def consolidate(self) -> Consolidated:
        """Merge duplicates and supersede outdated statements. A second pass changes nothing.

        >>> notes.consolidate().duplicates
        0
        """
        return self._host.consolidator.run(self._actor, self.name)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated: use {new}.", DeprecationWarning, stacklevel=3)


def _plan(
    ref: str,
    budget: int | None,
    fit: bool,
    distiller: str | None,
    after: str,
    older_than: Age | None,
    kinds: Iterable[str] | None,
    tags: Iterable[str],
    session: str | None,
) -> DreamPlan:
    if after not in list(After):
        raise Invalid(f"after is one of {', '.join(After)}.", pointer="/after")
    if isinstance(kinds, str) or isinstance(tags, str):
        raise Invalid("kinds and tags are lists of texts.")
    return DreamPlan(
        ref=ref,
        selector=Selector(
            kinds=None if kinds is None else tuple(kinds),
            tags=tuple(tags),
            session=session,
            older_than_ms=age_ms(older_than, "/older_than"),
        ),
        budget=budget,
        distiller=distiller,
        after=After(after),
        fit=fit,
    )


def age_ms(age: Age | None, pointer: str) -> int:
    """Milliseconds of a timedelta, a text such as `7d` or `P7D`, or milliseconds; 0 of None."""
    if age is None:
        return 0
    if isinstance(age, timedelta):
        age = int(age.total_seconds() * 1000)
    if isinstance(age, str):
        return parse_duration(age, pointer=pointer)
    if isinstance(age, bool) or not isinstance(age, int) or age < 0:
        raise Invalid("An age is a timedelta, a text such as 7d, or milliseconds.", pointer=pointer)
    return age


def memory_of(store: Any, tenant: str) -> tuple[Any, Callable[[], None] | None]:
    """(the memory that `store` is or names, how to close it when it was opened here)."""
    if isinstance(store, str | Path):
        opened = open(store, tenant=tenant)
        return opened, opened.close
    inner = getattr(store, "memory", store)  # a ref, or an async memory around one
    for candidate in (store, inner, getattr(store, "_memory", None)):
        if candidate is not None and hasattr(candidate, "host") and hasattr(candidate, "actor"):
            return candidate, None
    raise Invalid("store is a memory that reverie.open gave, or a folder or URL.", pointer="/store")
