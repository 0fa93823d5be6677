"""Snapshots: a read may stay open for any time; no writer waits for it, and it sees no change.

A store whose readers and writers take turns (one in memory, for instance) may leave this capability out.
"""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from reverie.core.entry import Entry
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry
from reverie.store.contract import ReadTx


def an_open_read_sees_no_change(lab: Lab) -> None:
    """Writes, changes and erasure commit meanwhile; the open read still shows what was."""
    kept = lab.put("The old kettle.", id="a", tags=("t",))
    lab.put(id="b")

    def look(tx: ReadTx) -> list[object]:
        where = Filter()
        return [
            tx.head(),
            tx.get("a"),
            tx.scan(where, limit=10),
            tx.match(["kettle"], where, limit=10),
            tx.read_log(),
            tx.refs(),
        ]

    def body(tx: ReadTx) -> None:
        before = look(tx)
        worker = threading.Thread(target=_disturb, args=(lab,))
        worker.start()
        worker.join(30)
        assert not worker.is_alive(), "the writer waited for the reader"
        assert look(tx) == before
        assert tx.get("a") == kept

    lab.read(body)
    assert lab.get("a") is None
    assert lab.head().seq == 5


def an_open_read_keeps_what_a_filter_leaves(lab: Lab) -> None:
    """While others search and change a filter's matches, the open read finds those from when it began."""
    where = Filter(tags=("t",))
    lab.put_many([make_entry(tags=("t",) if n % 100 == 50 else ()) for n in range(300)])
    lab.put("kettle", id="b", tags=("t",))

    def look(tx: ReadTx) -> set[str]:
        return {match.entry.id for match in tx.match(["kettle"], where, limit=20)}

    def body(tx: ReadTx) -> None:
        before = look(tx)
        assert len(before) == 4
        worker = threading.Thread(target=lambda: later.append((lab.put(id="c", tags=("t",)), lab.read(look))))
        worker.start()
        worker.join(30)
        assert look(tx) == before
        assert later[0][1] == before | {"c"}

    later: list[tuple[Entry, set[str]]] = []
    lab.read(body)


def _disturb(lab: Lab) -> None:
    lab.put(id="c", tags=("t",))
    lab.change("b", archived=True)
    lab.purge("a")


def an_open_write_blocks_no_reader(lab: Lab) -> None:
    """While a write is inside its body, others read what was committed before it."""
    lab.put(id="a")
    inside, leave = threading.Event(), threading.Event()

    def body(_: object) -> None:
        inside.set()
        assert leave.wait(30)

    writer = threading.Thread(target=lambda: lab.write(body))
    writer.start()
    try:
        assert inside.wait(30)
        assert lab.ids() == ["a"]
    finally:
        leave.set()
        writer.join()


def a_backup_is_one_moment(lab: Lab) -> None:
    """A copy made while writers go on is whole, and its progress reaches the end."""
    lab.put_many([make_entry(content=f"kettle {n} " * 40) for n in range(3000)])
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        lab.put()

    with TemporaryDirectory() as folder:
        target = Path(folder) / "copy"
        lab.store.backup(str(target), progress=progress)
        assert target.stat().st_size > 0
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
