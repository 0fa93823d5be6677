"""Segments in files: written once, mapped by every process, replaced as a whole.

A memory has a manifest, which lists its segments, the rows of each that left since, and their log position with the
hash of the log there. Files are written under another name, synced to disk and renamed, so a crash leaves the old state
or the new one. The rows in the store are authoritative: when a file is missing, damaged or of another history, the
index is made again. File names reveal nothing: a memory is named by a hash under its tenant's key. All files are 0600.

A segment begins with a magic line, the length of its header, and the header (JSON with a checksum of its own), which
says where each column is. Columns have a checksum for every 64 KiB, verified when a process first reads there; every
vector has a checksum of its own. A writer takes the lock of the memory, and gives up when it is taken.

Text that is destroyed in the store leaves the files before the caller gets the answer. Before the commit a note records
that the files of a memory must be scrubbed; after the commit they are, and the note is removed. A process keeps a lock
on its note until then, so no other process removes it while it is needed. Files that are found with a note are removed,
not used. The lock file of a memory exists before its first segment. It holds the log position of the last scrub: an
index that was read from the store before that position is never written.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from reverie.core.files import make_file, make_folder, open_new
from reverie.core.lazy import np
from reverie.index.parts import LARGEST, Part, Parts
from reverie.index.segment import Damaged, Seen, Segment, Vectors, merged

if TYPE_CHECKING:
    import numpy.typing as npt

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows: no segments are written there)
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"reverie segment 3\n"
_BLOCK = 1 << 16
_ALIGN = 4096
_MANIFEST, _SEGMENT, _LOCK, _NOTE = ".manifest", ".segment", ".lock", ".scrub"
SMALLEST = 4096
"""Number of passages from which a file is worthwhile."""
_SMALL = 4 * SMALLEST
_MANY = 4
"""Number of small segments that are merged into one."""
_WORN = 4
"""A segment is rewritten when more than one in this many of its rows are out of use."""


class _Column(msgspec.Struct):
    """The place of a column in its file."""

    name: str
    kind: str
    shape: list[int]
    at: int
    sums_at: int


class _Header(msgspec.Struct):
    """The header of a segment."""

    columns: list[_Column]
    total: int
    size: int


class _Listed(msgspec.Struct):
    """A segment in a manifest."""

    name: str
    rows: int
    dead: str


class _Manifest(msgspec.Struct):
    """The segments of a memory, and the log position and hash that they belong to."""

    seq: int
    hash: str
    last: int
    segments: list[_Listed]


class _Note(NamedTuple):
    """A note of this process."""

    file: int
    """Its descriptor, which is locked."""
    stale: bool
    """Whether it was there before, from a process that died: then nothing in the files can be trusted."""


class Saved(msgspec.Struct, frozen=True):
    """The index of a memory as found in files, and the hash of the log at its position."""

    parts: Parts
    hash: str


def worn(part: Part) -> bool:
    """Whether so many rows of a segment are out of use that its file is rewritten without them."""
    return part.segment.name is not None and len(part.dead) * _WORN > max(SMALLEST, len(part.segment))


class Files:
    """The folder of a store's segments."""

    def __init__(self, folder: Path, *, read_only: bool = False, idle_seconds: int | None = None) -> None:
        self._folder = folder
        self.writable = not read_only and fcntl is not None
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._notes: dict[str, list[_Note]] = {}

    def name(self, memory: tuple[int, str], key: bytes) -> str:
        """The prefix of the file names of a memory."""
        tenant, ref = memory
        return f"{tenant}-{hashlib.blake2b(ref.encode(), digest_size=12, key=key[:64]).hexdigest()}"

    def stamp(self, name: str) -> object:
        """Return a value that changes whenever the manifest does; None when there is none."""
        try:
            found = os.stat(self._folder / (name + _MANIFEST))  # noqa: PTH116  (a microsecond, at every search)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def load(self, name: str) -> Saved | None:
        """The index of a memory, mapped; None when there is none, it is damaged, or it must be scrubbed."""
        return None if (self._folder / (name + _NOTE)).exists() else self._load(name)

    def _load(self, name: str) -> Saved | None:
        stamp = self.stamp(name)
        if stamp is None:
            return None
        try:
            manifest = self._manifest(name)
            if manifest is None:
                return None
            parts = [
                Part(self._map(listed.name), np.frombuffer(b64decode(listed.dead), dtype=np.int32))
                for listed in manifest.segments
            ]
        except (OSError, ValueError, msgspec.MsgspecError, Damaged):
            return None
        names = frozenset(listed.name for listed in manifest.segments)
        return Saved(Parts(tuple(parts), manifest.seq, manifest.last, stamp, names), manifest.hash)

    def save(self, name: str, parts: Parts, log_hash: str) -> Parts:
        """Write segments that have no file yet, merge small ones, rewrite worn ones, and write the manifest.

        Returns the same index, mapped. When another process was first, or the disk is full, nothing is written and the
        index is returned as it is.
        """
        if not self.writable:
            return parts
        try:
            make_folder(self._folder)
            with self._locked(name) as locked:
                if not locked or self.stamp(name) != parts.stamp or parts.seq < self._floor(name):
                    return parts
                kept = [part for part in parts.parts if part.segment.name]
                fresh = [part for part in parts.parts if not part.segment.name]
                if fresh:
                    kept.append(Part(self._write(name, merged([(part.segment, part.dead) for part in fresh]))))
                kept = self._tidied(name, [part for part in kept if part.live])
                return self._publish(name, kept, parts.seq, log_hash, parts.last)
        except OSError:
            return parts

    def store(self, name: str, segment: Segment) -> Segment:
        """Write a segment that no manifest lists yet. Returns it mapped, or as it is when writing fails."""
        if not self.writable:
            return segment
        try:
            make_folder(self._folder)
            make_file(self._folder / (name + _LOCK))
            return self._write(name, segment)
        except OSError:
            return segment

    def note(self, name: str) -> bool:
        """Note on disk, before a commit that destroys text, that the files of a memory must be scrubbed.

        False when the memory never had files. Must be followed by `scrub`, `unnote` or `leave`.
        """
        if not self._ever_filed(name):
            return False
        path = self._folder / (name + _NOTE)
        while True:
            fresh = make_file(path)
            file = open_new(path, append=True)
            try:
                note = _Note(file, stale=not fresh and _alone(file))
                fcntl.flock(file, fcntl.LOCK_SH)
                if _is_at(file, path):  # and not removed in between
                    os.fsync(file)
                    self._sync()
                    with self._lock:  # a stale one is given back last
                        notes = self._notes.setdefault(name, [])
                        notes.insert(0 if note.stale else len(notes), note)
                    return True
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def leave(self, name: str) -> bool:
        """Leave a note on disk for the process that finds it: the outcome of the commit is unknown.

        Returns whether it may be removed: False when a process that died needs it too.
        """
        with self._lock:
            notes = self._notes.get(name)
            note = notes.pop() if notes else None
        if note is not None:
            os.close(note.file)
        return note is not None and not note.stale

    def unnote(self, name: str) -> None:
        """Remove the note, because the commit did not happen.

        Faults of the disk are ignored: where a note stays, the files are removed later.
        """
        if self.leave(name):
            self._remove_note(name)

    def scrub(self, name: str, positions: Sequence[int], seq: int) -> None:
        """Rewrite every segment that has one of these positions, without them. Waits for the lock of the memory.

        When that fails, all files of the memory are removed. When that fails too, the note stays, so that nothing uses
        them. No fault of the disk is raised: the commit is durable. `seq`: the log position they were destroyed at.
        """
        gone = np.unique(np.array(positions, dtype=np.int64))
        cleared = False
        try:
            with suppress(OSError), self._locked(name, wait=True):
                try:
                    self._raise_floor(name, seq)
                    found = None if self._stale(name) else self._load(name)
                    if found is None:
                        raise Damaged(name)
                    kept = []
                    for part in found.parts.parts:
                        rows = part.segment.rows_of(gone)
                        if len(rows):
                            dead = np.union1d(part.dead, rows).astype(np.int32)
                            part = Part(self._write(name, merged([(part.segment, dead)])))
                        if part.live:
                            kept.append(part)
                    self._publish(name, kept, found.parts.seq, found.hash, found.parts.last)
                    cleared = True
                except BaseException as fault:
                    self._remove(name)
                    cleared = True
                    if not isinstance(fault, OSError | Damaged):
                        raise
        finally:
            self.leave(name)
            if cleared:
                self._remove_note(name)

    def _stale(self, name: str) -> bool:
        with self._lock:
            return any(note.stale for note in self._notes.get(name, ()))

    def _remove_note(self, name: str) -> None:
        """Remove the note of a memory, unless a process needs it."""
        path = self._folder / (name + _NOTE)
        with suppress(OSError):
            file = os.open(path, os.O_RDWR)
            try:
                if _alone(file) and _is_at(file, path):
                    path.unlink()
            finally:
                os.close(file)

    def recover(self) -> None:
        """Remove the files of memories that a process noted but did not scrub, and of idle memories.

        Where other machines destroy text too, files that no search has compared with the store for `idle_seconds` are
        removed: nothing else would notice that they hold destroyed text.
        """
        if not self.writable or not self._folder.is_dir():
            return
        for path in self._folder.glob("*" + _SEGMENT):
            with suppress(OSError):  # older versions wrote the first segment before it
                make_file(self._folder / (path.name.partition(".")[0] + _LOCK))
        for path in self._folder.glob("*" + _NOTE):
            self.drop(path.name.removesuffix(_NOTE))
        if self._idle_seconds is not None:
            for path in self._folder.glob("*" + _LOCK):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > self._idle_seconds:
                        self.drop(path.name.removesuffix(_LOCK))

    def touch(self, name: str) -> None:
        """Record that the files of a memory were compared with the store."""
        if self._idle_seconds is not None and self.writable:
            with suppress(OSError):
                path = self._folder / (name + _LOCK)
                if time.time() - path.stat().st_mtime > self._idle_seconds / 24:
                    os.utime(path)

    def _floor(self, name: str) -> int:
        return int((self._folder / (name + _LOCK)).read_bytes() or b"0")

    def _raise_floor(self, name: str, seq: int) -> None:
        if seq > self._floor(name):
            (self._folder / (name + _LOCK)).write_bytes(str(seq).encode())

    def drop(self, name: str) -> None:
        """Remove the files of a memory that are damaged or of another history. Faults of the disk are ignored."""
        if self._ever_filed(name):
            with suppress(OSError), self._locked(name, wait=True):
                self._remove(name)
                self._remove_note(name)

    def _remove(self, name: str) -> None:
        (self._folder / (name + _MANIFEST)).unlink(missing_ok=True)  # first: the files that it lists must exist
        for path in self._names(name):
            path.unlink(missing_ok=True)
        self._sync()

    def _ever_filed(self, name: str) -> bool:
        """Whether a memory has, or had, files. Those of other memories are not listed for it."""
        return self.writable and (self._folder / (name + _LOCK)).exists()

    def _names(self, name: str) -> list[Path]:
        return [path for path in self._folder.glob(name + "*") if path.suffix not in (_LOCK, _NOTE)]

    def _tidied(self, name: str, parts: list[Part]) -> list[Part]:
        small = [part for part in parts if len(part.segment) < LARGEST // 2]
        if len(small) < 2 * _MANY:
            small = [part for part in small if len(part.segment) < _SMALL]
        done = [part for part in parts if not any(part is other for other in small)]
        if len(small) >= _MANY:
            batch: list[Part] = []
            for part in [*small, None]:
                if part is not None and sum(one.live for one in batch) + part.live <= LARGEST:
                    batch.append(part)
                    continue
                if batch:
                    done.append(self._joined(name, batch))
                batch = [part] if part is not None else []
        else:
            done += small
        return [self._joined(name, [part]) for part in done]

    def _joined(self, name: str, parts: Sequence[Part]) -> Part:
        if len(parts) == 1 and not worn(parts[0]):
            return parts[0]
        return Part(self._write(name, merged([(part.segment, part.dead) for part in parts])))

    def _publish(self, name: str, parts: Sequence[Part], seq: int, log_hash: str, last: int) -> Parts:
        listed = [
            _Listed(part.segment.name or "", len(part.segment), b64encode(part.dead.tobytes()).decode())
            for part in parts
        ]
        body = msgspec.json.encode(_Manifest(seq, log_hash, last, listed))
        self._put(name + _MANIFEST, [hashlib.blake2b(body, digest_size=16).hexdigest().encode(), b"\n", body])
        names = frozenset(one.name for one in listed)
        for path in self._names(name):
            if path.name not in names and path.name != name + _MANIFEST:
                path.unlink(missing_ok=True)
        self._sync()
        return Parts(tuple(parts), seq, last, self.stamp(name), names)

    def _manifest(self, name: str) -> _Manifest | None:
        head, _, body = (self._folder / (name + _MANIFEST)).read_bytes().partition(b"\n")
        if hashlib.blake2b(body, digest_size=16).hexdigest().encode() != head:
            return None
        return msgspec.json.decode(body, type=_Manifest)

    def _write(self, name: str, segment: Segment) -> Segment:
        own = f"{name}.{secrets.token_hex(6)}{_SEGMENT}"
        columns, chunks, at = [], [], 0
        for column, array in segment.columns():
            raw = np.ascontiguousarray(array)
            data = np.frombuffer(raw.tobytes() + bytes(-raw.nbytes % 8), dtype=np.uint64)
            sums = _sums(data)
            columns.append(_Column(column, raw.dtype.str, list(raw.shape), at, at + data.nbytes))
            chunk = data.tobytes() + sums.tobytes()
            chunk += bytes(-len(chunk) % _ALIGN)
            chunks.append(chunk)
            at += len(chunk)
        header = msgspec.json.encode(_Header(columns, segment.total, at))
        digest = hashlib.blake2b(header, digest_size=16).hexdigest().encode()
        head = _MAGIC + len(header).to_bytes(8, "big") + digest + header
        self._put(own, [head, bytes(-len(head) % _ALIGN), *chunks])
        return self._map(own)

    def _map(self, name: str) -> Segment:
        with (self._folder / name).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        start = len(_MAGIC) + 8 + 32
        size = int.from_bytes(mapped[len(_MAGIC) : len(_MAGIC) + 8], "big")
        raw = mapped[start : start + size]
        if (
            mapped[: len(_MAGIC)] != _MAGIC
            or mapped[start - 32 : start] != hashlib.blake2b(raw, digest_size=16).hexdigest().encode()
        ):
            raise Damaged(name)
        header = msgspec.json.decode(raw, type=_Header)
        base = -(-(start + size) // _ALIGN) * _ALIGN
        if len(mapped) != base + header.size:
            raise Damaged(name)
        guard = _Guard(name)
        columns: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        posted: list[tuple[int, int]] = []
        placed: list[tuple[int, int]] = []
        for column in header.columns:
            kind, items = np.dtype(column.kind), int(np.prod(column.shape))
            array = np.frombuffer(mapped, kind, items, base + column.at).reshape(column.shape)
            key, _, own = column.name.rpartition(".")
            if key:
                groups.setdefault(key, {})[own] = array
            else:
                columns[own] = array
            if column.name in ("rows", "times", "impacts"):
                posted.append((base + column.at, base + column.sums_at))
            if own == "data":
                placed.append((base + column.at, base + column.sums_at))
            words = (column.sums_at - column.at) // 8
            guard.add(
                column.name,
                np.frombuffer(mapped, np.uint64, words, base + column.at),
                np.frombuffer(mapped, np.uint64, _blocks(words), base + column.sums_at),
                array.nbytes // max(1, len(array)),
            )
        vectors = {key: Vectors(key, **own) for key, own in groups.items()}
        seen = Seen(mapped, posted, placed)
        return Segment(**columns, vectors=vectors, total=header.total, guard=guard, name=name, seen=seen)

    def _put(self, name: str, chunks: Sequence[bytes]) -> None:
        """Write a file atomically."""
        path, draft = self._folder / name, self._folder / f"{name}.{secrets.token_hex(4)}.new"
        try:
            with os.fdopen(open_new(draft), "wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        self._sync()

    def _sync(self) -> None:
        with suppress(OSError):
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def _locked(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        with os.fdopen(open_new(self._folder / (name + _LOCK), append=True), "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True


def _alone(file: int) -> bool:
    """Lock a file for this process alone. False when another process has a lock on it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


class _Guard:
    """Verifies blocks of a file against their checksums, each once in a process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], int, bytearray]] = {}

    def add(self, name: str, data: npt.NDArray[np.uint64], sums: npt.NDArray[np.uint64], item: int) -> None:
        """Add a column: its data and checksums, and the bytes of an item."""
        self._columns[name] = (data, sums, item, bytearray(len(sums)))

    def __call__(self, name: str, first: int, last: int) -> None:
        data, sums, item, seen = self._columns[name]
        begin = first * item // _BLOCK
        end = len(sums) if last < 0 else -(-last * item // _BLOCK)
        if seen.count(1, begin, end) == end - begin:
            return
        words = _BLOCK // 8
        if not np.array_equal(_sums(data[begin * words : end * words]), sums[begin:end]):
            raise Damaged(self._name)
        seen[begin:end] = b"\x01" * (end - begin)


def _blocks(words: int) -> int:
    return -(-words * 8 // _BLOCK)


def _sums(data: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A checksum for every block: the sum of its numbers."""
    words = _BLOCK // 8
    whole = len(data) // words
    sums = np.empty(_blocks(len(data)), dtype=np.uint64)
    sums[:whole] = data[: whole * words].reshape(-1, words).sum(axis=1, dtype=np.uint64)
    if whole < len(sums):
        sums[whole] = data[whole * words :].sum(dtype=np.uint64)
    return sums
