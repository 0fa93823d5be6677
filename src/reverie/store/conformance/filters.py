"""Filters: every part given must hold; inside a list one value is enough; an empty list matches nothing."""

from __future__ import annotations

from reverie.core.entry import EntryState, Source
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_entry, same_but


def each_part_selects(lab: Lab) -> None:
    """One entry per part, found by that part alone."""
    now = lab.clock.now()
    lab.put_many(
        [
            make_entry(id="plain"),
            make_entry(id="tagged", tags=("red", "blue")),
            make_entry(id="kinded", kind="decision"),
            make_entry(id="subject", subject="ada"),
            make_entry(id="actor", source=Source(actor="ada")),
            make_entry(id="session", source=Source(actor="x", session="s9")),
            make_entry(id="run", source=Source(actor="x", run="r9")),
            make_entry(id="pinned", pinned=True),
            make_entry(id="old", created_at=now - 100),
            make_entry(id="future", created_at=now + 100),
        ]
    )
    for where, expected in (
        (Filter(tags=("red",)), ["tagged"]),
        (Filter(tags=("red", "blue")), ["tagged"]),
        (Filter(tags=("red", "green")), []),
        (Filter(any_tags=("green", "blue")), ["tagged"]),
        (Filter(any_tags=()), []),
        (Filter(kinds=("decision", "other")), ["kinded"]),
        (Filter(kinds=()), []),
        (Filter(states=frozenset()), []),
        (Filter(subject="ada"), ["subject"]),
        (Filter(actor="ada"), ["actor"]),
        (Filter(session="s9"), ["session"]),
        (Filter(run="r9"), ["run"]),
        (Filter(pinned=True), ["pinned"]),
        (Filter(since=now + 100), ["future"]),
        (Filter(until=now), ["old"]),
        (Filter(since=now + 1, until=now + 100), []),
        (Filter(subject="ada", kinds=("decision",)), []),
    ):
        assert lab.ids(where) == expected, where
        assert lab.read(lambda tx, where=where: tx.count(where)) == len(expected)  # type: ignore[misc]


def tags_are_compared_exactly(lab: Lab) -> None:
    """No case folding, no prefixes, no patterns."""
    lab.put(id="one", tags=("Red%",))
    for tag in ("red%", "Red", "Red%%", "R*", ""):
        assert lab.ids(Filter(tags=(tag,))) == []
    assert lab.ids(Filter(tags=("Red%",))) == ["one"]


def states_and_archive_are_separate(lab: Lab) -> None:
    """Ordinary reads show readable states that are not archived; the rest has to be asked for."""
    for state in EntryState:
        if state is not EntryState.ERASED:
            lab.put(id=state.value)
            if state is not EntryState.ACTIVE:
                lab.change(state.value, state=state)
    lab.put(id="archived")
    lab.change("archived", archived=True)
    assert sorted(lab.ids()) == ["active", "contested", "pending_enrichment"]
    assert lab.ids(Filter(states=frozenset({EntryState.DRAFT}))) == ["draft"]
    gone = same_but(ANYTHING, states=frozenset({EntryState.RETRACTED}))
    assert lab.ids(gone) == ["retracted"]
    assert lab.ids(same_but(ANYTHING, archived=True)) == ["archived"]
    assert "archived" not in lab.ids(same_but(ANYTHING, archived=False))
    assert len(lab.ids(ANYTHING)) == len(EntryState)


def all_refs_at_once(lab: Lab) -> None:
    """A scope without a ref sees every ref of the tenant, in order of insertion."""
    lab.put(ref="b", id="1", created_at=30, subject="ada")
    lab.put(ref="a", id="2", created_at=20)
    lab.put(ref="b", id="3", created_at=10, subject="ada")
    assert lab.ids(ref=None) == ["1", "2", "3"]
    assert lab.ids(Filter(subject="ada"), ref=None) == ["1", "3"]
    assert lab.read(lambda tx: tx.count(Filter()), ref=None) == 3


def get_takes_a_filter(lab: Lab) -> None:
    """`get` shows an entry only if it matches."""
    lab.put(id="one", tags=("red",))
    assert lab.get("one", where=Filter(tags=("red",))) is not None
    assert lab.get("one", where=Filter(tags=("blue",))) is None
    lab.change("one", archived=True)
    assert lab.get("one") is None
    assert lab.get("one", where=ANYTHING) is not None
