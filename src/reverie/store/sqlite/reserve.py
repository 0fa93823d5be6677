"""Disk space kept back for erasing.

A full disk must not prevent deletion, which is a promise and also frees space. So a file of a few megabytes is kept
next to the database. While it exists, all writes are accepted. When the disk is full, the file is removed for
transactions that erase; all others are refused until it can be made again, so that they do not take its space. The file
is larger than the write-ahead log usually is: with that much space the log can be copied into the database and emptied,
which frees more than it takes.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from reverie.core.errors import StoreFull
from reverie.core.files import open_new

MOST_BYTES = 8 * 2**20
LEAST_BYTES = 2**20
_SHARE = 8
"""On a small file system, the reserve is one part in this many of it."""
_TRY_AGAIN_SECONDS = 0.5
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class Reserve:
    """The reserve of a database file. Several processes share it by its name."""

    def __init__(self, database: Path, *, size: int | None = None) -> None:
        self._path = database.with_name(database.name + "-reserve")
        if size is None:
            size = min(MOST_BYTES, max(LEAST_BYTES, shutil.disk_usage(database.parent).total // _SHARE))
        self._size = size
        self._tried = float("-inf")

    @property
    def exists(self) -> bool:
        """Whether the space is kept back now."""
        try:
            return os.stat(self._path).st_size > 0  # noqa: PTH116  # once a commit
        except OSError:
            return False

    def ready(self) -> bool:
        """Whether the space is kept back. If not, tries to make the file again, at most twice a second."""
        if self.exists:
            return True
        if time.monotonic() - self._tried < _TRY_AGAIN_SECONDS:
            return False
        return self.make()

    def make(self) -> bool:
        """Take the space, all of it or none. False when there is not enough."""
        self._tried = time.monotonic()
        if self.exists:
            return True
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            descriptor = open_new(fresh)
            try:
                _allocate(descriptor, self._size)
            finally:
                os.close(descriptor)
            fresh.rename(self._path)
        except OSError:
            fresh.unlink(missing_ok=True)
            return False
        return True

    def release(self) -> None:
        """Free the space for a transaction that erases. A file that cannot be removed stays."""
        self._tried = time.monotonic()
        with suppress(OSError):
            self._path.unlink()


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    block = bytes(2**20)
    while size > 0:
        size -= os.write(descriptor, block[:size])
    os.fsync(descriptor)


def is_full(fault: BaseException | None) -> bool:
    """Whether a fault means that the disk is full."""
    return isinstance(fault, StoreFull) or (isinstance(fault, OSError) and fault.errno in _NO_SPACE)
