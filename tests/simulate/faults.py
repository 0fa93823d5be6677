"""What goes wrong around a store: disks that fail, fill up or forget, processes that die, connections that break,
clocks that jump."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from reverie.store.sqlite import checksums

FAULTS = ("crash", "write fails", "sync fails", "disk full", "clock jump", "lease ends", "connection lost")
_LEASE_MS = 20 * 60_000
_DAY = 86_400_000


@dataclass
class Change:
    """A write or a truncation that the disk has and might still lose."""

    offset: int
    data: bytes | None
    """None: the file was cut to `offset` bytes."""


class Disk(apsw.VFS):
    """A file layer that counts, fails when asked, and knows what was synchronised."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.synced: dict[str, bytes] = {}
        self.since: dict[str, list[Change]] = {}
        self.fail_write = self.fail_sync = 0
        """Which of the next writes or synchronisations fails; 0: none."""
        self.full = False
        self.below = checksums.load() or "unix"
        """The file layer of the product: what reaches the disk is what it makes of a page."""
        super().__init__(name, self.below)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = str(name.filename()) if isinstance(name, apsw.URIFilename) else str(name)
        if path not in self.synced and name is not None:
            self.synced[path] = Path(path).read_bytes() if Path(path).exists() else b""
            self.since[path] = []
        return File(self, name, flags, path)

    def writes(self) -> None:
        if self.full:
            raise apsw.FullError("the simulated disk is full")
        if self.fail_write:
            self.fail_write -= 1
            if not self.fail_write:
                raise apsw.IOError("the simulated disk failed to write")

    def syncs(self) -> None:
        if self.fail_sync:
            self.fail_sync -= 1
            if not self.fail_sync:
                raise apsw.IOError("the simulated disk failed to synchronise")

    def settled(self, path: str) -> None:
        """Everything in a file is safe now."""
        self.synced[path] = Path(path).read_bytes()
        self.since[path] = []

    def survive(self, path: str, rng: random.Random) -> bytes:
        """What a power cut leaves: all that was synchronised, and any part of what was written since."""
        held = bytearray(self.synced.get(path, b""))
        for change in self.since.get(path, []):
            if rng.random() < 0.5:
                continue
            if change.data is None:
                del held[change.offset :]
                continue
            if len(held) < change.offset:
                held += bytes(change.offset - len(held))
            held[change.offset : change.offset + len(change.data)] = change.data
        return bytes(held)


class File(apsw.VFSFile):
    """One open file."""

    def __init__(self, disk: Disk, name: Any, flags: list[int], path: str) -> None:
        self._disk = disk
        self._path = path
        super().__init__(disk.below, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.writes()
        super().xWrite(data, offset)
        written = super().xRead(len(data), offset)  # with the checksum of the page, if it has one
        self._disk.since.setdefault(self._path, []).append(Change(offset, bytes(written)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.since.setdefault(self._path, []).append(Change(newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.syncs()
        super().xSync(flags)
        self._disk.settled(self._path)


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong before a step."""

    at: int
    what: str
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.what} at {self.at}" + (f" ({self.amount})" if self.amount else "")


def plan_faults(rng: random.Random, *, engine: str, steps: int) -> list[Fault]:
    """Up to two faults, none half of the time."""
    found = []
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        able = [what for what in FAULTS if what != "connection lost" or engine == "postgres"]
        if engine == "postgres":
            able = [what for what in able if what not in ("write fails", "sync fails", "disk full")]
        what = rng.choice(able)
        amount = 0
        if what in ("write fails", "sync fails"):
            amount = rng.randint(1, 12 if what == "write fails" else 3)
        elif what == "disk full":
            amount = rng.randint(1, 10)  # for so many steps
        elif what == "clock jump":
            amount = rng.choice((-2 * _DAY, -_LEASE_MS, 3_600_000, 8 * _DAY))
        elif what == "lease ends":
            amount = _LEASE_MS
        found.append(Fault(rng.randint(1, steps), what, amount))
    return sorted(found, key=lambda fault: (fault.at, fault.what))
