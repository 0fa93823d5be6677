"""Fixtures of the cases: a clock that is set by hand, sample entries, and a store with short names for common steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from reverie.core.entry import Entry, EntryState, Scope, Source
from reverie.core.event import NewEvent
from reverie.core.ids import TimeIds
from reverie.core.query import Filter, Head, Page
from reverie.store.contract import ReadTx, Store, WriteTx

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
START = 1_790_000_000_000
ANYTHING = Filter(states=frozenset(EntryState), archived=None, gone=True, expired=None)


class HandClock:
    """A clock that is set by hand."""

    def __init__(self, now: int = START) -> None:
        self._now = now

    def now(self) -> int:
        """The instant that was set."""
        return self._now

    def advance(self, milliseconds: int) -> None:
        """Move on."""
        self._now += milliseconds


OpenStore = Callable[[HandClock], Store]
_IDS = TimeIds()


def make_entry(**overrides: Any) -> Entry:
    """A valid entry; every field can be overridden."""
    fields: dict[str, Any] = {
        "ref": "notes",
        "id": _IDS.new(),
        "kind": "note",
        "content": "The kettle is on the second shelf.",
        "tags": (),
        "subject": None,
        "attributes": {},
        "source": Source(actor="tester", door="conformance"),
        "state": EntryState.ACTIVE,
        "created_at": START,
        "expires_at": None,
        "pinned": False,
    }
    return Entry(**(fields | overrides))


def make_event(type: str = "memory.written", **overrides: Any) -> NewEvent:  # noqa: A002
    """A valid event; every field can be overridden."""
    fields: dict[str, Any] = {"type": type, "operation": "TEST", "actor": "tester"}
    return NewEvent(**(fields | overrides))


@contextmanager
def refuses(error: type[BaseException], code: str | None = None) -> Iterator[None]:
    """The block must raise `error` (with this code)."""
    refused: BaseException | None = None
    try:
        yield
    except error as fault:
        refused = fault
    assert refused is not None, f"should have been refused with {error.__name__}"
    if code is not None:
        assert getattr(refused, "reason", None) == code, refused


class Lab:
    """A store under test. `tenant` and `ref` default to `acme` and `notes`."""

    def __init__(self, open_store: OpenStore) -> None:
        self.clock = HandClock()
        self.store = open_store(self.clock)

    def write(self, body: Callable[[WriteTx], T], *, tenant: str = "acme", ref: str | None = "notes") -> T:
        return self.store.write(Scope(tenant, ref), body)

    def read(self, body: Callable[[ReadTx], T], *, tenant: str = "acme", ref: str | None = "notes") -> T:
        return self.store.read(Scope(tenant, ref), body)

    def put(
        self,
        content: str = "The kettle is on the second shelf.",
        *,
        tenant: str = "acme",
        ref: str = "notes",
        vector: tuple[str, bytes] | None = None,
        **fields: Any,
    ) -> Entry:
        """Store one entry; its words are those of its content, in lower case."""
        return self.put_many([make_entry(content=content, ref=ref, **fields)], tenant=tenant, ref=ref, vector=vector)[0]

    def put_many(
        self,
        entries: Sequence[Entry],
        *,
        tenant: str = "acme",
        ref: str = "notes",
        vector: tuple[str, bytes] | None = None,
    ) -> list[Entry]:
        """Store entries in one transaction."""
        return self.write(lambda tx: [put(tx, entry, vector=vector) for entry in entries], tenant=tenant, ref=ref)

    def change(self, entry_id: str, *, tenant: str = "acme", ref: str = "notes", **changes: Any) -> Entry:
        """Change one entry, with an event."""

        def body(tx: WriteTx) -> Entry:
            seq = tx.append(make_event("memory.archived", entry_id=entry_id))
            return tx.change(entry_id, seq=seq, **changes)

        return self.write(body, tenant=tenant, ref=ref)

    def purge(self, entry_id: str, *, tenant: str = "acme", ref: str = "notes") -> int:
        """Destroy one entry, with an event."""

        def body(tx: WriteTx) -> int:
            return tx.purge(entry_id, seq=tx.append(make_event("memory.purged", entry_id=entry_id)))

        return self.write(body, tenant=tenant, ref=ref)

    def get(self, entry_id: str, *, tenant: str = "acme", ref: str = "notes", **how: Any) -> Entry | None:
        return self.read(lambda tx: tx.get(entry_id, **how), tenant=tenant, ref=ref)

    def scan(
        self, where: Filter | None = None, *, tenant: str = "acme", ref: str | None = "notes", **how: Any
    ) -> Page[Entry]:
        how = {"limit": 1000} | how
        return self.read(lambda tx: tx.scan(where or Filter(), **how), tenant=tenant, ref=ref)

    def ids(self, where: Filter | None = None, **how: Any) -> list[str]:
        """The ids of one page."""
        return [entry.id for entry in self.scan(where, **how).items]

    def head(self, *, tenant: str = "acme") -> Head:
        return self.read(lambda tx: tx.head(), tenant=tenant, ref=None)


def put(tx: WriteTx, entry: Entry, *, vector: tuple[str, bytes] | None = None, minted: bool = False) -> Entry:
    """Append and insert, inside a transaction."""
    seq = tx.append(make_event(entry_id=entry.id, data={"ref": entry.ref}))
    return tx.insert(entry, seq=seq, terms=words(entry.content), vector=vector, minted=minted)


def words(text: str) -> list[str]:
    """The simplest terms: lower-case words without punctuation."""
    return [word for word in "".join(c if c.isalnum() else " " for c in text.lower()).split() if word]


def same_but(original: S, **changes: Any) -> S:
    """A copy with changes."""
    return msgspec.structs.replace(original, **changes)
