"""A checksum on every page of the database file, by SQLite's own extension cksumvfs, which comes with apsw.

The last 8 bytes of each page hold the checksum; byte 20 of the file says so. It is computed when a page is written to
the file and verified when a page is read, so that a flipped bit anywhere in the file is an error and never an answer.
The write-ahead log has checksums of its own. A program without the extension that writes to such a file, even by a
checkpoint, leaves pages that look damaged: `reverie upgrade --finish` verifies everything else and rewrites the file.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING

import apsw

from reverie.core.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VFS = "cksmvfs"
SIZE = 8
_AT = 20
_lock = threading.Lock()


def load() -> str | None:
    """The name of the VFS that verifies checksums; None when this build of apsw lacks the extension."""
    with _lock:
        if VFS in apsw.vfs_names():
            return VFS
        try:
            from apsw import sqlite_extra

            carrier = apsw.Connection(":memory:")
            try:
                sqlite_extra.load(carrier, "cksumvfs")  # for the process, not for this connection
            finally:
                carrier.close()
        except (ImportError, ValueError, OSError, apsw.Error):
            return None
        return VFS


def has_checksums(start: bytes) -> bool:
    """Whether a file that begins with these bytes has checksums."""
    return len(start) > _AT and start[_AT] == SIZE


def sealed(page: bytes) -> bytes:
    """The page with its checksum set."""
    return page[:-SIZE] + _compute(page)


def sound(page: bytes) -> bool:
    """Whether the checksum of a page matches."""
    return page[-SIZE:] == _compute(page)


def _compute(page: bytes) -> bytes:
    words = np.frombuffer(page, "<u4", count=(len(page) - SIZE) // 4)
    first, second = _weights(len(words))
    sums = (words * first).sum(dtype=np.uint32), (words * second).sum(dtype=np.uint32)
    return np.array(sums, "<u4").tobytes()


@cache
def _weights(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the contribution of each word of a page to the two sums, modulo 2^32.

    For each pair (a, b) of words, SQLite adds a and the second sum to the first, then b and the first to the second.
    That is linear, so the weights of a pair are those of the pair after it put through the same step.
    """
    first, second = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    # how the sums at the end depend on the two before the pairs that follow: first by first, first by second, ...
    ff, fs, sf, ss = 1, 0, 0, 1
    for at in range(count - 2, -1, -2):
        first[at], second[at] = (ff + fs) % 2**32, (sf + ss) % 2**32
        first[at + 1], second[at + 1] = fs, ss
        ff, fs, sf, ss = (ff + fs) % 2**32, (ff + 2 * fs) % 2**32, (sf + ss) % 2**32, (sf + 2 * ss) % 2**32
    return first, second
