"""What goes wrong outside: each fault is one clear error, and nothing is acknowledged that is not stored."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from reverie.core.entry import Scope
from reverie.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from reverie.core.query import Filter
from reverie.store.conformance import HandClock, make_entry
from reverie.store.conformance.lab import put
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite import store as store_module
from reverie.store.sqlite import writer as writer_module

HERE = Scope("acme", "notes")


def test_a_missing_folder_is_made_unless_nothing_may_be(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "memory.db"
    with pytest.raises(StoreUnavailable, match="no database"):
        SqliteStore(path, create=False)
    assert not (tmp_path / "a").exists()
    SqliteStore(path).close()
    SqliteStore(path, create=False).close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "file" / "memory.db")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path)


@pytest.mark.parametrize(
    "content", [b"This is not a database. " * 400, b"\x00" * 4096, os.urandom(8192), b"SQLite format 3"]
)
def test_garbage_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert isinstance(caught.value, StoreCorrupt)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (name)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_schema_from_the_future_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version = 999")
    db.close()
    with pytest.raises(StoreError, match="newer release"):
        SqliteStore(path)
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").get == 999


def test_a_truncated_file_is_found(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, lambda tx: [put(tx, make_entry(content="kettle " * 300)) for _ in range(200)])
    store.close()
    path = Path(store.path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(StoreCorrupt):
        SqliteStore(path).check()


def test_flipped_pages_are_found_by_the_check(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, lambda tx: [put(tx, make_entry(content="kettle " * 300)) for _ in range(100)])
    store.close()
    path = Path(store.path)
    whole = path.read_bytes()
    found = 0
    pages = range(1, len(whole) // 4096, max(1, len(whole) // 4096 // 12))
    for page in pages:
        at = page * 4096
        path.write_bytes(whole[:at] + bytes(b ^ 0xFF for b in whole[at : at + 64]) + whole[at + 64 :])
        try:
            damaged = SqliteStore(path)
            try:
                damaged.check()
            finally:
                damaged.close()
        except StoreCorrupt:
            found += 1
    # pages that hold nothing but the middle of long texts have no structure to check: the audit compares those
    assert found >= len(pages) // 3
    path.write_bytes(whole)
    SqliteStore(path).close()


def test_damage_met_while_reading_is_one_clear_error(make_store: Callable[..., SqliteStore]) -> None:
    store = make_store()
    store.write(HERE, lambda tx: [put(tx, make_entry(id=f"{n}", content="kettle " * 100)) for n in range(100)])
    store.close()
    db = apsw.Connection(store.path)
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entry'").get
    db.close()
    path = Path(store.path)
    whole = path.read_bytes()
    at = (root - 1) * 4096
    path.write_bytes(whole[:at] + b"\xee" * 4096 + whole[at + 4096 :])
    damaged = SqliteStore(path)
    with pytest.raises(StoreCorrupt):
        damaged.read(HERE, lambda tx: tx.get("1"))
    with pytest.raises(StoreCorrupt):
        damaged.write(HERE, lambda tx: put(tx, make_entry()))
    damaged.close()


def test_a_file_locked_by_another_process_is_waited_for_and_then_reported(
    make_store: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (store_module, writer_module):
        monkeypatch.setattr(module, "BUSY_MS", 200)
    store = make_store()
    store.write(HERE, lambda tx: put(tx, make_entry(id="a")))
    other = apsw.Connection(store.path)
    other.execute("BEGIN IMMEDIATE")
    failed: list[BaseException] = []

    def write() -> None:
        try:
            store.write(HERE, lambda tx: put(tx, make_entry()))
        except StoreBusy as fault:
            failed.append(fault)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert store.read(HERE, lambda tx: tx.get("a")) is not None  # readers do not wait
    for thread in threads:
        thread.join()
    assert len(failed) == 8
    other.execute("ROLLBACK")
    store.write(HERE, lambda tx: put(tx, make_entry(id="b")))
    assert store.read(HERE, lambda tx: tx.head().seq) == 2


CHILD = """
import json, os, resource, stat, sys
from reverie.core.entry import Scope
from reverie.core.errors import ReverieError
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.sqlite import SqliteStore

here, path = Scope("acme", "notes"), sys.argv[1]
"""


def child(script: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD + textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_a_disk_that_fills_up_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The operating system refuses to let the files grow: as on a full disk, from the middle of a commit on."""
    answer = child(
        """
        store = SqliteStore(path)
        store.write(here, lambda tx: put(tx, make_entry(id="first")))
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        kept, code = ["first"], None
        for n in range(200):
            try:
                store.write(here, lambda tx: put(tx, make_entry(id=f"{n}", content="x" * 10_000)))
                kept.append(f"{n}")
            except ReverieError as fault:
                code = fault.reason
                break
        still_readable = store.read(here, lambda tx: tx.get("first")) is not None
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        store.write(here, lambda tx: put(tx, make_entry(id="after")))
        kept.append("after")
        store.check()
        store.close()
        print(json.dumps({"kept": kept, "code": code, "still_readable": still_readable}))
        """,
        str(tmp_path / "memory.db"),
    )
    assert answer["code"] == "storage_full"
    assert answer["still_readable"]
    store = SqliteStore(tmp_path / "memory.db", clock=HandClock())
    stored = [e.id for e in store.read(HERE, lambda tx: tx.scan(Filter(), limit=1000, oldest_first=True)).items]
    assert stored == answer["kept"]
    log = store.read(HERE, lambda tx: tx.read_log())
    assert [e.seq for e in log] == list(range(1, len(stored) + 1))
    assert all(e.sound() for e in log)
    store.check()
    store.close()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_written_is_said_to_be_so(what: str) -> None:
    """In a process without privileges: permissions do not bind a superuser."""
    answer = child(
        """
        import pathlib, tempfile
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        with tempfile.TemporaryDirectory() as base:
            folder = pathlib.Path(base) / "data"
            file = folder / "memory.db"
            SqliteStore(file).close()
            target, mode = (file, 0o400) if path == "file" else (folder, 0o500)
            target.chmod(mode)
            code = None
            try:
                SqliteStore(file).write(here, lambda tx: put(tx, make_entry()))
            except ReverieError as fault:
                code = fault.reason
            target.chmod(0o700)
            store = SqliteStore(file)
            store.write(here, lambda tx: put(tx, make_entry()))
            store.close()
        print(json.dumps({"code": code}))
        """,
        what,
    )
    assert answer["code"] == "store_unavailable"


def test_a_database_opened_read_only_by_the_system_is_said_to_be_so(
    make_store: Callable[..., SqliteStore],
) -> None:
    store = make_store()
    store._db.execute("PRAGMA query_only = ON")  # what SQLite reports for a read-only file, also to a superuser
    with pytest.raises(StoreUnavailable, match="not writable"):
        store.write(HERE, lambda tx: put(tx, make_entry()))
    store._db.execute("PRAGMA query_only = OFF")
    store.write(HERE, lambda tx: put(tx, make_entry()))


def test_a_backup_never_overwrites_and_leaves_no_ruin(make_store: Callable[..., SqliteStore], tmp_path: Path) -> None:
    store = make_store()
    store.write(HERE, lambda tx: [put(tx, make_entry(id=f"{n}", content="x" * 3000)) for n in range(2000)])
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        store.backup(str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_text() == "mine"
    with pytest.raises(StoreUnavailable):
        store.backup(str(tmp_path / "no folder" / "copy"))

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.backup(str(tmp_path / "broken off"), progress=stop)
    assert not (tmp_path / "broken off").exists()
    store.backup(str(tmp_path / "good"))
    copy = SqliteStore(tmp_path / "good")
    assert copy.read(HERE, lambda tx: tx.head()) == store.read(HERE, lambda tx: tx.head())
    copy.check()
    copy.close()
