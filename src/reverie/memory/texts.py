"""Texts that protocols keep outside of entries: files, tasks, descriptions. A forget by mention reaches them too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from reverie.core.actor import Actor
from reverie.core.entry import Document, Entry
from reverie.store.contract import ReadTx, WriteTx

FORGOTTEN = "[forgotten]"
"""Stands for a text that was forgotten where there has to be one."""
Names = Callable[[str], bool]
"""Whether a text mentions the words of a forget."""


class ClearedText(Struct, frozen=True):
    """A document that mentions the words, and what stays of it."""

    document: Document
    body: bytes | None
    """The document's next version. None: the document is dropped."""
    event: str = "document.saved"
    data: Mapping[str, Any] = field(default_factory=dict)
    more: Callable[[WriteTx, Actor], None] | None = None
    """Changes that go with it, in the transaction of the forget."""


class TextKeeper(Protocol):
    """The texts of a protocol that are no entries."""

    def mentions(self, tx: ReadTx, names: Names) -> Iterable[ClearedText]:
        """Documents with text that mentions the words, each without it."""

    def release(self, tx: WriteTx, actor: Actor, entries: Sequence[Entry]) -> None:
        """Drop what is known about entries that a forget destroys, in its transaction."""


def without(value: Any, names: Names) -> Any:
    """The value with `FORGOTTEN` in place of every string that mentions the words. Names of members stay."""
    if isinstance(value, str):
        return FORGOTTEN if names(value) else value
    if isinstance(value, Mapping):
        return {key: without(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, names) for item in value]
    return value
