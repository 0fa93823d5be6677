"""Reading the files of a store: by folder, in order of paths, with the entries of other interfaces."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec
from msgspec import Struct, field

from reverie.core.entry import FILE_KIND, Entry, EntryState
from reverie.core.query import Filter, Page, each
from reverie.memory import files
from reverie.memory.files import File, alive
from reverie.protocols.anthropic.names import ENTRIES
from reverie.protocols.anthropic.stores import ListPage, StoreRecord
from reverie.store.contract import ReadTx

MOST_ENTRIES = 2000
"""Entries without a path that a bound store shows: the newest."""
_PAGE = 500
_HEADS = Filter(kinds=(FILE_KIND,), states=frozenset({EntryState.ACTIVE}), expired=None)
_BEYOND = "\U0010ffff" * 257
"""Sorts behind every path of a folder."""


class Memory(Struct, frozen=True):
    """A memory as it is now."""

    store: StoreRecord
    file: File
    content: str | None = None
    findings: Mapping[str, int] = field(default_factory=dict)
    """Redactions made by the write that returns this memory."""
    read_only: bool = False
    entry: Entry | None = None
    """The entry of its newest version; None when that has no text."""


def all_files(tx: ReadTx, record: StoreRecord, folder: str, *, most: int | None = None) -> list[Memory]:
    """Return the memories below a folder with their content; at most this many."""
    results: list[Memory] = []
    after: str | None = folder
    while after is not None and (most is None or len(results) < most):
        page = tx.documents(files.paths(record.id), cursor=after, limit=200 if most is None else most)
        below = [document for document in page.items if document.key.startswith(folder)]
        read = [msgspec.json.decode(document.body or b"", type=File) for document in below]
        results += [memory for memory in _contents(tx, record, read) if memory is not None]
        after = page.cursor if len(below) == len(page.items) else None
    return results[:most]


def all_names(tx: ReadTx, record: StoreRecord, folder: str) -> list[File]:
    """The files below a folder, without their contents, in no order.

    Contents are read only where the store has other entries of kind `file` than its index: another interface retired
    or wrote some, and only the entries say which.
    """
    found = list(each(lambda cursor: _indexed(tx, record, cursor)))
    if sum(file.text for file in found) != tx.count(_HEADS):
        found = [memory.file for memory in all_files(tx, record, folder)]
    if record.bound:
        found += [memory.file for memory in other_entries(tx, record)]
    return [file for file in found if file.path.startswith(folder)]


def _indexed(tx: ReadTx, record: StoreRecord, cursor: str | None) -> Page[File]:
    page = tx.documents(files.paths(record.id), cursor=cursor, limit=_PAGE)
    return Page([msgspec.json.decode(document.body or b"", type=File) for document in page.items], page.cursor)


def list_files(tx: ReadTx, record: StoreRecord, prefix: str, depth: int, limit: int, after: str | None) -> ListPage:
    """One page of memories, or of texts that name a folder."""
    items: list[Memory | str] = []
    last = after
    after = after or prefix
    if record.bound:
        return _list_bound(tx, record, prefix, depth, limit, last)
    while True:
        page = tx.documents(files.paths(record.id), cursor=after, limit=limit - len(items) + 1)
        read: list[File | str] = []
        done = page.cursor is None
        for document in page.items:
            rest = document.key[len(prefix) :]
            if not document.key.startswith(prefix):
                done = True
                break
            after = document.key
            if depth == 1 and "/" in rest:
                folder = prefix + rest[: rest.index("/") + 1]
                read.append(folder)
                after, done = folder + _BEYOND, False
                break
            read.append(msgspec.json.decode(document.body or b"", type=File))
        read_files = iter(_contents(tx, record, [one for one in read if isinstance(one, File)]))
        for one in read:
            item = one if isinstance(one, str) else next(read_files)
            if item is None:
                continue
            if len(items) == limit:
                return ListPage(tuple(items), last)
            items.append(item)
            last = one + _BEYOND if isinstance(one, str) else one.path
        if done:
            return ListPage(tuple(items))


def _list_bound(tx: ReadTx, record: StoreRecord, prefix: str, depth: int, limit: int, after: str | None) -> ListPage:
    """The same for a store that shows entries of other interfaces too."""
    results: dict[str, Memory | str] = {}
    for memory in (*all_files(tx, record, prefix), *other_entries(tx, record)):
        path = memory.file.path
        if not path.startswith(prefix):
            continue
        rest = path[len(prefix) :]
        if depth == 1 and "/" in rest:
            folder = prefix + rest[: rest.index("/") + 1]
            results[folder] = folder
        else:
            results[path] = memory
    order = sorted(results, key=str.encode)
    left = [key for key in order if after is None or key.encode() > after.encode()]
    return ListPage(tuple(results[key] for key in left[:limit]), left[limit - 1] if len(left) > limit else None)


def _contents(tx: ReadTx, record: StoreRecord, read: Sequence[File]) -> list[Memory | None]:
    """Memories with their content; None for those whose entry other interfaces retired."""
    results = tx.at([file.position for file in read if file.text], Filter()) if any(file.text for file in read) else {}
    return [load_memory(tx, record, file, results.get(file.position)) for file in read]


def load_memory(tx: ReadTx, record: StoreRecord, file: File, entry: Entry | None = None) -> Memory | None:
    """A memory with its content; None when another interface retired its entry."""
    if not file.text:
        row = files.load_version(tx, record.id, file.version)
        return Memory(record, file, row.blank or "" if row is not None else "")
    if entry is None or entry.id != file.version:
        entry = tx.get(file.version)
    return Memory(record, file, entry.content, entry=entry) if entry is not None and alive(entry) else None


def other_entries(tx: ReadTx, record: StoreRecord) -> list[Memory]:
    """Entries of the ref that other interfaces wrote, the newest ones."""
    found = each(lambda cursor: tx.scan(Filter(), limit=500, cursor=cursor))
    others = (entry_memory(record, entry) for entry in found if entry.kind != FILE_KIND)
    return list(islice(others, MOST_ENTRIES))


def entry_memory(record: StoreRecord, entry: Entry) -> Memory:
    """An entry of another interface as a read-only memory."""
    content = entry.content.encode()
    file = File(
        id=entry.id,
        path=f"{ENTRIES}{entry.kind.replace('/', '-')}/{entry.id.replace('/', '-')}.md",
        version=entry.id,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        created_at=entry.created_at,
        updated_at=entry.created_at,
    )
    return Memory(record, file, entry.content, read_only=True)
