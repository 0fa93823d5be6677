"""Filters: every given part must hold; within a list one value is enough; an empty list matches nothing."""

from __future__ import annotations

import random
from typing import Any

from reverie.core.entry import EntryState, Source
from reverie.core.query import Filter, Hidden, Match
from reverie.store.conformance.lab import ANYTHING, Lab, make_entry, make_event, put, same_but
from reverie.store.contract import ReadTx, WriteTx

_MODEL = "conformance/1"


def each_part_selects(lab: Lab) -> None:
    """One entry for each part, found by that part alone."""
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
            make_entry(id="task", attributes={"intent": {"task_id": "t9"}, "mode": "committed"}),
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
        (Filter(task="t9"), ["task"]),
        (Filter(task="t9", kinds=("other",)), []),
        (Filter(task="t"), []),
        (Filter(pinned=True), ["pinned"]),
        (Filter(since=now + 100), ["future"]),
        (Filter(until=now), ["old"]),
        (Filter(since=now + 1, until=now + 100), []),
        (Filter(subject="ada", kinds=("decision",)), []),
        (Filter(sessionless=True, kinds=("decision",)), ["kinded"]),
        (Filter(sessionless=True, session="s9"), []),
        (Filter(without_kinds=("note", "other")), ["kinded"]),
        (Filter(not_by=("x", 1), session="s9"), []),
        (Filter(not_by=("x", 1_000_000), session="s9"), ["session"]),
        (Filter(not_by=("ada", 1), actor="ada"), []),
        (Filter(sessionless=True, actor="ada"), ["actor"]),
        (Filter(sessionless=True, without_kinds=("note",), not_by=("ada", 1)), ["kinded"]),
        (Filter(since_epoch=1_000_000), []),
        (Filter(run="r9", hidden=Hidden(sessions=("s9",))), ["run"]),
        (Filter(hidden=Hidden(sessions=("s9",)), session="s9"), []),
        (Filter(hidden=Hidden(sessions=("s",), kinds=(("s9", "other"), ("s", "note"))), session="s9"), ["session"]),
        (Filter(hidden=Hidden(kinds=(("s9", "note"),)), session="s9"), []),
        (Filter(hidden=Hidden(others=("s9",), known=("note",)), session="s9"), ["session"]),
        (Filter(hidden=Hidden(others=("s9",), known=("decision",)), session="s9"), []),
        (Filter(hidden=Hidden(others=("s9",)), kinds=("decision",)), ["kinded"]),
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


def searches_rank_what_a_filter_leaves(lab: Lab) -> None:
    """Whatever share a filter keeps, order and scores are, to the last bit, those of a search without it."""
    now = lab.clock.now()
    many: list[dict[str, Any]] = [{"tags": ("most", "half") if n % 2 else ("most",)} for n in range(600)]
    rare: tuple[dict[str, Any], ...] = (
        {"tags": ("most", "few")},
        {"tags": ("half", "few", "other")},
        {"kind": "decision"},
        {"subject": "ada"},
        {"source": Source(actor="ada")},
        {"source": Source(actor="x", session="s9")},
        {"source": Source(actor="x", run="r9")},
        {"pinned": True},
        {"created_at": now - 100},
        {"created_at": now + 100},
    )
    for n, fields in enumerate(rare):
        many[50 * n + 7], many[50 * n + 33] = fields, fields
    _store(lab, many)
    for where in (
        Filter(),
        Filter(tags=("most",)),
        Filter(tags=("half",)),
        Filter(tags=("few",)),
        Filter(tags=("few", "half", "few")),
        Filter(any_tags=("few", "other", "most")),
        Filter(any_tags=("other", "few", "few")),
        Filter(tags=("most",), any_tags=("few",)),
        Filter(kinds=("decision", "other")),
        Filter(subject="ada"),
        Filter(actor="ada"),
        Filter(session="s9"),
        Filter(run="r9"),
        Filter(pinned=True),
        Filter(until=now),
        Filter(since=now + 1),
        Filter(since=now, until=now + 1),
        Filter(tags=("few",), kinds=("decision",)),
        Filter(tags=("nobody",)),
        Filter(any_tags=()),
        Filter(kinds=()),
        Filter(subject="bob"),
        Filter(since=now + 101),
        Filter(states=frozenset()),
    ):
        _ranks_alike(lab, where)


def a_search_follows_what_a_filter_leaves(lab: Lab) -> None:
    """Each search sees the present: entries that came, changed, left or expired since the last one."""
    entries = _store(lab, [{} for _ in range(300)])
    where = Filter(pinned=True)
    assert _ranks_alike(lab, where) == set()
    for n in (40, 140, 240):
        lab.change(entries[n], pinned=True)
    assert _ranks_alike(lab, where) == {entries[40], entries[140], entries[240]}
    lab.change(entries[40], pinned=False)
    lab.change(entries[140], archived=True)
    assert _ranks_alike(lab, where) == {entries[240]}
    lab.change(entries[240], expires_at=lab.clock.now() + 5)
    lab.clock.advance(4)
    expired = same_but(where, expired=True)
    assert _ranks_alike(lab, where) == {entries[240]}
    assert _ranks_alike(lab, expired) == set()
    lab.clock.advance(1)
    assert _ranks_alike(lab, expired) == {entries[240]}
    assert _ranks_alike(lab, where) == set()


def a_write_finds_what_it_made_match(lab: Lab) -> None:
    """A search inside a write applies the filter to what the write has changed."""
    entries = _store(lab, [{} for _ in range(300)])

    def body(tx: WriteTx) -> None:
        seq = tx.append(make_event())
        for pinned in (True, False, True):
            tx.change(entries[200], seq=seq, pinned=pinned)
            found = tx.match(["kettle"], Filter(pinned=True), limit=20)
            assert [match.entry.id for match in found] == ([entries[200]] if pinned else [])

    lab.write(body)


def _store(lab: Lab, many: list[dict[str, Any]]) -> list[str]:
    """Store entries with random words and vectors. Returns their ids."""
    chance = random.Random(11)  # noqa: S311

    def body(tx: WriteTx) -> list[str]:
        ids = []
        for fields in many:
            words = ["kettle", *chance.choices(["shelf", "port", "lisbon", "zebra", "kettle"], k=chance.randint(0, 6))]
            entry = make_entry(content=" ".join(words), **fields)
            ids.append(put(tx, entry, vector=(_MODEL, bytes(chance.randrange(256) for _ in range(8)))).id)
        return ids

    return lab.write(body)


def _ranks_alike(lab: Lab, where: Filter) -> set[str]:
    """Check at several limits that a filtered search is the unfiltered one without other entries. Returns the ids."""

    def look(tx: ReadTx) -> set[str]:
        known = {entry.id for entry in tx.scan(where, limit=1000).items}
        for expected, *found in zip(*(_both(tx, *how) for how in ((Filter(expired=None), 1000), *asked)), strict=True):
            left = [match for match in expected if match.entry.id in known]
            assert {match.entry.id for match in left} == known, where
            assert found == [left[:limit] for _, limit in asked], where
        return known

    asked = [(where, limit) for limit in (1, 9, 60, 1000)]

    return lab.read(look)


def _both(tx: ReadTx, where: Filter, limit: int) -> tuple[list[Match], list[Match]]:
    """By words and by meaning."""
    vector = bytes([100, 3, 250, 9, 40, 77, 128, 1])
    return tx.match(["kettle", "zebra"], where, limit=limit), tx.nearest((_MODEL, vector), where, limit=limit)


def are_counted_by_value(lab: Lab) -> None:
    """Kinds, subjects, sources and tags of readable entries, the most frequent first; nothing of other memories."""
    for n in range(3):
        lab.put(
            kind="decision", tags=("a", f"t{n}", "archive:1", "subject:zoe"), subject="zoe", source=Source(actor="mara")
        )
    lab.put(id="gone", kind="rare", tags=("a", "gone"), source=Source(actor="ghost"))
    lab.put(kind="late", tags=("late",), expires_at=lab.clock.now() - 1)
    lab.put(ref="other", kind="elsewhere", tags=("b",))
    lab.put(tenant="rival", kind="theirs", tags=("c",))
    lab.put(kind="note", source=Source(actor=""))
    lab.change("gone", state=EntryState.RETRACTED)
    found = lab.read(lambda tx: tx.facets(most=2))
    assert found["kind"] == [("decision", 3), ("note", 1)]
    assert found["subject"] == [("zoe", 3)]
    assert found["source"] == [("mara", 3)]
    assert found["tag"] == [("a", 3), ("t0", 1)]
    assert lab.read(lambda tx: tx.facets(most=2), ref="none") == {}
