"""The documents of one window, which are transport state: sealed with the host's cipher, so that nothing in them can be
read at rest."""

from __future__ import annotations

from reverie.core.entry import Document, Scope
from reverie.core.errors import ReverieError
from reverie.services import Services
from reverie.store.contract import WriteTx
from reverie.window.items import Item
from reverie.window.record import CorruptWindow, dump, load
from reverie.window.state import WindowState

WINDOW_SPACE = "window"
PAST_SPACE = "window_past"
ATTEMPT_SPACE = "window_attempt"
PASS_SPACE = "window_pass"
SPACES = (WINDOW_SPACE, PAST_SPACE, ATTEMPT_SPACE, PASS_SPACE)
KEPT_GENERATIONS = 4


class SealedWindow:
    """The stored window, and the generations before it."""

    def __init__(self, parts: Services, scope: Scope, *, key: str) -> None:
        self._parts = parts
        self._scope = scope
        self.key = key

    def seal(self, space: str, clear: bytes) -> bytes:
        """Bytes of a document of the window, as stored."""
        return seal(self._parts, self._scope.tenant, space, clear)

    def open(self, document: Document) -> bytes:
        """The clear bytes of a document of the window."""
        return unseal(self._parts, self._scope.tenant, document)

    def save(self, tx: WriteTx, state: WindowState, seq: int, expected: int) -> Document:
        """Store the window. Raises Conflict when the stored one is not at the version expected."""
        meta = {
            "generation": state.generation,
            "epoch": state.epoch,
            "items": len(state.items),
            "position": state.next_position,
            "compactions": sum(item.is_compaction for item in state.items),
            "ref": self._scope.ref,
        }
        body = self.seal(WINDOW_SPACE, dump(state))
        return tx.save(WINDOW_SPACE, self.key, body, seq=seq, expected=expected, meta=meta, keep=2)

    def keep_past(self, tx: WriteTx, document: Document, seq: int) -> None:
        """Keep the generation before a pass or a drop, for undo. Appends between passes are undone one by one."""
        try:
            clear = self.open(document)
        except ReverieError:
            clear = b""
        body = self.seal(PAST_SPACE, clear)
        tx.save(PAST_SPACE, self.key, body, seq=seq, meta=document.meta, keep=KEPT_GENERATIONS)

    def past(self) -> WindowState | None:
        """The previous generation, if it can still be read."""
        document = self._parts.store.read(self._scope, lambda tx: tx.load(PAST_SPACE, self.key))
        if document is None:
            return None
        try:
            return load(self.open(document))
        except (CorruptWindow, ReverieError):
            return None

    def items(self) -> list[Item]:
        """The items of the window as last committed."""
        document = self._parts.store.read(self._scope, lambda tx: tx.load(WINDOW_SPACE, self.key))
        try:
            return load(self.open(document)).items if document is not None else []
        except (CorruptWindow, ReverieError):
            return []


def seal(parts: Services, tenant: str, space: str, clear: bytes) -> bytes:
    """Window bytes as stored: sealed, unless the store lives in memory only and has no key."""
    if parts.cipher is None:
        if parts.store.durable:
            raise ReverieError(
                "Windows can only be kept sealed, and this host has no key. Set REVERIE_KEY_FILE.", code="no_cipher"
            )
        return clear
    return parts.cipher.seal(clear, context=f"{tenant}/{space}".encode())


def unseal(parts: Services, tenant: str, document: Document) -> bytes:
    """The clear bytes of a window document."""
    body = document.body or b""
    if parts.cipher is None:
        return body
    return parts.cipher.open(body, context=f"{tenant}/{document.space}".encode())
