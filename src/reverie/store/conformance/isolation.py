"""Isolation: two tenants with the same refs, ids, tags, keys and names, and nothing of one in the other."""

from __future__ import annotations

from reverie.core.entry import EntryState, Link
from reverie.core.errors import NotFound
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_entry, make_event, put, refuses
from reverie.store.contract import ReadTx, WriteTx

_V = ("m", bytes([9] * 8))


def _fill(tenant: str, count: int):  # type: ignore[no-untyped-def]
    def body(tx: WriteTx) -> None:
        for n in range(count):
            entry = make_entry(id=f"{n}", content=f"kettle of {tenant}", tags=("t",), subject="ada")
            put(tx, entry, vector=_V)
        tx.link(Link("0", "1", "supports", tenant))
        tx.save("files", "k", tenant.encode(), seq=tx.append(make_event("document.saved")))
        tx.remember_answer("k", tenant, tenant.encode(), until=tx.now + 1000)
        tx.claim("lease", tenant, until=tx.now + 1000)

    return body


def _everything(tx: ReadTx) -> list[object]:
    """Every read there is."""
    where = Filter()
    first = tx.scan(where, limit=2)
    positions = [e.position for e in tx.scan(where, limit=100).items]
    return [
        tx.head(),
        tx.log_key(),
        tx.get("0"),
        tx.get("0", as_of=1),
        tx.scan(where, limit=100),
        first,
        tx.scan(where, limit=2, cursor=first.cursor) if first.cursor else None,
        tx.scan(where, limit=100, as_of=1),
        tx.scan(Filter(tags=("t",)), limit=100),
        tx.scan(Filter(subject="ada"), limit=100),
        tx.scan(ANYTHING, limit=100),
        tx.scan(where, limit=100, oldest_first=True),
        tx.count(where),
        tx.count(ANYTHING),
        tx.refs(),
        tx.match(["kettle"], where, limit=100),
        tx.nearest(_V, where, limit=100),
        tx.around(positions),
        tx.at(positions, where),
        tx.briefs(positions, where),
        tx.cosines(_V, positions),
        tx.index_state("m"),
        tx.unembedded("other", limit=100),
        tx.links("0"),
        tx.links("1", incoming=True),
        tx.read_log(),
        tx.load("files", "k"),
        tx.documents("files"),
        tx.recall_answer("k"),
        tx.cold(EntryState.DELETED, before=tx.now, limit=100),
        tx.cold_index().find(["kettle"], _V, Filter(states=frozenset(EntryState), gone=True), limit=100),
        tx.cold_index().known(["kettle"]),
    ]


def nothing_of_one_is_in_the_other(lab: Lab) -> None:
    """Every read of a tenant stays the same, whatever another one with the same names does."""
    lab.write(_fill("acme", 3))
    before = lab.read(_everything)
    lab.write(_fill("rival", 5), tenant="rival")
    for n in range(5):
        lab.change(f"{n}", tenant="rival", state=EntryState.DELETED)
        lab.purge(f"{n}", tenant="rival")
    lab.put(tenant="rival", ref="secret-ref", subject="ada", tags=("t",))
    assert lab.read(_everything) == before


def a_tenant_never_written_is_empty(lab: Lab) -> None:
    """An unknown tenant reads as empty, without an error."""
    lab.write(_fill("acme", 3))
    empty = lab.read(_everything, tenant="stranger")
    texts = str(empty)
    assert "acme" not in texts
    assert "kettle" not in texts


def positions_of_another_tenant_lead_nowhere(lab: Lab) -> None:
    """Reads by position see only their own scope."""
    lab.write(_fill("acme", 3))
    foreign = [e.position for e in lab.scan().items]
    lab.write(_fill("rival", 1), tenant="rival")

    def body(tx: ReadTx) -> tuple[object, ...]:
        where = Filter()
        return (tx.at(foreign, where), tx.briefs(foreign, where), tx.around(foreign), tx.cosines(_V, foreign))

    assert lab.read(body, tenant="rival") == ({}, {}, {}, {})
    assert lab.read(body, ref="other") == ({}, {}, {}, {})


def writes_reach_their_own_tenant_only(lab: Lab) -> None:
    """The same id changes in one place; an id of another tenant is not found."""
    lab.write(_fill("acme", 3))
    before = lab.read(_everything)
    lab.write(_fill("rival", 2), tenant="rival")
    lab.change("0", tenant="rival", pinned=True)
    lab.purge("1", tenant="rival")
    with refuses(NotFound):
        lab.purge("2", tenant="rival")
    lab.write(lambda tx: tx.release("lease", "acme"), tenant="rival")
    lab.write(lambda tx: tx.trim(), tenant="rival")
    lab.write(lambda tx: tx.drop("files", "k", seq=tx.append(make_event())), tenant="rival")
    assert lab.read(_everything) == before
    assert not lab.write(lambda tx: tx.claim("lease", "other", until=tx.now + 1))


def positions_do_not_count_others(lab: Lab) -> None:
    """The distance of two positions says nothing about what another tenant wrote between them."""
    quiet = [lab.put(tenant="quiet").position for _ in range(3)]
    loud = []
    for _ in range(3):
        loud.append(lab.put(tenant="loud").position)
        lab.put_many([make_entry() for _ in range(10)], tenant="neighbour")
    assert [p - quiet[0] for p in quiet] == [p - loud[0] for p in loud]


def one_transaction_keeps_memories_apart(lab: Lab) -> None:
    """A transaction that looks at two memories changes in each the entry of that memory, also of the same id."""
    for ref in ("notes", "other"):
        lab.put(f"of {ref}", ref=ref, id="same")

    def body(tx: WriteTx) -> None:
        seq = tx.append(make_event("memory.deleted"))
        for ref, state in (("notes", EntryState.DELETED), ("other", EntryState.RETRACTED)):
            with tx.within(ref):
                assert tx.scope.ref == ref
                assert tx.change("same", seq=seq, state=state).content == f"of {ref}"
        with refuses(ValueError):
            tx.get("same")

    lab.write(body, ref=None)
    states = {ref: lab.read(lambda tx: tx.get("same", where=ANYTHING), ref=ref) for ref in ("notes", "other")}
    assert {ref: (found.content, found.state) for ref, found in states.items() if found is not None} == {
        "notes": ("of notes", EntryState.DELETED),
        "other": ("of other", EntryState.RETRACTED),
    }
