"""Seeding: entries planted below `put`, for test seams alone.

Text is stored as given, except for registered secrets: a conformance suite plants look-alike markers and checks what
becomes of them. Only the seams call this, and they are served only while their switch is on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.entry import MAX_ID_LENGTH, MAX_TAG_LENGTH, Draft, Entry, EntryState, Scope, Source
from reverie.core.errors import Conflict, Invalid
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.memory.indexing import terms_and_vectors
from reverie.memory.insertion import PreparedEntry, entry_hash, insert
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import ANYTHING
from reverie.protocols.openwop.passes import Secrets
from reverie.redact import KnownSecrets
from reverie.services import Services
from reverie.store.contract import WriteTx

MOST = 10_000


class Seeder:
    """Plants entries. Planting an id again replaces its text, unless the entry was destroyed."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def plant(self, actor: Actor, ref: str, drafts: Sequence[Draft], *, secrets: Secrets = ()) -> list[str]:
        """Store drafts in one transaction; returns their ids. Instants may be past, and ids are the caller's."""
        actor.require(Right.WRITE)
        self._rules.check_ref(actor.tenant, ref)
        if not 0 < len(drafts) <= MOST:
            raise Invalid(f"Plant 1 to {MOST} entries.", pointer="/entries")
        own = KnownSecrets(secrets)

        def prepare(rules: Rules) -> Callable[[WriteTx], list[str]]:
            known = rules.known + own
            planted = [self._prepare(actor, ref, draft, known, rules.policy) for draft in drafts]

            def body(tx: WriteTx) -> list[str]:
                for item in planted:
                    before = tx.get(item.entry.id, where=ANYTHING)
                    if before is None:
                        insert(tx, actor, item, operation="SEED")
                    else:
                        _replace(tx, actor, item, before)
                return [item.entry.id for item in planted]

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, ref))

    def _prepare(
        self, actor: Actor, ref: str, draft: Draft, known: KnownSecrets, policy: TenantPolicy
    ) -> PreparedEntry:
        now = self._parts.clock.now()
        entry = Entry(
            ref=ref,
            id=known.replaced(draft.id) if draft.id else self._parts.ids.new(),
            kind=draft.kind,
            content=known.replaced(draft.content),
            tags=tuple(dict.fromkeys(known.replaced(tag) for tag in draft.tags if tag)),
            subject=None,
            attributes={},
            source=Source(actor=actor.id, door=actor.door, trust=min(10, actor.authority)),
            state=EntryState.ACTIVE,
            created_at=now if draft.created_at is None else draft.created_at,
            expires_at=draft.expires_at,
            pinned=False,
        )
        if len(entry.id) > MAX_ID_LENGTH or any(len(tag) > MAX_TAG_LENGTH for tag in entry.tags):
            raise Invalid(f"An id has at most {MAX_ID_LENGTH} characters, a tag {MAX_TAG_LENGTH}.", pointer="/entries")
        if entry.byte_size > policy.max_entry_bytes or len(entry.tags) > policy.max_tags:
            raise Invalid(
                f"An entry has at most {policy.max_entry_bytes} bytes and {policy.max_tags} tags.", pointer="/entries"
            )
        words, vector = terms_and_vectors([entry], self._parts.embedder)[0]
        return PreparedEntry(
            entry=entry, findings={}, terms=words, vector=vector, minted=draft.id is None, size=entry.byte_size
        )


def _replace(tx: WriteTx, actor: Actor, item: PreparedEntry, before: Entry) -> None:
    if before.state is EntryState.ERASED:
        raise Conflict("An entry with that id was destroyed; its id is not used again.", code="id_taken")
    entry = item.entry
    after = msgspec.structs.replace(before, content=entry.content, tags=entry.tags, subject=None, attributes={})
    data = {"ref": entry.ref, "kind": before.kind, "bytes": entry.byte_size, "hash": entry_hash(tx.log_key(), after)}
    seq = tx.append(NewEvent("memory.written", "SEED", actor.id, entry_id=entry.id, data=data))
    tx.change(entry.id, seq=seq, state=EntryState.ACTIVE, archived=False, expires_at=entry.expires_at)
    tx.rewrite(after, seq=seq, terms=item.terms, vector=item.vector)
