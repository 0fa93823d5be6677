"""A tenant's memory: named memories, dreams, events, policy, schedules, forget."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from reverie.core.actor import Actor
from reverie.core.dream import DreamReport
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.dreams.lineage import Diff, Verified
from reverie.host import Host
from reverie.jobs.timetable import Due, Schedule
from reverie.library.dreams import Age, Dreams, age_ms, warn_renamed
from reverie.library.ref import Ref
from reverie.memory.audit import Verdict
from reverie.privacy.forget import Forgotten


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

        `mentions`: also entries that mention its words without being labelled with it. `preview` only counts.

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

        Continues until the memory is closed.

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
        """Destroy entries that have expired or outlived their retention; returns their number.

        >>> memory.sweep()
        0
        """
        return self.host.lifecycle.sweep(self.actor)

    def dream(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.get(id)`."""
        warn_renamed("memory.dream(id)", "memory.dreams.get(id)")
        return self.dreams.get(dream_id)

    def undo(self, dream_id: str) -> DreamReport:
        """Deprecated: `memory.dreams.undo(id)`."""
        warn_renamed("memory.undo(id)", "memory.dreams.undo(id)")
        return self.dreams.undo(dream_id)

    def diff(self, dream_id: str) -> Diff:
        """Deprecated: `memory.dreams.diff(id)`."""
        warn_renamed("memory.diff(id)", "memory.dreams.diff(id)")
        return self.dreams.diff(dream_id)

    def verify_dream(self, dream_id: str) -> Verified:
        """Deprecated: `memory.dreams.verify(id)`."""
        warn_renamed("memory.verify_dream(id)", "memory.dreams.verify(id)")
        return self.dreams.verify(dream_id)

    def archive(self, checksum: str) -> bytes:
        """The canonical bytes of an archive; their SHA-256 is the checksum.

        >>> memory.archive(dream.checksum)[:1]
        b'{'
        """
        return self.host.archives.get(self.actor, checksum)

    def index(self, ref: str | None = None) -> Mapping[str, Any]:
        """Return MEMORY-INDEX.json, which the next session loads at its start.

        >>> sorted(memory.index())[:2]
        ['archives', 'schema']
        """
        return self.host.archives.index(self.actor, ref=ref)

    def schedules(self) -> Sequence[Due]:
        """List the schedules: last outcome, next due time, and the reason when one did not run.

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
        """Schedule dreams of one memory or (without `ref`) of each of the tenant's. A running server runs them.

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
        """Finish all accepted work, then release the store.

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
