"""get, list, links, snapshot, stats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Event as Flag
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.draft import When
from reverie.core.entry import READABLE, Entry, EntryState, Link, Scope, check_namespace, valid_ref
from reverie.core.errors import Invalid, NotFound, StoreError
from reverie.core.event import Event
from reverie.core.query import Filter, Page
from reverie.memory.derivation import no_entry
from reverie.memory.indexing import model_of
from reverie.memory.policy import LARGEST
from reverie.memory.times import between
from reverie.services import Services
from reverie.store.contract import ReadTx

MAX_PAGE = 1000
LEAST_PREFIX = 4
_FOLLOWED = 1000
_FOLLOW_SECONDS = 0.2
ANYTHING = Filter(states=frozenset(EntryState), archived=None, gone=True, expired=None)


class Reader:
    """The read path. A malformed ref reads as an empty memory, never as a looser look-up."""

    def __init__(self, parts: Services) -> None:
        self._store = parts.store
        self._parts = parts

    def get(self, actor: Actor, ref: str, entry_id: str, *, as_of: int | None = None, cold: bool = False) -> Entry:
        """The entry, if it is readable (with `cold`: also archived or retired, as long as its text exists).

        With `as_of`: the entry that was readable at that log position, in the state it had there. Its pin, hold and
        version are those of now.
        """
        actor.require(Right.READ)
        check_namespace(entry_id)
        entry = None
        if valid_ref(ref):
            where = msgspec.structs.replace(ANYTHING, expired=False) if cold else None

            def body(tx: ReadTx) -> Entry:
                found = tx.get(entry_id, as_of=_position(tx, as_of), where=where)
                if found is None:
                    raise no_entry(tx, entry_id)
                return found

            entry = self._store.read(Scope(actor.tenant, ref), body)
        if entry is None or entry.state is EntryState.ERASED or not may_see(actor, entry):
            raise NotFound("There is no entry with that id in this memory.")
        return entry if as_of is None else _as_it_was(entry, as_of)

    def states(self, actor: Actor, ref: str, ids: Sequence[str]) -> Mapping[str, tuple[EntryState, int]]:
        """State and version by id, in one read: of at most 1000 entries, readable or not, those whose text exists."""
        actor.require(Right.READ)
        if len(ids) > MAX_PAGE:
            raise Invalid(f"At most {MAX_PAGE} ids at once.", pointer="/ids")
        for entry_id in ids:
            check_namespace(entry_id)
        where = msgspec.structs.replace(ANYTHING, expired=False)

        def body(tx: ReadTx) -> dict[str, tuple[EntryState, int]]:
            found = (tx.get(entry_id, where=where) for entry_id in dict.fromkeys(ids))
            return {
                entry.id: (entry.state, entry.version)
                for entry in found
                if entry is not None and entry.state is not EntryState.ERASED and may_see(actor, entry)
            }

        return self._store.read(Scope(actor.tenant, ref), body) if valid_ref(ref) else {}

    def page(
        self,
        actor: Actor,
        ref: str,
        where: Filter = Filter(),  # noqa: B008  (immutable)
        *,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
        oldest_first: bool = False,
        since: When | None = None,
        until: When | None = None,
        zone: str | None = None,
    ) -> Page[Entry]:
        """Entries newest first. `limit` is at most 1000; the page's cursor leads on, to the end.

        `since` and `until` are times or words such as "last week", read in the time zone `zone`.
        """
        actor.require(Right.READ)
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid(f"limit is 1 to {MAX_PAGE}; follow the cursor for more.", pointer="/limit")
        if not valid_ref(ref):
            return Page([])
        if oldest_first and as_of is not None:
            raise Invalid("as_of goes with newest first only.", pointer="/oldest_first")

        def body(tx: ReadTx) -> Page[Entry]:
            at = _position(tx, as_of)
            chosen = between(tx, where, since, until, zone)
            found = tx.scan(chosen, limit=limit, cursor=cursor, as_of=at, oldest_first=oldest_first)
            return found if at is None else Page([_as_it_was(entry, at) for entry in found.items], found.cursor)

        return self._store.read(Scope(actor.tenant, ref), body)

    def count(self, actor: Actor, ref: str, where: Filter = Filter()) -> int:  # noqa: B008  (immutable)
        """Count the matching entries, in the store."""
        actor.require(Right.READ)
        return self._store.read(Scope(actor.tenant, ref), lambda tx: tx.count(where)) if valid_ref(ref) else 0

    def links(self, actor: Actor, ref: str, entry_id: str, *, incoming: bool = False) -> list[Link]:
        """The links from an entry, or to it."""
        actor.require(Right.READ)
        check_namespace(entry_id)
        if not valid_ref(ref):
            return []
        return self._store.read(Scope(actor.tenant, ref), lambda tx: tx.links(entry_id, incoming=incoming))

    def refs(self, actor: Actor, prefix: str = "") -> list[tuple[str, int]]:
        """The tenant's memories with the number of their entries; with `prefix`, those whose names begin with it."""
        actor.require(Right.READ)
        if prefix and not valid_ref(prefix.rstrip("/")):
            return []
        return self._store.read(Scope(actor.tenant), lambda tx: tx.refs(prefix))

    def facets(self, actor: Actor, ref: str, *, most: int = 8) -> Mapping[str, list[tuple[str, int]]]:
        """Values of the readable entries of a memory by `kind`, `subject`, `source` and `tag`, with their numbers."""
        actor.require(Right.READ)
        if not valid_ref(ref):
            return {}
        return self._store.read(Scope(actor.tenant, ref), lambda tx: tx.facets(most=most))

    def ids(self, actor: Actor, ref: str, prefix: str, *, limit: int = 10) -> list[str]:
        """Ids of a memory that begin with `prefix`, in order. At least four characters are needed."""
        actor.require(Right.READ)
        check_namespace(prefix)
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid(f"limit is 1 to {MAX_PAGE}.", pointer="/limit")
        if not valid_ref(ref) or len(prefix) < LEAST_PREFIX:
            return []
        return self._store.read(Scope(actor.tenant, ref), lambda tx: tx.ids(prefix, limit=limit))

    def snapshot(self, actor: Actor) -> int:
        """The log position now. A read `as_of` it never changes, as long as the text exists."""
        actor.require(Right.READ)
        return self._store.read(Scope(actor.tenant), lambda tx: tx.head().seq)

    def events(
        self,
        actor: Actor,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
        types: tuple[str, ...] | None = None,
    ) -> list[Event]:
        """Events of the tenant after a position, in order. With `before`: those between the two, newest first."""
        actor.require(Right.READ)
        if not 1 <= limit <= 10_000 or after < 0:
            raise Invalid("limit is 1 to 10000 and after is at least 0.", pointer="/limit")
        after = min(after, LARGEST)
        return self._store.read(
            Scope(actor.tenant), lambda tx: tx.read_log(after=after, before=before, limit=limit, types=types)
        )

    def follow(self, actor: Actor, *, after: int, types: tuple[str, ...] | None, over: Flag) -> Iterator[Event]:
        """Events after a position and then as they happen, each once and in order, until `over` is set."""
        actor.require(Right.READ)
        while not over.is_set():
            try:
                head = self.snapshot(actor)
                found = self.events(actor, after=after, limit=_FOLLOWED, types=types) if head > after else []
            except StoreError:
                if over.is_set():
                    return
                raise
            yield from found
            if len(found) == _FOLLOWED:
                after = found[-1].seq
                continue
            after = max(head, found[-1].seq if found else 0)
            over.wait(_FOLLOW_SECONDS)

    def stats(self, actor: Actor) -> Mapping[str, Any]:
        """Return the tenant's counts and sizes; no text."""
        actor.require(Right.READ)
        embedder = self._parts.embedder

        def body(tx: ReadTx) -> dict[str, Any]:
            head = tx.head()
            cold = tx.count(msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED}))
            readable = tx.count(Filter())
            indexed = tx.index_state(model_of(embedder))[1] if embedder else 0
            return {
                "entries": readable,
                "cold": cold - readable,
                "text_bytes": head.bytes,
                "refs": len(tx.refs()),
                "events": head.seq,
                "epoch": head.epoch,
                "head": head.hash,
                "with_vector": indexed,
            }

        return self._store.read(Scope(actor.tenant), body)


def may_see(actor: Actor, entry: Entry) -> bool:
    """Drafts are seen by their author only."""
    return entry.state is not EntryState.DRAFT or entry.source.actor == actor.id


def _as_it_was(entry: Entry, as_of: int) -> Entry:
    """An entry that was readable at a log position as it was there: what left since had not left yet."""
    if entry.gone_seq is None or entry.gone_seq <= as_of:
        return entry
    state = entry.state if entry.state in READABLE else EntryState.ACTIVE
    return msgspec.structs.replace(entry, state=state, archived=False, gone_seq=None)


def _position(tx: ReadTx, as_of: int | None) -> int | None:
    if as_of is None:
        return None
    if not 0 <= as_of <= tx.head().seq:
        raise Invalid("as_of is a log position between 0 and the head of the log.", pointer="/as_of")
    return as_of
