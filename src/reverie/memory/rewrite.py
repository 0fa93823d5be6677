"""A stored entry, redacted again with the rules of today."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import msgspec

from reverie.core.actor import Actor
from reverie.core.entry import Entry, EntryState
from reverie.core.event import NewEvent
from reverie.memory.entries import entry_hash, searchable_text
from reverie.memory.read import ANYTHING
from reverie.redact import KnownSecrets, Redactor
from reverie.search.analysis import terms
from reverie.services import Services
from reverie.store.contract import WriteTx


def rewrite(tx: WriteTx, parts: Services, actor: Actor, entry_id: str, known: KnownSecrets, *, operation: str) -> None:
    """Replace what today's rules find in a stored entry, with its event; nothing happens when they find nothing."""
    current = tx.get(entry_id, where=ANYTHING)
    if current is None or current.state is EntryState.ERASED:
        return
    after, kinds = cleaned(current, parts.redactor, known)
    if not kinds:
        return
    data = {"ref": current.ref, "redacted": kinds, "hash": entry_hash(tx.log_key(), after)}
    seq = tx.append(NewEvent("memory.redacted", operation, actor.id, entry_id=current.id, data=data))
    text = searchable_text(after)
    vector = (parts.embedder.name, parts.embedder.embed([text])[0]) if parts.embedder else None
    tx.rewrite(after, seq=seq, terms=terms(text), vector=vector)


def cleaned(entry: Entry, redactor: Redactor, known: KnownSecrets) -> tuple[Entry, dict[str, int]]:
    """The entry as it would be stored today, and what today's rules found in it."""
    kinds = Counter[str]()

    def clean(text: str) -> str:
        redaction = redactor.text(text, known)
        if redaction.text != text:
            kinds.update(redaction.findings or {"form-leak": 1})
        return redaction.text

    attributes = entry.attributes
    if attributes:
        made, found = redactor.value(dict(attributes), known)
        if made != attributes:
            kinds.update(found)
            attributes = cast("dict[str, Any]", made)
    after = msgspec.structs.replace(
        entry,
        content=clean(entry.content),
        tags=tuple(clean(tag) for tag in entry.tags),
        subject=clean(entry.subject) if entry.subject else entry.subject,
        attributes=attributes,
    )
    return after, dict(kinds)
