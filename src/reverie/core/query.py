"""Queries of a memory: filters, pages, and the candidates of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

from msgspec import Struct

from reverie.core.entry import READABLE, EntryState
from reverie.core.pause import pause

Item = TypeVar("Item")


class Hidden(Struct, frozen=True):
    """Parts of sessions that a filter excludes. Entries outside every session are not concerned."""

    sessions: tuple[str, ...] = ()
    """Sessions that are hidden as a whole."""
    kinds: tuple[tuple[str, str], ...] = ()
    """(session, kind): kinds that are hidden in a session."""
    others: tuple[str, ...] = ()
    """Sessions in which every kind that is not in `known` is hidden."""
    known: tuple[str, ...] = ()


class Filter(Struct, frozen=True):
    """Filter on entries. All given conditions must hold; within a list one value is enough; an empty list matches
    nothing.
    """

    tags: tuple[str, ...] = ()
    """Every one of these tags, exactly as written."""
    any_tags: tuple[str, ...] | None = None
    """At least one of these tags."""
    kinds: tuple[str, ...] | None = None
    states: frozenset[EntryState] = READABLE
    archived: bool | None = False
    """False: only entries in recall. True: only archived ones. None: both."""
    gone: bool = False
    """True: also entries that left readable memory (cold storage)."""
    subject: str | None = None
    actor: str | None = None
    session: str | None = None
    sessionless: bool = False
    """True: only entries outside every session."""
    hidden: Hidden | None = None
    """None of these parts of sessions."""
    without_kinds: tuple[str, ...] = ()
    """None of these kinds."""
    not_by: tuple[str, int] | None = None
    """(actor, log position): excludes entries written by this actor at or after the position."""
    since_epoch: int | None = None
    """Only entries of this epoch or a later one."""
    run: str | None = None
    task: str | None = None
    """Only entries whose attribute `intent.task_id` names this task."""
    pinned: bool | None = None
    since: int | None = None
    """Only entries created at or after this instant."""
    until: int | None = None
    """Only entries created before this instant."""
    expired: bool | None = False
    """False: unexpired only. True: expired only. None: both."""


class Page(Struct, Generic[Item], frozen=True):
    """One page. `cursor` gets the next page; it is None at the end, and only there."""

    items: Sequence[Item]
    cursor: str | None = None


def each(fetch: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    """The items of every page. `fetch` takes a cursor, None for the first page; a page is read when it is needed."""
    return chain.from_iterable(page.items for page in pages(fetch))


def pages(fetch: Callable[[str | None], Page[Item]]) -> Iterator[Page[Item]]:
    """Every page, read when it is needed, with a pause before each but the first."""
    page = fetch(None)
    yield page
    while page.cursor is not None:
        pause()
        page = fetch(page.cursor)
        yield page


class Brief(Struct, frozen=True, gc=False):
    """The fields of an entry that a ranking needs. A search reads many for each hit that it returns."""

    position: int
    id: str
    created_at: int
    content: str
    actor: str
    session: str | None
    subject: str | None = None
    role: str | None = None


class QueryWord(Struct, frozen=True):
    """A word of a question: the terms that match it, each with a weight up to 1, and the weight of the word itself."""

    terms: tuple[tuple[str, float], ...]
    weight: float = 1.0


class Match(Struct, frozen=True, gc=False):
    """A candidate of a search: a passage of an entry. Higher scores are better."""

    entry: Brief
    score: float
    number: int = 0
    """Number of the passage in the entry, from 0."""
    span: tuple[int, int] | None = None
    """Start and end of the passage in the content; None: all of it."""
    cover: float = 0.0
    """Share of the question's words in the passage, weighted."""


Vector = tuple[str, bytes]
"""A vector as int8, with the name of the model that made it: only vectors of one model are compared."""


class HybridMatch(Struct, frozen=True, gc=False):
    """A candidate of a search by words and by meaning at once."""

    entry: Brief
    number: int
    span: tuple[int, int] | None
    score: float | None
    """BM25; None: not among the best by words."""
    cover: float
    cosine: float | None
    """None: no vector of the question's model."""
    among: int = 0
    """Number of passages in the memory."""


class Head(Struct, frozen=True):
    """The tip of a tenant's log, and the figures counted by its quota."""

    seq: int
    epoch: int
    hash: str
    entries: int
    """Entries with text, readable or in cold storage."""
    bytes: int
    """UTF-8 bytes of their content."""
    rules_seq: int = 0
    """The last position that changed how writes are treated: policy, known secrets."""


class Lease(Struct, frozen=True):
    """A lease on work that one process may do at a time: its holder, and when it ends unless renewed."""

    name: str
    holder: str
    until: int


class Flow(Struct, frozen=True):
    """A memory's log at an instant."""

    position: int
    """The last log position at or before the instant; 0: there was none yet."""
    stored: int
    """Entries that had been stored by then, readable or not."""
    left: int
    """Entries that left readable memory after the previous instant asked for, and have not returned."""


ANCHOR_BYTES = 16


class Anchored(Struct, frozen=True):
    """An acknowledged log position as noted outside the database, with the beginning of its hash."""

    seq: int
    hash: bytes

    def fits(self, found: bytes) -> bool:
        """Whether the hash found at that position matches the note."""
        return found[:ANCHOR_BYTES] == self.hash


class Key(Struct, frozen=True):
    """An API key as stored: its digest, never the key."""

    id: str
    tenant: str
    digest: bytes
    name: str
    rights: tuple[str, ...]
    authority: int
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
