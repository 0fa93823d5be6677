"""PostgreSQL's errors as ours: driver errors are translated here and nowhere else.

Messages of the server may quote values, so none of them is passed on: only its five-letter code.
"""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from reverie.core.errors import (
    Invalid,
    ReadOnly,
    ReverieError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
"""The server undid the transaction and asks to try again."""


MOVED = "RV001"
"""The code of the trigger of a store that was moved away."""


def lost(fault: BaseException) -> bool:
    """Whether the connection is gone: the server stopped, was restarted, or cut it."""
    gone = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)
    if isinstance(fault, gone):
        return True
    return isinstance(fault, (psycopg.OperationalError, psycopg.InterfaceError)) and fault.sqlstate in (None, "57P01")


def translate(fault: BaseException) -> BaseException:
    """A database-neutral error for a driver error; anything else as it is."""
    match fault:
        case psycopg.Error() if fault.sqlstate == MOVED:
            error: ReverieError = ReadOnly("This memory was moved to another store. Start with the URL of that one.")
        case PoolTimeout() | TooManyRequests():
            error = StoreUnavailable("The database gives no connection. Check that it is reachable.")
        case PoolClosed():
            error = StoreUnavailable("The store is closed.")
        case errors.DiskFull() | errors.ConfigurationLimitExceeded():
            error = StoreFull()
        case errors.LockNotAvailable() | errors.QueryCanceled() | errors.SerializationFailure():
            error = StoreBusy()
        case errors.DeadlockDetected() | errors.TooManyConnections() | errors.OutOfMemory():
            error = StoreBusy()
        case errors.DataCorrupted() | errors.IndexCorrupted():
            error = StoreCorrupt("The database reports damaged data. Restore the newest backup.")
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification() | errors.InvalidCatalogName():
            error = StoreUnavailable("The database refuses this user. Check REVERIE_DATABASE_URL.")
        case errors.InsufficientPrivilege():
            error = StoreUnavailable("The database role may not do this. It must own the schema `reverie`.")
        case errors.ReadOnlySqlTransaction():
            error = StoreUnavailable("The database is not writable: this server is a replica.")
        case errors.ProgramLimitExceeded():
            error = Invalid("The value is too large for the store.", code="too_large")
        case psycopg.DataError() | OverflowError() | UnicodeEncodeError():
            error = Invalid("The store cannot take this value: NUL, broken Unicode or a number out of range.")
        case _ if lost(fault):
            error = StoreUnavailable("The database cannot be reached. Try again in a moment.")
        case psycopg.Error():
            error = StoreError(f"The database refused ({fault.sqlstate or type(fault).__name__}).")
        case _:
            return fault
    error.__cause__ = fault
    return error
