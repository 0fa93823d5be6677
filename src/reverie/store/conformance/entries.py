"""Entries: stored whole, found again, never under a taken id."""

from __future__ import annotations

from reverie.core.entry import EntryState, Source
from reverie.core.errors import Conflict, NotFound
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry, make_event, put, refuses, same_but
from reverie.store.contract import WriteTx

_ALL = Filter()


def comes_back_as_it_was_stored(lab: Lab) -> None:
    """Every field of an entry survives."""
    entry = make_entry(
        id="a/b c",
        kind="decision",
        content="Zoë pays 12 € – “soon” 🙂\nsecond line",
        tags=("money", "zoë"),
        subject="zoë",
        attributes={"confidence": 0.5, "nested": {"list": [1, None, True, "x"]}},
        source=Source("agent-7", "planner", "rest", "s1", "r1", "n1", 3),
        state=EntryState.CONTESTED,
        created_at=123_456,
        expires_at=lab.clock.now() + 10_000,
        pinned=True,
    )
    stored = lab.put_many([entry])[0]
    found = lab.get("a/b c")
    assert found == stored
    assert stored == same_but(entry, born_seq=1, epoch=stored.epoch, position=stored.position)


def unknown_is_none(lab: Lab) -> None:
    """An id that was never stored, and a tenant that was never written, read as nothing."""
    assert lab.get("nobody") is None
    assert lab.scan().items == []
    assert lab.head().seq == 0
    lab.put()
    assert lab.get("nobody") is None


def a_taken_id_is_refused(lab: Lab) -> None:
    """An id is used once in a ref; the refusal leaves no event."""
    lab.put(id="one")
    with refuses(Conflict, "id_taken"):
        lab.put(id="one", content="other words")
    assert lab.head().seq == 1
    assert lab.put(id="one", ref="elsewhere").ref == "elsewhere"


def a_taken_id_is_refused_inside_one_transaction(lab: Lab) -> None:
    """Two entries of one id in one transaction: none is stored."""
    with refuses(Conflict, "id_taken"):
        lab.put_many([make_entry(id="one"), make_entry(id="one")])
    assert lab.get("one") is None


def the_id_of_a_destroyed_entry_stays_taken(lab: Lab) -> None:
    """A tombstone keeps its id."""
    lab.put(id="one")
    lab.purge("one")
    with refuses(Conflict, "id_taken"):
        lab.put(id="one")


def an_entry_of_another_ref_is_refused(lab: Lab) -> None:
    """The scope's ref binds inserts too."""
    with refuses(ValueError):
        lab.write(lambda tx: put(tx, make_entry(ref="elsewhere")))
    assert lab.head().seq == 0


def an_unknown_entry_cannot_change(lab: Lab) -> None:
    """Change, purge and index of an unknown entry raise NotFound, and leave no event."""
    lab.put()
    with refuses(NotFound):
        lab.change("nobody", pinned=True)
    with refuses(NotFound):
        lab.purge("nobody")
    with refuses(NotFound):
        lab.write(lambda tx: tx.index("nobody", seq=tx.append(make_event()), terms=["x"], vector=None))
    assert lab.head().seq == 1


def quota_counts_follow(lab: Lab) -> None:
    """The head counts entries with text, and the UTF-8 bytes of it."""
    lab.put("é", id="two-bytes")
    lab.put("four", id="gone")
    lab.change("gone", state=EntryState.DELETED)
    assert (lab.head().entries, lab.head().bytes) == (2, 6)
    lab.purge("gone")
    assert (lab.head().entries, lab.head().bytes) == (1, 2)


def refs_are_listed_with_their_readable_entries(lab: Lab) -> None:
    """`refs` shows names in order and counts what can be read now."""
    lab.put(ref="b")
    lab.put(ref="a", id="x")
    lab.put(ref="a")
    lab.put(ref="c", expires_at=lab.clock.now() + 1)
    lab.put(ref="d", state=EntryState.DRAFT)
    lab.change("x", ref="a", archived=True)
    lab.clock.advance(1)
    assert lab.read(lambda tx: tx.refs(), ref=None) == [("a", 1), ("b", 1)]


def refs_are_listed_by_prefix(lab: Lab) -> None:
    """A prefix is compared by its bytes, case and all; nothing in it is a pattern."""
    for ref in ("users/ann", "users/ann/z", "users/anna", "Users/ann", "users_ann", "zebra", "users-b"):
        lab.put(ref=ref)
    found = lab.read(lambda tx: tx.refs("users/ann"), ref=None)
    assert found == [("users/ann", 1), ("users/ann/z", 1), ("users/anna", 1)]
    assert lab.read(lambda tx: tx.refs("users_"), ref=None) == [("users_ann", 1)]
    assert lab.read(lambda tx: tx.refs("%"), ref=None) == []


def ids_are_found_by_their_beginning(lab: Lab) -> None:
    """A prefix is compared by its bytes; drafts, erased entries and other memories stay out."""
    for name in ("01ABC", "01ABD", "01AB", "01ab", "02", "é1", "é2"):
        lab.put(id=name)
    lab.put(id="01ABE", state=EntryState.DRAFT)
    lab.put(id="01ABF", ref="other")
    assert lab.read(lambda tx: tx.ids("01AB", limit=9)) == ["01AB", "01ABC", "01ABD"]
    assert lab.read(lambda tx: tx.ids("01AB", limit=2)) == ["01AB", "01ABC"]
    assert lab.read(lambda tx: tx.ids("é", limit=9)) == ["é1", "é2"]
    assert lab.read(lambda tx: tx.ids("%", limit=9)) == []


def a_write_reads_what_it_wrote(lab: Lab) -> None:
    """Inside one transaction every verb sees everything done so far."""

    def body(tx: WriteTx) -> None:
        first = put(tx, make_entry(id="one", tags=("t",)))
        assert tx.get("one") == first
        second = put(tx, make_entry(id="two"))
        assert [e.id for e in tx.scan(_ALL, limit=10).items] == ["two", "one"]
        assert [m.entry.id for m in tx.match(["kettle"], _ALL, limit=10)] == ["one", "two"]
        assert tx.head().seq == second.born_seq == 2
        assert [e.seq for e in tx.read_log()] == [1, 2]
        tx.purge("one", seq=tx.append(make_event("memory.purged")))
        assert tx.get("one") is None
        assert tx.count(_ALL) == 1

    lab.write(body)
    assert lab.ids() == ["two"]


def neighbours_stand_beside_each_other(lab: Lab) -> None:
    """`around` gives the readable entries before and after, by time; `at` gives entries at positions."""
    now = lab.clock.now()
    first, drafted, gone, late, early = lab.put_many(
        [
            make_entry(id="first", created_at=now),
            make_entry(id="drafted", created_at=now + 1, state=EntryState.DRAFT),
            make_entry(id="gone", created_at=now + 2, expires_at=now + 50),
            make_entry(id="late", created_at=now + 100),
            make_entry(id="early", created_at=now + 3),
        ]
    )
    lab.clock.advance(50)
    beside = lab.read(lambda tx: tx.around([first.position, late.position, early.position]))
    assert beside[first.position] == (None, early.position)
    assert beside[early.position] == (first.position, late.position)
    assert beside[late.position] == (early.position, None)
    assert lab.read(lambda tx: tx.around([first.position], steps=2)) == {
        first.position: (None, early.position),
        early.position: (first.position, late.position),
    }
    assert lab.read(lambda tx: tx.around([first.position, late.position, early.position], steps=2)) == beside
    found = lab.read(lambda tx: tx.at([first.position, drafted.position, gone.position], Filter()))
    assert list(found) == [first.position]
    assert lab.read(lambda tx: tx.at([first.position], Filter()), ref="elsewhere") == {}
