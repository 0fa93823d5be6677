"""Files of memory stores: entries of kind `file`, and the documents that index them.

The head version of a file is an active entry; its older versions are superseded entries; a version without text (a
deleted or an empty file) is a document alone. The documents say where each file is, by path and by id, and list the
versions, newest first. They follow the entries: `purge` destroys the text of an entry, in every door, and takes
path, hash and size out of its version.

Ids begin with their instant, so that versions sort as made; keys of documents are complemented ids, so that the newest
comes first.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from reverie.core.actor import Actor
from reverie.core.entry import Entry, EntryState
from reverie.core.event import NewEvent
from reverie.core.ids import encode
from reverie.store.contract import ReadTx, WriteTx

KEPT_VERSIONS = 10
"""Newest versions of a file that are kept as long as it exists, however old they are."""
DUE_SPACE = "memdue"
COUNT_SPACE = "memcount"
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_COMPLEMENT = str.maketrans(_ALPHABET, _ALPHABET[::-1])
_RANDOM_BITS = 80


def complement(text: str) -> str:
    """An id as a key that sorts newest first; applied twice it is the id again."""
    return text.translate(_COMPLEMENT)


def paths(store: str) -> str:
    """Space of the files of a store by path."""
    return f"memstore~{store}"


def ids(store: str) -> str:
    """Space of their paths by id."""
    return f"memid~{store}"


def versions(store: str) -> str:
    """Space of the versions of all files of a store, newest first."""
    return f"memver~{store}"


def histories(store: str) -> str:
    """Space of the versions of each file, newest first: key `file/version`."""
    return f"memof~{store}"


class File(Struct, frozen=True):
    """A file's place and its newest version."""

    id: str
    path: str
    version: str
    """Id of the newest version, which is the id of its entry."""
    sha256: str
    size: int
    created_at: int
    updated_at: int
    text: bool = True
    """Whether the newest version is an entry; blank text is not."""
    position: int = 0
    """Position of the entry of the newest version."""
    recent: tuple[str, ...] = ()
    """Ids of the newest versions, newest first."""


class FileVersion(Struct, frozen=True):
    """One change of a file."""

    id: str
    file: str
    operation: str
    """`created`, `modified` or `deleted`."""
    created_at: int
    actor: str
    session: str | None = None
    path: str | None = None
    sha256: str | None = None
    size: int | None = None
    text: bool = False
    blank: str | None = None
    """Text that is only space, which no entry can hold."""
    findings: Mapping[str, int] = field(default_factory=dict)
    made_from: tuple[str, ...] = ()
    """Ids of the sources from which a dream made its words, besides the version before."""
    redacted_at: int | None = None
    redacted_by: str | None = None


class VersionIds:
    """Ids whose first 48 bits are an instant; larger than every id this process made before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self, at: int, *, after: str | None = None) -> str:
        """A new id for an instant, larger than `after`, an id of the same file that any process may have made."""
        number = (at << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS - 1)
        least = _number(after) if after is not None else 0
        with self._lock:
            if self._last >> _RANDOM_BITS == at:
                least = max(least, self._last)
            if number <= least:
                number = least + 1
            self._last = max(self._last, number)
        return encode(number)


def _number(name: str) -> int:
    """The number of an id."""
    found = 0
    for character in name:
        found = found * 32 + _ALPHABET.index(character)
    return found


def first_key(until: int) -> str:
    """The key before every version made at or before an instant."""
    return complement(encode(((until + 1) << _RANDOM_BITS) - 1))[:-1] if until >= 0 else "~"


def load_file(tx: ReadTx, store: str, path: str) -> File | None:
    """The file at a path."""
    document = tx.load(paths(store), path)
    return msgspec.json.decode(document.body, type=File) if document and document.body else None


def find_file(tx: ReadTx, store: str, file_id: str) -> File | None:
    """The file of an id."""
    document = tx.load(ids(store), file_id)
    file = load_file(tx, store, document.body.decode()) if document and document.body else None
    return file if file is not None and file.id == file_id else None


def load_version(tx: ReadTx, store: str, version_id: str) -> FileVersion | None:
    """A version by its id."""
    document = tx.load(versions(store), complement(version_id))
    return msgspec.json.decode(document.body, type=FileVersion) if document and document.body else None


def save_file(tx: WriteTx, store: str, file: File, *, seq: int, before: File | None = None) -> None:
    """Index a file, instead of `before`."""
    if before is not None and before.path != file.path:
        tx.drop(paths(store), before.path, seq=seq, keep=0)
    tx.save(paths(store), file.path, msgspec.json.encode(file), seq=seq)
    if before is None or before.path != file.path:
        tx.save(ids(store), file.id, file.path.encode(), seq=seq)
    if before is None:
        count_files(tx, store, 1, seq=seq)


def drop_file(tx: WriteTx, store: str, file: File, *, seq: int) -> None:
    """Take a file out of the index."""
    tx.drop(paths(store), file.path, seq=seq, keep=0)
    tx.drop(ids(store), file.id, seq=seq, keep=0)
    count_files(tx, store, -1, seq=seq)


def count_files(tx: WriteTx, store: str, more: int, *, seq: int) -> int:
    """Add to the number of files in a store; return the new number."""
    number = max(0, file_count(tx, store) + more)
    tx.save(COUNT_SPACE, store, str(number).encode(), seq=seq)
    return number


def file_count(tx: ReadTx, store: str) -> int:
    """Count the files of a store."""
    document = tx.load(COUNT_SPACE, store)
    return int(document.body) if document and document.body else 0


def save_version(tx: WriteTx, store: str, version: FileVersion, *, seq: int) -> None:
    """Write a row of the history."""
    key = complement(version.id)
    new = tx.load(versions(store), key) is None
    tx.save(versions(store), key, msgspec.json.encode(version), seq=seq)
    if new:
        tx.save(histories(store), f"{version.file}/{key}", b"1", seq=seq)


def drop_version(tx: WriteTx, store: str, version: FileVersion, *, seq: int) -> None:
    """Remove a row of the history."""
    key = complement(version.id)
    tx.drop(versions(store), key, seq=seq, keep=0)
    tx.drop(histories(store), f"{version.file}/{key}", seq=seq, keep=0)


class Due(Struct, frozen=True):
    """A version, or (`*`) a whole store, that is due for destruction."""

    key: str
    store: str
    what: str
    ref: str


def expire(tx: WriteTx, store: str, what: str, *, ref: str, at: int, seq: int) -> None:
    """Schedule the destruction of a version, or (`*`) of a whole store."""
    tx.save(DUE_SPACE, f"{at:015d}/{store}/{what}", ref.encode(), seq=seq)


def due(tx: ReadTx, *, limit: int) -> Iterator[Due]:
    """Yield the versions and stores that are due by now, oldest first."""
    for document in tx.documents(DUE_SPACE, limit=limit).items:
        at, store, what = document.key.split("/")
        if int(at) > tx.now:
            return
        yield Due(document.key, store, what, (document.body or b"").decode())


def note_destruction(tx: WriteTx, actor: Actor, entry: Entry) -> None:
    """Follow the destruction of a file entry's text: its version becomes redacted; a head leaves the index."""
    store, file_id = (str(entry.attributes.get(name, "")).rpartition("_")[2] for name in ("store", "memory"))
    version = load_version(tx, store, entry.id) if store else None
    if version is None:
        return
    data: dict[str, Any] = {"ref": entry.ref, "store": store, "memory": file_id, "version": entry.id}
    if version.redacted_at is None:
        seq = tx.append(NewEvent("memory.version_redacted", "FILE", actor.id, data=data))
        save_version(tx, store, without_text(version, actor, tx.now), seq=seq)
    file = find_file(tx, store, file_id)
    if file is not None and file.version == entry.id:
        seq = tx.append(NewEvent("memory.version", "FILE", actor.id, data=data | {"operation": "deleted"}))
        drop_file(tx, store, file, seq=seq)


def note_rewrite(tx: WriteTx, entry: Entry, *, seq: int) -> None:
    """Follow a later redaction of a file entry's text: update the hash and size of its version and of a head."""
    store, file_id = (str(entry.attributes.get(name, "")).rpartition("_")[2] for name in ("store", "memory"))
    version = load_version(tx, store, entry.id) if store else None
    if version is None or version.redacted_at is not None:
        return
    text = entry.content.encode()
    digest = hashlib.sha256(text).hexdigest()
    save_version(tx, store, msgspec.structs.replace(version, sha256=digest, size=len(text)), seq=seq)
    file = find_file(tx, store, file_id)
    if file is not None and file.version == entry.id:
        after = msgspec.structs.replace(file, sha256=digest, size=len(text))
        tx.save(paths(store), file.path, msgspec.json.encode(after), seq=seq)


def without_text(version: FileVersion, actor: Actor, at: int) -> FileVersion:
    """A version without text, path, hash and size."""
    return msgspec.structs.replace(
        version,
        path=None,
        sha256=None,
        size=None,
        text=False,
        blank=None,
        redacted_at=at,
        redacted_by=actor.id,
    )


def alive(entry: Entry | None) -> bool:
    """Whether the entry of a file's newest version can be read."""
    return entry is not None and entry.state is EntryState.ACTIVE and not entry.archived and entry.gone_seq is None
