"""Concurrency: many threads on one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise

from reverie.core.entry import Entry
from reverie.core.errors import Conflict, ReverieError
from reverie.core.query import Filter, Head
from reverie.store.conformance.lab import Lab, make_entry, make_event, put, refuses
from reverie.store.contract import ReadTx, WriteTx


def _together(count: int, work: Callable[[int], None]) -> None:
    barrier = threading.Barrier(count)
    faults: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def no_write_is_lost(lab: Lab) -> None:
    """Every acknowledged entry is stored once, the log is gapless and chained, and the counts match."""

    def work(number: int) -> None:
        for n in range(25):
            lab.put(id=f"{number}-{n}", tenant=f"t{number % 2}")

    _together(8, work)
    for tenant in ("t0", "t1"):
        assert len(set(lab.ids(tenant=tenant))) == 100
        events = lab.read(lambda tx: tx.read_log(), tenant=tenant)
        assert [e.seq for e in events] == list(range(1, 101))
        assert all(b.prev_hash == a.hash for a, b in pairwise(events))
        assert (lab.head(tenant=tenant).entries, lab.head(tenant=tenant).hash) == (100, events[-1].hash)


def a_version_is_won_once(lab: Lab) -> None:
    """Of many changes that expect one version, exactly one succeeds."""
    lab.put(id="a")
    won: list[int] = []

    def work(number: int) -> None:
        try:
            lab.change("a", expected=1, attributes={"by": number})
            won.append(number)
        except Conflict:
            pass

    _together(8, work)
    entry = lab.get("a")
    assert entry is not None
    assert [entry.attributes["by"]] == won
    assert entry.version == 2


def an_id_is_taken_once(lab: Lab) -> None:
    """Of many inserts of one id, exactly one succeeds."""
    won: list[int] = []
    codes: set[str] = set()

    def work(number: int) -> None:
        try:
            lab.put(id="a", attributes={"by": number})
            won.append(number)
        except Conflict as fault:
            codes.add(fault.reason)

    _together(8, work)
    assert len(won) == 1
    assert codes == {"id_taken"}
    assert lab.head().seq == 1


def an_answer_is_given_once(lab: Lab) -> None:
    """The same key from many threads: one write, and everyone gets its answer."""
    answers: list[bytes] = []

    def work(_: int) -> None:
        def body(tx: WriteTx) -> bytes:
            known = tx.recall_answer("k")
            if known is not None:
                return known[1]
            entry = put(tx, make_entry())
            tx.remember_answer("k", "d", entry.id.encode(), until=tx.now + 1000)
            return entry.id.encode()

        answers.append(lab.write(body))

    _together(8, work)
    assert len(set(answers)) == 1
    assert len(lab.ids()) == 1


def a_read_is_one_snapshot(lab: Lab) -> None:
    """Inside one read, the head, the list, the log and the words agree while others write."""
    done = threading.Event()

    def look(tx: ReadTx) -> tuple[Head, list[Entry], int, int]:
        where = Filter()
        return (
            tx.head(),
            list(tx.scan(where, limit=10_000).items),
            len(tx.read_log(limit=10_000)),
            len(tx.match(["kettle"], where, limit=10_000)),
        )

    def work(number: int) -> None:
        if number:
            for _ in range(40):
                lab.put_many([make_entry(), make_entry()])
            done.set()
            return
        while not done.is_set():
            head, entries, events, matches = lab.read(look)
            assert head.seq == len(entries) == events == matches == head.entries
            assert head.seq % 2 == 0

    _together(3, work)


def first_writes_of_a_tenant_can_come_together(lab: Lab) -> None:
    """Many threads make the same new tenants at once: each is made once."""

    def work(_: int) -> None:
        for n in range(5):
            lab.put(tenant=f"t{n}")

    _together(6, work)
    assert lab.store.control(lambda tx: tx.tenants()) == [f"t{n}" for n in range(5)]
    assert {lab.head(tenant=f"t{n}").seq for n in range(5)} == {6}


def closing_finishes_what_was_accepted(lab: Lab) -> None:
    """A store that is closed while threads write acknowledges each write or refuses it as closed; none hangs."""
    started = threading.Event()
    refused: list[str] = []

    def work(number: int) -> None:
        if number == 0:
            started.wait()
            lab.store.close()
            return
        while True:
            try:
                if lab.write(lambda tx: tx.append(make_event())) > 20:
                    started.set()
            except ReverieError as fault:
                refused.append(fault.reason)
                return

    _together(5, work)
    assert refused == ["store_unavailable"] * 4
    with refuses(ReverieError, "store_unavailable"):
        lab.head()
    lab.store.close()
