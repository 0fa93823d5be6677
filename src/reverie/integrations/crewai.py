"""CrewAI: Reverie as the storage of its memory.

    from crewai.memory.unified_memory import Memory
    from reverie.integrations.crewai import ReverieStorage

    storage = ReverieStorage(reverie.open("./memory"))
    crew = Crew(..., memory=Memory(storage=storage, embedder=storage.embed))

A record is an entry: its scope, categories and metadata are attributes. Notes written through another door, and dreams,
are records of the root scope.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from reverie.core.errors import NotFound
from reverie.core.extras import require_release
from reverie.core.names import digest
from reverie.core.query import Filter

require_release("crewai", "1.15", extra="crewai", purpose="The storage")

from crewai.memory.types import MemoryRecord, ScopeInfo  # noqa: E402

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.library import Memory

_ATTRIBUTE = "crewai"
_BATCH = 500
_MOST_TEXTS = 4096
"""Texts of `embed` that are remembered for searches."""
_MOST_HITS = 200

Found = list[tuple[MemoryRecord, float]]


class ReverieStorage:
    """CrewAI's `StorageBackend` in the memory `ref`. Safe to share between threads.

    With `embedder=storage.embed` queries are answered by Reverie's own search (words and meaning), without an embedding
    model. With another embedder its vectors are kept, and each search compares all records of a scope. `pin`: whether
    records stay out of dreams; with `pin=False` a dream may distil them, and they are no longer found by their id.
    """

    def __init__(self, memory: Memory, *, ref: str = "crewai", pin: bool = True) -> None:
        self._ref = memory.ref(ref)
        self._pin = pin
        self._texts: OrderedDict[tuple[float, ...], str] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors that stand for these texts: `search` looks up the text behind one."""
        made = []
        for text in texts:
            vector = [byte / 127.5 - 1 for byte in hashlib.sha256(text.encode(errors="surrogatepass")).digest()]
            self._texts[tuple(vector)] = text
            self._texts.move_to_end(tuple(vector))
            made.append(vector)
        while len(self._texts) > max(_MOST_TEXTS, len(texts)):
            self._texts.popitem(last=False)
        return made

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records; one with the id of a stored one replaces it."""
        drafts = iter([self._draft(record) for record in {record.id: record for record in records}.values()])
        while batch := list(islice(drafts, _BATCH)):
            self._ref.put_many(batch)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id."""
        if record.embedding is None and (held := self._find(record.id)) is not None:
            record = record.model_copy(update={"embedding": _record(held).embedding})
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record of an id."""
        found = self._find(record_id)
        return None if found is None else _record(found)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> Found:
        """Records that answer, best first, each with a score of 0 to 1."""
        text = self._texts.get(tuple(query_embedding))
        found = self._near(query_embedding, scope_prefix) if text is None else self._answers(text, scope_prefix)
        kept = (
            (record, score)
            for record, score in found
            if score >= min_score and _matches(record, categories, metadata_filter)
        )
        return list(islice(kept, limit))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that match everything given. Returns how many."""
        if record_ids:
            entries = [entry for entry in map(self._find, record_ids) if entry is not None]
        else:
            entries = list(self._entries(scope_prefix))
        gone = 0
        for entry in entries:
            record = _record(entry)
            if not _matches(record, categories, metadata_filter) or (older_than and record.created_at >= older_than):
                continue
            try:
                self._ref.delete(entry.id)
            except NotFound:
                continue
            gone += 1
        return gone

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Records of a scope, newest first."""
        if limit <= 0 or offset < 0:
            return []
        found = sorted(map(_record, self._entries(scope_prefix)), key=lambda record: record.created_at, reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Counts, categories, dates and children of a scope."""
        records = [_record(entry) for entry in self._entries(scope)]
        dates = [record.created_at for record in records]
        return ScopeInfo(
            path=scope.rstrip("/") or "/",
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=min(dates, default=None),
            newest_record=max(dates, default=None),
            child_scopes=_children(records, scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes right below a scope."""
        return _children(map(_record, self._entries(parent)), parent)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of a scope by category."""
        counts: dict[str, int] = {}
        for entry in self._entries(scope_prefix):
            for name in _record(entry).categories:
                counts[name] = counts.get(name, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope."""
        return sum(1 for _ in self._entries(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete every record of a scope."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """`save` in a thread."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], *given: Any, **named: Any) -> Found:
        """`search` in a thread."""
        return await asyncio.to_thread(self.search, query_embedding, *given, **named)

    async def adelete(self, *given: Any, **named: Any) -> int:
        """`delete` in a thread."""
        return await asyncio.to_thread(self.delete, *given, **named)

    def _draft(self, record: MemoryRecord) -> dict[str, Any]:
        mark = _mark(record.id)
        kept = record.model_dump(mode="json", exclude={"content", "created_at"})
        vector = record.embedding
        if vector is not None and len(vector) and tuple(vector) not in self._texts:
            most = max(map(abs, vector)) or 1.0
            kept["vector"] = [
                round(value / most * 127) for value in vector
            ]  # numbers: letters would look like a secret
        return {
            "content": record.content,
            "kind": "record",
            "tags": [mark, *(_scope_mark(path) for path in _paths(record.scope))],
            "replaces": mark,
            "source": {"actor": record.source} if record.source else None,
            "created_at": _aware(record.created_at),
            "attributes": {_ATTRIBUTE: kept},
            "pinned": self._pin,
        }

    def _find(self, record_id: str) -> Entry | None:
        found = self._ref.list(Filter(tags=(_mark(record_id),)), limit=1).items
        if found:
            return found[0]
        try:
            entry = self._ref.get(record_id)
        except NotFound:
            return None
        return None if _ATTRIBUTE in entry.attributes else entry

    def _entries(self, scope: str | None) -> Iterator[Entry]:
        return self._ref.entries(_within(scope))

    def _answers(self, text: str, scope: str | None) -> Iterator[tuple[MemoryRecord, float]]:
        seen = set()
        for hit in self._ref.search(text.strip()[:4096], where=_within(scope), limit=_MOST_HITS):
            if hit.entry.id not in seen and not hit.weak:
                seen.add(hit.entry.id)
                yield _record(hit.entry), hit.confidence

    def _near(self, query: Sequence[float], scope: str | None) -> Found:
        records = [_record(entry) for entry in self._entries(scope)]
        alike = [record for record in records if record.embedding and len(record.embedding) == len(query)]
        if not alike:
            return []
        vectors = np.array([record.embedding for record in alike], dtype=np.float32)
        wanted = np.array(query, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(wanted)
        scores = np.clip(vectors @ wanted / np.maximum(lengths, 1e-9), 0.0, 1.0)
        return [(alike[at], float(scores[at])) for at in np.argsort(-scores, kind="stable")]


def _record(entry: Entry) -> MemoryRecord:
    kept = dict(entry.attributes.get(_ATTRIBUTE) or {"id": entry.id})
    vector = kept.pop("vector", None)
    created = datetime.fromtimestamp(entry.created_at / 1000, UTC).replace(tzinfo=None)
    kept.setdefault("last_accessed", created)
    embedding = None if vector is None else [value / 127 for value in vector]
    return MemoryRecord(content=entry.content, created_at=created, embedding=embedding, **kept)


def _matches(record: MemoryRecord, categories: Sequence[str] | None, metadata: dict[str, Any] | None) -> bool:
    if categories and not set(categories) & set(record.categories):
        return False
    return all(record.metadata.get(key) == value for key, value in (metadata or {}).items())


def _children(records: Iterable[MemoryRecord], parent: str) -> list[str]:
    start = parent.strip("/")
    prefix = f"/{start}/" if start else "/"
    below = (record.scope.removeprefix(prefix) for record in records if record.scope.startswith(prefix))
    return sorted({prefix + rest.split("/")[0] for rest in below if rest.split("/")[0]})


def _within(scope: str | None) -> Filter:
    path = (scope or "").strip("/")
    return Filter(tags=(_scope_mark(path),)) if path else Filter()


def _paths(scope: str) -> list[str]:
    """A scope and those above it: `a/b` is in `a` and in `a/b`."""
    labels = [label for label in scope.split("/") if label]
    return ["/".join(labels[:depth]) for depth in range(1, len(labels) + 1)]


def _mark(record_id: str) -> str:
    return f"~record:{digest(record_id)}"


def _scope_mark(path: str) -> str:
    return f"~scope:{digest(path)}"


def _aware(when: datetime) -> datetime:
    """CrewAI's times are UTC without saying so."""
    return when if when.tzinfo else when.replace(tzinfo=UTC)
