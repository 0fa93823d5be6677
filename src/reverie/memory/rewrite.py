"""A stored entry, redacted again with the rules of today."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import msgspec

from reverie.core.actor import Actor
from reverie.core.entry import CREDENTIAL_PREFIXES, FILE_KIND, Entry, EntryState
from reverie.core.event import NewEvent
from reverie.memory.files import note_rewrite
from reverie.memory.indexing import terms_and_vectors
from reverie.memory.insertion import entry_hash
from reverie.memory.read import ANYTHING
from reverie.redact import KnownSecrets, Redactor
from reverie.services import Services
from reverie.store.contract import WriteTx


def rewrite(tx: WriteTx, parts: Services, actor: Actor, entry_id: str, known: KnownSecrets, *, operation: str) -> None:
    """Replace what today's rules find in a stored entry, with its event; nothing happens when they find nothing."""
    current = tx.get(entry_id, where=ANYTHING)
    if current is None or current.state is EntryState.ERASED:
        return
    after, kinds = clean(current, parts.redactor, known)
    if not kinds:
        return
    data = {"ref": current.ref, "redacted": kinds, "hash": entry_hash(tx.log_key(), after)}
    seq = tx.append(NewEvent("memory.redacted", operation, actor.id, entry_id=current.id, data=data))
    words, vector = terms_and_vectors([after], parts.embedder)[0]
    tx.rewrite(after, seq=seq, terms=words, vector=vector)
    if after.kind == FILE_KIND:
        note_rewrite(tx, after, seq=seq)


def clean(entry: Entry, redactor: Redactor, known: KnownSecrets) -> tuple[Entry, dict[str, int]]:
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
    source = entry.source
    named = {name: getattr(source, name) for name in ("actor", "role", "session", "run", "node")}
    if source.actor.startswith(CREDENTIAL_PREFIXES):  # the host's name of a key
        del named["actor"]
    after = msgspec.structs.replace(
        entry,
        kind=clean(entry.kind),
        content=clean(entry.content),
        tags=tuple(clean(tag) for tag in entry.tags),
        subject=clean(entry.subject) if entry.subject else entry.subject,
        attributes=attributes,
        source=msgspec.structs.replace(source, **{name: clean(text) for name, text in named.items() if text}),
    )
    return after, dict(kinds)
