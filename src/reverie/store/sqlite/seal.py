"""Rewrites a file with a checksum on every page."""

from __future__ import annotations

import apsw

from reverie.core.errors import StoreBusy, StoreCorrupt, StoreError
from reverie.store.sqlite import checksums
from reverie.store.sqlite.faults import translate


def seal(path: str, *, accept: bool = False) -> bool:
    """Give a file checksums. False when it has them, or this build of SQLite cannot make them.

    No other process may have the file open. After a kill the file is unchanged or complete. `accept`: rewrite a file
    whose checksums do not match; the caller has verified everything that can be verified without them.
    """
    vfs = checksums.load()
    if vfs is None:
        return False
    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        try:
            return _seal(db, accept=accept)
        finally:
            db.close()
    except (apsw.BusyError, apsw.LockedError) as fault:
        raise StoreBusy("Another process has the database open. Stop the server and the workers first.") from fault
    except apsw.Error as fault:
        error = translate(fault)
        raise error from fault


def _seal(db: apsw.Connection, *, accept: bool) -> bool:
    if accept:
        db.execute("PRAGMA checksum_verification = OFF").fetchall()
    elif db.reserve_bytes("main", -1) == checksums.SIZE:
        return False
    # leaving the write-ahead mode needs the file alone, so no other process can continue without checksums
    if db.execute("PRAGMA journal_mode = DELETE").get != "delete":
        raise StoreError("The database could not be taken out of write-ahead mode.")
    try:
        verdict = db.execute("PRAGMA integrity_check(1)").get
        if verdict != "ok":
            raise StoreCorrupt(f"The integrity check failed ({str(verdict)[:120]}). Restore the newest backup.")
        db.execute("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
        db.reserve_bytes("main", checksums.SIZE)
        db.execute("VACUUM")
    finally:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
    return True
