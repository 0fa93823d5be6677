"""Texts of memory stores, dreams and histories that are no entries. A forget by mention reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial

import msgspec

from reverie.core.actor import Actor
from reverie.core.entry import FILE_KIND, Entry
from reverie.core.event import NewEvent
from reverie.core.query import each
from reverie.memory import files
from reverie.memory.files import File, FileVersion, complement
from reverie.memory.texts import ClearedText, Names, without
from reverie.protocols.anthropic import dream_records, stores
from reverie.protocols.anthropic.dream_records import DreamRecord
from reverie.protocols.anthropic.transcripts import decode, encode
from reverie.store.contract import ReadTx, WriteTx


class StoreTexts:
    """Texts of memory stores, of their dreams, and of the histories of their files."""

    def mentions(self, tx: ReadTx, names: Names) -> Iterator[ClearedText]:
        """Stores, dreams and versions that mention the words.

        The label and the memory of a store stay: by the label later forgets find what is written there.
        """
        for document in each(lambda cursor: tx.documents(stores.SPACE, cursor=cursor)):
            store = msgspec.json.decode(document.body or b"", type=stores.StoreRecord)
            told = {key: value for key, value in store.metadata.items() if key not in (stores.SUBJECT, stores.REF)}
            after = msgspec.structs.replace(
                store,
                name=without(store.name, names),
                description="" if names(store.description) else store.description,
                metadata={**store.metadata, **without(told, names)},
            )
            if after != store:
                yield ClearedText(document, msgspec.json.encode(after))
        for document in each(lambda cursor: tx.documents(dream_records.TEXT_SPACE, cursor=cursor)):
            given = decode(document.body or b"")
            kept = [msgspec.structs.replace(one, text=_lines_without(one.text, names)) for one in given]
            if kept != given:
                yield ClearedText(document, encode(kept))
        for document in each(lambda cursor: tx.documents(dream_records.SPACE, cursor=cursor)):
            dream = msgspec.json.decode(document.body or b"", type=DreamRecord)
            cleared = _dream_without(dream, names)
            if cleared != dream:
                yield ClearedText(document, msgspec.json.encode(cleared))
        for store_id, ref in _store_refs(tx):
            space = files.versions(store_id)
            for document in each(lambda cursor, space=space: tx.documents(space, cursor=cursor)):  # type: ignore[misc]
                row = msgspec.json.decode(document.body or b"", type=FileVersion)
                left = _version_without(row, names, tx.now)
                if left == row:
                    continue
                head = files.find_file(tx, store_id, row.file) if left.path is None and row.path is not None else None
                if head is None or head.version != row.id:
                    yield ClearedText(document, msgspec.json.encode(left))
                else:  # an empty file, which has no entry to go with
                    yield ClearedText(document, msgspec.json.encode(left), more=partial(_drop, ref, store_id, head))

    def release(self, tx: WriteTx, actor: Actor, entries: Sequence[Entry]) -> None:
        """Redact the remaining versions, which have a path and no text, of deleted files without any text left; and
        take the paths of destroyed versions out of dreams."""
        found = [entry for entry in entries if _is_file(entry)]
        if found:
            _release_dreams(tx, actor, {entry.id for entry in found})
        named = {(_bare(entry, "store"), _bare(entry, "memory"), entry.ref) for entry in found}
        for store_id, file_id, ref in sorted(named):
            if files.find_file(tx, store_id, file_id) is not None:
                continue
            rows = list(_history(tx, store_id, file_id))
            if any(row.text for row in rows):
                continue
            for row in rows:
                if row.path is not None:
                    data = {"ref": ref, "store": store_id, "memory": file_id, "version": row.id}
                    seq = tx.append(NewEvent("memory.version_redacted", "FORGET", actor.id, data=data))
                    files.save_version(tx, store_id, files.without_text(row, actor, tx.now), seq=seq)


def _release_dreams(tx: WriteTx, actor: Actor, destroyed: Set[str]) -> None:
    """Take the paths of destroyed versions out of the dreams that changed them."""
    for document in list(each(lambda cursor: tx.documents(dream_records.SPACE, cursor=cursor))):
        dream = msgspec.json.decode(document.body or b"", type=DreamRecord)
        changes = tuple(
            msgspec.structs.replace(one, path="")
            if one.path and not destroyed.isdisjoint((one.before, one.after))
            else one
            for one in dream.changes
        )
        if changes != dream.changes:
            seq = tx.append(NewEvent("document.saved", "FORGET", actor.id))
            body = msgspec.json.encode(msgspec.structs.replace(dream, changes=changes))
            tx.save(dream_records.SPACE, document.key, body, seq=seq, meta=document.meta, destroy=True)


def _is_file(entry: Entry) -> bool:
    return entry.kind == FILE_KIND and bool(_bare(entry, "store")) and bool(_bare(entry, "memory"))


def _bare(entry: Entry, name: str) -> str:
    """The id of the store or file that the entry of a file names."""
    return str(entry.attributes.get(name, "")).rpartition("_")[2]


def _history(tx: ReadTx, store_id: str, file_id: str) -> Iterator[FileVersion]:
    space, head = files.histories(store_id), f"{file_id}/"
    for document in each(lambda cursor: tx.documents(space, prefix=head, cursor=cursor)):
        row = files.load_version(tx, store_id, complement(document.key.removeprefix(head)))
        if row is not None:
            yield row


def _dream_without(dream: DreamRecord, names: Names) -> DreamRecord:
    """A dream without the instructions, paths and names of transcripts that mention the words."""
    changes = [msgspec.structs.replace(one, path="") if names(one.path) else one for one in dream.changes]
    exclude = [path for path in dream.options.exclude if not names(path)]
    return msgspec.structs.replace(
        dream,
        instructions=without(dream.instructions, names),
        options=msgspec.structs.replace(dream.options, exclude=tuple(exclude)),
        transcripts=tuple((without(name, names), digest) for name, digest in dream.transcripts),
        changes=tuple(changes),
    )


def _drop(ref: str, store_id: str, file: File, tx: WriteTx, actor: Actor) -> None:
    """Take an empty file whose path mentions the words out of its store."""
    data = {"ref": ref, "store": store_id, "memory": file.id, "version": file.version, "operation": "deleted"}
    files.drop_file(tx, store_id, file, seq=tx.append(NewEvent("memory.version", "FORGET", actor.id, data=data)))


def _store_refs(tx: ReadTx) -> Iterator[tuple[str, str]]:
    """Id and ref of all stores, also of those that were deleted and whose histories rest until they are destroyed."""
    for document in each(lambda cursor: tx.documents(stores.SPACE, cursor=cursor)):
        yield complement(document.key), msgspec.json.decode(document.body or b"", type=stores.StoreRecord).ref
    for document in each(lambda cursor: tx.documents(files.DUE_SPACE, cursor=cursor)):
        _, store_id, what = document.key.split("/")
        if what == "*":
            yield store_id, (document.body or b"").decode()


def _version_without(row: FileVersion, names: Names, at: int) -> FileVersion:
    """A version without the names of transcripts that mention the words; redacted when its path does.

    The path of a version with text is its entry's too, and goes with that; empty and deleted files have no entry.
    """
    row = msgspec.structs.replace(row, made_from=tuple(without(row.made_from, names)))
    if row.path is None or row.text or not names(row.path):
        return row
    return msgspec.structs.replace(row, path=None, sha256=None, size=None, blank=None, redacted_at=at)


def _lines_without(text: str, names: Names) -> str:
    """A transcript without the lines that mention the words; without any when they stand across lines."""
    if not names(text):
        return text
    left = "\n".join(line for line in text.split("\n") if not names(line))
    return "" if names(left) else left


TEXTS = StoreTexts()
