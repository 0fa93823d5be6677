"""The log: gapless, chained, and nothing changes without an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reverie.core.entry import EntryState
from reverie.core.event import RULE_EVENTS, NewEvent, genesis
from reverie.core.query import Flow
from reverie.store.conformance.lab import Lab, make_entry, make_event, put, refuses, same_but
from reverie.store.contract import WriteTx


def is_gapless_and_chained(lab: Lab) -> None:
    """1, 2, 3 ...; each event names the hash before it, the first the tenant's genesis; the head names the last."""
    for n in range(3):
        lab.put_many([make_entry() for _ in range(n + 1)])
        lab.put(tenant="rival")
    for tenant, length in (("acme", 6), ("rival", 3)):
        events = lab.read(lambda tx: tx.read_log(), tenant=tenant)
        assert [e.seq for e in events] == list(range(1, length + 1))
        hashes = [genesis(tenant), *(e.hash for e in events)]
        assert [e.prev_hash for e in events] == hashes[:-1]
        assert all(e.sound() for e in events)
        head = lab.head(tenant=tenant)
        assert (head.seq, head.hash) == (length, hashes[-1])


def keeps_every_field(lab: Lab) -> None:
    """Every field of an event is read as it was appended."""
    event = make_event(
        "memory.pinned",
        operation="PIN",
        actor="ada",
        entry_id="e",
        session="s",
        conflict_id="c",
        task_id="t",
        data={"ref": "notes", "n": 3, "list": [1, {"é": None}], "x": 0.5, "flag": True},
    )
    lab.write(lambda tx: tx.append(event))
    stored = lab.read(lambda tx: tx.read_log())[0]
    for name in ("type", "operation", "actor", "entry_id", "session", "conflict_id", "task_id", "data"):
        assert getattr(stored, name) == getattr(event, name)
    assert stored.at == lab.clock.now()
    assert stored.sound()


def keeps_lamport_time(lab: Lab) -> None:
    """An operation ticks once past what it received; events of one operation share an epoch; it never goes back."""

    def body(tx: WriteTx) -> None:
        tx.append(make_event())  # 1
        tx.append(make_event(), tick=False)  # still 1
        tx.append(make_event(), received_epoch=41)  # 42
        tx.append(make_event(), received_epoch=7)  # 43

    lab.write(body)
    assert [e.epoch for e in lab.read(lambda tx: tx.read_log())] == [1, 1, 42, 43]
    assert lab.head().epoch == 43


def can_be_read_backwards(lab: Lab) -> None:
    """With `before`, newest first: between two positions, by type, and never another tenant's."""
    for n in range(6):
        event = make_event("memory.pinned" if n % 2 else "memory.unpinned")
        lab.write(_appended(event))
        lab.put(tenant="rival")

    def seqs(**asked: Any) -> list[int]:
        return [event.seq for event in lab.read(lambda tx: tx.read_log(**asked))]

    assert seqs(before=100) == [6, 5, 4, 3, 2, 1]
    assert seqs(before=6, limit=2) == [5, 4]
    assert seqs(before=6, after=3) == [5, 4]
    assert seqs(before=6, types=("memory.pinned",)) == [4, 2]
    assert seqs(before=1) == []
    assert lab.read(lambda tx: tx.read_log(before=100), tenant="nowhere") == []


def _appended(event: NewEvent) -> Callable[[WriteTx], int]:
    return lambda tx: tx.append(event)


def can_be_read_by_type(lab: Lab) -> None:
    """Only the types asked for, in order, after a position."""

    def body(tx: WriteTx) -> None:
        for n in range(9):
            tx.append(make_event("memory.pinned" if n % 3 else "memory.held"))

    lab.write(body)
    assert [e.seq for e in lab.read(lambda tx: tx.read_log(types=["memory.held"], after=1))] == [4, 7]
    assert lab.read(lambda tx: tx.read_log(types=[])) == []


def knows_when_rules_changed(lab: Lab) -> None:
    """The head names the last event after which writers must load rules again."""
    assert lab.head().rules_seq == 0
    lab.put()
    for type_ in sorted(RULE_EVENTS):
        seq = lab.write(lambda tx, type_=type_: tx.append(make_event(type_)))  # type: ignore[misc]
        lab.put()
        assert lab.head().rules_seq == seq


def no_event_no_change(lab: Lab) -> None:
    """Verbs that change refuse any position but one of their own transaction; nothing of that transaction remains."""
    stored = lab.put(id="a")

    def refused(body) -> None:  # type: ignore[no-untyped-def]
        before = (lab.head(), lab.scan().items)
        with refuses(ValueError):
            lab.write(body)
        assert (lab.head(), lab.scan().items) == before

    for seq in (0, 1, 2, 99, -1):
        refused(lambda tx, seq=seq: tx.insert(make_entry(), seq=seq, terms=[], vector=None, minted=True))
        refused(lambda tx, seq=seq: tx.change("a", seq=seq, pinned=True))
        refused(lambda tx, seq=seq: tx.purge("a", seq=seq))
        refused(lambda tx, seq=seq: tx.index("a", seq=seq, terms=["x"], vector=None))
        refused(lambda tx, seq=seq: tx.rewrite(same_but(stored, content="x"), seq=seq, terms=[], vector=None))
        refused(lambda tx, seq=seq: tx.save("s", "k", b"", seq=seq))


def counts_on_after_a_failure(lab: Lab) -> None:
    """A body that fails after appending leaves no gap."""
    lab.put()

    def body(tx: WriteTx) -> None:
        put(tx, make_entry())
        tx.append(make_event("policy.changed"))
        raise KeyError

    with refuses(KeyError):
        lab.write(body)
    lab.put()
    events = lab.read(lambda tx: tx.read_log())
    assert [e.seq for e in events] == [1, 2]
    assert events[1].prev_hash == events[0].hash
    assert lab.head().rules_seq == 0


def has_a_key_of_its_own_per_tenant(lab: Lab) -> None:
    """The key of content hashes is secret, stable and different for every tenant."""
    keys = [lab.write(lambda tx: tx.log_key(), tenant=tenant) for tenant in ("acme", "rival", "acme")]
    assert keys[0] == keys[2] != keys[1]
    assert len(keys[0]) >= 32
    assert lab.read(lambda tx: tx.log_key()) == keys[0]


def is_in_the_order_of_commits(lab: Lab) -> None:
    """Born and gone are positions of this log."""
    entry = lab.put(id="a")
    gone = lab.change("a", state=EntryState.RETRACTED)
    assert (entry.born_seq, gone.born_seq, gone.gone_seq) == (1, 1, 2)


def can_be_read_by_run(lab: Lab) -> None:
    """Events that name a run, in order and by parts; other runs, other tenants and other values stay out."""
    for n in range(5):
        numbered = make_event(data={"run": "r1", "n": n})
        lab.write(lambda tx, event=numbered: tx.append(event))  # type: ignore[misc]
        lab.write(lambda tx: tx.append(make_event(data={"run": "r2"})))
        lab.write(lambda tx: tx.append(make_event(data={"ref": "r1", "of": {"run": "r1"}})))
        lab.write(lambda tx: tx.append(make_event(data={"run": "r1"})), tenant="rival")
    found = lab.read(lambda tx: tx.read_run("r1"))
    assert [(e.seq, e.data["n"]) for e in found] == [(1 + 3 * n, n) for n in range(5)]
    assert lab.read(lambda tx: tx.read_run("r1", skip=1, limit=2)) == found[1:3]
    assert lab.read(lambda tx: tx.read_run("r1", skip=5)) == []
    assert lab.read(lambda tx: tx.read_run("nobody")) == []
    assert len(lab.read(lambda tx: tx.read_run("r2"), ref=None)) == 5
    assert len(lab.read(lambda tx: tx.read_run("r1"), tenant="rival")) == 5


def can_be_read_by_a_few_types(lab: Lab) -> None:
    """Events of some types, in order or newest first, by parts; other types and other tenants stay out."""
    for _ in range(3):
        for name in ("memory.written", "policy.changed", "memory.pinned"):
            lab.write(lambda tx, name=name: tx.append(make_event(name)))  # type: ignore[misc]
        lab.write(lambda tx: tx.append(make_event("memory.pinned")), tenant="rival")

    def seqs(types: tuple[str, ...], **parts: int) -> list[int]:
        return [event.seq for event in lab.read(lambda tx: tx.read_log(types=types, **parts))]

    assert seqs(("memory.pinned",)) == [3, 6, 9]
    assert seqs(("memory.pinned", "memory.written", "memory.pinned")) == [1, 3, 4, 6, 7, 9]
    assert seqs(("memory.pinned", "memory.written"), after=3, limit=2) == [4, 6]
    assert seqs(("memory.pinned", "memory.written"), before=9, limit=3) == [7, 6, 4]
    assert seqs(("memory.pinned",), after=3, before=100) == [9, 6]
    assert seqs(("memory.held",)) == []
    assert seqs(()) == []
    assert seqs((*(f"no.{n}" for n in range(20)), "memory.pinned"), before=9) == [6, 3]


def shows_its_flow(lab: Lab) -> None:
    """At each instant: the position, how many entries were stored, and how many left since the one before."""
    start = lab.clock.now()
    assert lab.read(lambda tx: tx.flow([start])) == [Flow(0, 0, 0)]
    for n in range(4):
        lab.clock.advance(1000)
        lab.put(id=f"e{n}")
        lab.put(tenant="rival")
    lab.clock.advance(1000)
    lab.change("e1", state=EntryState.RETRACTED)
    lab.change("e2", archived=True)
    lab.change("e3", pinned=True)
    instants = [start, start + 1000, start + 2500, start + 4000, start + 5000, start + 9000]
    found = lab.read(lambda tx: tx.flow(instants), ref=None)
    assert [one.position for one in found] == [0, 1, 2, 4, 7, 7]
    assert [one.stored for one in found] == [0, 1, 2, 4, 4, 4]
    assert [one.left for one in found] == [0, 0, 0, 0, 2, 0]
