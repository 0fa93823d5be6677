"""The contract between the host and a store.

`store.write(scope, body)` runs `body(tx)` inside one transaction and returns its result after the commit is
durable; if `body` raises, nothing it did remains. `store.read(scope, body)` runs `body(tx)` on one unchanging
snapshot and never waits for a writer. Bodies are plain synchronous functions: no network, no model, no `await`
inside a transaction. A body may be run again when the store had to retry, so it must not have effects of its own.

The scope is bound when the transaction opens. No verb takes a tenant; with a bound `ref`, entry verbs see that ref
only. For an unknown tenant a store reads as empty, and the first write makes the tenant.

Nothing changes without an event: verbs that change entries or documents take `seq`, the position that `append`
returned in the same transaction, and refuse any other.

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
"""Number of events that are read at once."""


class WouldWait(Exception):
    """A body that may not wait would have to wait for another writer or for pending maintenance. Nothing was done."""


class SearchIndex(Protocol):
    """A search index of one memory: of the readable entries, or of cold storage."""

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
        """The best passages by BM25 and as many by cosine, each once, in as few round trips as possible.

        `ahead` is a hint: the neighbours of this many of the best turns of conversations will be asked for (`around`
        with two steps). To choose those turns, a cosine of 1 counts `meaning` times as much as the best match of words.
        """

    def known(self, terms: Sequence[str]) -> frozenset[str]:
        """The terms among `terms` that some entry has."""


class ColdIndex(SearchIndex, Protocol):
    """The index of the sources of dreams, under statistics of their own."""

    def __len__(self) -> int:
        """Number of passages."""


class ReadTx(SearchIndex, Protocol):
    """One unchanging snapshot of one scope."""

    now: int
    """The instant of the transaction, in milliseconds, at which entries count as expired or not."""

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
        """The entry, if it matches `where` (by default readable and unexpired). `as_of` reads at a log position."""

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

        Without a ref, with `gone`, or when expired entries are asked for: in order of insertion instead. A cursor
        reveals nothing about other tenants. Raises Invalid for a cursor that no store gave out. `as_of` needs a ref.
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

        In the bound ref only or, without one, in every ref of the tenant. `erased`: also tombstones, except of entries
        destroyed for this subject. Indexed: no scan.
        """

    def refs(self, prefix: str = "") -> list[tuple[str, int]]:
        """Every ref of the tenant that has readable entries, with their number, by name.

        `prefix`: only refs that begin with it. Indexed: other refs cost nothing.
        """

    def facets(self, *, most: int) -> Mapping[str, list[tuple[str, int]]]:
        """The values of `kind`, `subject`, `source` (actor) and `tag` in readable entries of this memory.

        Each has the number of entries, the most frequent first. Tags that the host sets are left out. No entry is read.
        """

    def leases(self, *, limit: int) -> list[Lease]:
        """Leases of the tenant that are held now, by name."""

    def ids(self, prefix: str, *, limit: int) -> list[str]:
        """Ids in the bound ref that begin with a prefix, in order, without drafts and erased entries. Indexed."""

    def match(self, terms: Sequence[str | QueryWord], where: Filter, *, limit: int) -> list[Match]:
        """The best passages by BM25 over any of `terms`, under the statistics of this memory alone."""

    def nearest(self, vector: Vector, where: Filter, *, limit: int) -> list[Match]:
        """The best passages by cosine with vectors of the same model and length; exact up to 50,000 vectors."""

    def cold_index(self) -> ColdIndex:
        """The index of this memory's cold storage: the sources of dreams."""

    def around(self, positions: Sequence[int], *, steps: int = 1) -> Mapping[int, tuple[int | None, int | None]]:
        """For each position, the positions of the readable entries before and after it in its ref.

        With more steps, also for the positions found, up to that distance.
        """

    def at(self, positions: Sequence[int], where: Filter) -> Mapping[int, Entry]:
        """The entries at these positions that match."""

    def briefs(self, positions: Sequence[int], where: Filter) -> Mapping[int, Brief]:
        """The same entries, in brief."""

    def foremost(
        self,
        lists: Sequence[Sequence[int]],
        where: Filter,
        *,
        limit: int,
        promising: Callable[[], Sequence[int]] | None = None,
    ) -> Mapping[int, Brief]:
        """The first entries of each list of positions that match, at most `limit` of each. `promising`: for `find`."""

    def cosines(self, vector: Vector, positions: Sequence[int]) -> Mapping[int, Sequence[float]]:
        """The cosines of the passages of entries at these positions that have vectors of `vector`'s model."""

    def index_state(self, model: str) -> tuple[int, int]:
        """(readable entries, those with a vector of `model`)."""

    def unembedded(self, model: str, *, limit: int) -> list[Entry]:
        """Readable entries and sources of dreams that have no vector of `model`, oldest first."""

    def links(self, *entry_ids: str, incoming: bool = False, type: str | None = None) -> list[Link]:  # noqa: A002
        """Links that start at the entries, in the order they were made.

        `incoming`: links that end at the entries, ordered by their start.
        """

    def read_log(
        self, *, after: int = 0, before: int | None = None, limit: int = 1000, types: Sequence[str] | None = None
    ) -> list[Event]:
        """Events after a position, in order. With `before`: the events between the two, newest first.

        `types`: only events of these types. For a few types this is indexed: other events cost nothing.
        """

    def flow(self, instants: Sequence[int]) -> list[Flow]:
        """The tenant's log at each of the ascending instants: position, entries stored by then, entries that left.

        It reads a few rows for each instant, and index rows of the entries that left in between.
        """

    def read_run(self, run: str, *, skip: int = 0, limit: int = 1000) -> list[Event]:
        """Events whose data names this run (`data["run"]`), in order, without the first `skip`. Indexed: no scan."""

    def load(self, space: str, key: str, *, version: int | None = None, dropped: bool = False) -> Document | None:
        """A document, by default the newest version; None when absent or dropped.

        `dropped`: also a tombstone (its body is None). The next version continues from the tombstone's.
        """

    def documents(
        self, space: str, *, prefix: str = "", limit: int = 1000, cursor: str | None = None, dropped: bool = False
    ) -> Page[Document]:
        """Current documents of a space by key. `dropped`: also the tombstones of dropped documents."""

    def recall_answer(self, key: str) -> tuple[str, bytes] | None:
        """(request digest, stored answer) of an idempotency key that is still remembered."""

    def searches(self) -> dict[str, bytes]:
        """The sealed recorded searches by ref: of the bound memory or, without one, of every memory."""


class WriteTx(ReadTx, Protocol):
    """An atomic transaction that changes one scope."""

    def append(self, *events: NewEvent, tick: bool = True, received_epoch: int = 0) -> int:
        """Append events to the log. Returns the position of the last.

        `tick` advances the Lamport epoch past `received_epoch`, once for each event.
        """

    def insert(
        self, entry: Entry, *, seq: int, terms: Sequence[str], vector: tuple[str, bytes] | None, minted: bool
    ) -> Entry:
        """Store an entry born at `seq`, with its words and vector. `minted`: the id is new by construction.

        Raises Conflict(`id_taken`) when the ref has, or ever had, an entry with that id.
        """

    def change(self, entry_id: str, *, seq: int, expected: int | None = None, **changes: Unpack[Changes]) -> Entry:
        """Change mutable fields; the version goes up by one. Raises Conflict when `expected` is not the version.

        The event names the entry when that goes from cold storage to a state in which it is not readable either.
        Reads as of an earlier position stay as they were. An entry that becomes unreadable leaves the indexes and
        gets `gone_seq`. An entry that becomes readable again is not found by searches until `index` is called for it.
        """

    def change_each(
        self, versions: Mapping[str, int | None], *, seq: int, **changes: Unpack[Changes]
    ) -> Sequence[Entry]:
        """`change` for several entries at once. `versions`: the expected version by id."""

    def index(self, entry_id: str, *, seq: int, terms: Sequence[str] | None, vector: tuple[str, bytes] | None) -> None:
        """(Re)make the words (unless None) and the vector (unless None) of a readable entry."""

    def rewrite(self, entry: Entry, *, seq: int, terms: Sequence[str], vector: tuple[str, bytes] | None) -> None:
        """Replace the text of a stored entry by a more redacted one. For the re-scan; nothing else rewrites text."""

    def purge(self, *entry_ids: str, seq: int, subject: str | None = None) -> int:
        """Destroy text, tags, subject, attributes, words, vector and notes on links. Returns the bytes of content.

        `seq`: the event of the last entry; the events of the others directly precede it. Each names its entry.

        Of the source only door and trust remain: session, run, node, role and actor are the caller's words too.

        The row stays as a tombstone (state `erased`), so the id is never used again. It can still be found by the
        hashes of its subjects, because entries made from it may outlive it. `subject`: the hash for which the entries
        are destroyed; from now on, not even the tombstones are found by it.
        """

    def link(self, *links: Link) -> None:
        """Add links; adding one again does nothing. Targets need not exist. The transaction must have an event."""

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
        """Write the next version of a document and keep the last `keep` versions.

        Raises Conflict when `expected` is not the current version (0: absent). `destroy`: the text of versions that are
        not kept is destroyed as with `purge`.
        """

    def drop(
        self, space: str, key: str, *, seq: int, expected: int | None = None, keep: int = 1, destroy: bool = False
    ) -> bool:
        """Drop a document; its version count continues. False when there was none.

        `keep=0` leaves no tombstone: nothing of the document remains, not even its key, and the count restarts.
        `destroy`: as in `save`; it also reaches the kept versions of a document that was dropped before.
        """

    def remember_answer(self, key: str, digest: str, answer: bytes, *, until: int) -> None:
        """Keep the answer to an idempotent request."""

    def keep_searches(self, body: bytes | None) -> None:
        """Replace the recorded searches of the bound memory.

        None removes them; without a bound ref, those of every memory. Needs no event: they are not entries.
        """

    def trim(self) -> None:
        """Drop expired answers."""

    def claim(self, name: str, holder: str, *, until: int) -> bool:
        """Take a lease that is free, expired or already ours. False when someone else holds it."""

    def release(self, name: str, holder: str) -> None:
        """Release a lease; does nothing when it is not ours."""

    def wake(self, at: int | None, *, exactly: bool = False) -> None:
        """Have workers look at this tenant at an instant, or earlier if that was planned. `exactly`: not earlier.

        None with `exactly`: not at all. Needs no event: this is a schedule, not data.
        """


class ControlTx(Protocol):
    """Data outside tenants: their list, their keys, and host-wide settings."""

    @property
    def now(self) -> int:
        """The time of the transaction."""

    def tenants(self) -> list[str]:
        """Every tenant, by name."""

    def awake(self) -> list[str]:
        """Tenants that are due now, longest due first. A new tenant, or one moved here, is due at once. Indexed."""

    def key(self, key_id: str) -> Key | None:
        """A key by its public id."""

    def keys(self, tenant: str | None = None) -> list[Key]:
        """Keys, oldest first."""

    def add_key(self, key: Key) -> None:
        """Store a new key."""

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key now or at a later instant (for rotation with overlap), unless it is revoked earlier. False when
        the key is unknown."""

    def setting(self, name: str) -> bytes | None:
        """A host-wide value."""

    def set_setting(self, name: str, value: bytes) -> None:
        """Store a host-wide value."""

    def take_setting(self, name: str) -> bytes | None:
        """Remove a host-wide value and return it: of several callers, only one gets it."""


class Store(Protocol):
    """A store of tenants and their memories."""

    name: str
    """`sqlite`, `postgres`."""
    outside: Sequence[str]
    """The kinds of copies of destroyed text that remain for a while, out of reach of every query."""
    durable: bool
    """Whether stored data survives the process."""
    quick: bool
    """Whether reading one row waits only for a local disk, so that an event loop may do it."""

    @property
    def free(self) -> bool:
        """Whether a small write made now would wait only for the disk."""

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        """Run `body` in one durable transaction.

        A body may have an attribute `weight`, the number of entries it stores, so that heavy bodies do not delay light
        ones. For a body with the attribute `waits = False`, a `quick` store raises WouldWait, before anything is done,
        when it would have to wait for more than the disk.
        """

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        """Run `body` on one snapshot.

        A body may have an attribute `searches`: then the rows that its search needs are fetched with the snapshot.
        """

    def control(self, body: Callable[[ControlTx], T], *, write: bool = False) -> T:
        """Run `body` above all tenants. A write is one transaction; in a read, each query may see another state."""

    def check(self, *, quick: bool = False) -> Mapping[str, Any]:
        """Check the store, and return its figures: integrity, version, size. Raises StoreError when it is not sound.

        `quick`: only checks that are fast enough for every start of a server.
        """

    def anchored(self, tenant: str) -> Anchored | None:
        """The acknowledged position of a tenant's log, as noted outside the database; None without a note.

        Must be called before the snapshot with which it is compared is taken.
        """

    def damaged(self, tenant: str) -> str | None:
        """Describe the tenant's rows that differ from their stored checksums; None when there are none."""

    def backup(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> None:
        """Write a consistent copy while writers continue. Raises StoreError when the target exists."""

    def switch_wal(self) -> str:
        """End the segment of a server's log that may hold destroyed text. Returns a sentence on when it is gone."""

    def transfer(self) -> Transfer:
        """The store's rows as they are, for moving memory to another store."""

    def close(self) -> None:
        """Finish all accepted work, then release every resource."""


def each_event(tx: ReadTx, *, after: int = 0, types: Sequence[str] | None = None) -> Iterator[Event]:
    """The events after a position, in order. Each page of the log is read when it is needed."""
    while events := tx.read_log(after=after, limit=LOG_PAGE, types=types):
        yield from events
        if len(events) < LOG_PAGE:
            return
        after = events[-1].seq
