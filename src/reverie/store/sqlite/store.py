"""The SQLite store: one file, one writer at a time, readers that never wait."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import apsw

from reverie.core.clock import SystemClock
from reverie.core.entry import Scope
from reverie.core.errors import ReadOnly, StoreCorrupt, StoreError, StoreUnavailable
from reverie.core.files import make_file, make_folder, narrow, others_may
from reverie.core.pause import without_pauses
from reverie.core.ports import Clock
from reverie.core.query import Anchored, Key
from reverie.index.cache import IndexCache
from reverie.index.files import Files
from reverie.store.contract import ControlTx, ReadTx, WriteTx
from reverie.store.rows import key_row, to_key
from reverie.store.sql import load_migrations
from reverie.store.sqlite import checksums
from reverie.store.sqlite.ahead import AheadBatch, run_ahead
from reverie.store.sqlite.anchor import Anchor, compare
from reverie.store.sqlite.faults import RESTORE, translate
from reverie.store.sqlite.migrate import APPLICATION_ID, migrate, schema_version
from reverie.store.sqlite.read import QUERIES, SqliteReadTx
from reverie.store.sqlite.reserve import Reserve, is_full
from reverie.store.sqlite.transfer import SqliteTransfer
from reverie.store.sqlite.wipe import RawFile
from reverie.store.sqlite.writer import BUSY_MS, HEAVY, ControlPart, Writer

T = TypeVar("T")
MOST_IDLE_READERS = 32
INDEX = "-index"
"""Appended to the name of the file to name the folder of the search index."""
HEAVY_LINES = 64
"""Number of locks for heavy bodies. Tenants share them."""
QUICK_PAGES = 16_384
"""A file of up to this many pages (64 MiB) is checked at every start, which takes some 60 ms."""
OWN_FILES = frozenset({"reverie.key", "forgotten.jsonl"})
"""Other files of a data folder."""


class SqliteStore:
    """Memory in one SQLite file, safe for many threads and several processes at once.

    `path` may be `:memory:` for a store that ends with the process; there readers and the writer take turns.
    `read_only`: the file is never written, so it may be on a read-only medium. If its folder is writable, SQLite makes
    shared memory there, through which readers see what a writer commits.
    `trust_pages`: also read pages whose checksum does not match, to examine a damaged file.
    `reserve`: keep disk space back, so that erasing works when the disk is full (see reserve.py).
    After a fork the child process must open its own store.
    """

    name = "sqlite"
    outside: Sequence[str] = ()

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        create: bool = True,
        read_only: bool = False,
        reserve: bool = False,
        vfs: str | None = None,
        trust_pages: bool = False,
    ) -> None:
        self.path = str(path)
        self.durable = self.path != ":memory:"
        self.quick = self.durable  # in memory, a reader waits for the writer
        self._heavy = [threading.Lock() for _ in range(HEAVY_LINES)]
        """Taken by tenant: heavy bodies of one tenant follow each other, since each starts from the tenant's head."""
        self.read_only = read_only and self.durable
        self._clock = clock or SystemClock()
        self._index = Files(Path(self.path + INDEX), read_only=self.read_only) if self.durable else None
        self._cache = IndexCache(files=self._index)
        self._vfs = vfs or (checksums.load() if self.durable else None)
        self._trusted = trust_pages
        # a store in memory has a name of its own, which every connection of this process can open
        self._target = self.path if self.durable else f"file:/reverie-{secrets.token_hex(16)}?vfs=memdb"
        if self.durable:
            self._find(create=create and not read_only)
        self._readers: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self.anchor = Anchor(Path(self.path), read_only=self.read_only) if self.durable else None
        self._reserve = Reserve(Path(self.path)) if reserve and self.durable and not read_only else None
        try:
            db = self._open()
        except apsw.CantOpenError as fault:
            raise StoreUnavailable(
                f"The database {self.path} cannot be opened. Check the permissions of the file and its folder."
            ) from fault
        except apsw.Error as fault:
            error = translate(fault)
            raise error from fault
        self._db = db
        self._file = RawFile(self.path) if self.durable and not self.read_only else None
        self._writer = (
            None if self.read_only else Writer(db, self._clock, self._file, self._reserve, self.anchor, self._cache)
        )
        if self._file is not None:
            _close_to_others(Path(self.path))
        if self._reserve is not None:
            self._reserve.make()
        if self._index is not None:
            self._index.recover()

    def _find(self, *, create: bool) -> None:
        """Make the file and its folder. Without `create`, raise StoreUnavailable when there is none."""
        path = Path(self.path)
        if not create:
            if not path.is_file():
                raise StoreUnavailable(f"There is no database at {self.path}.")
            return
        try:
            make_folder(path.parent)
        except OSError as fault:
            raise StoreUnavailable(
                f"Cannot make the folder {path.parent} ({fault.strerror}). Name another with --data or REVERIE_DATA."
            ) from fault
        with suppress(OSError):  # SQLite reports what is wrong with the file
            make_file(path)  # the log and the shared memory get the mode of the file

    def _open(self) -> apsw.Connection:
        if self.read_only:
            return self._open_to_read()
        try:
            return self._open_to_write()
        except apsw.Error as fault:
            if self._reserve is None or not is_full(translate(fault)):
                raise
            self._reserve.release()  # the shared memory of the log takes 32 KiB
            return self._open_to_write()

    def _open_to_write(self) -> apsw.Connection:
        db = self._connect()
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _open_to_read(self) -> apsw.Connection:
        """Open without writing anything.

        Where shared memory can be used, the write-ahead log is read too. On a read-only medium only the file is read,
        so the log must be empty.
        """
        name = quote(str(Path(self.path).absolute()))
        self._target = f"file:{name}?mode=ro"
        try:
            return self._look()
        except (apsw.CantOpenError, apsw.ReadOnlyError) as fault:
            log = Path(self.path + "-wal")
            if log.exists() and log.stat().st_size:
                raise StoreUnavailable(
                    f"{log} holds writes that are not in the database yet, and nothing can be written there. "
                    "Open the memory once where it can be written (`reverie doctor`), then serve a copy of that."
                ) from fault
        self._target = f"file:{name}?mode=ro&immutable=1"
        return self._look()

    def _look(self) -> apsw.Connection:
        db = self._connect()
        try:
            self._refuse_strangers(db)
            have, known = schema_version(db), len(load_migrations("reverie.store.sqlite"))
            if have != known:
                raise StoreUnavailable(
                    f"This file has schema {have}, this release of Reverie reads schema {known}, and a read-only file "
                    "cannot be upgraded. Open it once where it can be written."
                )
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_URI
        flags |= apsw.SQLITE_OPEN_READONLY if self.read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        db = apsw.Connection(self._target, flags=flags, vfs=self._vfs, statementcachesize=256)
        if db.readonly("main") and not self.read_only:
            # before anything is read: that would leave files next to it that cannot be written either
            db.close()
            raise StoreUnavailable(
                f"The database {self.path} is not writable. Check the permissions of the file and its folder, or set "
                "REVERIE_READ_ONLY=1 to serve it as it is."
            )
        db.set_busy_timeout(BUSY_MS)
        # plans must not depend on the bound values: without this SQLite prepares a statement again for other values
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if self._trusted:
            db.execute("PRAGMA checksum_verification = OFF").fetchall()
        db.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536")
        # FULL: a commit is on the disk before it is acknowledged
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _refuse_strangers(self, db: apsw.Connection) -> None:
        db.execute("BEGIN")  # one snapshot: another process may be making the tables
        try:
            application = db.execute("PRAGMA application_id").get
            tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        if application != APPLICATION_ID and tables:
            raise StoreCorrupt(f"{self.path} belongs to another program.")

    def _prepare(self, db: apsw.Connection) -> None:
        self._refuse_strangers(db)
        if self.durable:
            self._prepare_pages(db)
        if self.durable and _journal_mode(db) != "wal":
            raise StoreUnavailable(f"{self.path} is on a file system without shared memory. Use a local disk.")
        migrate(db, self._clock.now())

    def _prepare_pages(self, db: apsw.Connection) -> None:
        """Give a new file checksums on its pages. Refuse a file that has them when this SQLite cannot make them."""
        if db.execute("PRAGMA page_count").get == 0:
            noted = sum(note.seq for note in self.anchor.read().values()) if self.anchor else 0
            if noted:
                raise StoreCorrupt(
                    f"{self.path} is empty, and {noted} events were acknowledged. Put the file back, or restore a "
                    f"backup (`reverie restore FILE --into NEW_FOLDER`). To start empty, remove {self.path}-anchor."
                )
            if self._vfs:
                db.reserve_bytes("main", checksums.SIZE)
        elif self._vfs is None and db.reserve_bytes("main", -1) == checksums.SIZE:
            raise StoreUnavailable(
                "The pages of this file have checksums, and this build of apsw cannot make them. Install apsw from its "
                "wheel, or serve the file with REVERIE_READ_ONLY=1."
            )

    def _at_home(self) -> None:
        """Raise StoreUnavailable after a fork, which connections and threads do not survive."""
        if self._process != os.getpid():
            raise StoreUnavailable("This store was opened before a fork. Open it again in the new process.")

    @property
    def free(self) -> bool:
        return self.quick and self._writer is not None and self._writer.free

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        if getattr(body, "weight", 1) > HEAVY and self.durable:
            with self._heavy[hash(scope.tenant) % len(self._heavy)]:
                return self._submit(scope, self._run_ahead(scope, body))
        return self._submit(scope, body)

    def _submit(self, scope: Scope, body: Callable[[Any], T]) -> T:
        return cast(T, without_pauses(self._writing().submit, scope, body))

    def _run_ahead(self, scope: Scope, body: Callable[[WriteTx], T]) -> Callable[[Any], T]:
        """A body that inserts the rows made ahead by a heavy body, or the body itself (see ahead.py)."""
        writer = self._writing()

        def run(db: apsw.Connection) -> Callable[[Any], T] | None:
            return run_ahead(AheadBatch(db, self._clock.now(), writer.models, self._cache), scope, body)

        ready = self._reading(run)
        if ready is None:
            return body
        ready.weight = body.weight  # type: ignore[attr-defined]
        return ready

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        return self._reading(lambda db: body(SqliteReadTx(db, scope, self._clock.now(), self._cache)))

    def control(self, body: Callable[[ControlTx], T], *, write: bool = False) -> T:
        if not write:
            return self._reading(lambda db: body(SqliteControlTx(db, self._clock)), snapshot=False)

        def run(part: ControlPart) -> T:
            tx = SqliteControlTx(part.db, self._clock)
            result = body(tx)
            part.frees = tx.revoked
            return result

        return cast(T, self._writing().submit(None, run))

    def _writing(self) -> Writer:
        self._at_home()
        if self._writer is None:
            raise ReadOnly()
        return self._writer

    def _reading(self, body: Callable[[apsw.Connection], T], *, fresh: bool = False, snapshot: bool = True) -> T:
        """The result of `body` on a connection of its own. Without `snapshot`, each query sees its own state."""
        self._at_home()
        try:
            db = self._connect() if fresh and self.durable else self._reader()
            try:
                if snapshot:
                    db.execute("BEGIN")
                return body(db)
            finally:
                self._give_back(db)
        except apsw.Error as fault:
            error = translate(fault)
            raise error from fault

    def _reader(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("The store is closed.")
            if self._readers:
                return self._readers.pop()
        db = self._connect()
        db.execute("PRAGMA query_only = ON")
        return db

    def _give_back(self, db: apsw.Connection) -> None:
        if db.in_transaction:
            db.execute("ROLLBACK")
        # A query that was not read to its end, and that is still referenced, keeps its snapshot beyond the rollback:
        # the next reader would not see what was written, or forgotten, since.
        stale = db.txn_state() != apsw.SQLITE_TXN_NONE
        with self._lock:
            if not stale and not self._closed and len(self._readers) < MOST_IDLE_READERS:
                self._readers.append(db)
                return
        db.close(True)

    def check(self, *, quick: bool = False) -> Mapping[str, Any]:
        """Check the file, and return its schema version and size. Raises StoreCorrupt at the first fault.

        The pages are read from the disk, not from the cache of this process. `quick`: without comparing indexes with
        their tables, and in a large file no more than every start reads. Each log is always compared with the position
        that was acknowledged.
        """
        noted = self.anchor.read() if self.anchor else {}  # before the snapshot, which then has at least as much

        def look(db: apsw.Connection) -> Mapping[str, Any]:
            compare(db, noted)
            pages = db.execute("PRAGMA page_count").get
            if not quick:
                verdict = db.execute("PRAGMA integrity_check(1)").get
            elif pages <= QUICK_PAGES:
                verdict = db.execute("PRAGMA quick_check(1)").get
            else:
                verdict = "ok"
            if verdict != "ok":
                raise StoreCorrupt(f"The integrity check failed ({str(verdict)[:120]}). {RESTORE}")
            size = db.execute("PRAGMA page_size").get
            free = db.execute("PRAGMA freelist_count").get
            mode = db.execute("PRAGMA journal_mode").get
            return {
                "engine": f"SQLite {apsw.sqlite_lib_version()}",
                "schema": schema_version(db),
                "bytes": pages * size,
                "free_bytes": free * size,
                "journal": mode,
                "checksums": db.reserve_bytes("main", -1) == checksums.SIZE and self._vfs is not None,
            }

        return self._reading(look, fresh=True)

    def anchored(self, tenant: str) -> Anchored | None:
        """The acknowledged position of a tenant's log, from the anchor.

        Must be called before the snapshot with which it is compared is taken: later, another writer may have moved on.
        """
        if self.anchor is None or not (noted := self.anchor.read()):
            return None
        return self._reading(lambda db: noted.get(db.execute("SELECT n FROM tenant WHERE name = ?", (tenant,)).get))

    def damaged(self, tenant: str) -> str | None:  # noqa: ARG002
        """None: every page has a checksum, so a read of a damaged page raises."""
        return None

    def backup(self, target: str, *, progress: Callable[[int, int], None] | None = None) -> None:
        with suppress(OSError):  # SQLite reports what is wrong with the place
            if not make_file(Path(target)):
                raise StoreError(f"{target} exists already. Choose a new name; a backup never overwrites.")

        def copy(db: apsw.Connection) -> None:
            db.execute("SELECT count(*) FROM setting").fetchall()  # takes the snapshot
            copied = apsw.Connection(target, vfs=self._vfs if self.durable else None)
            try:
                if db.reserve_bytes("main", -1) == checksums.SIZE and self._vfs:
                    # the first page first: pages written before it would get no checksum
                    copied.reserve_bytes("main", checksums.SIZE)
                    copied.execute("PRAGMA user_version = 1")
                with copied.backup("main", db, "main") as job:
                    while not job.done:
                        job.step(1024)
                        if progress:
                            progress(job.page_count - job.remaining, job.page_count)
                copied.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copied.close()

        try:
            self._reading(copy)
        except BaseException:
            Path(target).unlink(missing_ok=True)
            raise

    def switch_wal(self) -> str:
        return "This store has no write-ahead log of a server; nothing to do."

    def transfer(self) -> SqliteTransfer:
        self._at_home()
        return SqliteTransfer(self._connect)

    def close(self) -> None:
        with self._lock:
            if self._closed or self._process != os.getpid():
                return
            self._closed = True
            idle, self._readers = self._readers, []
        if self._writer is not None:
            self._writer.close()
        for db in idle:
            db.close()
        self._db.close()
        if self._file is not None:
            self._file.close()
        if self.anchor is not None:
            self.anchor.close()


class SqliteControlTx:
    """Data outside tenants."""

    def __init__(self, db: apsw.Connection, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self.revoked = False
        """Whether a key was revoked, which is done even on a full disk."""

    @cached_property
    def now(self) -> int:
        return self._clock.now()

    def tenants(self) -> list[str]:
        return [row[0] for row in self._db.execute(QUERIES["tenants"])]

    def awake(self) -> list[str]:
        return [row[0] for row in self._db.execute(QUERIES["awake"], (self.now,))]

    def key(self, key_id: str) -> Key | None:
        row = self._db.execute(QUERIES["key"], (key_id,)).fetchone()
        return to_key(row) if row else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        return [to_key(row) for row in self._db.execute(QUERIES["keys"], (tenant,))]

    def add_key(self, key: Key) -> None:
        self._db.execute(QUERIES["add_key"], key_row(key))

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        self.revoked = True
        return self._db.execute(QUERIES["revoke_key"], (at, key_id)).fetchone() is not None

    def setting(self, name: str) -> bytes | None:
        row = self._db.execute(QUERIES["setting"], (name,)).fetchone()
        return row[0] if row else None

    def set_setting(self, name: str, value: bytes) -> None:
        self._db.execute(QUERIES["set_setting"], (name, value))

    def take_setting(self, name: str) -> bytes | None:
        row = self._db.execute(QUERIES["take_setting"], (name,)).fetchone()
        return row[0] if row else None


def _close_to_others(path: Path) -> None:
    """Take rights on the database and its files from other users; also on the folder, if nothing else is in it."""
    for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-reserve", "-anchor"))):
        narrow(name)
    folder = path.resolve().parent
    with suppress(OSError):  # a folder of another user
        names = [one.name for one in folder.iterdir()] if others_may(folder) else []
        if all(name in OWN_FILES or name.startswith(path.name) for name in names):
            narrow(folder)


def _journal_mode(db: apsw.Connection) -> str:
    """Switch to the write-ahead log. Processes that open a new file at the same time take turns."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            return str(db.execute("PRAGMA journal_mode = WAL").get)
        except apsw.BusyError:  # the switch does not wait by itself
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
