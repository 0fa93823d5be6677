"""Rollback: if a body raises, nothing it did remains, and no other transaction notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise

from reverie.core.entry import EntryState, Link
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry, make_event, put, refuses
from reverie.store.contract import WriteTx

_V = ("m", bytes([3] * 8))


def _inserts(tx: WriteTx) -> None:
    put(tx, make_entry(id="new", tags=("t",)), vector=_V)


def _reads_after_inserting(tx: WriteTx) -> None:
    _inserts(tx)
    assert tx.get("new") is not None
    put(tx, make_entry(id="newer"), vector=_V)


def _changes(tx: WriteTx) -> None:
    tx.change("old", seq=tx.append(make_event()), state=EntryState.DELETED)


def _purges_between_inserts(tx: WriteTx) -> None:
    _inserts(tx)
    tx.purge("old", seq=tx.append(make_event()))
    put(tx, make_entry(id="newer"))


def _everything_else(tx: WriteTx) -> None:
    seq = tx.append(make_event("policy.changed"))
    tx.link(Link("old", "x", "supports"))
    tx.save("files", "k", b"new", seq=seq)
    tx.drop("files", "gone", seq=seq)
    tx.remember_answer("k", "d", b"a", until=tx.now + 100)
    tx.claim("lease", "me", until=tx.now + 100)
    tx.index("old", seq=seq, terms=["teapot"], vector=("another model", bytes([4] * 8)))


BODIES = (_inserts, _reads_after_inserting, _changes, _purges_between_inserts, _everything_else)


def _state(lab: Lab) -> list[object]:
    where = Filter()
    return lab.read(
        lambda tx: [
            tx.head(),
            tx.scan(where, limit=100),
            tx.match(["kettle"], where, limit=100),
            tx.match(["teapot"], where, limit=100),
            tx.nearest(_V, where, limit=100),
            tx.links("old"),
            tx.load("files", "k"),
            tx.load("files", "gone"),
            tx.recall_answer("k"),
            tx.read_log(),
            tx.index_state("another model"),
        ]
    )


def _prepare(lab: Lab) -> None:
    lab.put(id="old", tags=("t",), vector=_V)
    lab.write(lambda tx: tx.save("files", "gone", b"x", seq=tx.append(make_event())))


def _failing(body: Callable[[WriteTx], None], fault: BaseException) -> Callable[[WriteTx], None]:
    def run(tx: WriteTx) -> None:
        body(tx)
        raise fault

    return run


def nothing_remains_of_a_body_that_raised(lab: Lab) -> None:
    """A body that raises anything leaves no trace; the store continues as if it had never been called."""
    _prepare(lab)
    for body in BODIES:
        for fault in (ValueError("no"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
            before = _state(lab)
            with refuses(type(fault)):
                lab.write(_failing(body, fault))
            assert _state(lab) == before, body.__name__
    assert lab.write(lambda tx: tx.claim("lease", "another", until=tx.now + 1))
    lab.write(_purges_between_inserts)
    assert sorted(lab.ids()) == ["new", "newer"]


def neighbours_in_time_are_not_hurt(lab: Lab) -> None:
    """Many threads, half of whose bodies fail: exactly the others are stored, and the log has no gap."""
    lab.put(id="old")
    barrier = threading.Barrier(8)
    faults: list[BaseException] = []

    def work(number: int) -> None:
        barrier.wait()
        for n in range(15):
            entry_id = f"{number}-{n}"

            def body(tx: WriteTx, entry_id: str = entry_id, n: int = n) -> None:
                put(tx, make_entry(id=entry_id))
                if n % 4 == 1:
                    tx.get("old")
                if n % 4 == 3:
                    tx.change("old", seq=tx.append(make_event()), pinned=True)
                if n % 2:
                    raise KeyError(entry_id)

            try:
                lab.write(body)
            except KeyError as fault:
                if fault.args != (entry_id,):
                    faults.append(fault)
            except BaseException as fault:
                faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    expected = {f"{number}-{n}" for number in range(8) for n in range(0, 15, 2)} | {"old"}
    assert set(lab.ids()) == expected
    events = lab.read(lambda tx: tx.read_log(limit=10_000))
    assert [e.seq for e in events] == list(range(1, len(expected) + 1))
    assert all(b.prev_hash == a.hash for a, b in pairwise(events))
    entry = lab.get("old")
    assert entry is not None
    assert not entry.pinned


def a_value_the_store_cannot_take_hurts_its_sender_only(lab: Lab) -> None:
    """An integer beyond 64 bits or broken text fails the body that sent it, and no other."""
    barrier = threading.Barrier(9)
    failed: list[str] = []

    def work(number: int) -> None:
        bad = number % 3 == 0
        entry = make_entry(id=f"{number}", **({"created_at": 2**70} if bad else {}))
        if number == 3:
            entry = make_entry(id="3", subject="\ud800")
        barrier.wait()
        try:
            lab.put_many([entry])
        except Exception:
            failed.append(entry.id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failed) == ["0", "3", "6"]
    assert sorted(lab.ids()) == ["1", "2", "4", "5", "7", "8"]
    assert lab.head().seq == 6


def a_write_inside_a_write_is_refused(lab: Lab) -> None:
    """It would wait for itself; it is refused at once and the outer body can go on."""

    def body(tx: WriteTx) -> None:
        put(tx, make_entry(id="outer"))
        with refuses(RuntimeError):
            lab.put(id="inner")

    lab.write(body)
    assert lab.ids() == ["outer"]
