"""Inspection of a finished dream of a memory store: its changes, and undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.dream import NotUndoable
from reverie.core.entry import Scope
from reverie.core.errors import NotFound
from reverie.dreams.archive import DREAM_SPACE
from reverie.dreams.report import load_report, save_report
from reverie.memory import files
from reverie.memory.files import FileVersion
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import ANYTHING
from reverie.protocols.anthropic import dream_records as records
from reverie.protocols.anthropic import stores as store_records
from reverie.protocols.anthropic.content import Clean, check_free
from reverie.protocols.anthropic.dream_records import DreamRecord, FileChange
from reverie.protocols.anthropic.errors import PathConflict, StoreArchived, StoreInUse
from reverie.protocols.anthropic.listing import all_files
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import DREAM, STORE, VERSION
from reverie.protocols.anthropic.stores import StoreRecord, of_door
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx


class DreamUndo:
    """Diff and undo of dreams of memory stores."""

    def __init__(self, parts: Services, rules: RuleBook, memories: Memories) -> None:
        self._parts = parts
        self._rules = rules
        self._memories = memories

    def diff(self, actor: Actor, dream_id: str) -> dict[str, Any]:
        """Show a dream's change to each file: the text before and after, as far as these are kept, and the lines."""
        actor.require(Right.READ)
        record, store = self._of(actor, dream_id)

        def body(tx: ReadTx) -> list[dict[str, Any]]:
            return [_change_document(tx, store, change) for change in record.changes]

        found = self._parts.store.read(Scope(actor.tenant, store.ref), body)
        return {"id": DREAM + record.id, "memory_store_id": STORE + store.id, "data": found}

    def undo(self, actor: Actor, dream_id: str) -> DreamRecord:
        """Take a dream back. A store of its own is deleted; in an existing one the former texts become new versions.

        Raises NotUndoable when a file changed since, or a former text is destroyed. One transaction.
        """
        actor = of_door(actor)
        actor.require(Right.DREAM)
        actor.require(Right.WRITE)
        record, store = self._of(actor, dream_id)
        if record.status != "completed" or record.state != "done":
            raise NotUndoable("Only a dream that is completed, and not undone already, can be undone.")

        def prepare(rules: Rules) -> Callable[[WriteTx], DreamRecord]:
            former = self._former(actor, record, store, rules) if record.existing else {}

            def body(tx: WriteTx) -> DreamRecord:
                current = records.load(tx, record.id)
                if current.state != "done":
                    raise NotUndoable("This dream is undone already.")
                now = store_records.load(tx, store.id)
                if record.existing:
                    if now.archived_at is not None:
                        raise StoreArchived("This memory store is archived and cannot be changed.")
                    self._restore(tx, actor, current, now, former, rules)
                else:
                    if now.dream is not None:
                        raise StoreInUse()
                    _check_unchanged(tx, current, now)
                    store_records.delete(tx, actor, now, rest_ms=rules.policy.undo_window_ms)
                undone = msgspec.structs.replace(current, state="undone")
                seq = records.save(tx, actor.id, undone)
                if tx.load(DREAM_SPACE, record.id) is not None:
                    report = msgspec.structs.replace(load_report(tx, record.id), state="undone")
                    save_report(tx, report, seq=seq)
                return undone

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, store.ref))

    def undo_report(self, actor: Actor, dream_id: str) -> DreamRecord:
        """The same, by the id that the report of the dream has."""
        return self.undo(actor, DREAM + dream_id)

    def _of(self, actor: Actor, dream_id: str) -> tuple[DreamRecord, StoreRecord]:
        def body(tx: ReadTx) -> tuple[DreamRecord, StoreRecord]:
            record = records.find(tx, dream_id)
            if record.output is None:
                raise NotFound("This dream has no output.")
            if record.state == "undone" and not record.existing:
                raise NotUndoable("This dream is undone already: its output is deleted.")
            return record, store_records.load(tx, record.output)

        return self._parts.store.read(Scope(actor.tenant), body)

    def _former(
        self, actor: Actor, record: DreamRecord, store: StoreRecord, rules: Rules
    ) -> dict[str, tuple[str, Clean]]:
        """The former path and text of every file that the dream changed or deleted."""

        def body(tx: ReadTx) -> dict[str, tuple[str, str]]:
            results = {}
            for change in record.changes:
                if change.before is not None:
                    results[change.file] = _former_text(tx, store, change.before)
            return results

        former: dict[str, tuple[str, Clean]] = {}
        for file_id, (path, text) in self._parts.store.read(Scope(actor.tenant, store.ref), body).items():
            former[file_id] = path, self._memories.clean(actor, store, file_id, path, text, rules)
        return former

    def _restore(
        self,
        tx: WriteTx,
        actor: Actor,
        record: DreamRecord,
        store: StoreRecord,
        former: dict[str, tuple[str, Clean]],
        rules: Rules,
    ) -> None:
        for change in record.changes:
            file = files.find_file(tx, store.id, change.file)
            path = former[change.file][0] if change.file in former else change.path
            taken = files.load_file(tx, store.id, path)
            if (file.version if file is not None else None) != change.after or (file is None and taken is not None):
                raise NotUndoable("A file changed since the dream. Nothing was undone.")
            if change.before is not None:  # it was read before this transaction, and may be forgotten by now
                _former_text(tx, store, change.before)
        for change in record.changes:
            file = files.find_file(tx, store.id, change.file)
            if change.before is None and file is not None:
                self._memories.remove(tx, actor, store, file, rules.policy)
        for name, (path, clean) in former.items():
            file = files.find_file(tx, store.id, name)
            if file is None:
                _check_place(tx, store, path)
            self._memories.write(tx, actor, store, file, name, path, clean, rules.policy)


def _check_place(tx: ReadTx, store: StoreRecord, path: str) -> None:
    """Raise NotUndoable when a file of a later day is above or below a path."""
    try:
        check_free(tx, store, path)
    except PathConflict:
        raise NotUndoable("A file changed since the dream. Nothing was undone.") from None


def _check_unchanged(tx: ReadTx, record: DreamRecord, store: StoreRecord) -> None:
    """Raise NotUndoable unless the output store is as the dream left it."""
    wanted = dict(record.cloned)
    for change in record.changes:
        if change.after is None:
            wanted.pop(change.file, None)
        else:
            wanted[change.file] = change.after
    if {memory.file.id: memory.file.version for memory in all_files(tx, store, "/")} != wanted:
        raise NotUndoable("The output changed since the dream. Nothing was undone.")


def _change_document(tx: ReadTx, store: StoreRecord, change: FileChange) -> dict[str, Any]:
    rows = [files.load_version(tx, store.id, name) if name else None for name in (change.before, change.after)]
    before, after = (_text(tx, row) if row is not None else None for row in rows)
    old, new = (before or "").split("\n"), (after or "").split("\n")
    redacted = any(row is not None and row.redacted_at is not None for row in rows)
    return {
        "path": next((row.path for row in rows if row is not None and row.path), "" if redacted else change.path),
        "operation": change.operation,
        "version_before": VERSION + change.before if change.before else None,
        "version_after": VERSION + change.after if change.after else None,
        "before": before,
        "after": after,
        "removed": [line for line in old if line.strip() and line not in new],
        "added": [line for line in new if line.strip() and line not in old],
        "made_from": list(rows[1].made_from) if rows[1] is not None else [],
    }


def _former_text(tx: ReadTx, store: StoreRecord, version: str) -> tuple[str, str]:
    """Path and text of a version. Raises NotUndoable when they are destroyed."""
    row = files.load_version(tx, store.id, version)
    text = _text(tx, row) if row is not None else None
    if row is None or row.path is None or text is None:
        raise NotUndoable("A former text of this dream is destroyed.")
    return row.path, text


def _text(tx: ReadTx, row: FileVersion) -> str | None:
    if not row.text:
        return row.blank
    entry = tx.get(row.id, where=ANYTHING)
    return entry.content if entry is not None and entry.content else None
