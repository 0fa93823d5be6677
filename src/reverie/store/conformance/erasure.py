"""Erasure: text leaves everything but the id and the history."""

from __future__ import annotations

from reverie.core.entry import EntryState, Link, Source
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_event, same_but, words
from reverie.store.contract import WriteTx


def leaves_a_tombstone(lab: Lab) -> None:
    """Text, tags, subject, attributes and source are destroyed; id, ref and positions remain. A repeat does nothing."""
    source = Source(actor="ada", role="editor", session="ada's day", run="ada-1", node="ada-2", door="rest", trust=4)
    lab.put("Gone für immer.", id="a", tags=("t",), subject="ada", attributes={"k": "v"}, pinned=True, source=source)
    assert lab.purge("a") == len("Gone für immer.".encode())
    tombstone = lab.get("a", where=ANYTHING)
    assert tombstone is not None
    assert tombstone.state is EntryState.ERASED
    assert (tombstone.content, tombstone.tags, tombstone.subject, tombstone.attributes) == ("", (), None, {})
    assert tombstone.source == Source(door="rest", trust=4)
    assert (tombstone.born_seq, tombstone.gone_seq, tombstone.pinned) == (1, 2, False)
    assert lab.purge("a") == 0


def reaches_indexes_and_lists(lab: Lab) -> None:
    """No read that is not asked for tombstones finds it."""
    vector = bytes([50] * 8)
    lab.put("A kettle.", id="a", tags=("t",), subject="ada", vector=("m", vector))
    lab.purge("a")
    assert lab.ids() == []
    assert lab.ids(Filter(tags=("t",))) == []
    assert lab.ids(same_but(ANYTHING, subject="ada"), ref=None) == []
    assert lab.ids(same_but(ANYTHING, any_tags=("t",))) == []
    assert lab.read(lambda tx: tx.match(["kettle"], ANYTHING, limit=5)) == []
    assert lab.read(lambda tx: tx.nearest(("m", vector), ANYTHING, limit=5)) == []


def works_on_cold_entries(lab: Lab) -> None:
    """An archived or deleted entry can be destroyed, and keeps the position at which it left."""
    for change in ({"archived": True}, {"state": EntryState.DELETED}):
        entry = lab.put()
        left = lab.change(entry.id, **change).gone_seq
        assert lab.purge(entry.id) > 0
        tombstone = lab.get(entry.id, where=ANYTHING)
        assert tombstone is not None
        assert tombstone.gone_seq == left


def takes_several_at_once(lab: Lab) -> None:
    """Each leaves at its own event; one that is gone already counts nothing."""
    vector = ("m", bytes([50] * 8))
    for name in ("a", "b", "c", "d"):
        lab.put(f"A kettle of {name}.", id=name, tags=("t", name), subject="ada", vector=vector)
    lab.purge("b")

    def body(tx: WriteTx) -> tuple[int, int]:
        events = [make_event("memory.purged", entry_id=name) for name in ("a", "b", "c")]
        seq = tx.append(*events)
        return tx.purge("a", "b", "c", seq=seq), seq

    size, last = lab.write(body)
    assert size == len("A kettle of a.A kettle of c.")
    found = {name: lab.get(name, where=ANYTHING) for name in ("a", "b", "c")}
    assert [entry and (entry.content, entry.tags, entry.gone_seq) for entry in found.values()] == [
        ("", (), last - 2),
        ("", (), last - 3),
        ("", (), last),
    ]
    assert lab.ids() == lab.ids(Filter(tags=("t",))) == ["d"]
    assert lab.read(lambda tx: [hit.entry.id for hit in tx.match(["kettle"], Filter(), limit=5)]) == ["d"]
    head = lab.read(lambda tx: tx.head())
    assert (head.entries, head.bytes) == (1, len("A kettle of d."))
    log = lab.read(lambda tx: tx.read_log(after=last - 3))
    assert [(event.seq, event.entry_id, event.epoch) for event in log] == [
        (last - 2 + at, name, head.epoch - 2 + at) for at, name in enumerate(("a", "b", "c"))
    ]
    assert all(event.sound() for event in log)


def takes_the_notes_of_links(lab: Lab) -> None:
    """A note on a link is text about both ends."""

    def body(tx: WriteTx) -> None:
        tx.append(make_event())
        tx.link(Link("a", "b", "supports", "because the kettle is hot"))
        tx.link(Link("c", "a", "supports", "because the kettle is hot"))
        tx.link(Link("b", "c", "supports", "unrelated"))

    lab.put(id="a")
    lab.write(body)
    lab.purge("a")
    assert lab.read(lambda tx: tx.links("a")) == [Link("a", "b", "supports")]
    assert lab.read(lambda tx: tx.links("c")) == [Link("c", "a", "supports")]
    assert lab.read(lambda tx: tx.links("b")) == [Link("b", "c", "supports", "unrelated")]


def a_rewrite_replaces_text_everywhere(lab: Lab) -> None:
    """After a rewrite, old words and tags find nothing and the new ones do; counts follow."""
    entry = lab.put("The secret kettle.", id="a", tags=("secret",), subject="secret")
    clean = same_but(entry, content="The [REDACTED] kettle.", tags=("clean",), subject=None, kind="clean")
    clean = same_but(clean, source=same_but(entry.source, actor="x", role="x", session="x", run="x", node="x"))

    def body(tx: WriteTx) -> None:
        seq = tx.append(make_event("memory.redacted", entry_id="a"))
        tx.rewrite(clean, seq=seq, terms=words(clean.content), vector=None)

    lab.write(body)
    found = lab.get("a")
    assert found is not None
    assert (found.content, found.tags, found.subject, found.version) == (clean.content, ("clean",), None, 2)
    assert (found.kind, found.source) == (clean.kind, clean.source)
    assert lab.read(lambda tx: tx.match(["secret"], Filter(), limit=5)) == []
    assert len(lab.read(lambda tx: tx.match(["redacted"], Filter(), limit=5))) == 1
    assert lab.ids(Filter(tags=("secret",))) == []
    assert lab.ids(Filter(tags=("clean",))) == ["a"]
    assert lab.head().bytes == len(clean.content)
