"""Translates errors of the PostgreSQL driver to those of Reverie. It is done nowhere else.

Messages of the server may quote values, so they are never passed on: only the five-character code is.
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
"""Faults after which the server has rolled back the transaction and asks for a retry."""


MOVED = "RV001"
"""The code of the trigger of a store that was moved away."""


def lost(fault: BaseException) -> bool:
    """Whether the connection is lost: the server stopped, restarted, or closed it."""
    gone = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)
    if isinstance(fault, gone):
        return True
    return isinstance(fault, (psycopg.OperationalError, psycopg.InterfaceError)) and fault.sqlstate in (None, "57P01")


def translate(fault: BaseException) -> BaseException:
    """The error of Reverie for a driver error; any other fault as it is."""
    match fault:
        case psycopg.Error() if fault.sqlstate == MOVED:
            error: ReverieError = ReadOnly("This memory was moved to another store. Start with the URL of that one.")
        case PoolTimeout() | TooManyRequests():
            error = StoreUnavailable("No connection to the database is free. Check that the server is reachable.")
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
            error = StoreUnavailable("The database rejected this user or database name. Check REVERIE_DATABASE_URL.")
        case errors.InsufficientPrivilege():
            error = StoreUnavailable("The database role lacks a privilege. It must own the schema `reverie`.")
        case errors.ReadOnlySqlTransaction():
            error = StoreUnavailable("The database is not writable: this server is a replica.")
        case errors.ProgramLimitExceeded():
            error = Invalid("The value is too large for the store.", code="too_large")
        case psycopg.DataError() | OverflowError() | UnicodeEncodeError():
            error = Invalid("The store cannot hold this value: it has NUL, broken Unicode or a number out of range.")
        case _ if lost(fault):
            error = StoreUnavailable("The database cannot be reached. Try again in a moment.")
        case psycopg.Error():
            error = StoreError(f"The database refused the operation ({fault.sqlstate or type(fault).__name__}).")
        case _:
            return fault
    error.__cause__ = fault
    return error
