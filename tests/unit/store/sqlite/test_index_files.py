"""The search index in files: what is destroyed leaves it with the commit, and nothing needs it."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from pathlib import Path

import pytest

from reverie.core.entry import EntryState, Scope
from reverie.core.query import Filter
from reverie.index import cache
from reverie.index.files import Files
from reverie.index.postings import hashed
from reverie.index.segment import Row
from reverie.store.conformance import make_entry, make_event
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite.read import SqliteReadTx

SCOPE = Scope("acme", "notes")
VECTOR = b"a vector of sixteen bytes only16"
COUNT = 200


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALLEST", 100)


def fill(tx: WriteTx, first: int = 0) -> None:
    for n in range(first, first + COUNT):
        entry = make_entry(id=f"{n}", ref="notes", content="text")
        words = ["common", f"w{n}"]
        vector = VECTOR if n == 7 else bytes([n % 50] * 32)
        tx.insert(entry, seq=tx.append(make_event()), terms=words, vector=("m", vector), minted=False)


def found(tx: ReadTx) -> tuple[list[str], list[str]]:
    by_words = [match.entry.id for match in tx.match(["common", "w7"], Filter(), limit=500)]
    return by_words, [match.entry.id for match in tx.nearest(("m", VECTOR), Filter(), limit=3)]


def index_of(path: Path) -> Path:
    return path.with_name(path.name + "-index")


def traces(path: Path, key: bytes) -> list[str]:
    needles = (hashed("w7", key).to_bytes(8, "little", signed=True), VECTOR)
    files = (file for file in index_of(path).iterdir() if any(needle in file.read_bytes() for needle in needles))
    return [file.name for file in files]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reverie.db"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    store.write(SCOPE, fill)
    assert store.read(SCOPE, found)[0][0] == "7"
    assert traces(path, store.read(SCOPE, lambda tx: tx.log_key()))
    return store


def purge(tx: WriteTx) -> None:
    tx.purge("7", seq=tx.append(make_event()))


@pytest.mark.parametrize("cold", [False, True])
def test_a_purge_is_in_the_files_before_it_returns(store: SqliteStore, path: Path, cold: bool) -> None:
    key = store.read(SCOPE, lambda tx: tx.log_key())
    if cold:  # it left readable memory long before, and another process is at it
        store.write(SCOPE, lambda tx: tx.change("7", seq=tx.append(make_event()), state=EntryState.DELETED))
        store.close()
        store = SqliteStore(path)
        store.read(SCOPE, found)
    store.write(SCOPE, purge)
    assert not traces(path, key)
    words, near = store.read(SCOPE, found)
    assert len(words) == COUNT - 1
    assert "7" not in (*words, *near)
    store.close()
    with_files = SqliteStore(path)
    assert with_files.read(SCOPE, found) == (words, near)
    with_files.close()


def dream_all(tx: WriteTx) -> None:
    seq = tx.append(make_event("memory.compacted"))
    for n in range(COUNT):
        tx.change(f"{n}", seq=seq, state=EntryState.DREAMT)


def cold(tx: ReadTx) -> list[str]:
    where = Filter(states=frozenset({EntryState.DREAMT}), gone=True)
    return [match.entry.id for match in tx.cold_index().find(["common", "w7"], ("m", VECTOR), where, limit=500)]


def test_cold_storage_has_files_that_a_new_process_maps(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(SCOPE, dream_all)
    found = store.read(SCOPE, cold)
    assert len(found) == COUNT
    store.close()
    rows: list[Row] = []
    monkeypatch.setattr(SqliteReadTx, "cold_rows", lambda _, *, since: rows)
    again = SqliteStore(path)
    assert again.read(SCOPE, cold) == found
    again.close()


def test_a_purge_is_in_the_files_of_cold_storage_before_it_returns(store: SqliteStore, path: Path) -> None:
    key = store.read(SCOPE, lambda tx: tx.log_key())
    store.write(SCOPE, dream_all)
    store.read(SCOPE, cold)
    assert len(traces(path, key)) >= 2  # of readable memory, where it is no longer found, and of cold storage
    store.write(SCOPE, lambda tx: tx.purge("7", seq=tx.append(make_event("memory.purged", entry_id="7"))))
    assert not traces(path, key)
    left = store.read(SCOPE, cold)
    assert len(left) == COUNT - 1
    assert "7" not in left
    store.close()
    again = SqliteStore(path)
    assert again.read(SCOPE, cold) == left
    again.close()


def test_a_rewrite_leaves_nothing_of_the_older_words(store: SqliteStore, path: Path) -> None:
    key = store.read(SCOPE, lambda tx: tx.log_key())
    entry = make_entry(id="7", ref="notes", content="less")
    store.write(
        SCOPE, lambda tx: tx.rewrite(entry, seq=tx.append(make_event()), terms=["common"], vector=("m", bytes(32)))
    )
    assert not traces(path, key)
    words, _ = store.read(SCOPE, found)
    assert len(words) == COUNT
    assert store.read(SCOPE, lambda tx: tx.known(["common", "w7"])) == {"common"}
    store.close()


def test_a_purge_that_is_undone_takes_nothing_out(store: SqliteStore, path: Path) -> None:
    before = store.read(SCOPE, found)

    def fails(tx: WriteTx) -> None:
        purge(tx)
        raise LookupError

    with pytest.raises(LookupError):
        store.write(SCOPE, fails)
    store.close()
    again = SqliteStore(path)
    assert again.read(SCOPE, found) == before
    again.close()


def test_a_kill_between_commit_and_scrub_leaves_no_trace(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = store.read(SCOPE, lambda tx: tx.log_key())
    monkeypatch.setattr(Files, "scrub", lambda *_: None)  # as if it had died there
    store.write(SCOPE, purge)
    assert traces(path, key)
    monkeypatch.undo()
    again = SqliteStore(path)
    assert not traces(path, key)
    assert "7" not in again.read(SCOPE, found)[0]
    again.close()
    store.close()


@pytest.mark.parametrize("broken", ["_raise_floor", "_remove", "_locked"])
def test_a_purge_is_acknowledged_when_the_disk_fails_after_its_commit(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    key = store.read(SCOPE, lambda tx: tx.log_key())

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(Files, "_publish", full)
    monkeypatch.setattr(Files, broken, full)
    store.write(SCOPE, purge)
    assert "7" not in store.read(SCOPE, found)[0]
    monkeypatch.undo()
    store.close()
    again = SqliteStore(path)
    assert "7" not in again.read(SCOPE, found)[0]
    assert not traces(path, key)
    again.close()


def test_a_note_that_cannot_be_removed_does_not_stop_the_writer(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, leave = threading.Event(), threading.Event()
    faults: list[BaseException] = []

    def slow(tx: WriteTx) -> None:
        inside.set()
        leave.wait()
        tx.append(make_event())

    def queued() -> None:
        try:
            store.write(SCOPE, purge)
        except BaseException as fault:
            faults.append(fault)

    def refused(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "read-only")

    assert store._writer is not None
    first, second = threading.Thread(target=store.write, args=(SCOPE, slow)), threading.Thread(target=queued)
    first.start()
    inside.wait()
    second.start()
    while store._writer._queue.empty():
        time.sleep(0.001)
    monkeypatch.setattr(Path, "unlink", refused)
    real = store._writer._commit
    monkeypatch.setattr(store._writer, "_commit", lambda jobs, **how: (_refuse(store, jobs), real(jobs, **how))[1])
    leave.set()
    second.join(20)
    assert not second.is_alive(), "the writer is gone"
    assert faults
    monkeypatch.undo()
    store._writer._db.set_commit_hook(None)
    store.write(SCOPE, purge)
    assert "7" not in store.read(SCOPE, found)[0]
    store.close()


def _refuse(store: SqliteStore, jobs: list[object]) -> None:
    """Let the commit of a purge fail."""
    assert store._writer is not None
    store._writer._db.set_commit_hook(lambda: any(job.body is purge for job in jobs))  # type: ignore[attr-defined]


def test_files_of_a_newer_state_do_not_survive_a_restore(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.backup(str(tmp_path / "backup.db"))
    store.write(SCOPE, purge)
    store.write(SCOPE, lambda tx: fill(tx, first=COUNT))
    store.read(SCOPE, found)
    store.close()
    for name in ("", "-wal", "-shm", "-anchor"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", path)
    restored = SqliteStore(path)
    assert restored.read(SCOPE, found)[0][0] == "7"
    restored.close()


def test_a_medium_that_cannot_be_written_serves_with_files_and_without(store: SqliteStore, path: Path) -> None:
    wanted = store.read(SCOPE, found)
    store.close()
    names = sorted(index_of(path).iterdir())
    for _ in range(2):
        frozen = SqliteStore(path, read_only=True)
        assert frozen.read(SCOPE, found) == wanted
        frozen.close()
        assert not index_of(path).exists() or sorted(index_of(path).iterdir()) == names
        shutil.rmtree(index_of(path), ignore_errors=True)


def test_a_write_transaction_reads_what_it_wrote_and_not_all_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = SqliteReadTx.index_rows

    def counted(tx: SqliteReadTx, *, after: int, since: int) -> list[Row]:
        rows = list(real(tx, after=after, since=since))
        read.append(len(rows))
        return rows

    monkeypatch.setattr(SqliteReadTx, "index_rows", counted)

    def body(tx: WriteTx) -> tuple[list[str], list[str]]:
        entry = make_entry(id="new", ref="notes", content="text")
        tx.insert(entry, seq=tx.append(make_event()), terms=["common", "w7"], vector=("m", VECTOR), minted=False)
        return found(tx)

    words, near = store.write(SCOPE, body)
    assert words[:2] == ["7", "new"]
    assert near[:2] == ["7", "new"]
    assert read == [1, 1]
    store.close()
