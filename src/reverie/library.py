"""Reverie as a library.

import reverie

memory = reverie.open("./memory")
notes = memory.ref("support-bot")
notes.put("The customer prefers e-mail.", tags=["preference"])
for hit in notes.search("how to reach the customer").hits:
    print(hit.score, hit.entry.content)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from reverie.app import build_host
from reverie.core.actor import Actor
from reverie.core.clock import parse_duration
from reverie.core.draft import When, to_draft
from reverie.core.dream import After, DreamPlan, DreamReport, Estimate, Selector
from reverie.core.entry import Entry, Link, Receipt, Source, valid_tenant
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter, Page
from reverie.dreams.consolidate import Consolidated
from reverie.dreams.engine import Progress
from reverie.dreams.lineage import Diff, Verified, Why
from reverie.host import Host
from reverie.jobs.schedule import Due, Schedule
from reverie.memory.audit import Verdict
from reverie.memory.search import Context, SearchResult
from reverie.privacy.forget import Forgotten
from reverie.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Executor

Age = timedelta | str | int


def open(target: str | Path | None = None, *, tenant: str = "default", actor: str = "library") -> Memory:  # noqa: A001
    """Open a memory: a folder (made when missing) or a database URL. Without a target: what the environment says.

    Safe to share between threads; close it, or use it as a context manager.
    """
    text = None if target is None else str(target)
    if text is None:
        settings = Settings.load()
    elif "://" in text:
        settings = Settings.load(database_url=text)
    else:
        settings = Settings.load(data=text, database_url="")
    if not valid_tenant(tenant):
        raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -")
    return Memory(build_host(settings), Actor(tenant=tenant, id=f"local:{actor}", door="library"))


class Memory:
    """One tenant's memory."""

    def __init__(self, host: Host, actor: Actor) -> None:
        self.host = host
        self.actor = actor

    def ref(self, name: str) -> Ref:
        """One named memory of the tenant, for example an agent's."""
        return Ref(self, name)

    def refs(self) -> list[tuple[str, int]]:
        """Every named memory with the number of its entries."""
        return self.host.reading.refs(self.actor)

    def forget(
        self, subject: str, *, ref: str | None = None, mentions: bool = False, preview: bool = False
    ) -> Forgotten:
        """Destroy everything about a subject, in every ref or in one. Cannot be undone.

        `mentions`: also entries that say its words without being labelled with it. `preview` only counts.
        """
        return self.host.forgetting.forget(self.actor, subject, ref=ref, mentions=mentions, preview=preview)

    def events(self, *, after: int = 0, limit: int = 1000, types: Iterable[str] | None = None) -> list[Event]:
        """The log after a position: what happened, without text."""
        wanted = None if types is None else tuple(types)
        return self.host.reading.events(self.actor, after=after, limit=limit, types=wanted)

    def snapshot(self) -> int:
        """The log position now, for reads `as_of` it."""
        return self.host.reading.snapshot(self.actor)

    def stats(self) -> Mapping[str, Any]:
        """Counts and sizes."""
        return self.host.reading.stats(self.actor)

    def verify(self) -> Verdict:
        """Prove the log, and that every stored text is the one that was written."""
        return self.host.audit.verify(self.actor)

    def policy(self) -> TenantPolicy:
        """The tenant's policy."""
        return self.host.rules.policy(self.actor)

    def set_policy(self, **changes: Any) -> TenantPolicy:
        """Change the tenant's policy."""
        return self.host.rules.set_policy(self.actor, changes)

    def register_secret(self, secret_id: str, value: str) -> None:
        """Replace `value` by `[REDACTED:<secret_id>]` in everything stored from now on. Kept sealed."""
        self.host.rules.register(self.actor, secret_id, value)

    def sweep(self) -> int:
        """Destroy what has expired or outlived the undo window; returns how many entries."""
        return self.host.lifecycle.expire(self.actor) + self.host.lifecycle.retain(self.actor)

    def dreams(self, ref: str | None = None, *, limit: int = 100) -> Sequence[DreamReport]:
        """Reports of dreams, newest first."""
        return self.host.lineage.reports(self.actor, ref=ref, limit=limit)

    def dream(self, dream_id: str) -> DreamReport:
        """The report of one dream. Raises NotFound."""
        return self.host.lineage.report(self.actor, dream_id)

    def undo(self, dream_id: str) -> DreamReport:
        """Put the sources of a dream back exactly, within the undo window. All of it, or nothing."""
        return self.host.lineage.undo(self.actor, dream_id)

    def diff(self, dream_id: str) -> Diff:
        """What a dream kept, shortened, merged and retired."""
        return self.host.lineage.diff(self.actor, dream_id)

    def verify_dream(self, dream_id: str) -> Verified:
        """Dream again from the same sources and compare bytes. Changes nothing."""
        return self.host.lineage.verify(self.actor, dream_id)

    def archive(self, checksum: str) -> bytes:
        """The canonical bytes of an archive; their SHA-256 is the checksum."""
        return self.host.archives.get(self.actor, checksum)

    def index(self, ref: str | None = None) -> Mapping[str, Any]:
        """MEMORY-INDEX.json: what the next session loads at its start."""
        return self.host.archives.index(self.actor, ref=ref)

    def schedules(self) -> Sequence[Due]:
        """Every schedule: how it last went, when it is due next, why it did not run."""
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
        """Dream by the clock: one memory, or (without `ref`) each of the tenant's. A running server does it."""
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
        """Remove a schedule."""
        self.host.schedules.drop(self.actor, schedule_id)

    def export(self, *, ref: str | None = None) -> Iterator[bytes]:
        """The lines of a bundle."""
        return self.host.bundles.export(self.actor, ref=ref)

    def close(self) -> None:
        """Finish what was accepted, then let go of the store."""
        self.host.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Ref:
    """One named memory."""

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory = memory
        self.name = name
        self._host = memory.host
        self._actor = memory.actor

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
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one memory. Returns after it is durable."""
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
            }
        )
        return self._host.writing.put(self._actor, self.name, [draft], idempotency_key=idempotency_key)[0]

    async def _put(self, pool: Executor, content: str, *, idempotency_key: str | None, **fields: Any) -> Receipt:
        """`put` for the asyncio facade: its callers share a thread and a commit instead of taking a thread each."""
        draft = to_draft({"content": content, **fields})
        writing, actor = self._host.writing, self._actor
        return (await writing.put_soon(pool, actor, self.name, [draft], idempotency_key=idempotency_key))[0]

    def put_many(
        self, entries: Iterable[str | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[Receipt]:
        """Store many memories in one transaction: all of them, or none."""
        drafts = [to_draft({"content": entry} if isinstance(entry, str) else entry) for entry in entries]
        return self._host.writing.put(self._actor, self.name, drafts, idempotency_key=idempotency_key)

    def get(self, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """One entry. Raises NotFound."""
        return self._host.reading.get(self._actor, self.name, entry_id, as_of=as_of, cold=cold)

    def list(
        self,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        *,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
    ) -> Page[Entry]:
        """Entries newest first; follow `cursor` to the end."""
        return self._host.reading.page(self._actor, self.name, where, limit=limit, cursor=cursor, as_of=as_of)

    def search(
        self,
        query: str,
        *,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        limit: int = 10,
        mode: Literal["hybrid", "words", "meaning"] = "hybrid",
        explain: bool = False,
        include: Literal["superseded"] | None = None,
        zone: str = "UTC",
    ) -> SearchResult:
        """The passages that best answer a query, best first; `weak` marks those that hardly do.

        Dates in the query ("last week") are read in the time zone `zone`. With `include="superseded"` entries that
        consolidation replaced follow their successors.
        """
        return self._host.recall.search(
            self._actor,
            self.name,
            query,
            where=where,
            limit=limit,
            mode=mode,
            explain=explain,
            include=include,
            zone=zone,
        )

    def context(self, purpose: str, *, budget: int = 2000, where: Filter = Filter()) -> Context:  # noqa: B008
        """The best memory for a purpose within a token budget, ready to paste into a prompt."""
        return self._host.recall.context(self._actor, self.name, purpose, budget=budget, where=where)

    def pin(self, entry_id: str) -> Entry:
        """Never dream this away."""
        return self._host.lifecycle.pin(self._actor, self.name, entry_id)

    def unpin(self, entry_id: str) -> Entry:
        """Treat it like the others again."""
        return self._host.lifecycle.unpin(self._actor, self.name, entry_id)

    def archive(self, entry_id: str) -> Entry:
        """Take it out of recall and keep it."""
        return self._host.lifecycle.archive(self._actor, self.name, entry_id)

    def retract(self, entry_id: str) -> Entry:
        """Withdraw it."""
        return self._host.lifecycle.retract(self._actor, self.name, entry_id)

    def restore(self, entry_id: str) -> Entry:
        """Make an archived, retracted or deleted entry readable again."""
        return self._host.lifecycle.restore(self._actor, self.name, entry_id)

    def delete(self, entry_id: str) -> Entry:
        """Take it out of every read; its text is destroyed after the undo window."""
        return self._host.lifecycle.delete(self._actor, self.name, entry_id)

    def erase(self, entry_id: str) -> int:
        """Destroy its text now. Cannot be undone."""
        return self._host.lifecycle.erase(self._actor, self.name, entry_id)

    def links(self, entry_id: str, *, incoming: bool = False) -> Sequence[Link]:
        """The arrows from an entry, or to it."""
        return self._host.reading.links(self._actor, self.name, entry_id, incoming=incoming)

    def plan_dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str = "extractive",
        after: Literal["cold", "archive", "purge"] = "cold",
        older_than: Age | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        session: str | None = None,
    ) -> Estimate:
        """What `dream` would do with the same arguments now. Touches nothing."""
        plan = _plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session)
        return self._host.dreaming.plan(self._actor, plan)

    def dream(
        self,
        budget: int | None = None,
        *,
        fit: bool = False,
        distiller: str = "extractive",
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
        """
        plan = _plan(self.name, budget, fit, distiller, after, older_than, kinds, tags, session)
        return self._host.dreaming.run(self._actor, plan, progress=progress)

    def why(self, entry_id: str) -> Why:
        """The tree from a memory down to the original words it was made from."""
        return self._host.lineage.why(self._actor, self.name, entry_id)

    def derived(self, entry_id: str) -> Sequence[str]:
        """Ids of everything made from this memory, directly or through others."""
        return self._host.lineage.derived(self._actor, self.name, entry_id)

    def consolidate(self) -> Consolidated:
        """Merge duplicates and supersede outdated statements. A second pass changes nothing."""
        return self._host.consolidating.run(self._actor, self.name)


def _plan(
    ref: str,
    budget: int | None,
    fit: bool,
    distiller: str,
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
