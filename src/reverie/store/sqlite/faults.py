"""Translates errors of the SQLite driver to those of Reverie. It is done nowhere else."""

from __future__ import annotations

import apsw

from reverie.core.errors import (
    Invalid,
    ReadOnly,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from reverie.store.sqlite.reserve import is_full

RESTORE = (
    "Stop writing, keep the file as evidence, and restore the newest backup that verifies: "
    "`reverie backup verify FILE`, then `reverie restore FILE --into NEW_FOLDER`."
)
MOVED = "this memory was moved"
"""Message of the trigger in a store that was moved away."""


def translate(fault: BaseException) -> BaseException:
    """The error of Reverie for a driver error; any other fault as it is."""
    match fault:
        case apsw.ConstraintError() if MOVED in str(fault):
            error: Exception = ReadOnly("This memory was moved to another store. Start with the URL of that one.")
        case apsw.FullError():
            error = StoreFull()
        case OSError() if is_full(fault):
            error = StoreFull()
        case apsw.IOError() if getattr(fault, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            error = StoreCorrupt(f"A page of the database is damaged: its checksum does not match. {RESTORE}")
        case apsw.IOError() if _is_no_space(fault):
            error = StoreFull()
        case apsw.BusyError() | apsw.LockedError():
            error = StoreBusy()
        case apsw.CorruptError() | apsw.NotADBError():
            error = StoreCorrupt(f"The database is damaged. {RESTORE}")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            error = StoreUnavailable()
        case apsw.ReadOnlyError():
            error = StoreUnavailable("The database is not writable. Check the permissions of the file and its folder.")
        case apsw.TooBigError():
            error = Invalid("The value is too large for the store.", code="too_large")
        case apsw.IOError():
            error = StoreError("The disk failed. Nothing was stored. Check the disk, then run `reverie doctor`.")
        case apsw.Error():
            error = StoreError(f"The database refused the operation ({type(fault).__name__}).")
        case _:
            return fault
    error.__cause__ = fault
    return error


def _is_no_space(fault: apsw.Error) -> bool:
    extended = getattr(fault, "extendedresult", 0)
    return extended in (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE)
