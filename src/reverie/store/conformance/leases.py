"""Leases: one holder at a time, until the lease is released or expires."""

from __future__ import annotations

import threading

from reverie.store.conformance.lab import Lab


def _claim(lab: Lab, holder: str, *, name: str = "dream", length: int = 10, tenant: str = "acme") -> bool:
    return lab.write(lambda tx: tx.claim(name, holder, until=tx.now + length), tenant=tenant)


def have_one_holder(lab: Lab) -> None:
    """Only the holder of a lease may renew it; other names and tenants are free."""
    assert _claim(lab, "a")
    assert not _claim(lab, "b")
    assert _claim(lab, "a", length=20)
    lab.clock.advance(15)
    assert not _claim(lab, "b")
    assert _claim(lab, "b", name="other")
    assert _claim(lab, "b", tenant="rival")


def run_out(lab: Lab) -> None:
    """A lease is free when it expires, and the old holder has lost it."""
    assert _claim(lab, "a")
    lab.clock.advance(9)
    assert not _claim(lab, "b")
    lab.clock.advance(1)
    assert _claim(lab, "b")
    assert not _claim(lab, "a")


def are_released_by_their_holder_only(lab: Lab) -> None:
    """A release by another holder does nothing."""
    assert _claim(lab, "a")
    lab.write(lambda tx: tx.release("dream", "b"))
    assert not _claim(lab, "b")
    lab.write(lambda tx: tx.release("dream", "a"))
    assert _claim(lab, "b")


def are_listed_while_they_are_held(lab: Lab) -> None:
    """Leases of one tenant are listed by name, without expired ones."""
    assert _claim(lab, "a", name="late", length=30)
    assert _claim(lab, "b", name="early")
    assert _claim(lab, "c", tenant="rival")
    assert [(one.name, one.holder) for one in lab.read(lambda tx: tx.leases(limit=9))] == [
        ("early", "b"),
        ("late", "a"),
    ]
    assert [one.name for one in lab.read(lambda tx: tx.leases(limit=1))] == ["early"]
    lab.clock.advance(10)
    assert [one.name for one in lab.read(lambda tx: tx.leases(limit=9))] == ["late"]


def a_race_has_one_winner(lab: Lab) -> None:
    """Of many threads that claim one lease, one gets it."""
    barrier = threading.Barrier(8)
    won: list[str] = []

    def race(holder: str) -> None:
        barrier.wait()
        if _claim(lab, holder):
            won.append(holder)

    threads = [threading.Thread(target=race, args=(f"worker-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
