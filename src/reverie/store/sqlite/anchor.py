"""The anchor: the acknowledged position of every tenant's log, kept outside the database file.

When a write-ahead log is truncated, removed or replaced, acknowledged writes are lost, and the rest of the database is
consistent: nothing inside the file shows the loss. The anchor shows it. After a commit is durable, its writer notes the
position and hash of each log that moved, in a file of 32 bytes a tenant next to the database.

Notes are not synced, so a power failure may lose the latest of them; the anchor then proves less than it could. It
never claims too much, because a note is made after its commit is on the disk. The anchor cannot notice the loss of the
whole folder, nor of changes that move no log (leases, remembered answers, keys).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import apsw

from reverie.core.errors import StoreCorrupt
from reverie.core.files import open_new
from reverie.core.query import ANCHOR_BYTES, Anchored
from reverie.store.rows import positions_of

_HEADER = b"reverie-anchor/1"
_RECORD = struct.Struct("<q16sI4x")
EVIDENCE = (
    "Stop writing and restore the newest backup that verifies (`reverie restore FILE --into NEW_FOLDER`). If an older "
    "copy of the file was put there on purpose, remove the file that ends in -anchor."
)


class Anchor:
    """The anchor of a database file, shared by all processes that have it open."""

    def __init__(self, database: Path, *, read_only: bool = False) -> None:
        self.path = database.with_name(database.name + "-anchor")
        self._read_only = read_only
        self._file: int | None = None
        self._met: set[int] = set()
        self._frozen: set[int] = set()
        """Tenants whose log contradicts its note: the note is evidence, and is not changed."""

    def read(self) -> dict[int, Anchored]:
        """The notes by number of the tenant. A note cut short by a crash is ignored."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return {}
        found: dict[int, Anchored] = {}
        if data[: len(_HEADER)] != _HEADER:
            return found
        for number, at in enumerate(range(len(_HEADER), len(data) - _RECORD.size + 1, _RECORD.size), 1):
            if note := _decode(number, data[at : at + _RECORD.size]):
                found[number] = note
        return found

    def meet(self, number: int, seq: int, digest: str) -> None:
        """Compare a log with its note, once, before this process moves the log. Call it inside a write transaction."""
        if number in self._met:
            return
        self._met.add(number)
        note = self._one(number)
        if note is not None and (note.seq > seq or (note.seq == seq and not note.fits(bytes.fromhex(digest)))):
            self._frozen.add(number)

    def _one(self, number: int) -> Anchored | None:
        try:
            with self.path.open("rb") as file:
                file.seek(len(_HEADER) + (number - 1) * _RECORD.size)
                return _decode(number, file.read(_RECORD.size))
        except OSError:
            return None

    def note(self, number: int, seq: int, digest: str) -> None:
        """Note that a log reached a position. Faults are ignored: the commit is durable already."""
        if self._read_only or number in self._frozen:
            return
        own = bytes.fromhex(digest)[:ANCHOR_BYTES]
        try:
            if self._file is None:
                self._file = self._open()
            record = _RECORD.pack(seq, own, _check(number, seq, own))
            os.pwrite(self._file, record, len(_HEADER) + (number - 1) * _RECORD.size)
        except OSError:
            pass

    def _open(self) -> int:
        try:
            file = open_new(self.path)
            os.pwrite(file, _HEADER, 0)
        except FileExistsError:
            file = os.open(self.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        return file

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def compare(db: apsw.Connection, noted: Mapping[int, Anchored]) -> None:
    """Raise StoreCorrupt when a log contradicts its note."""
    for number, note in noted.items():
        row = db.execute("SELECT name, seq FROM tenant WHERE n = ?", (number,)).fetchone()
        name, last = row or ("", 0)
        if last < note.seq:
            log = f"The log of tenant {name} ends at {last}" if row else f"Tenant number {number} is missing"
            raise StoreCorrupt(f"{log}, and {note.seq} was acknowledged: writes were lost. {EVIDENCE}")
        found = db.execute("SELECT hash FROM event WHERE n = ?", (positions_of(number)[0] + note.seq,)).get
        if not isinstance(found, bytes) or not note.fits(found):
            raise StoreCorrupt(
                f"The log of tenant {name} is not the one that was acknowledged at {note.seq}. {EVIDENCE}"
            )


def _decode(number: int, record: bytes) -> Anchored | None:
    if len(record) != _RECORD.size:
        return None
    seq, digest, check = _RECORD.unpack(record)
    return Anchored(seq, digest) if seq > 0 and check == _check(number, seq, digest) else None


def _check(number: int, seq: int, digest: bytes) -> int:
    return zlib.crc32(digest, zlib.crc32(struct.pack("<qq", number, seq)))
