"""Recorded searches: one sealed row for each memory, which is overwritten, without an event."""

from __future__ import annotations

from reverie.store.conformance.lab import Lab, refuses
from reverie.store.contract import WriteTx


def are_kept_by_memory_without_an_event(lab: Lab) -> None:
    """The last body is kept; other memories and tenants have their own, and the log stays as it was."""
    lab.put()
    before = lab.head()
    lab.write(lambda tx: tx.keep_searches(b"first"))
    lab.write(lambda tx: tx.keep_searches(b"second"))
    lab.write(lambda tx: tx.keep_searches(b"other"), ref="other")
    lab.write(lambda tx: tx.keep_searches(b"rival"), tenant="rival")
    assert lab.read(lambda tx: tx.searches()) == {"notes": b"second"}
    assert lab.write(lambda tx: tx.searches()) == {"notes": b"second"}
    assert lab.read(lambda tx: tx.searches(), ref=None) == {"notes": b"second", "other": b"other"}
    assert lab.read(lambda tx: tx.searches(), tenant="rival", ref=None) == {"notes": b"rival"}
    assert lab.read(lambda tx: tx.searches(), tenant="nobody", ref=None) == {}
    assert lab.head() == before


def are_dropped_from_one_memory_or_all(lab: Lab) -> None:
    """None drops the bound memory's; without a ref, those of every memory of the tenant and of no other."""
    for ref in ("notes", "other", "third"):
        lab.write(lambda tx: tx.keep_searches(b"x"), ref=ref)
    lab.write(lambda tx: tx.keep_searches(b"rival"), tenant="rival")
    lab.write(lambda tx: tx.keep_searches(None))
    assert list(lab.read(lambda tx: tx.searches(), ref=None)) == ["other", "third"]
    lab.write(lambda tx: tx.keep_searches(None), ref=None)
    assert lab.read(lambda tx: tx.searches(), ref=None) == {}
    assert lab.read(lambda tx: tx.searches(), tenant="rival") == {"notes": b"rival"}


def go_with_their_transaction(lab: Lab) -> None:
    """A body that fails changes nothing."""

    def body(tx: WriteTx) -> None:
        tx.keep_searches(b"new")
        raise RuntimeError

    lab.write(lambda tx: tx.keep_searches(b"old"))
    with refuses(RuntimeError):
        lab.write(body)
    assert lab.read(lambda tx: tx.searches()) == {"notes": b"old"}
