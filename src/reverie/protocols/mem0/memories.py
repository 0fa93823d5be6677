"""Memories as mem0 sees them: of a user, an agent, an app or a run, with a stable id and a history of texts.

Each user has a memory of their own (an agent, app or run likewise, where no user is named). Its name is `mem0/user-`
and a keyed hash: the log keeps names of memories for ever, and a user is a person, who may be forgotten. A memory is
an entry; an update replaces it in one transaction, and its id stays: it is kept in a mark, `~memory:ID`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import uuid4

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.entry import Draft, Entry, EntryState, Scope, Source
from reverie.core.errors import Busy, Conflict, Invalid, NotFound, ReadOnly
from reverie.core.event import keyed_hash
from reverie.core.names import digest
from reverie.core.query import Filter, each
from reverie.core.retry import Moved, retry
from reverie.host import Host
from reverie.protocols.mem0.filters import ENTITIES, holds, scoped, users

KINDS = ("user", "agent", "app", "run")
_ROOT = "mem0"
_PAGE = 500
_MOST_SEARCHED = 200
"""Users, agents, apps and runs whose memories one search reads; each takes a few milliseconds."""
_WITH_COLD = Filter(states=frozenset({EntryState.ACTIVE, EntryState.DREAMT}), archived=None, gone=True)


class Memories:
    """The use cases of this protocol, for one caller."""

    def __init__(self, host: Host, actor: Actor) -> None:
        self._host = host
        self._actor = actor
        self._names: dict[str, str] = {}
        """Users, agents, apps and runs by ref."""
        self._secret = b""

    def add(
        self,
        texts: Sequence[tuple[str, str]],
        whose: Mapping[str, str],
        *,
        metadata: Mapping[str, Any],
        created_at: int | None,
        expires_at: int | None,
    ) -> list[dict[str, Any]]:
        """Store (role, text) pairs in one transaction. Returns them as stored, also to a caller who may only write."""
        self._open()
        self._host.rules.check_names(self._actor.tenant, {f"/{field}": name for field, name in whose.items()})
        ref, drafts = self._ref(whose), []
        for role, text in texts:
            memory = str(uuid4())
            about = {**whose, "id": memory, "role": role, "metadata": dict(metadata)}
            drafts.append(_draft(text, whose, about, created_at=created_at, expires_at=expires_at))
        receipts = self._host.entries.put(self._actor, ref, drafts)
        added = []
        reader = replace(self._actor, rights=self._actor.rights | {Right.READ})
        for receipt in receipts:
            with suppress(NotFound):  # forgotten or deleted since
                entry = self._host.reader.get(reader, ref, receipt.id)
                added.append({"id": _id(entry), "memory": entry.content, "event": "ADD"})
        return added

    def get(self, memory_id: str) -> dict[str, Any]:
        """One memory. Raises NotFound."""
        return self._document(self._find(memory_id))

    def page(self, filters: Mapping[str, Any], *, start: int, size: int) -> tuple[int, list[dict[str, Any]]]:
        """(number of matching memories, `size` of them from `start` on, newest first).

        Without filters, or with a user's name alone, the store counts, and nothing behind the page is read. Other
        filters concern attributes that the store does not index: every memory is read, and only the page is held.
        """
        plain = set(filters) == {"user_id"} and isinstance(filters["user_id"], str) and filters["user_id"] != "*"
        if plain or not filters:
            return self._plain_page(self._refs(filters), start, size)
        count = 0
        rows: list[dict[str, Any]] = []
        for entry in self._each(filters):
            one = self._document(entry)
            if holds(filters, one):
                if start <= count < start + size:
                    rows.append(one)
                count += 1
        return count, rows

    def _plain_page(self, refs: Sequence[str], start: int, size: int) -> tuple[int, list[dict[str, Any]]]:
        total = 0
        rows: list[dict[str, Any]] = []
        for ref in refs:
            count = self._host.reader.count(self._actor, ref)
            skip = max(0, start - total)
            if skip < count and len(rows) < size:
                rows += map(self._document, islice(self._entries(ref), skip, skip + size - len(rows)))
            total += count
        return total, rows

    def search(self, query: str, filters: Mapping[str, Any], *, limit: int, threshold: float) -> list[dict[str, Any]]:
        """The memories that answer a query, best first; none when nothing does.

        As in mem0's service, the filters must name a user, agent, app or run. Where they leave the user open, the
        memories of all are searched. Raises Invalid when these are too many for one request.
        """
        if not scoped(filters):
            raise Invalid(
                f"The filters of a search name at least one of {', '.join(ENTITIES)}. "
                "A wildcard, or a name in NOT, does not count.",
                pointer="/filters",
            )
        refs = self._refs(filters)
        if len(refs) > _MOST_SEARCHED:
            raise Invalid(
                f"These filters leave {len(refs)} users, agents, apps and runs to search, and a search reads at most "
                f"{_MOST_SEARCHED}. Name the user_id too.",
                pointer="/filters",
            )
        results: list[tuple[float, dict[str, Any]]] = []
        for ref in refs:
            result = self._host.search.search(self._actor, ref, query[:4096], limit=min(200, max(limit * 4, 20)))
            for hit in result.hits:
                shown = self._document(hit.entry)
                if not hit.weak and hit.confidence >= threshold and holds(filters, shown):
                    results.append((hit.score, {**shown, "score": round(hit.confidence, 4)}))
        results.sort(key=lambda one: -one[0])
        return [shown for _, shown in results[:limit]]

    def update(self, changes: Sequence[tuple[str, str | None, Mapping[str, Any] | None]]) -> None:
        """Replace texts or metadata of memories, (id, text, metadata), in one transaction: all of them, or none.

        Ids and creation times stay. A field that is not given keeps the value that was read; a memory that is forgotten
        or deleted meanwhile does not come back. Raises NotFound.
        """
        merged: dict[str, tuple[str | None, dict[str, Any]]] = {}
        for memory_id, text, metadata in changes:
            earlier, known = merged.get(memory_id, (None, {}))
            merged[memory_id] = (text or earlier, {**known, **(metadata or {})})

        def attempt(_: int) -> None:
            results = [(self._find(memory_id), *change) for memory_id, change in merged.items()]
            changed = [
                (entry.ref, entry.id, _successor(entry, self._document(entry), text, metadata), entry.version)
                for entry, text, metadata in results
            ]
            try:
                self._host.entries.supersede_many(self._actor, changed)
            except (Conflict, NotFound):  # another caller changed one of them: it has a new entry, or is gone
                raise Moved from None

        retry(attempt, busy=_busy)

    def delete(self, memory_ids: Iterable[str]) -> None:
        """Take memories out of every read in one transaction: all of them, or none. Raises NotFound."""
        wanted = dict.fromkeys(memory_ids)

        def attempt(_: int) -> None:
            results = [self._find(memory_id) for memory_id in wanted]
            try:
                self._host.lifecycle.delete_many(self._actor, [(entry.ref, entry.id) for entry in results])
            except NotFound:  # changed meanwhile
                raise Moved from None

        retry(attempt, busy=_busy)

    def delete_all(self, filters: Mapping[str, Any]) -> int:
        """Delete every matching memory, a part at a time; return their number."""
        matching = [(entry.ref, entry.id) for entry in self._each(filters) if holds(filters, self._document(entry))]
        for start in range(0, len(matching), _PAGE):
            part = matching[start : start + _PAGE]
            try:
                self._host.lifecycle.delete_many(self._actor, part)
            except NotFound:  # some left meanwhile: the others one by one
                for ref, entry_id in part:
                    with suppress(NotFound):
                        self._host.lifecycle.delete(self._actor, ref, entry_id)
        return len(matching)

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """The versions of a memory, oldest first, as far as they are kept."""
        versions = [self._find(memory_id)]
        while True:
            links = self._host.reader.links(self._actor, versions[0].ref, versions[0].id)
            older = next((link.to_id for link in links if link.type == "supersedes"), None)
            try:
                if older is None:
                    break
                versions.insert(0, self._host.reader.get(self._actor, versions[0].ref, older, cold=True))
            except NotFound:
                break
        rows, before = [], None
        for entry in versions:
            shown = self._document(entry)
            rows.append(
                {
                    "id": entry.id,
                    "memory_id": memory_id,
                    "old_memory": before,
                    "new_memory": entry.content,
                    "event": "ADD" if before is None else "UPDATE",
                    "metadata": shown["metadata"],
                    "user_id": shown["user_id"],
                    "created_at": to_iso(entry.created_at),
                    "updated_at": to_iso(entry.created_at),
                }
            )
            before = entry.content
        return rows

    def entities(self) -> list[dict[str, Any]]:
        """The users, agents, apps and runs that have memories."""
        results = []
        for ref, count in self._host.reader.refs(self._actor, f"{_ROOT}/"):
            newest = self._host.reader.page(self._actor, ref, limit=1).items
            kind = _kind(ref)
            if newest and kind in KINDS:
                times, name = to_iso(newest[0].created_at), self._name(ref)
                results.append({"id": ref, "name": name, "type": kind, "total_memories": count, "updated_at": times})
        return results

    @property
    def _key(self) -> bytes:
        """The tenant's secret; empty, as every memory then is, where nothing was ever stored.

        Not a `cached_property`: until Python 3.12 those of all objects share one lock, so that one caller's look at
        the store would stop every other tenant's.
        """
        if not self._secret:
            self._secret = self._host.parts.store.read(Scope(self._actor.tenant), lambda tx: tx.log_key())
        return self._secret

    def _open(self) -> None:
        """Make sure that the tenant has a secret before a first write."""
        self._actor.require(Right.WRITE)
        if not self._key:
            if self._host.parts.read_only:
                raise ReadOnly()
            self._secret = self._host.parts.store.write(Scope(self._actor.tenant), lambda tx: tx.log_key())

    def _ref(self, whose: Mapping[str, str]) -> str:
        for kind in KINDS:
            if name := whose.get(f"{kind}_id"):
                ref = f"{_ROOT}/{kind}-{keyed_hash(self._key, name)[:32]}"
                self._names[ref] = name
                return ref
        raise Invalid("Name whose memory it is: user_id, agent_id, app_id or run_id.", pointer="/user_id")

    def _name(self, ref: str) -> str:
        """The user, agent, app or run: as its first entries say, also where only a dream of them is left."""
        if ref not in self._names:
            field = f"{_kind(ref)}_id"
            first = self._host.reader.page(self._actor, ref, _WITH_COLD, limit=20, oldest_first=True).items
            told = (entry.attributes[_ROOT].get(field) or entry.subject for entry in first if _ROOT in entry.attributes)
            subject = next((entry.subject for entry in first if entry.subject), None)
            self._names[ref] = next(filter(None, told), None) or subject or ref.rpartition("-")[2]
        return self._names[ref]

    def _document(self, entry: Entry) -> dict[str, Any]:
        return document(entry, "" if entry.attributes.get(_ROOT) else self._name(entry.ref))

    def _refs(self, filters: Mapping[str, Any]) -> list[str]:
        """List the memories that can hold matches: those of the named users, else all."""
        named = users(filters)
        if named is not None:
            return [self._ref({"user_id": name}) for name in sorted(named)]
        return [ref for ref, _ in self._host.reader.refs(self._actor, f"{_ROOT}/")]

    def _each(self, filters: Mapping[str, Any]) -> Iterable[Entry]:
        for ref in self._refs(filters):
            yield from self._entries(ref)

    def _entries(self, ref: str) -> Iterator[Entry]:
        return each(lambda cursor: self._host.reader.page(self._actor, ref, limit=_PAGE, cursor=cursor))

    def _find(self, memory_id: str) -> Entry:
        place, _, memory = memory_id.partition("~")
        ref = f"{_ROOT}/{place}"
        if not memory:
            raise NotFound("There is no memory with that id.")
        found = self._host.reader.page(self._actor, ref, Filter(tags=(_mark(memory),)), limit=1).items
        return found[0] if found else self._host.reader.get(self._actor, ref, memory)


def _kind(ref: str) -> str:
    return ref.removeprefix(f"{_ROOT}/").partition("-")[0]


def document(entry: Entry, name: str) -> dict[str, Any]:
    """A memory as the client gets it. `name`: its user, where it does not say so itself."""
    about: Mapping[str, Any] = entry.attributes.get(_ROOT) or {}
    kind = _kind(entry.ref)
    whose = {f"{one}_id": about.get(f"{one}_id") for one in KINDS}
    if not about and kind in KINDS:  # a dream, or a note of another door
        whose[f"{kind}_id"] = name
    return {
        "id": _id(entry),
        "memory": entry.content,
        **whose,
        "hash": hashlib.md5(entry.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": about.get("metadata") or {},
        "categories": [tag for tag in entry.tags if not tag.startswith("~")],
        "created_at": to_iso(about.get("created_at", entry.created_at)),
        "updated_at": to_iso(entry.created_at),
        "expiration_date": None if entry.expires_at is None else to_iso(entry.expires_at)[:10],
    }


def _busy() -> Busy:
    return Busy("This memory is being changed by others at the moment. Try again.")


def _successor(before: Entry, shown: Mapping[str, Any], text: str | None, metadata: Mapping[str, Any]) -> Draft:
    """Build the draft that supersedes an entry, which the client got as `shown`."""
    about = dict(before.attributes.get(_ROOT) or {})
    about |= {"id": about.get("id", before.id), "created_at": about.get("created_at", before.created_at)}
    about["metadata"] = {**about.get("metadata", {}), **metadata}
    whose = {name: shown[name] for name in (f"{kind}_id" for kind in KINDS) if shown[name] is not None}
    about |= whose  # of a note of another door, whose memory it is in
    draft = _draft(text or before.content, whose, about, created_at=None, expires_at=before.expires_at)
    tags = tuple(dict.fromkeys((*draft.tags, *before.tags)))
    return msgspec.structs.replace(draft, replaces=None, tags=tags, pinned=before.pinned)


def _id(entry: Entry) -> str:
    about = entry.attributes.get(_ROOT) or {}
    return f"{entry.ref.removeprefix(f'{_ROOT}/')}~{about.get('id', entry.id)}"


def _mark(memory: str) -> str:
    return f"~memory:{digest(memory)}"


def _draft(
    text: str, whose: Mapping[str, str], about: Mapping[str, Any], *, created_at: int | None, expires_at: int | None
) -> Draft:
    mark = _mark(about["id"])
    return Draft(
        text,
        tags=(mark,),
        subject=whose.get("user_id"),
        attributes={_ROOT: dict(about)},
        source=Source(actor="" if about.get("role") in (None, "user") else str(about["role"])[:64]),
        created_at=created_at,
        expires_at=expires_at,
        replaces=mark,
    )
