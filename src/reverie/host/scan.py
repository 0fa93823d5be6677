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
                _, kinds = self._clean(entry, rules)
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
        embedder = self._parts.embedder

        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            def body(tx: WriteTx) -> None:
                current = tx.get(entry.id, where=ANYTHING)
                if current is None or current.state is EntryState.ERASED:
                    return
                after, kinds = self._clean(current, rules)
                if not kinds:
                    return
                data = {"ref": current.ref, "redacted": kinds, "hash": entry_hash(tx.log_key(), after)}
                seq = tx.append(NewEvent("memory.redacted", "SCAN", actor.id, entry_id=current.id, data=data))
                text = searchable_text(after)
                vector = (embedder.name, embedder.embed([text])[0]) if embedder else None
                tx.rewrite(after, seq=seq, terms=terms(text), vector=vector)

            return body

        self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant, entry.ref))

    def _clean(self, entry: Entry, rules: Rules) -> tuple[Entry, dict[str, int]]:
        """The entry as it would be stored today, and what today's rules found in it."""
        redactor, kinds = self._parts.redactor, Counter[str]()

        def clean(text: str) -> str:
            redaction = redactor.text(text, rules.known)
            if redaction.text != text:
                kinds.update(redaction.findings or {"form-leak": 1})
            return redaction.text

        attributes = entry.attributes
        if attributes:
            cleaned, found = redactor.value(dict(attributes), rules.known)
            if cleaned != attributes:
                kinds.update(found)
                attributes = cast("dict[str, Any]", cleaned)
        after = msgspec.structs.replace(
            entry,
            content=clean(entry.content),
            tags=tuple(clean(tag) for tag in entry.tags),
            subject=clean(entry.subject) if entry.subject else entry.subject,
            attributes=attributes,
        )
        return after, dict(kinds)
