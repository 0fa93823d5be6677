"""The forget ledger: a file beside the database that no backup of the database contains.

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
        self._read: tuple[tuple[int, int], dict[str, list[ForgetLine]]] = ((0, 0), {})

    def add(self, *, tenant: str, subject: str, ref: str | None, at: int) -> None:
        """Remember a forget."""
        self._append([ForgetLine(tenant, subject, ref, at)])

    def take(self, other: FileLedger) -> int:
        """Remember what another ledger does and this one does not; how many those were."""
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
        for line in self._path.read_bytes().split(b"\n"):
            try:
                yield msgspec.json.decode(line, type=ForgetLine)
            except msgspec.DecodeError:
                continue

    def of(self, tenant: str) -> Sequence[ForgetLine]:
        """The forgets of a tenant. The file is read again only when it changed: asking for many tenants is cheap."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        version = (found.st_size, found.st_mtime_ns)
        if self._read[0] != version:
            lines: dict[str, list[ForgetLine]] = {}
            for line in self.all():
                lines.setdefault(line.tenant, []).append(line)
            self._read = (version, lines)
        return self._read[1].get(tenant, ())
