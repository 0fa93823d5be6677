"""Paging: each entry exactly once, in order, to the end, without silent caps."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from reverie.core.entry import Entry, EntryState
from reverie.core.errors import Invalid
from reverie.core.query import Filter
from reverie.store.conformance.lab import ANYTHING, Lab, make_entry, make_event, refuses
from reverie.store.contract import WriteTx


def _walk(
    lab: Lab, where: Filter | None = None, *, limit: int = 3, ref: str | None = "notes", **how: Any
) -> list[Entry]:
    found: list[Entry] = []
    cursor: str | None = None
    while True:
        page = lab.scan(where, limit=limit, cursor=cursor, ref=ref, **how)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found
        assert page.items, "a cursor without items leads nowhere"


def newest_first_and_ties_by_insertion(lab: Lab) -> None:
    """Entries come by `created_at`, then by insertion; in reverse on request."""
    times = [5, 3, 5, 1, 3, 5, 2]
    lab.put_many([make_entry(id=f"{n}", created_at=at) for n, at in enumerate(times)])
    expected = [str(n) for n in sorted(range(7), key=lambda n: (times[n], n))]
    for limit in (1, 2, 3, 7, 100):
        assert [e.id for e in _walk(lab, limit=limit)] == expected[::-1]
        assert [e.id for e in _walk(lab, limit=limit, oldest_first=True)] == expected


def every_way_of_scanning_pages(lab: Lab) -> None:
    """By tag, by subject, by expiry, across refs, with what is gone: each once."""
    later = lab.clock.now() + 1
    lab.put_many([make_entry(id=f"{n:02}", tags=("t",), subject="ada", expires_at=later) for n in range(10)])
    everything = [f"{n:02}" for n in range(10)]
    assert [e.id for e in _walk(lab, Filter(tags=("t",)))] == everything[::-1]
    assert [e.id for e in _walk(lab, Filter(any_tags=("t",)))] == everything[::-1]
    assert [e.id for e in _walk(lab, Filter(subject="ada"), ref=None)] == everything
    assert [e.id for e in _walk(lab, ref=None)] == everything
    assert [e.id for e in _walk(lab, ANYTHING)] == everything
    lab.clock.advance(1)
    assert [e.id for e in _walk(lab, Filter(expired=True), ref=None)] == everything


def no_silent_cap(lab: Lab) -> None:
    """A page is as large as asked for, and only the last has no cursor."""
    lab.put_many([make_entry() for _ in range(2500)])
    page = lab.scan(limit=2499)
    assert len(page.items) == 2499
    assert page.cursor is not None
    assert len(lab.scan(limit=2500, cursor=page.cursor).items) == 1
    assert lab.scan(limit=2500).cursor is None


def writes_do_not_disturb(lab: Lab) -> None:
    """Entries that come and go between pages change nothing for the ones that stay."""
    stay = [e.id for e in lab.put_many([make_entry(created_at=1000 + n % 7) for n in range(40)])]
    leave = [e.id for e in lab.put_many([make_entry(created_at=1003) for _ in range(10)])]
    seen: list[str] = []
    cursor: str | None = None
    for n in range(1000):
        page = lab.scan(limit=4, cursor=cursor)
        seen += [e.id for e in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        lab.put(created_at=1000 + n % 7)
        if leave:
            lab.change(leave.pop(), archived=True)
        if n == 3:
            lab.purge(page.items[-1].id)  # the entry at the cursor
    assert len(seen) == len(set(seen))
    assert set(stay) <= set(seen)


def writers_in_other_threads_do_not_disturb(lab: Lab) -> None:
    """The same while other threads write without pause."""
    stay = {e.id for e in lab.put_many([make_entry(created_at=n) for n in range(200)])}
    done = threading.Event()

    def work(number: int) -> None:
        while not done.is_set():
            entry = lab.put(created_at=number * 37 % 200)
            lab.change(entry.id, archived=True)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            seen = [e.id for e in _walk(lab, limit=17)]
            assert len(seen) == len(set(seen))
            assert stay <= set(seen)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def a_made_up_cursor_is_refused(lab: Lab) -> None:
    """A made-up cursor raises Invalid; a cursor of another tenant never shows that tenant's entries."""
    own = {e.id for e in lab.put_many([make_entry() for _ in range(5)])}
    lab.put_many([make_entry() for _ in range(5)], tenant="rival")
    foreign = lab.scan(limit=2, tenant="rival").cursor
    assert foreign is not None
    with suppress(Invalid):
        assert set(lab.ids(cursor=foreign)) <= own
    for cursor in ("", "x", "[]", "null", "eyJhIjoxfQ", "ÿ", "[1e999,1]", "W10", "Wzks", "a" * 5000):
        with refuses(Invalid):
            lab.scan(limit=2, cursor=cursor)


def a_cursor_says_nothing_about_others(lab: Lab) -> None:
    """The same entries give the same cursor, whatever another tenant writes in between."""
    entries = [make_entry(id=f"{n}") for n in range(4)]
    for tenant, noise in (("quiet", 0), ("loud", 50)):
        for entry in entries:
            lab.put_many([entry], tenant=tenant)
            lab.put_many([make_entry() for _ in range(noise)], tenant="neighbour")
    assert lab.scan(limit=2, tenant="quiet").cursor == lab.scan(limit=2, tenant="loud").cursor


def cold_entries_are_bounded_and_ordered(lab: Lab) -> None:
    """`cold` returns entries that left before an instant and still have text, in order of insertion."""
    lab.put_many([make_entry(id=f"{n}") for n in range(6)])
    lab.change("0", state=EntryState.DELETED)
    lab.change("1", archived=True)
    lab.change("2", state=EntryState.DELETED)
    left_at = lab.clock.now()
    lab.clock.advance(10)
    lab.change("3", state=EntryState.DELETED)
    lab.change("4", state=EntryState.DELETED)
    lab.purge("4")
    lab.change("2", pinned=True)  # no new departure
    lab.change("0", held=True)

    def cold(before: int, limit: int = 10) -> list[str]:
        return [e.id for e in lab.read(lambda tx: tx.cold(EntryState.DELETED, before=before, limit=limit), ref=None)]

    assert cold(left_at - 1) == []
    assert cold(left_at) == ["2"]
    assert cold(lab.clock.now()) == ["2", "3"]
    assert cold(lab.clock.now(), limit=1) == ["2"]
    lab.change("0", held=False)
    assert cold(left_at) == ["0", "2"]
    assert (
        lab.read(lambda tx: tx.cold(EntryState.DELETED, before=lab.clock.now(), limit=10, files=True), ref=None) == []
    )
    lab.put(id="f", kind="file")
    lab.change("f", state=EntryState.DELETED)
    assert cold(lab.clock.now()) == ["0", "2", "3"]
    files = lab.read(lambda tx: tx.cold(EntryState.DELETED, before=lab.clock.now(), limit=9, files=True), ref=None)
    assert [entry.id for entry in files] == ["f"]


def logs_and_documents_page_too(lab: Lab) -> None:
    """Events by position, documents by key."""

    def body(tx: WriteTx) -> None:
        for n in range(7):
            tx.save("files", f"{n}", b"x", seq=tx.append(make_event("document.saved")))

    lab.write(body, ref=None)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = lab.read(lambda tx, cursor=cursor: tx.documents("files", limit=3, cursor=cursor), ref=None)  # type: ignore[misc]
        seen += [d.key for d in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [f"{n}" for n in range(7)]
    assert [e.seq for e in lab.read(lambda tx: tx.read_log(after=2, limit=3), ref=None)] == [3, 4, 5]
