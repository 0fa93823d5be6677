"""Transfer: rows are read and stored as they are."""

from __future__ import annotations

from reverie.core.entry import Link
from reverie.core.errors import ReadOnly
from reverie.store.conformance.lab import Lab, make_event, refuses
from reverie.store.contract import WriteTx
from reverie.store.transfer import TABLES


def rows_put_back_change_nothing(lab: Lab) -> None:
    """Rows of `stream` are accepted by `put`: putting every row back in its place leaves the store as it was."""
    one, two = lab.put(tags=("a", "b")), lab.put()

    def more(tx: WriteTx) -> None:
        seq = tx.append(make_event())
        tx.link(Link(one.id, two.id, "relates-to", "a note"))
        tx.save("space", "key", b"body", seq=seq)
        tx.remember_answer("k", "digest", b"answer", until=tx.now + 1000)

    lab.write(more)
    transfer = lab.store.transfer()
    try:
        (tenant,) = transfer.tenants()
        before = {table.name: list(transfer.stream(tenant, table)) for table in TABLES}
        assert {name: len(rows) for name, rows in before.items()} == transfer.counts(tenant)
        for table in TABLES:
            assert [key for key, _ in transfer.stamps(tenant, table)] == [
                table.key_of(row) for row in before[table.name]
            ]
            if table.name != "event":
                transfer.put(tenant, table, before[table.name])
        assert {table.name: list(transfer.stream(tenant, table)) for table in TABLES} == before
    finally:
        transfer.close()


def a_store_that_was_moved_takes_no_more_writes(lab: Lab) -> None:
    """Closing a store for good reaches every writer; reopening lets them continue."""
    kept = lab.put()
    transfer = lab.store.transfer()
    try:
        with transfer.stopped() as close:
            close()
        with refuses(ReadOnly):
            lab.put()
        assert lab.get(kept.id) == kept
        transfer.reopen()
        lab.put()
    finally:
        transfer.close()
