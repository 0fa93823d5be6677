"""Encryption with AES-256-GCM under a key in a file next to the database, never inside it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.core.errors import ReverieError, StoreUnavailable
from reverie.core.files import make_folder, narrow, open_new

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
_KEY = 32


class FileCipher:
    """Seals under the key in a file, which only its owner may read."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._aead: AESGCM | None = None

    def _key(self) -> AESGCM:
        if self._aead is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            try:
                self._aead = AESGCM(_read_or_make(self._path))
            except OSError as fault:
                raise StoreUnavailable(f"Cannot read or make the key file {self._path}.") from fault
        return self._aead

    def seal(self, clear: bytes, *, context: bytes) -> bytes:
        """Encrypt and authenticate `clear`, bound to `context`."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._key().encrypt(nonce, clear, context)

    def open(self, sealed: bytes, *, context: bytes) -> bytes:
        """The clear bytes; raises when `sealed` was altered or the key is another."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._key().decrypt(sealed[:_NONCE], sealed[_NONCE:], context)
        except InvalidTag:
            raise ReverieError(
                f"A registered secret cannot be opened: {self._path} is not the key it was sealed with. "
                "Put the right key file back, or remove the secret and register it again.",
                code="wrong_key_file",
            ) from None


def _read_or_make(path: Path) -> bytes:
    if not path.exists():
        make_folder(path.parent)
        fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = open_new(fresh)
        try:
            os.write(descriptor, secrets.token_bytes(_KEY))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(fresh, path)  # the first process wins; the others read what it made
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    narrow(path)
    key = path.read_bytes()
    if len(key) != _KEY:
        raise StoreUnavailable(f"The key file {path} has {len(key)} bytes, not {_KEY}. Put the right one back.")
    return key
