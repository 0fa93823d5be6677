"""Move memory from one store to another, while it is in use.

Passes copy what the target lacks while writers continue; each has less to copy than the one before. Then the whole copy
is verified by the hashes of its log. Then writing stops for the last, short pass, and the source is closed for good: a
writer that still uses it is refused with the reason that memory was moved. A move that was killed at any instruction
continues when it is started again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from reverie.core.errors import Conflict, StoreCorrupt
from reverie.core.files import make_folder, open_new
from reverie.host import Host
from reverie.privacy.ledger import FileLedger
from reverie.services import Services
from reverie.settings import Settings
from reverie.store.contract import Store
from reverie.store.transfer import EVENT, TABLES, Row, Table, TenantRow, Transfer

Progress = Callable[[int, int], None]
MARK = "moving"
_BATCH = 1000
_NEAR = 200
"""A target that is at most this many events behind makes the last pass short."""
_PASSES = 5
_UNLOGGED = [table for table in TABLES if table.name in ("answer", "searches")]
"""Tables whose rows change without an event."""


class MoveReport(Struct, frozen=True):
    """The result of a move."""

    tenants: int
    events: int
    entries: int
    rows: int
    """Rows copied by this call; fewer than there are when it continued an earlier one."""
    passes: int
    closed: bool
    """Whether the source is closed, so that nothing written later is left behind."""


def move(source: Store, target: Store, *, close_source: bool = True, progress: Progress | None = None) -> MoveReport:
    """Copy everything and verify it. Refuses a target that holds anything but an earlier state of the same memory."""
    out, into = source.transfer(), target.transfer()
    try:
        return _Move(source, target, out, into, progress or (lambda _done, _total: None)).run(close_source)
    finally:
        out.close()
        into.close()


def check_files(source: Settings, target: Settings) -> None:
    """Refuse a target whose host would use another key: it could not open the secrets sealed by the source."""
    old, new = source.key_path, target.key_path
    if old.is_file() and new.is_file() and old.read_bytes() != new.read_bytes():
        raise Conflict(f"{new} is another key than {old}. Move it away if nothing is sealed with it, and try again.")


def carry_files(source: Settings, target: Settings) -> list[str]:
    """Copy the key file to where the target's host looks for it, unless one exists, and complete the forget ledger.

    Returns the files written. However this is killed, the key file is complete or missing: half of one would block the
    right one.
    """
    carried = []
    old, new = source.key_path, target.key_path
    if old.is_file() and not new.exists():
        make_folder(new.parent)
        fresh = new.with_name(f".{new.name}.part")
        fresh.unlink(missing_ok=True)  # of a move that was cut off
        with os.fdopen(open_new(fresh), "wb") as file:
            file.write(old.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(new)
        carried.append(str(new))
    if FileLedger(target.ledger_path).take(FileLedger(source.ledger_path)):
        carried.append(str(target.ledger_path))
    return carried


class _Move:
    def __init__(self, source: Store, target: Store, out: Transfer, into: Transfer, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._out = out
        self._into = into
        self._progress = progress
        self._rows = 0

    def run(self, close_source: bool) -> MoveReport:
        self._refuse_strangers()
        self._into.reopen()
        passes = 0
        while passes < _PASSES:
            passes += 1
            self._pass()
            if self._events_behind() <= _NEAR:
                break
        verified = self._verify_whole()
        with self._out.stopped() as seal:
            self._pass()
            self._verify_end(verified)
            settings, keys = self._out.above()
            self._into.put_above(settings, keys)
            if close_source:
                seal()
        tenants = self._into.tenants()
        return MoveReport(
            tenants=len(tenants),
            events=sum(tenant.seq for tenant in tenants),
            entries=sum(tenant.entries for tenant in tenants),
            rows=self._rows,
            passes=passes + 1,
            closed=close_source,
        )

    def _refuse_strangers(self) -> None:
        """Refuse a target unless it is empty, is marked as the target of this move, or holds an earlier state of this
        memory.
        """
        identity = self._identity()
        settings, keys = self._into.above()
        marked = next((value for name, value in settings if name == MARK), None)
        own = {tenant.name: tenant for tenant in self._out.tenants()}
        for tenant in self._into.tenants():
            mine = own.get(tenant.name)
            same = mine is not None and (mine.n, mine.log_key) == (tenant.n, tenant.log_key)
            if not same or (marked != identity and not self._was(mine, tenant)):
                raise Conflict(
                    "The target holds other memory. Nothing was changed. Name an empty database or a new file.",
                    code="target_not_empty",
                )
        if marked != identity:
            self._into.put_above([*(row for row in settings if row[0] != MARK), (MARK, identity)], keys)

    def _identity(self) -> bytes:
        """A digest that every move of this memory computes alike: the log key of its oldest tenant never changes."""
        own = [tenant.log_key for tenant in self._out.tenants()[:1]]
        return hashlib.sha256(b"".join(own)).hexdigest().encode()

    def _was(self, mine: TenantRow | None, earlier: TenantRow) -> bool:
        if mine is None or earlier.seq > mine.seq:
            return False
        if earlier.seq == 0:
            return True
        found = self._out.rows(mine, EVENT, [(earlier.seq,)])
        return bool(found) and bytes(found[0][-1]) == bytes(earlier.hash)

    def _events_behind(self) -> int:
        have = {tenant.name: tenant.seq for tenant in self._into.tenants()}
        return sum(tenant.seq - have.get(tenant.name, 0) for tenant in self._out.tenants())

    def _pass(self) -> None:
        """Copy the rows that the target lacks."""
        tenants = self._out.tenants()
        total = sum(tenant.seq + tenant.entries for tenant in tenants)
        done = 0
        have = {tenant.name: tenant for tenant in self._into.tenants()}
        for tenant in tenants:
            there = have.get(tenant.name)
            if there is None or there.seq != tenant.seq or there.hash != tenant.hash or not self._same_counts(tenant):
                self._tenant(tenant)
            else:
                for table in _UNLOGGED:
                    self._sync(tenant, table)
            done += tenant.seq + tenant.entries
            self._progress(done, total)

    def _same_counts(self, tenant: TenantRow) -> bool:
        return self._out.counts(tenant) == self._into.counts(tenant)

    def _tenant(self, tenant: TenantRow) -> None:
        self._into.make(tenant)
        for table in TABLES:
            if table is EVENT:
                self._events(tenant)
            else:
                self._sync(tenant, table)
        # the head goes last, and only as far as the events that were copied: a reader of the target sees a whole log
        self._into.set_head(self._head(tenant))

    def _head(self, tenant: TenantRow) -> TenantRow:
        """The present head, limited to the events copied: the tables were read after the head that began the pass."""
        now = next(one for one in self._out.tenants() if one.n == tenant.n)
        last = self._into.counts(tenant)["event"]
        if last == now.seq:
            return now
        found = self._into.rows(tenant, EVENT, [(last,)])
        if not found:
            return tenant
        row = dict(zip(EVENT.columns, found[0], strict=True))
        return msgspec.structs.replace(now, seq=last, epoch=row["epoch"], hash=bytes(row["hash"]))

    def _events(self, tenant: TenantRow) -> None:
        have = self._into.counts(tenant)["event"]
        for batch in _batches(self._out.stream(tenant, EVENT, (have,) if have else None)):
            self._put(tenant, EVENT, batch)

    def _sync(self, tenant: TenantRow, table: Table) -> None:
        if not self._into.counts(tenant)[table.name]:
            for batch in _batches(self._out.stream(tenant, table)):
                self._put(tenant, table, batch)
            return
        changed: list[Row] = []
        gone: list[Row] = []
        for key, here, there in _both(self._out.stamps(tenant, table), self._into.stamps(tenant, table)):
            if here is _NOTHING:
                gone.append(key)
            elif here != there:
                changed.append(key)
        for at in range(0, len(gone), _BATCH):
            self._into.drop(tenant, table, gone[at : at + _BATCH])
        for at in range(0, len(changed), _BATCH):
            self._put(tenant, table, self._out.rows(tenant, table, changed[at : at + _BATCH]))

    def _put(self, tenant: TenantRow, table: Table, rows: list[Row]) -> None:
        self._into.put(tenant, table, rows)
        self._rows += len(rows)

    def _verify_whole(self) -> dict[str, int]:
        """Verify every tenant of the copy by its log. Returns the log position of each tenant that is sound.

        A tenant that was written to meanwhile may fail: its rows are of different moments. The last pass decides.
        """
        host = Host(Services(store=self._target, read_only=True))
        tenants = self._into.tenants()
        return {one.name: one.seq for one in tenants if host.audit.verify(host.system_actor(one.name)).ok}

    def _verify_end(self, verified: dict[str, int]) -> None:
        """Refuse a copy unless it has the same heads, the same counts, and unbroken logs that fit the entries."""
        host = Host(Services(store=self._target, read_only=True))
        mine, theirs = self._out.tenants(), self._into.tenants()
        if mine != theirs:
            raise StoreCorrupt("The copy is not the same as the source. The source is unchanged. Start the move again.")
        for tenant in theirs:
            if not self._same_counts(tenant):
                raise StoreCorrupt("The copy lacks rows. The source is unchanged. Start the move again.")
            if tenant.seq != verified.get(tenant.name):
                verdict = host.audit.verify(host.system_actor(tenant.name))
                if not verdict.ok:
                    raise StoreCorrupt(
                        f"The copy of tenant {tenant.name} is not sound at {verdict.broken_at}: {verdict.reason}. "
                        "The source is unchanged. Examine it with `reverie audit verify`."
                    )


_NOTHING = object()


def _both(one: Iterator[tuple[Row, Any]], two: Iterator[tuple[Row, Any]]) -> Iterator[tuple[Row, Any, Any]]:
    """Merge two streams in the order of their keys: (key, stamp here, stamp there)."""
    here, there = next(one, None), next(two, None)
    while here is not None or there is not None:
        if there is None or (here is not None and here[0] < there[0]):
            assert here is not None
            yield here[0], here[1], _NOTHING
            here = next(one, None)
        elif here is None or there[0] < here[0]:
            yield there[0], _NOTHING, there[1]
            there = next(two, None)
        else:
            yield here[0], here[1], there[1]
            here, there = next(one, None), next(two, None)


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
