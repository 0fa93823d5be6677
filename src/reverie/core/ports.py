"""Ports of the core, named by role. Adapters live in `providers/` and `store/`; `app` wires them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """Source of the current time."""

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""


class Ids(Protocol):
    """Makes ids that are unique and sort in order of creation."""

    def new(self) -> str:
        """A new id."""


class TokenCounter(Protocol):
    """Counts tokens exactly as the named tokenizer does."""

    @property
    def name(self) -> str:
        """For example `o200k_base`."""

    def count(self, text: str) -> int:
        """Tokens in `text`."""


class Embedder(Protocol):
    """Turns texts into int8 vectors of Euclidean length 127 (or zero), the same on every machine.

    Two attributes are optional: `weight`, how much its cosines count in a search (1 for the built-in table), and
    `multilingual`, whether it knows other languages as well as English.
    """

    @property
    def name(self) -> str:
        """Model and version; stored with every vector."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One int8 vector per text, as bytes."""


class Cipher(Protocol):
    """Encrypts data that must never be stored in clear."""

    def seal(self, clear: bytes, *, context: bytes) -> bytes:
        """Encrypt and authenticate `clear`, bound to `context`."""

    def open(self, sealed: bytes, *, context: bytes) -> bytes:
        """The clear bytes; raises when `sealed` was altered or belongs to another context."""


class ForgetLine(Struct, frozen=True, omit_defaults=True):
    """One line of the forget ledger: that a subject was forgotten, without its name."""

    tenant: str
    subject: str
    """The subject's hash under the tenant's log key."""
    ref: str | None
    at: int
    folded: bool = False
    """Whether the hash is that of the folded subject, by which it can be looked up. Older lines hash it as spelled."""
    mention: str | None = None
    """The hash of the words, when entries that mention them were forgotten too."""
    tokens: int = 0
    """Number of those words."""


class ForgetLedger(Protocol):
    """Records forgets outside the database, so that they can be repeated after an older backup is restored."""

    def add(self, line: ForgetLine) -> None:
        """Durable when it returns."""

    def all(self) -> Iterable[ForgetLine]:
        """Every forget, oldest first."""

    def of(self, tenant: str) -> Sequence[ForgetLine]:
        """The forgets of one tenant, oldest first."""
