"""Cursors for callers: sealed, so that they reveal nothing, and bound to their tenant and their question.

A cursor of the store holds a row number, which counts the rows of every tenant, so it never leaves the host in clear.
"""

from __future__ import annotations

import base64
import binascii
import os
import threading

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.core.actor import Actor
from reverie.core.errors import Invalid, StoreFull
from reverie.services import Services
from reverie.store.contract import ControlTx, Store

_SETTING = "cursor-key"
_LONGEST = 4096
_NONCE = 12


class Cursors:
    """Seals and opens cursors. The key is kept in the store, so every process of a host opens what another sealed."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._cipher: AESGCM | None = None

    def seal(self, actor: Actor, question: bytes, cursor: str) -> str:
        """The cursor as the caller gets it."""
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._key().encrypt(nonce, cursor.encode(), _bound(actor, question))
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, actor: Actor, question: bytes, text: str) -> str:
        """The store's cursor. Raises Invalid when it was altered or belongs to another tenant or question."""
        try:
            if not text.isascii() or len(text) > _LONGEST:
                raise ValueError
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            return self._key().decrypt(sealed[:_NONCE], sealed[_NONCE:], _bound(actor, question)).decode()
        except (ValueError, binascii.Error, InvalidTag):
            raise Invalid(
                "The cursor does not belong to this request. Start again without it.", pointer="/cursor"
            ) from None

    def _key(self) -> AESGCM:
        with self._lock:
            if self._cipher is None:
                store = self._parts.store
                key = store.control(lambda tx: tx.setting(_SETTING))
                if key is None:
                    key = self._new_key(store)
                self._cipher = AESGCM(key)
            return self._cipher

    def _new_key(self, store: Store) -> bytes:
        """A new key. Where it cannot be stored, lists are still read: their cursors then end with this process."""
        if self._parts.read_only:
            return os.urandom(32)
        try:
            return store.control(_make_key, write=True)
        except StoreFull:
            return os.urandom(32)


def _make_key(tx: ControlTx) -> bytes:
    stored = tx.setting(_SETTING)
    if stored is None:
        stored = os.urandom(32)
        tx.set_setting(_SETTING, stored)
    return stored


def _bound(actor: Actor, question: bytes) -> bytes:
    return actor.tenant.encode() + b"\0" + question
