"""After a purge no byte of the text is left: not in the file, its log, its free pages, its indexes, nor in a backup."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState, Link, Scope, Source
from reverie.core.query import Filter
from reverie.host import Host
from reverie.store.conformance import HandClock, make_entry, make_event
from reverie.store.conformance.lab import put
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import writer as writer_module

HERE = Scope("acme", "notes")
SYLLABLES = ["qua", "zor", "bim", "vex", "lup", "tan", "gri", "pho", "dul", "wek", "syx", "jor"]


def word(number: int) -> str:
    """A distinctive word per number: letters that stand nowhere else."""
    return "zq" + "".join(SYLLABLES[number // 12**place % 12] for place in range(4))


def traces(store: SqliteStore, words: list[str], *more: Path) -> list[tuple[str, str]]:
    """Which words stand in which files, byte by byte, in UTF-8 or UTF-16."""
    path = Path(store.path)
    found = []
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal"), *more):
        raw = file.read_bytes().lower() if file.exists() else b""
        found += [(file.name, w) for w in words if w.encode() in raw or w.encode("utf-16-le") in raw]
    return found


def purge(tx: WriteTx, *ids: str) -> None:
    for entry_id in ids:
        tx.purge(entry_id, seq=tx.append(make_event("memory.purged", entry_id=entry_id)))


@pytest.mark.parametrize("size", [1, 40, 600])
def test_nothing_is_left_of_a_purged_text(make_store: Callable[..., SqliteStore], size: int, tmp_path: Path) -> None:
    """Short rows, rows with neighbours on the page, and rows on overflow pages."""
    store = make_store()
    words = {f"e{n}": word(n) for n in range(120)}
    for n, (entry_id, w) in enumerate(words.items()):
        text = f"{w} " * size
        entry = make_entry(id=entry_id, content=text, tags=(f"{w}-tag",), subject=f"{w}s", attributes={"k": f"{w}!"})
        store.write(HERE, lambda tx, entry=entry: put(tx, entry))
        if n % 5 == 0:
            store.write(
                HERE, lambda tx, i=entry_id: tx.change(i, seq=tx.append(make_event()), attributes={"k": "x" * 90})
            )
    gone = [e for n, e in enumerate(words) if n % 3]
    random.Random(1).shuffle(gone)
    assert traces(store, [words[e] for e in gone])
    for start in range(0, len(gone), 7):
        store.write(HERE, lambda tx, part=gone[start : start + 7]: purge(tx, *part))
    assert traces(store, [words[e] for e in gone]) == []
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    assert traces(store, [words[e] for e in gone], copy) == []
    store.close()
    assert traces(store, [words[e] for e in gone], copy) == []
    kept = [w for e, w in words.items() if e not in gone]
    assert len({w for _, w in traces(store, kept)}) == len(kept)  # the search itself can find


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_were_moved_between_pages_leave_no_copy_behind(
    make_store: Callable[..., SqliteStore], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growing, shrinking and reordering rows makes SQLite move cells; secure deletion alone must not be trusted."""
    monkeypatch.setattr(writer_module, "WIPE_PAGES", 40)  # in several steps
    store = make_store()
    store._db.execute("PRAGMA synchronous = OFF")
    chance = random.Random(seed)
    words = {f"e{n}": word(1000 + n) for n in range(250)}
    for entry_id, w in words.items():
        entry = make_entry(id=entry_id, content=f"{w} " * chance.randint(1, 30), tags=(w,), subject=w)
        store.write(HERE, lambda tx, entry=entry: put(tx, entry))
    for _ in range(400):  # rows change their size in place, and pages split and merge
        entry_id = chance.choice(list(words))
        attributes = {"k": "y" * chance.randint(1, 900)}
        store.write(HERE, lambda tx, i=entry_id, a=attributes: tx.change(i, seq=tx.append(make_event()), attributes=a))
    gone = list(words)
    chance.shuffle(gone)
    for start in range(0, 180, 30):
        store.write(HERE, lambda tx, part=gone[start : start + 30]: purge(tx, *part))
    assert traces(store, [words[e] for e in gone[:180]]) == []
    store.write(HERE, lambda tx: purge(tx, *gone[180:]))
    assert traces(store, list(words.values())) == []
    for _ in range(100):  # pages that were held in memory do not bring anything back
        entry_id = chance.choice(gone[:180])
        store.write(HERE, lambda tx, i=entry_id: put(tx, make_entry(content="z" * chance.randint(1, 3000))))
    assert traces(store, list(words.values())) == []
    assert store.check()


def test_another_process_does_not_write_back_the_pages_it_holds(make_store: Callable[..., SqliteStore]) -> None:
    """Two stores on one file, as two processes have them."""
    one, two = make_store(), make_store()
    chance = random.Random(3)
    words = {f"e{n}": word(4000 + n) for n in range(200)}
    for n, (entry_id, w) in enumerate(words.items()):
        entry = make_entry(id=entry_id, content=f"{w} " * chance.randint(1, 30))
        (one, two)[n % 2].write(HERE, lambda tx, entry=entry: put(tx, entry))
    for n in range(200):
        attributes = {"k": "y" * chance.randint(1, 900)}
        change = f"e{chance.randrange(200)}"
        (one, two)[n % 2].write(
            HERE, lambda tx, i=change, a=attributes: tx.change(i, seq=tx.append(make_event()), attributes=a)
        )
    gone = [f"e{n}" for n in range(200) if n % 4]
    one.write(HERE, lambda tx: purge(tx, *gone))
    assert traces(one, [words[e] for e in gone]) == []
    for n in range(0, 200, 4):
        two.write(HERE, lambda tx, i=f"e{n}": tx.change(i, seq=tx.append(make_event()), attributes={}))
    assert traces(one, [words[e] for e in gone]) == []
    assert two.read(HERE, lambda tx: tx.count(Filter())) == 50
    assert one.check()
    one.close()
    two.write(HERE, lambda tx: put(tx, make_entry()))  # its locks are still its own
    assert two.check()


def test_a_rewritten_text_is_gone(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    secret = word(77)
    entry = store.write(HERE, lambda tx: put(tx, make_entry(id="a", content=f"the {secret} one", tags=(secret,))))
    clean = make_entry(id="a", content="the [REDACTED] one", position=entry.position)
    store.write(HERE, lambda tx: tx.rewrite(clean, seq=tx.append(make_event()), terms=["one"], vector=None))
    assert traces(store, [secret]) == []


def test_a_dropped_document_and_the_notes_of_links_are_gone(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    body, note = word(88), word(89)

    def fill(tx: WriteTx) -> None:
        put(tx, make_entry(id="a"))
        tx.save("files", "k", body.encode() * 900, seq=tx.append(make_event()))
        tx.link(Link("a", "b", "supports", note))

    store.write(HERE, fill)
    assert len(traces(store, [body, note])) >= 2
    store.write(HERE, lambda tx: tx.drop("files", "k", seq=tx.append(make_event())))
    store.write(HERE, lambda tx: purge(tx, "a"))
    assert traces(store, [body, note]) == []


def test_words_leave_the_index_when_an_entry_leaves_memory(make_store: Callable[..., SqliteStore]) -> None:
    """A deleted entry waits in cold storage with its text, but nowhere else; then that goes too."""
    store = make_store()
    w = word(99)
    store.write(HERE, lambda tx: put(tx, make_entry(id="a", content=f"{w} here")))
    store.write(HERE, lambda tx: tx.change("a", seq=tx.append(make_event()), state=EntryState.DELETED))
    assert store.read(HERE, lambda tx: tx._db.execute("SELECT count(*) FROM recall").get) == 0
    store.write(HERE, lambda tx: purge(tx, "a"))
    assert traces(store, [w]) == []


def test_forget_reaches_every_place(
    make_host: Callable[..., Host], ada: Actor, clock: HandClock, tmp_path: Path
) -> None:
    host = make_host()
    store: SqliteStore = host.parts.store  # type: ignore[assignment]
    words = [word(200 + n) for n in range(60)]
    for n, w in enumerate(words):
        draft = Draft(
            f"{w} likes tea. " * (1 + n % 40),
            id=f"e{n}",
            subject="zoe" if n % 2 else None,
            tags=("subject:zoe", w) if n % 2 == 0 else (w,),
            attributes={"note": w},
            source=Source(actor="agent"),
        )
        host.entries.put(ada, f"ref{n % 3}", [draft], idempotency_key=f"key-{n}")
    host.lifecycle.archive(ada, "ref0", "e0")
    host.lifecycle.delete(ada, "ref1", "e1")
    host.lifecycle.retract(ada, "ref2", "e2")
    for w in words[:10]:
        host.search.search(ada, "ref0", w)
    assert traces(store, words)
    assert host.forget.forget(ada, "zoe").forgotten == 60
    assert traces(store, words) == []
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    assert traces(store, words, copy) == []
    assert host.audit.verify(ada).ok
    store.close()
    assert traces(store, words, copy) == []


def test_expiry_destroys_archived_and_deleted_entries_too(
    make_host: Callable[..., Host], ada: Actor, clock: HandClock
) -> None:
    host = make_host()
    store: SqliteStore = host.parts.store  # type: ignore[assignment]
    words = [word(300 + n) for n in range(3)]
    for n, w in enumerate(words):
        host.entries.put(ada, "notes", [Draft(f"{w} soon gone", id=f"e{n}", expires_at=clock.now() + 10)])
    host.lifecycle.archive(ada, "notes", "e0")
    host.lifecycle.delete(ada, "notes", "e1")
    clock.advance(10)
    assert host.lifecycle.expire(ada) == 3
    assert traces(store, words) == []


def test_a_hold_does_not_keep_others_from_being_swept(
    make_host: Callable[..., Host], ada: Actor, clock: HandClock
) -> None:
    """However many entries are on hold, those behind them are destroyed in time."""
    host = make_host()
    held = [Draft(f"held {n}", id=f"h{n}", expires_at=clock.now() + 10) for n in range(510)]
    host.entries.put(ada, "notes", held)

    def hold(tx: WriteTx) -> None:
        for n in range(510):
            tx.change(f"h{n}", seq=tx.append(make_event("memory.held", entry_id=f"h{n}")), held=True)

    host.parts.store.write(HERE, hold)
    host.entries.put(ada, "notes", [Draft("free", id="free", expires_at=clock.now() + 10)])
    clock.advance(10)
    assert host.lifecycle.expire(ada) == 1
    assert host.lifecycle.expire(ada) == 0


def test_rows_of_purged_entries_share_pages(make_store: Callable[..., SqliteStore]) -> None:
    """A tombstone takes a tenth of the room of its entry: pages that are nearly empty are joined and freed."""
    store = make_store()
    ids = [f"e{n}" for n in range(300)]
    store.write(HERE, lambda tx: [put(tx, make_entry(id=one, content="harbour " * 120)) for one in ids])

    def used() -> int:
        db = apsw.Connection(store.path, flags=apsw.SQLITE_OPEN_READONLY)
        found: int = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'entry'").get
        db.close()
        return found

    before = used()
    store.write(HERE, lambda tx: purge(tx, *ids))
    assert used() < before / 4
    assert store.read(HERE, lambda tx: tx.count(Filter())) == 0
