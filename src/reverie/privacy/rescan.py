"""Scan: redact stored text again with the present rules.

A secret that older rules missed is replaced in place, its text destroyed, with an event per entry. Findings are
counted by kind and never shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.pause import pause
from reverie.core.query import Page, pages
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import ANYTHING
from reverie.memory.rewrite import clean, rewrite
from reverie.services import Services
from reverie.store.contract import WriteTx

_PAGE = 200
Progress = Callable[[int, int], None]


class ScanReport(Struct, frozen=True):
    """The result of a scan."""

    entries: int
    affected: int
    """Entries in which something was found (and, unless `dry_run`, replaced)."""
    findings: Mapping[str, int]
    rules: str
    """The fingerprint of the rules it was done with."""
    dry_run: bool


class Rescan:
    """The re-scan of stored text."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules

    def scan(self, actor: Actor, *, dry_run: bool = False, progress: Progress | None = None) -> ScanReport:
        """Re-scan every stored entry of the tenant, readable or cold, with today's rules and secrets."""
        actor.require(Right.READ if dry_run else Right.ADMIN)
        rules = self._rules.latest(actor.tenant)
        where = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED})
        total, affected, findings = 0, 0, Counter[str]()
        wanted = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head().entries)

        def read(cursor: str | None) -> Page[Entry]:
            return self._parts.store.read(Scope(actor.tenant), lambda tx: tx.scan(where, limit=_PAGE, cursor=cursor))

        for page in pages(read):
            for entry in page.items:
                pause()
                total += 1
                _, kinds = clean(entry, self._parts.redactor, rules.known)
                if kinds:
                    affected += 1
                    findings.update(kinds)
                    if not dry_run:
                        self._rewrite(actor, entry)
            if progress:
                progress(total, max(wanted, total))
        return ScanReport(total, affected, dict(findings), self._parts.redactor.version, dry_run)

    def _rewrite(self, actor: Actor, entry: Entry) -> None:
        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            return lambda tx: rewrite(tx, self._parts, actor, entry.id, rules.known, operation="SCAN")

        self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, entry.ref))
