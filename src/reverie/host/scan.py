"""scan: look again at what is stored when the rules know more than they did.

A secret that older rules missed is replaced in place, its text destroyed, with an event per entry. Findings are
counted by kind and never shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.event import NewEvent
from reverie.core.query import Page
from reverie.host.parts import Parts
from reverie.host.read import ANYTHING
from reverie.host.rules import RuleBook, Rules
from reverie.host.write import entry_hash, searchable_text
from reverie.recall.lexical import terms
from reverie.redact import KnownSecrets, Redactor
from reverie.store.contract import ReadTx, WriteTx

_PAGE = 500
Progress = Callable[[int, int], None]


class ScanReport(Struct, frozen=True):
    """What a scan saw."""

    entries: int
    affected: int
    """Entries in which something was found (and, unless `dry_run`, replaced)."""
    findings: Mapping[str, int]
    rules: str
    """The fingerprint of the rules it was done with."""
    dry_run: bool


class Scanning:
    """The retro-scan."""

    def __init__(self, parts: Parts, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def scan(self, actor: Actor, *, dry_run: bool = False, progress: Progress | None = None) -> ScanReport:
        """Re-scan every stored entry of the tenant, readable or cold, with today's rules and secrets."""
        actor.require(Right.READ if dry_run else Right.ADMIN)
        rules = self._rules.current(actor.tenant)
        where = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED})
        total, affected, findings = 0, 0, Counter[str]()
        wanted = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head().entries)
        cursor: str | None = None
        while True:

            def page(tx: ReadTx, cursor: str | None = cursor) -> Page[Entry]:
                return tx.scan(where, limit=_PAGE, cursor=cursor)

            found = self._parts.store.read(Scope(actor.tenant), page)
            for entry in found.items:
                total += 1
                _, kinds = cleaned(entry, self._parts.redactor, rules.known)
                if kinds:
                    affected += 1
                    findings.update(kinds)
                    if not dry_run:
                        self._rewrite(actor, entry)
            if progress:
                progress(total, max(wanted, total))
            cursor = found.cursor
            if cursor is None:
                return ScanReport(total, affected, dict(findings), self._parts.redactor.version, dry_run)

    def _rewrite(self, actor: Actor, entry: Entry) -> None:
        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            return lambda tx: rewrite(tx, self._parts, actor, entry.id, rules.known, operation="SCAN")

        self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant, entry.ref))


def rewrite(tx: WriteTx, parts: Parts, actor: Actor, entry_id: str, known: KnownSecrets, *, operation: str) -> None:
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
