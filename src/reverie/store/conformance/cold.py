"""Cold storage: the sources of dreams keep an index of their own."""

from __future__ import annotations

from reverie.core.entry import Entry, EntryState
from reverie.core.query import Filter
from reverie.store.conformance.lab import Lab, make_entry, make_event, put, words
from reverie.store.contract import WriteTx

_MODEL = "conformance/1"
_UP, _DOWN = bytes([127, 0]), bytes([129, 1])
_COLD = Filter(states=frozenset({EntryState.DREAMT}), gone=True)


def _found(lab: Lab, *terms: str, vector: bytes | None = None, where: Filter = _COLD, **at: str) -> list[str]:
    asked = (_MODEL, vector) if vector is not None else None
    found = lab.read(lambda tx: tx.cold_index().find(terms, asked, where, limit=10), **at)
    return sorted(match.entry.id for match in found)


def _hot(lab: Lab, *terms: str) -> list[str]:
    return sorted(match.entry.id for match in lab.read(lambda tx: tx.find(terms, None, Filter(), limit=10)))


def _size(lab: Lab, **at: str) -> int:
    return lab.read(lambda tx: len(tx.cold_index()), **at)


def follows_every_change(lab: Lab) -> None:
    """Dreamt, put back, dreamt again, destroyed: cold storage and readable memory never share an entry."""
    for entry_id in "abc":
        lab.put(f"a kettle called {entry_id}", id=entry_id, vector=(_MODEL, _UP))
    assert _size(lab) == 0
    for entry_id in "ab":
        lab.change(entry_id, state=EntryState.DREAMT)
    assert _found(lab, "kettle") == _found(lab, vector=_UP) == ["a", "b"]
    assert _hot(lab, "kettle") == ["c"]
    lab.change("a", state=EntryState.ACTIVE)
    assert _found(lab, "kettle") == ["b"]
    assert _hot(lab, "kettle") == ["a", "c"]
    lab.change("a", state=EntryState.DREAMT)
    lab.change("c", state=EntryState.DREAMT)
    assert _found(lab, "kettle") == ["a", "b", "c"]
    assert _hot(lab, "kettle") == []
    lab.purge("b")
    lab.change("c", state=EntryState.DELETED)
    assert _found(lab, "kettle") == ["a"]
    assert _size(lab) == 1


def counts_only_itself(lab: Lab) -> None:
    """Words, counts and scores are those of the sources of one memory."""
    lab.put_many([make_entry(content="plain water", id=f"w{n}") for n in range(30)])
    lab.put("a kettle", id="k")
    lab.put("another kettle", id="e", ref="elsewhere")
    for entry_id in ("w0", "k"):
        lab.change(entry_id, state=EntryState.DREAMT)
    lab.change("e", ref="elsewhere", state=EntryState.DREAMT)
    assert _size(lab) == 2
    assert _size(lab, ref="elsewhere") == 1
    assert lab.read(lambda tx: tx.cold_index().known(["kettle", "another", "plain"])) == {"kettle", "plain"}
    assert lab.read(lambda tx: tx.known(["kettle", "plain"])) == {"plain"}
    assert _found(lab, "kettle", where=Filter()) == []


def sees_what_its_own_transaction_did(lab: Lab) -> None:
    """Entries that a body stores, dreams and puts back, without a commit in between."""
    lab.put("a kettle", id="old")

    def body(tx: WriteTx) -> list[list[str]]:
        def found() -> list[str]:
            return sorted(match.entry.id for match in tx.cold_index().find(["kettle"], None, _COLD, limit=10))

        put(tx, make_entry(content="a new kettle", id="new"))
        seen = [found()]
        for entry_id in ("old", "new"):
            tx.change(entry_id, seq=tx.append(make_event(entry_id=entry_id)), state=EntryState.DREAMT)
        seen.append(found())
        tx.change("old", seq=tx.append(make_event("memory.restored", entry_id="old")), state=EntryState.ACTIVE)
        return [*seen, found()]

    assert lab.write(body) == [[], ["new", "old"], ["new"]]
    assert _found(lab, "kettle") == ["new"]


def is_indexed_again(lab: Lab) -> None:
    """A new vector or text replaces the one before; a source without a vector is listed as such."""
    entry = lab.put("a kettle", id="a", vector=(_MODEL, _UP))
    lab.put("a jug", id="b")
    for entry_id in "ab":
        lab.change(entry_id, state=EntryState.DREAMT)

    def missing() -> list[Entry]:
        return lab.read(lambda tx: tx.unembedded(_MODEL, limit=10))

    assert [one.id for one in missing()] == ["b"]
    lab.write(lambda tx: tx.index("b", seq=tx.append(make_event()), terms=words("a jug"), vector=(_MODEL, _DOWN)))
    assert missing() == []
    assert _found(lab, "jug") == ["b"]

    def rewrite(tx: WriteTx) -> None:
        seq = tx.append(make_event("memory.rescanned"))
        changed = make_entry(content="a pot", id="a", created_at=entry.created_at)
        tx.rewrite(changed, seq=seq, terms=words("a pot"), vector=(_MODEL, _UP))

    lab.write(rewrite)
    assert _found(lab, "kettle") == []
    assert _found(lab, "pot") == ["a"]
