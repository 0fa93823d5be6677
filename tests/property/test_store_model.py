"""Random operations through the host against a plain dictionary.

Whatever happens, in whatever order: reads give what the dictionary has, a read as of a position never changes as long
as the text exists, a walk through pages meets each entry that stays exactly once, and the log verifies.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from tests.postgres import PostgresServer
from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Entry, EntryState
from reverie.core.errors import Conflict, Held, IdempotencyReused, NotFound, QuotaExceeded, ReverieError
from reverie.core.query import Filter
from reverie.host import Host
from reverie.services import Services
from reverie.store.conformance import HandClock

SOAK = os.environ.get("REVERIE_SOAK") == "1"
ADA = Actor(tenant="acme", id="ada")
EVE = Actor(tenant="rival", id="eve")
REFS = ("notes", "team/plans")
refs = st.sampled_from(REFS)
tags = st.lists(st.sampled_from(["red", "blue", "green"]), max_size=2, unique=True).map(tuple)
subjects = st.sampled_from([None, None, "zoe", "max"])
contents = st.sampled_from(["kettle on the shelf", "shelf in the kitchen", "a blue door", "ünï – cödé 🙂", "x" * 300])
lifetimes = st.sampled_from([None, None, None, 1, 5, 20])
chances = st.integers(0, 2**32)


@dataclass
class Record:
    """What the dictionary knows of an entry."""

    content: str
    tags: tuple[str, ...]
    subject: str | None
    created_at: int
    expires_at: int | None
    state: EntryState = EntryState.ACTIVE
    archived: bool = False
    pinned: bool = False
    held: bool = False
    version: int = 1
    order: int = 0
    gone_at: int | None = None

    @property
    def has_text(self) -> bool:
        return self.state is not EntryState.ERASED

    def expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def readable(self, now: int) -> bool:
        return self.state is EntryState.ACTIVE and not self.archived and not self.expired(now)


@dataclass
class Walk:
    """A walk through the pages of a ref, not yet at its end."""

    ref: str
    cursor: str | None
    seen: list[str]
    stays: set[str] = field(default_factory=set)


class HostMachine(RuleBasedStateMachine):
    """The host, and beside it a dictionary."""

    entries = Bundle("entries")
    in_memory = True

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = HandClock()
        self.path = self.make_path()
        self.open_host()
        self.model: dict[str, dict[str, Record]] = {ref: {} for ref in REFS}
        self.answers: dict[str, tuple[tuple[str, str], str]] = {}
        self.snapshots: list[tuple[int, dict[str, list[str]]]] = []
        self.walks: list[Walk] = []
        self.seq, self.count, self.limit = 0, 0, 10_000_000

    def make_path(self) -> str:
        return ":memory:" if self.in_memory else str(Path(self.folder.name) / "memory.db")

    def open_host(self) -> None:
        store = open_store(self.path, clock=self.clock)
        self.host = Host(Services(store=store, clock=self.clock))

    def teardown(self) -> None:
        if hasattr(self, "host"):
            verdict = self.host.audit.verify(ADA)
            assert verdict.ok, verdict
            assert self.host.audit.verify(EVE).ok
            self.host.parts.store.check()
            self.host.close()
            self.folder.cleanup()

    # what the dictionary says

    def record(self, target: tuple[str, str]) -> Record:
        return self.model[target[0]][target[1]]

    def readable(self, ref: str) -> list[str]:
        now = self.clock.now()
        found = [(r.created_at, r.order, i) for i, r in self.model[ref].items() if r.readable(now)]
        return [i for _, _, i in sorted(found, reverse=True)]

    def used(self) -> int:
        return sum(r.has_text for ref in REFS for r in self.model[ref].values())

    def stored(self, ref: str, entry_id: str, draft: Draft) -> tuple[str, str]:
        self.count += 1
        created = draft.created_at if draft.created_at is not None else self.clock.now()
        self.model[ref][entry_id] = Record(
            draft.content, draft.tags, draft.subject, created, draft.expires_at, order=self.count
        )
        self.seq += 1
        return ref, entry_id

    def draft(self, content: str, tags: tuple[str, ...], subject: str | None, life: int | None, age: int) -> Draft:
        now = self.clock.now()
        expires = None if life is None else now + life
        return Draft(content, tags=tags, subject=subject, expires_at=expires, created_at=now - age if age else None)

    # writing

    @rule(
        target=entries, ref=refs, content=contents, tags=tags, subject=subjects, life=lifetimes, age=st.integers(0, 3)
    )
    def put(
        self, ref: str, content: str, tags: tuple[str, ...], subject: str | None, life: int | None, age: int
    ) -> object:
        draft = self.draft(content, tags, subject, life, age)
        if self.used() + 1 > self.limit:
            self.refused(QuotaExceeded, lambda: self.host.entries.put(ADA, ref, [draft]))
            return multiple()
        receipt = self.host.entries.put(ADA, ref, [draft])[0]
        assert receipt.seq == self.seq + 1
        return self.stored(ref, receipt.id, draft)

    @rule(target=entries, ref=refs, number=st.integers(2, 6), tags=tags, life=lifetimes)
    def put_many(self, ref: str, number: int, tags: tuple[str, ...], life: int | None) -> object:
        drafts = [self.draft(f"one of {number}: {n}", tags, None, life, n) for n in range(number)]
        if self.used() + number > self.limit:
            self.refused(QuotaExceeded, lambda: self.host.entries.put(ADA, ref, drafts))
            return multiple()
        receipts = self.host.entries.put(ADA, ref, drafts)
        return multiple(*[self.stored(ref, r.id, d) for r, d in zip(receipts, drafts, strict=True)])

    @rule(target=entries, ref=refs, key=st.sampled_from(["k1", "k2", "k3"]), content=contents)
    def put_with_key(self, ref: str, key: str, content: str) -> object:
        draft = Draft(content)
        known = self.answers.get(key)
        if known is not None and known[0] != (ref, content):
            self.refused(IdempotencyReused, lambda: self.host.entries.put(ADA, ref, [draft], idempotency_key=key))
            return multiple()
        if known is None and self.used() + 1 > self.limit:
            self.refused(QuotaExceeded, lambda: self.host.entries.put(ADA, ref, [draft], idempotency_key=key))
            return multiple()
        receipt = self.host.entries.put(ADA, ref, [draft], idempotency_key=key)[0]
        assert receipt.replayed == (known is not None)
        if known is not None:
            assert receipt.id == known[1]
            return multiple()
        self.answers[key] = ((ref, content), receipt.id)
        return self.stored(ref, receipt.id, draft)

    @rule(target=entries, taken=entries, content=contents)
    def put_with_id(self, taken: tuple[str, str], content: str) -> object:
        ref, entry_id = taken
        other = next(r for r in REFS if r != ref)
        if self.used() + 1 > self.limit:
            return multiple()
        self.refused(Conflict, lambda: self.host.entries.put(ADA, ref, [Draft(content, id=entry_id)]))
        if entry_id in self.model[other]:
            return multiple()
        self.host.entries.put(ADA, other, [Draft(content, id=entry_id)])
        return self.stored(other, entry_id, Draft(content))

    # changing

    def change(self, target: tuple[str, str], verb: str, *, stale: bool, **after: object) -> None:
        """A change of a readable entry, or its refusal."""
        record, call = self.record(target), getattr(self.host.lifecycle, verb)
        if not record.readable(self.clock.now()):
            self.refused(NotFound, lambda: call(ADA, *target))
        elif verb == "delete" and record.held:
            self.refused(Held, lambda: call(ADA, *target))
        elif stale:
            self.refused(Conflict, lambda: call(ADA, *target, expected=record.version + 1))
        else:
            entry = call(ADA, *target, expected=record.version)
            if any(getattr(record, name) != value for name, value in after.items()):
                self.seq += 1
                record.version += 1
            for name, value in after.items():
                setattr(record, name, value)
            if record.archived or record.state is not EntryState.ACTIVE:
                record.gone_at = self.clock.now()
                self.leave(*target)
                self.snapshot()
            assert entry.version == record.version

    def leave(self, ref: str, entry_id: str) -> None:
        for walk in self.walks:
            if walk.ref == ref:
                walk.stays.discard(entry_id)

    @rule(target_=entries, stale=st.booleans())
    def pin(self, target_: tuple[str, str], stale: bool) -> None:
        self.change(target_, "pin", stale=stale, pinned=True)

    @rule(target_=entries)
    def unpin(self, target_: tuple[str, str]) -> None:
        self.change(target_, "unpin", stale=False, pinned=False)

    @rule(target_=entries, stale=st.booleans())
    def archive(self, target_: tuple[str, str], stale: bool) -> None:
        self.change(target_, "archive", stale=stale, archived=True)

    @rule(target_=entries)
    def retract(self, target_: tuple[str, str]) -> None:
        self.change(target_, "retract", stale=False, state=EntryState.RETRACTED)

    @rule(target_=entries)
    def delete(self, target_: tuple[str, str]) -> None:
        self.change(target_, "delete", stale=False, state=EntryState.DELETED)

    @rule(target_=entries, held=st.booleans())
    def hold(self, target_: tuple[str, str], held: bool) -> None:
        record, call = self.record(target_), self.host.lifecycle.hold if held else self.host.lifecycle.release
        if not record.has_text or record.expired(self.clock.now()):
            self.refused(NotFound, lambda: call(ADA, *target_))
            return
        call(ADA, *target_)
        if record.held != held:
            record.held, record.version, self.seq = held, record.version + 1, self.seq + 1

    @rule(which=chances)
    def come_back(self, which: int) -> None:
        """One of those that left; chance alone would rarely meet them."""
        now = self.clock.now()
        cold = [
            (r, i) for r in REFS for i, x in self.model[r].items() if x.has_text and x.gone_at and not x.expired(now)
        ]
        if cold:
            self.restore_one(cold[which % len(cold)])

    @rule(target_=entries)
    def restore(self, target_: tuple[str, str]) -> None:
        self.restore_one(target_)

    def restore_one(self, target_: tuple[str, str]) -> None:
        record, now = self.record(target_), self.clock.now()
        if not record.has_text or record.expired(now):
            self.refused(NotFound, lambda: self.host.lifecycle.restore(ADA, *target_))
        elif not record.archived and record.state is EntryState.ACTIVE:
            self.refused(Conflict, lambda: self.host.lifecycle.restore(ADA, *target_))
        else:
            self.host.lifecycle.restore(ADA, *target_)
            record.archived, record.state, record.gone_at = False, EntryState.ACTIVE, None
            record.version, self.seq = record.version + 1, self.seq + 1

    # destroying

    def destroyed(self, target: tuple[str, str]) -> None:
        record = self.record(target)
        record.state, record.content, record.tags, record.subject = EntryState.ERASED, "", (), None
        record.pinned = False
        self.seq += 1
        self.leave(*target)

    @rule(target_=consumes(entries))
    def erase(self, target_: tuple[str, str]) -> None:
        record = self.record(target_)
        if not record.has_text or record.expired(self.clock.now()):
            self.refused(NotFound, lambda: self.host.lifecycle.erase(ADA, *target_))
        elif record.held:
            self.refused(Held, lambda: self.host.lifecycle.erase(ADA, *target_))
        else:
            assert self.host.lifecycle.erase(ADA, *target_) == len(record.content.encode())
            self.destroyed(target_)

    @rule(subject=st.sampled_from(["zoe", "max"]))
    def forget(self, subject: str) -> None:
        about = [(r, i) for r in REFS for i, x in self.model[r].items() if x.has_text and x.subject == subject]
        if any(self.record(target).held for target in about):
            self.refused(Held, lambda: self.host.forget.forget(ADA, subject))
            return
        assert self.host.forget.forget(ADA, subject).forgotten == len(about)
        for target in about:
            self.destroyed(target)
        self.seq += 1  # the certificate; without an entry, the event by which recorded questions are dropped

    @rule()
    def expire(self) -> None:
        now = self.clock.now()
        due = [(r, i) for r in REFS for i, x in self.model[r].items() if x.has_text and x.expired(now) and not x.held]
        assert self.host.lifecycle.expire(ADA) == len(due)
        for target in due:
            self.destroyed(target)

    @rule()
    def retain(self) -> None:
        before = self.clock.now() - 10
        self.host.rules.set_policy(ADA, {"undo_window_ms": 10})
        self.seq += 1
        due = [
            (r, i)
            for r in REFS
            for i, x in self.model[r].items()
            if x.state is EntryState.DELETED and not x.held and x.gone_at is not None and x.gone_at <= before
        ]
        assert self.host.lifecycle.retain(ADA) == len(due)
        for target in due:
            self.destroyed(target)

    # around it

    @rule(milliseconds=st.sampled_from([1, 1, 4, 15]))
    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        now = self.clock.now()
        for walk in self.walks:
            walk.stays = {i for i in walk.stays if not self.model[walk.ref][i].expired(now)}

    @rule(most=st.sampled_from([3, 8, 10_000_000]))
    def set_policy(self, most: int) -> None:
        self.host.rules.set_policy(ADA, {"max_entries": most})
        self.limit, self.seq = most, self.seq + 1

    @rule(ref=refs)
    def neighbour_writes(self, ref: str) -> None:
        self.host.entries.put(EVE, ref, [Draft("kettle of another tenant", subject="zoe", tags=("red",))])

    @rule()
    def reopen(self) -> None:
        if not self.in_memory:
            self.host.close()
            self.open_host()

    @rule()
    def snapshot(self) -> None:
        seq = self.host.reader.snapshot(ADA)
        assert seq == self.seq
        self.snapshots.append((seq, {ref: self.readable(ref) for ref in REFS}))

    @rule(ref=refs, limit=st.integers(1, 4))
    def begin_walk(self, ref: str, limit: int) -> None:
        page = self.host.reader.page(ADA, ref, limit=limit)
        if page.cursor is not None:
            self.walks.append(Walk(ref, page.cursor, [e.id for e in page.items], set(self.readable(ref))))

    @rule(limit=st.integers(1, 4), which=chances)
    def go_on_walking(self, limit: int, which: int) -> None:
        if not self.walks:
            return
        walk = self.walks[which % len(self.walks)]
        page = self.host.reader.page(ADA, walk.ref, limit=limit, cursor=walk.cursor)
        walk.seen += [e.id for e in page.items]
        walk.cursor = page.cursor
        assert len(walk.seen) == len(set(walk.seen)), "met twice"
        if page.cursor is None:
            assert walk.stays <= set(walk.seen), "never met"
            self.walks.remove(walk)

    # what must hold after every step

    @invariant()
    def lists_are_as_in_the_dictionary(self) -> None:
        if not hasattr(self, "host"):
            return
        for ref in REFS:
            found = self.host.reader.page(ADA, ref, limit=1000).items
            assert [e.id for e in found] == self.readable(ref)
            for entry in found:
                self.equal(entry, self.model[ref][entry.id])
            red = self.host.reader.page(ADA, ref, Filter(tags=("red",)), limit=1000).items
            assert [e.id for e in red] == [i for i in self.readable(ref) if "red" in self.model[ref][i].tags]

    @invariant()
    def words_find_what_is_readable(self) -> None:
        if not hasattr(self, "host"):
            return
        for ref in REFS:
            found = self.host.search.search(ADA, ref, "kettle", mode="words", limit=200).hits
            expected = {i for i in self.readable(ref) if "kettle" in self.model[ref][i].content}
            assert {hit.entry.id for hit in found if "kettle" in hit.entry.content} == expected

    @invariant()
    def the_past_does_not_change(self) -> None:
        if not hasattr(self, "host"):
            return
        now = self.clock.now()
        for seq, lists in self.snapshots[-8:]:
            for ref, ids in lists.items():
                expected = [i for i in ids if self.model[ref][i].has_text and not self.model[ref][i].expired(now)]
                assert [e.id for e in self.host.reader.page(ADA, ref, as_of=seq, limit=1000).items] == expected

    @invariant()
    def counts_fit(self) -> None:
        if not hasattr(self, "host"):
            return
        stats = self.host.reader.stats(ADA)
        text = sum(len(r.content.encode()) for ref in REFS for r in self.model[ref].values())
        assert (stats["events"], stats["text_bytes"]) == (self.seq, text)
        assert stats["entries"] == sum(len(self.readable(ref)) for ref in REFS)

    def equal(self, entry: Entry, record: Record) -> None:
        for name in ("content", "tags", "subject", "created_at", "expires_at", "pinned", "held", "version", "state"):
            assert getattr(entry, name) == getattr(record, name), name

    def refused(self, error: type[ReverieError], call) -> None:  # type: ignore[no-untyped-def]
        try:
            call()
        except error:
            return
        raise AssertionError(f"should have been refused with {error.__name__}")


class FileMachine(HostMachine):
    """The same in a file, closed and opened again in between."""

    in_memory = False


class PostgresMachine(HostMachine):
    """The same in PostgreSQL, also closed and opened again."""

    in_memory = False
    server: PostgresServer
    url: str

    def make_path(self) -> str:
        assert self.server.empty_database(self.url)
        return self.url


@pytest.fixture(autouse=True, scope="module")
def _database(postgres: PostgresServer) -> Iterator[None]:
    PostgresMachine.server, PostgresMachine.url = postgres, postgres.make_database()
    yield
    postgres.drop_database(PostgresMachine.url)


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": not SOAK}
TestInMemory = HostMachine.TestCase
TestInMemory.settings = settings(max_examples=2000 if SOAK else 12, stateful_step_count=40, **COMMON)  # type: ignore[arg-type]
TestInFile = FileMachine.TestCase
TestInFile.settings = settings(max_examples=500 if SOAK else 5, stateful_step_count=40, **COMMON)  # type: ignore[arg-type]
TestInPostgres = PostgresMachine.TestCase
TestInPostgres.settings = settings(max_examples=200 if SOAK else 4, stateful_step_count=40, **COMMON)  # type: ignore[arg-type]
