"""The content of a memory before it is written: its checks, its path, its room."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Struct

from reverie.core.errors import Invalid, QuotaExceeded
from reverie.core.policy import TenantPolicy
from reverie.memory import files
from reverie.memory.insertion import PreparedEntry
from reverie.protocols.anthropic.errors import ContentTooLarge, MemoryLimit, PathConflict
from reverie.protocols.anthropic.listing import all_files, load_memory
from reverie.protocols.anthropic.names import ENTRIES, MEMORY, parents
from reverie.protocols.anthropic.stores import StoreRecord
from reverie.store.contract import ReadTx


class Clean(Struct, frozen=True):
    """A text that is ready to be written: redacted, and prepared as an entry unless it is blank."""

    text: str
    item: PreparedEntry | None
    findings: Mapping[str, int]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def size(self) -> int:
        return len(self.text.encode())


def check_content(text: str, policy: TenantPolicy) -> None:
    """Refuse what cannot be the content of a memory."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid("content: it is not valid Unicode.", pointer="/content") from None
    if "\0" in text:
        raise Invalid("content: it has a NUL character.", pointer="/content")
    if size > policy.max_memory_bytes:
        raise ContentTooLarge(
            f"content: a memory has at most {policy.max_memory_bytes:,} bytes.",
            pointer="/content",
            details={"max_bytes": policy.max_memory_bytes},
        )


def check_free(tx: ReadTx, record: StoreRecord, path: str, *, moving: str | None = None) -> None:
    """Raise PathConflict when a memory other than the one at `moving` is at the path, above it or below it."""
    if record.bound and (path + "/").startswith(ENTRIES):
        raise Invalid(f"path: {ENTRIES} shows entries of other interfaces and is read-only.", pointer="/path")
    for taken in (path, *parents(path)):
        file = files.load_file(tx, record.id, taken) if taken != moving else None
        if file is not None and load_memory(tx, record, file) is not None:
            raise PathConflict(MEMORY + file.id, file.path)
    for memory in all_files(tx, record, path + "/", most=2):
        if memory.file.path != moving:
            raise PathConflict(MEMORY + memory.file.id, memory.file.path)


def check_room(tx: ReadTx, record: StoreRecord, texts: Sequence[Clean], policy: TenantPolicy, *, new: int = 0) -> None:
    """Raise when the store has no room for `new` more memories, or the tenant's quota none for these texts."""
    if new > 0 and files.file_count(tx, record.id) + new > policy.max_memories_per_store:
        raise MemoryLimit(f"A memory store holds at most {policy.max_memories_per_store:,} memories.")
    head = tx.head()
    size = sum(clean.size for clean in texts)
    if texts and (head.entries + len(texts) > policy.max_entries or head.bytes + size > policy.max_bytes):
        raise QuotaExceeded(details={"entries": head.entries, "bytes": head.bytes})
