"""The forget ledger: a file next to the database that no backup of the database contains.

It holds no text and no subject in clear: tenant, keyed hash of the subject, ref, time. After a restore from a backup
older than a forget, replaying it forgets again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from reverie.core.files import make_folder, narrow, open_new
from reverie.core.ports import ForgetLine


class FileLedger:
    """One JSON line per forget, durable before `add` returns."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._seen: tuple[int, int] = (0, 0)
        """Inode, and the number of bytes read from it."""
        self._lines: dict[str, list[ForgetLine]] = {}

    def add(self, line: ForgetLine) -> None:
        """Record a forget, durably."""
        self._append([line])

    def take(self, other: FileLedger) -> int:
        """Add the lines of another ledger that are missing here; return their number."""
        known = set(self.all())
        lacking = [line for line in other.all() if line not in known]
        if lacking:
            self._append(lacking)
        return len(lacking)

    def _append(self, lines: Sequence[ForgetLine]) -> None:
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        with self._lock:
            make_folder(self._path.parent)
            descriptor = open_new(self._path, append=True)
            narrow(self._path)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":  # the line before was cut short by a crash
                    data = b"\n" + data
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def all(self) -> Iterator[ForgetLine]:
        """Every forget, oldest first. A last line cut short by a crash is passed over."""
        if not self._path.exists():
            return
        yield from _parsed(self._path.read_bytes())

    def of(self, tenant: str) -> Sequence[ForgetLine]:
        """Return the forgets of a tenant. Only lines added since the last call are read."""
        with self._lock:
            try:
                found = self._path.stat()
            except OSError:
                return ()
            inode, read = self._seen
            if inode != found.st_ino or found.st_size < read:
                read, self._lines = 0, {}
            if found.st_size > read:
                with self._path.open("rb") as file:
                    file.seek(read)
                    data = file.read()
                cut = data.rfind(b"\n") + 1
                # a last line without its end counts once it is whole
                whole = data if any(_parsed(data[cut:])) else data[:cut]
                for line in _parsed(whole):
                    self._lines.setdefault(line.tenant, []).append(line)
                read += len(whole)
            self._seen = (found.st_ino, read)
            return tuple(self._lines.get(tenant, ()))


def _parsed(data: bytes) -> Iterator[ForgetLine]:
    for line in data.split(b"\n"):
        try:
            yield msgspec.json.decode(line, type=ForgetLine)
        except msgspec.DecodeError:
            continue
