"""The contract between the host and a store.

`store.write(scope, body)` runs `body(tx)` inside one transaction and returns its result after the commit is
durable; if `body` raises, nothing it did remains. `store.read(scope, body)` runs `body(tx)` on one unchanging
snapshot and never waits for a writer. Bodies are plain synchronous functions: no network, no model, no `await`
inside a transaction. A body may be run again when the store had to retry, so it must not have effects of its own.

The scope is bound when the transaction opens. No verb takes a tenant; with a bound `ref`, entry verbs see that ref
only. A store without the tenant behaves as if it were empty, and the first write makes it.

Nothing changes without an event: verbs that change entries or documents want `seq`, the position that `append`
returned in this same transaction, and refuse any other.

`conformance/` holds the suite that any store must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, Unpack

from reverie.core.entry import Document, Entry, EntryState, Link, Scope
from reverie.core.event import Event, NewEvent
from reverie.core.query import (
    Anchored,
    Brief,
    Filter,
    Flow,
    Head,
    HybridMatch,
    Key,
    Lease,
    Match,
    Page,
    QueryWord,
    Vector,
)
from reverie.store.change import Changes
from reverie.store.transfer import Transfer

T = TypeVar("T")

LOG_PAGE = 1000
"""Events that are read at once."""


class WouldWait(Exception):
    """A body that may not wait would have to: for another writer, or for work that is owed. Nothing was done."""


class SearchIndex(Protocol):
    """An index of one memory: of its readable entries, or of its cold storage."""

    def find(
        self,
        terms: Sequence[str | QueryWord],
        vector: Vector | None,
        where: Filter,
        *,
        limit: int,
        meaning: float = 1.0,
        ahead: int = 0,
    ) -> list[HybridMatch]:
        """The best passages by BM25 and as many by cosine, each once, in as few questions to the store as it can.

        `ahead`: of so many of the best that were said in conversations, the neighbours will be asked for (`around` with
        two steps); a cosine of 1 promises `meaning` times as much as the best match of all words.
        """

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        """Those of `terms` that some entry has."""


class ColdIndex(SearchIndex, Protocol):
    """The index of the sources of dreams, under statistics of their own."""

    def __len__(self) -> int:
        """Number of passages."""


class ReadTx(SearchIndex, Protocol):
    """One unchanging snapshot of one scope."""

    now: int
    """The transaction's instant: expiry is judged by it, to the millisecond."""

    @property
    def scope(self) -> Scope:
        """Scope of the transaction."""

    def within(self, ref: str | None) -> AbstractContextManager[None]:
        """Inside the block, verbs see one memory of the same tenant; with None, all of them."""

    def head(self) -> Head:
        """The tip of the tenant's log."""

    def log_key(self) -> bytes:
        """The secret under which this tenant's content hashes are keyed."""

    def get(self, entry_id: str, *, as_of: int | None = None, where: Filter | None = None) -> Entry | None:
        """The entry, if it matches `where` (readable and unexpired by default); `as_of` reads at a log position."""

    def scan(
        self,
        where: Filter,
        *,
        limit: int,
        cursor: str | None = None,
        as_of: int | None = None,
        oldest_first: bool = False,
    ) -> Page[Entry]:
        """Entries newest first by `created_at`, then by insertion; each exactly once, even while others write.

        In order of insertion instead: without a ref, with `gone`, and when expired entries are asked for. A cursor
        says nothing about other tenants; one that no store gave out is Invalid. `as_of` needs a ref.
        """

    def count(self, where: Filter) -> int:
        """Count the matching entries."""

    def cold(self, state: EntryState, *, before: int, limit: int, files: bool = False) -> list[Entry]:
        """Deleted or dreamt entries, not on hold, that left readable memory before an instant and still have text.

        `files`: entries of kind `file`, which have a retention of their own, instead of all others.
        """

    def left(self, where: Filter, *, limit: int) -> list[Entry]:
        """Entries that left readable memory and match, the last to leave first."""

    def about(self, subject: str, *, erased: bool = False) -> list[Entry]:
        """Entries with text about the subject of this hash (`subject_hash`), readable or not, in order of insertion.

        In the bound ref only or, without one, in every ref of the tenant. `erased`: tombstones too, unless they were
        destroyed for this subject. Indexed: no scan.
        """

    def refs(self, prefix: str = "") -> list[tuple[str, int]]:
        """Every ref of the tenant that has readable entries, with their number, by name.

        With `prefix`: those whose names begin with it. Indexed: others cost nothing.
        """

    def facets(self, *, most: int) -> Mapping[str, list[tuple[str, int]]]:
        """Values of readable entries of this memory by `kind`, `subject`, `source` (actor) and `tag`, the most frequent
        first, each with the number of entries. Tags that the host sets are left out. No entry is read for it.
        """

    def leases(self, *, limit: int) -> list[Lease]:
        """Leases of the tenant that are held now, by name."""

    def ids(self, prefix: str, *, limit: int) -> list[str]:
        """Ids of the bound ref that begin with a prefix, in order; drafts and erased entries left out. Indexed."""

    def match(self, terms: Sequence[str | QueryWord], where: Filter, *, limit: int) -> list[Match]:
        """The best passages by BM25 over any of `terms`, under the statistics of this memory alone."""

    def nearest(self, vector: Vector, where: Filter, *, limit: int) -> list[Match]:
        """The best passages by cosine with vectors of the same model and length; exact up to 50,000 vectors."""

    def cold_index(self) -> ColdIndex:
        """The index of this memory's cold storage: the sources of dreams."""

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        """For each position the position of the readable entry of its ref before it and after it.

        With more steps, the same for those found; the one they were found from is on their other side.
        """

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        """The entries at these positions that match."""

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        """The same in brief."""

    def foremost(
        self,
        lists: Sequence[Sequence[int]],
        where: Filter,
        *,
        limit: int,
        promising: Callable[[], Sequence[int]] | None = None,
    ) -> Mapping[int, Brief]:
        """Of each list of positions the first entries that match, at most `limit`. `promising`: for `find`."""

    def cosines(self, vector: Vector, positions: Sequence[int]) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of entries at these positions that have vectors of `vector`'s model."""

    def tend(self) -> None:
        """Bring the search index of this memory up to date where it is kept, and compact it.

        Searches do so by themselves as far as they must; this does what they leave for later. Changes no memory.
        """

    def index_state(self, model: str) -> tuple[int, int]:
        """(readable entries, those with a vector of `model`)."""

    def unembedded(self, model: str, *, limit: int) -> list[Entry]:
        """Readable entries and sources of dreams that have no vector of `model`, oldest first."""

    def links(self, *entry_ids: str, incoming: bool = False, type: str | None = None) -> list[Link]:  # noqa: A002
        """Arrows from the entries, in the order they were made; `incoming`: to them, by the entries they are from."""

    def read_log(
        self, *, after: int = 0, before: int | None = None, limit: int = 1000, types: Sequence[str] | None = None
    ) -> list[Event]:
        """Events after a position, in order. With `before`: those between the two, newest first.

        Of a few types: indexed, so that events of other types cost nothing.
        """

    def flow(self, instants: Sequence[int]) -> list[Flow]:
        """The tenant's log at each of some ascending instants: position, entries stored by then, entries that left.

        Costs a few rows for each instant, and index rows of the entries that left in between.
        """

    def read_run(self, run: str, *, skip: int = 0, limit: int = 1000) -> list[Event]:
        """Events whose data names this run (`data["run"]`), in order, without the first `skip`. Indexed: no scan."""

    def load(self, space: str, key: str, *, version: int | None = None, dropped: bool = False) -> Document | None:
        """A document, newest version by default; None when absent or dropped.

        With `dropped` a tombstone is returned too (its body is None); the count continues from its version.
        """

    def documents(
        self, space: str, *, prefix: str = "", limit: int = 1000, cursor: str | None = None, dropped: bool = False
    ) -> Page[Document]:
        """Current documents of a space by key. With `dropped` the tombstones of dropped ones too."""

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        """(request digest, stored answer) of an idempotency key that is still remembered."""

    def searches(self) -> dict[str, bytes]:
        """The recorded searches of the bound memory, sealed, by its ref; without one, those of every memory."""


class WriteTx(ReadTx, Protocol):
    """A transaction that changes one scope. All of it happens, or none."""

    def append(self, *events: NewEvent, tick: bool = True, received_epoch: int = 0) -> int:
        """Append to the log; returns the position of the last. `tick` advances the Lamport epoch past `received_epoch`,
        once for each."""

    def insert(
        self, entry: Entry, *, seq: int, terms: Sequence[str], vector: tuple[str, bytes] | None, minted: bool
    ) -> Entry:
        """Store an entry born at `seq`, with its words and vector. `minted`: the id is new by construction.

        Raises Conflict(`id_taken`) when the ref has, or ever had, an entry with that id.
        """

    def change(self, entry_id: str, *, seq: int, expected: int | None = None, **changes: Unpack[Changes]) -> Entry:
        """Change mutable fields; the version goes up by one. `expected` is the version the caller saw, else Conflict.

        Reads as of an earlier position stay as they were. An entry that becomes unreadable leaves the indexes and
        gets `gone_seq`; one that becomes readable again is found by nothing until it is put back with `index`.
        """

    def change_each(
        self, versions: Mapping[str, int | None], *, seq: int, **changes: Unpack[Changes]
    ) -> Sequence[Entry]:
        """The same for several entries at once. `versions`: by id, the version the caller saw."""

    def index(self, entry_id: str, *, seq: int, terms: Sequence[str] | None, vector: tuple[str, bytes] | None) -> None:
        """(Re)make the words (unless None) and the vector (unless None) of a readable entry."""

    def rewrite(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: tuple[str, bytes] | None) -> None:
        """Replace the text of a stored entry by a more redacted one. For the retro-scan; nothing else rewrites text."""

    def purge(self, *entry_ids: str, seq: int, subject: str | None = None) -> int:
        """Destroy text, tags, subject, attributes, words, vector and notes on links; returns the bytes of content.

        `seq`: the event of the last entry; those of the others are right before it.

        Of its source only door and trust remain: session, run, node, role and actor are the caller's words too.

        The row stays as a tombstone (state `erased`), so the id is never used again. It can still be found by the
        hashes of its subjects: what was made from it may outlive it. `subject`: the hash for which it is destroyed, and
        by which not even a tombstone is found from now on.
        """

    def link(self, *links: Link) -> None:
        """Add arrows; adding one again does nothing. Targets need not exist. The transaction must have an event."""

    def save(
        self,
        space: str,
        key: str,
        body: bytes,
        *,
        seq: int,
        expected: int | None = None,
        meta: Mapping[str, Any] | None = None,
        keep: int = 1,
        destroy: bool = False,
    ) -> Document:
        """Write the next version of a document and keep the last `keep`. `expected` (0: absent) else Conflict.

        `destroy`: the versions that are not kept leave the disk as purged entries do.
        """

    def drop(
        self, space: str, key: str, *, seq: int, expected: int | None = None, keep: int = 1, destroy: bool = False
    ) -> bool:
        """Drop a document; its version count continues. False when there was none.

        `keep=0` leaves no tombstone: nothing of it remains, not even its key, and the count restarts. `destroy`: as in
        `save`, and the kept versions of a document that was dropped before go too.
        """

    def remember_answer(self, key: str, digest: str, answer: bytes, *, until: int) -> None:
        """Keep the answer to an idempotent request."""

    def keep_searches(self, body: bytes | None) -> None:
        """Keep the recorded searches of the bound memory in place of those before. None: none of it or, without a
        bound ref, of any memory. Needs no event: they are not memory.
        """

    def trim(self) -> None:
        """Drop answers that no caller may ask for any more."""

    def claim(self, name: str, holder: str, *, until: int) -> bool:
        """Take a lease that is free, expired or already ours. False when someone else holds it."""

    def release(self, name: str, holder: str) -> None:
        """Give a lease back; nothing happens when it is not ours."""

    def wake(self, at: int | None, *, exactly: bool = False) -> None:
        """Have workers look at this tenant at an instant, unless they will earlier. `exactly`: then and not earlier.

        None: not at all. Needs no event: it is when to look, not what is found.
        """


class ControlTx(Protocol):
    """Data outside of tenants: the list of tenants and their keys."""

    @property
    def now(self) -> int:
        """The time of the transaction."""

    def tenants(self) -> list[str]:
        """Every tenant, by name."""

    def awake(self) -> list[str]:
        """Tenants to be looked at now, longest due first. A new one, or one moved here, is among them. Indexed."""

    def key(self, key_id: str) -> Key | None:
        """A key by its public id."""

    def keys(self, tenant: str | None = None) -> list[Key]:
        """Keys, oldest first."""

    def add_key(self, key: Key) -> None:
        """Store a new key."""

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke now or at a later instant (for rotation with overlap). False when unknown."""

    def setting(self, name: str) -> bytes | None:
        """A host-wide value."""

    def set_setting(self, name: str, value: bytes) -> None:
        """Keep a host-wide value."""

    def take_setting(self, name: str) -> bytes | None:
        """Remove a host-wide value and return it: of several callers, one gets it."""


class Store(Protocol):
    """Somewhere to keep memory."""

    name: str
    """`sqlite`, `postgres`."""
    outside: Sequence[str]
    """Copies of destroyed text that the store itself keeps for a while, out of reach of every query."""
    durable: bool
    """Whether stored data survives the process."""
    quick: bool
    """Whether reading one row waits for nothing but a local disk: then an event loop may do it."""

    @property
    def free(self) -> bool:
        """Whether a small write made now would wait for nothing but the disk."""

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        """Run `body` in one durable transaction.

        A body may have an attribute `weight`, the number of entries it stores: heavy ones do not delay light ones. For
        one whose attribute `waits` is False, a `quick` store raises WouldWait before anything is done, where it would
        have to wait for more than the disk.
        """

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        """Run `body` on one snapshot.

        A body may have an attribute `searches`: then what its search needs is fetched with the snapshot.
        """

    def control(self, body: Callable[[ControlTx], T], *, write: bool = False) -> T:
        """Run `body` above all tenants: a write in one transaction, a look query by query."""

    def check(self, *, quick: bool = False) -> Mapping[str, Any]:
        """Whether the store is sound: integrity, version, size. Raises StoreError when it is not.

        `quick`: as much of it as can be looked at whenever a server starts.
        """

    def anchored(self, tenant: str) -> Anchored | None:
        """Return the acknowledged position of a tenant's log, as noted outside the database; None when nothing was
        noted.

        Must be called before the snapshot with which it is compared.
        """

    def damaged(self, tenant: str) -> str | None:
        """Describe the tenant's rows that differ from their stored checksums; None when there are none."""

    def backup(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> None:
        """A consistent copy while writers go on."""

    def switch_wal(self) -> str:
        """End the segment of a server's log that may hold destroyed text. Says, for people, when it is gone."""

    def transfer(self) -> Transfer:
        """The store's rows as they are: for moving memory to another store."""

    def close(self) -> None:
        """Finish all accepted work, then release every resource."""


def each_event(tx: ReadTx, *, after: int = 0, types: Sequence[str] | None = None) -> Iterator[Event]:
    """The events after a position, in order; a page of the log is read when it is needed."""
    while events := tx.read_log(after=after, limit=LOG_PAGE, types=types):
        yield from events
        if len(events) < LOG_PAGE:
            return
        after = events[-1].seq
