"""Zeroes what SQLite leaves behind in the unused middle of its pages.

`secure_delete` zeroes what is deleted, but not the stale copy of a row that was moved to another page when a page was
split or merged. That copy stays in the gap between a page's cell pointers and its cells, where a later deletion does
not reach it. SQLite never reads the gap (https://www.sqlite.org/fileformat2.html, section 1.6), so zeros in it change
nothing. `VACUUM` would have the same effect, but writes the whole file twice.

The caller must hold the write lock over an empty write-ahead log: then nothing writes to the file itself.
"""

from __future__ import annotations

import os
import threading

from reverie.store.sqlite.checksums import has_checksums, sealed, sound

_TABLE_OR_INDEX = {2: 12, 5: 12, 10: 8, 13: 8}
"""Types of b-tree pages and the size of their headers. Other pages begin with a page number."""
_AMBIGUOUS_PAGES = 2 * 2**24
"""From this number on, a page number may begin with a byte that looks like a type."""
_AT_ONCE = 256


class RawFile:
    """The database file, opened outside SQLite.

    Closing any descriptor of a file drops all locks that the process has on it. So all stores of a process that have
    the file open share one descriptor, which is closed after the last of them.
    """

    _lock = threading.Lock()
    _users: dict[tuple[int, int], int] = {}  # noqa: RUF012
    _descriptors: dict[tuple[int, int], int] = {}  # noqa: RUF012

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)  # as SQLite does
        status = os.stat(self._path)  # noqa: PTH116
        self._key = (status.st_dev, status.st_ino)
        with self._lock:
            self._users[self._key] = self._users.get(self._key, 0) + 1

    def wipe(self, first: int, pages: int, page_size: int) -> int | None:
        """Zero the gaps of up to `pages` pages from page `first` on, counted from 0. Returns the next page, or None."""
        file = self._descriptor()
        total = os.fstat(file).st_size // page_size
        if total >= _AMBIGUOUS_PAGES:
            return None
        last = min(total, first + pages)
        summed = has_checksums(os.pread(file, 100, 0))
        for start in range(first, last, _AT_ONCE):
            block = os.pread(file, (min(start + _AT_ONCE, last) - start) * page_size, start * page_size)
            for offset in range(0, len(block) - page_size + 1, page_size):
                header = 100 if start == 0 and offset == 0 else 0
                page = block[offset : offset + page_size]
                gap = _gap(page, header)
                if gap is not None and (not summed or sound(page)):  # a damaged page stays as it was found
                    wiped = page[: gap[0]] + bytes(gap[1] - gap[0]) + page[gap[1] :]
                    os.pwrite(file, sealed(wiped) if summed else wiped, start * page_size + offset)
        os.fsync(file)
        return last if last < total else None

    def log_size(self) -> int:
        """Bytes in the write-ahead log."""
        return os.stat(self._path + "-wal").st_size  # noqa: PTH116

    def _descriptor(self) -> int:
        with self._lock:
            file = self._descriptors.get(self._key)
            if file is None:
                file = self._descriptors[self._key] = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            return file

    def close(self) -> None:
        """To be called after the last connection of this store is closed."""
        with self._lock:
            self._users[self._key] -= 1
            if not self._users[self._key]:
                del self._users[self._key]
                file = self._descriptors.pop(self._key, None)
                if file is not None:
                    os.close(file)


def _gap(page: bytes, header: int) -> tuple[int, int] | None:
    """The range between the pointers and the cells of a b-tree page; None when it is empty or all zeros."""
    size = _TABLE_OR_INDEX.get(page[header])
    if size is None:
        return None
    cells = int.from_bytes(page[header + 3 : header + 5], "big")
    end = int.from_bytes(page[header + 5 : header + 7], "big") or 65536
    start = header + size + 2 * cells
    if not start < end <= len(page):
        return None
    return (start, end) if page.count(0, start, end) != end - start else None
