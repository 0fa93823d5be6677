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
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from reverie.app import build_host
from reverie.core.actor import Actor
from reverie.core.clock import from_iso
from reverie.core.entry import Draft, Entry, EntryState, Link, Receipt, Source, valid_tenant
from reverie.core.errors import Invalid
from reverie.core.event import Event
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter, Page
from reverie.host import Host
from reverie.host.audit import Verdict
from reverie.host.erase import Forgotten
from reverie.host.recall import Context, SearchResult
from reverie.settings import Settings

When = datetime | str | int
_DRAFT_FIELDS = frozenset({"content", "kind", "tags", "subject", "attributes", "id", "source", "created_at"}) | {
    "expires_at",
    "pinned",
}


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

    def forget(self, subject: str, *, ref: str | None = None, preview: bool = False) -> Forgotten:
        """Destroy everything about a subject, in every ref or in one. Cannot be undone."""
        return self.host.forgetting.forget(self.actor, subject, ref=ref, preview=preview)

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
    ) -> SearchResult:
        """The entries that best answer a query."""
        return self._host.recall.search(
            self._actor, self.name, query, where=where, limit=limit, mode=mode, explain=explain
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


def to_draft(fields: Mapping[str, Any]) -> Draft:
    """A draft from plain values; an unknown field or a wrong type is refused."""
    unknown = set(fields) - _DRAFT_FIELDS
    if unknown:
        raise Invalid(f"Unknown field: {sorted(unknown)[0][:64]}. Known: {', '.join(sorted(_DRAFT_FIELDS))}.")
    content = fields.get("content")
    if not isinstance(content, str):
        raise Invalid("content is text.", pointer="/content")
    tags = fields.get("tags") or ()
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise Invalid("tags is a list of texts.", pointer="/tags")
    for name in ("kind", "subject", "id"):
        if not isinstance(fields.get(name) or "", str):
            raise Invalid(f"{name} is text.", pointer=f"/{name}")
    attributes = fields.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        raise Invalid("attributes is an object.", pointer="/attributes")
    source = fields.get("source")
    if not isinstance(source, Source):
        try:
            source = Source(**(source or {}))
        except TypeError:
            raise Invalid(f"source has {', '.join(Source.__struct_fields__)}.", pointer="/source") from None
    return Draft(
        content=content,
        kind=fields.get("kind") or "note",
        tags=tuple(tags),
        subject=fields.get("subject"),
        attributes=dict(attributes),
        id=fields.get("id"),
        source=source,
        state=EntryState.ACTIVE,
        created_at=to_ms(fields.get("created_at"), "/created_at"),
        expires_at=to_ms(fields.get("expires_at"), "/expires_at"),
        pinned=bool(fields.get("pinned", False)),
    )


def to_ms(when: When | None, pointer: str) -> int | None:
    """Milliseconds of a datetime with a zone, an RFC 3339 text or milliseconds."""
    if when is None or (isinstance(when, int) and not isinstance(when, bool)):
        return when
    if isinstance(when, datetime):
        return from_iso(when.isoformat(), pointer=pointer)
    return from_iso(str(when), pointer=pointer)
