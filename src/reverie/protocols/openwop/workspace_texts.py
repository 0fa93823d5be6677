"""Files of a workspace that mention the words of a forget: they are deleted whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reverie.core.actor import Actor
from reverie.core.entry import Document, Entry
from reverie.core.query import each
from reverie.distil.archive import INDEX_PATH
from reverie.dreams.archive import WORKSPACE
from reverie.memory.texts import ClearedText, Names
from reverie.protocols.openwop.workspace import MAX_VERSIONS
from reverie.store.contract import ReadTx, WriteTx


class WorkspaceTexts:
    """Texts of the tenant's workspace, each with the versions that are kept, also of deleted files."""

    def mentions(self, tx: ReadTx, names: Names) -> Iterator[ClearedText]:
        """Files that mention the words: deleted if the current version does, else without their earlier versions."""
        for document in each(lambda cursor: tx.documents(WORKSPACE, limit=200, cursor=cursor, dropped=True)):
            if document.key == INDEX_PATH:  # made of dreams, and made again when one of them goes
                continue
            now = document.body is not None and names(document.body.decode())
            if now or any(names(text) for text in _earlier(tx, document)):
                data = {"path": document.key, "version": document.version + 1}
                yield ClearedText(document, None if now else document.body, "workspace.updated", data)

    def release(self, tx: WriteTx, actor: Actor, entries: Sequence[Entry]) -> None:
        """Do nothing: files do not refer to entries."""


def _earlier(tx: ReadTx, document: Document) -> Iterator[str]:
    for version in range(max(document.version - MAX_VERSIONS, 0) + 1, document.version):
        found = tx.load(WORKSPACE, document.key, version=version)
        if found is not None and found.body is not None:
            yield found.body.decode()


TEXTS = WorkspaceTexts()
