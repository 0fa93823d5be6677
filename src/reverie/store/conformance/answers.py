"""Idempotent answers: remembered with the write they answer, until they expire."""

from __future__ import annotations

from reverie.store.conformance.lab import Lab, make_entry, put, refuses
from reverie.store.contract import WriteTx


def are_remembered_until_their_time(lab: Lab) -> None:
    """An answer is known until one millisecond before it expires, unknown from then on, and removed by `trim`."""
    until = lab.clock.now() + 10
    lab.write(lambda tx: tx.remember_answer("k", "digest", b"answer", until=until))
    lab.clock.advance(9)
    assert lab.read(lambda tx: tx.recall_answer("k")) == ("digest", b"answer")
    assert lab.write(lambda tx: tx.recall_answer("k")) == ("digest", b"answer")
    assert lab.read(lambda tx: tx.recall_answer("other")) is None
    lab.clock.advance(1)
    assert lab.read(lambda tx: tx.recall_answer("k")) is None
    lab.write(lambda tx: tx.trim())
    assert lab.write(lambda tx: tx.recall_answer("k")) is None


def belong_to_the_tenant_not_the_ref(lab: Lab) -> None:
    """A key has one answer in a tenant; the same key of another tenant is independent."""
    until = lab.clock.now() + 10
    lab.write(lambda tx: tx.remember_answer("k", "mine", b"1", until=until))
    assert lab.read(lambda tx: tx.recall_answer("k"), ref="other") == ("mine", b"1")
    assert lab.read(lambda tx: tx.recall_answer("k"), tenant="rival") is None
    assert lab.write(lambda tx: tx.recall_answer("k"), tenant="rival") is None


def go_with_their_write(lab: Lab) -> None:
    """The answer of a body that fails is not remembered."""

    def body(tx: WriteTx) -> None:
        put(tx, make_entry(id="a"))
        tx.remember_answer("k", "digest", b"answer", until=tx.now + 10)
        raise RuntimeError

    lab.put()
    with refuses(RuntimeError):
        lab.write(body)
    assert lab.read(lambda tx: tx.recall_answer("k")) is None
    assert lab.get("a") is None


def a_later_answer_replaces(lab: Lab) -> None:
    """An expired key can be used again."""
    lab.write(lambda tx: tx.remember_answer("k", "old", b"1", until=tx.now + 1))
    lab.clock.advance(1)
    lab.write(lambda tx: tx.remember_answer("k", "new", b"2", until=tx.now + 1))
    assert lab.read(lambda tx: tx.recall_answer("k")) == ("new", b"2")
