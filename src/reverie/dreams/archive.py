"""Archives of dreams, and MEMORY-INDEX.json, which the next session loads first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.dream import DreamReport
from reverie.core.entry import Scope, check_namespace
from reverie.core.errors import NotFound, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import each
from reverie.distil.archive import INDEX_PATH, checked_item, index_document, index_page, split_index
from reverie.distil.request import DistilledText
from reverie.distil.source import Statement
from reverie.memory.derivation import DREAM_SPACE as DREAM_SPACE
from reverie.memory.policy import RuleBook
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

ARCHIVE_SPACE = "archive"
WORK_SPACE = "dream-work"
WORKSPACE = "workspace"
_PAGE = 500


class Archives:
    """Immutable, content-addressed archives of dreams, and their index."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def get(self, actor: Actor, checksum: str) -> bytes:
        """Return the canonical bytes of an archive; their SHA-256 is the checksum. Raises NotFound."""
        actor.require(Right.READ)
        document = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.load(ARCHIVE_SPACE, checksum))
        if document is None or document.body is None:
            raise NotFound("There is no archive of that checksum; it may have outlived its retention.")
        return document.body

    def index(self, actor: Actor, *, ref: str | None = None) -> dict[str, Any]:
        """Return the index of the tenant, or of one ref."""
        actor.require(Right.READ)
        check_namespace(ref)
        document = self._parts.store.read(Scope(actor.tenant), load_index)
        if ref is None:
            return document
        return index_document(item for item in document["archives"] if item["memoryRef"] == ref)

    def index_page(self, actor: Actor, *, ref: str | None = None) -> str:
        """Return the index as Markdown."""
        return index_page(self.index(actor, ref=ref))

    def answer(self, actor: Actor, key: str) -> DistilledText | None:
        """Return the stored answer to an identical piece of work, while its archive exists."""

        def body(tx: ReadTx) -> DistilledText | None:
            work = tx.load(WORK_SPACE, key)
            if work is None or work.body is None:
                return None
            named = orjson.loads(work.body)
            archive = tx.load(ARCHIVE_SPACE, named["checksum"])
            report = tx.load(DREAM_SPACE, named["dream"])
            if archive is None or archive.body is None or report is None or report.body is None:
                return None
            text = orjson.loads(archive.body)["content"]
            lines = text.split("\n")
            traces = msgspec.json.decode(report.body, type=DreamReport).statements
            statements = [Statement(lines[t.line], t.sources, t.how, t.count) for t in traces if t.line < len(lines)]  # type: ignore[arg-type]
            return DistilledText(text, statements)

        return self._parts.store.read(Scope(actor.tenant), body)

    def reindex(
        self,
        tx: WriteTx,
        dream_id: str,
        *,
        add: Iterable[Mapping[str, Any]] = (),
        remove: Sequence[str] = (),
        keep: int = 20,
        run: str | None = None,
    ) -> None:
        """Rewrite the index inside the transaction of a dream, with one `workspace.updated`. `remove`: output ids."""
        gone = set(remove)
        kept = [item for item in load_index(tx)["archives"] if item["outputId"] not in gone]
        document, more = split_index(index_document([*kept, *add]))
        current = tx.load(WORKSPACE, INDEX_PATH)
        data = {"path": INDEX_PATH, "version": (current.version if current else 0) + 1, "dream": dream_id}
        if run:
            data["run"] = run
        seq = tx.append(NewEvent("workspace.updated", "DREAM", "host:reverie", data=data), tick=False)
        meta = {"contentType": "application/json", "more": more}
        tx.save(WORKSPACE, INDEX_PATH, orjson.dumps(document), seq=seq, meta=meta, keep=keep)

    def lists(self, tx: ReadTx, output_ids: Sequence[str]) -> bool:
        """Whether the index names any of these outputs."""
        wanted = set(output_ids)
        return bool(wanted) and any(item["outputId"] in wanted for item in load_index(tx)["archives"])

    def collect(self, actor: Actor) -> int:
        """Drop archives older than the tenant's retention, with an event each; return their number. The dreams stay."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        oldest = self._oldest(actor)

        def body(tx: WriteTx) -> int:
            dropped = _older(tx, oldest)
            for checksum in dropped:
                self.drop(tx, actor, checksum)
            if dropped:
                known = frozenset(dropped)
                gone = [item["outputId"] for item in load_index(tx)["archives"] if item["archiveChecksum"] in known]
                self.reindex(tx, "", remove=gone)
            return len(dropped)

        return self._parts.store.write(Scope(actor.tenant), body)

    def outdated(self, actor: Actor) -> list[str]:
        """Return the checksums of the archives that `collect` would drop."""
        actor.require(Right.READ)
        oldest = self._oldest(actor)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: _older(tx, oldest))

    def _oldest(self, actor: Actor) -> int:
        return self._parts.clock.now() - self._rules.latest(actor.tenant).policy.archive_retention_ms

    def drop(self, tx: WriteTx, actor: Actor, checksum: str) -> None:
        """Destroy one archive, with its event."""
        seq = tx.append(NewEvent("archive.collected", "RETAIN", actor.id, data={"checksum": checksum}))
        tx.drop(ARCHIVE_SPACE, checksum, seq=seq)


def _older(tx: ReadTx, oldest: int) -> list[str]:
    documents = each(lambda cursor: tx.documents(ARCHIVE_SPACE, limit=_PAGE, cursor=cursor))
    return [document.key for document in documents if document.updated_at <= oldest]


def load_index(tx: ReadTx) -> dict[str, Any]:
    """Return the current index with its readable fields. An unreadable file counts as empty."""
    document = tx.load(WORKSPACE, INDEX_PATH)
    if document is None or document.body is None:
        return index_document([])
    more = document.meta.get("more")
    try:
        items = [checked_item(item) for item in orjson.loads(document.body)["archives"]]
        seen = [{**item, **dict(more.get(item["outputId"], {}))} for item in items] if more else items
        return index_document(seen)
    except (ValueError, TypeError, KeyError, AttributeError):
        return index_document([])
