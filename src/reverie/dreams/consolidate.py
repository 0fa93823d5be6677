"""Consolidation: merge duplicates, supersede outdated statements, strengthen corroborated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.entry import COMMITMENT_KIND, FILE_KIND, Entry, EntryState, Link, Scope, is_for_members
from reverie.core.errors import Busy, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import Filter, each
from reverie.core.retry import Moved, retry
from reverie.core.run import mark
from reverie.distil.consolidate import Merge, reconcile
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.plan import DREAM_KIND, to_sources
from reverie.memory.insertion import entry_hash
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.rewrite import rewrite
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

_TRIES = 5
_PAGE = 1000
LEASE_MS = 5 * 60_000
_UNTOUCHED = (DREAM_KIND, FILE_KIND, COMMITMENT_KIND)
"""Kinds of entries that are merged with no other: a commitment of the same words has a time of its own."""
CORROBORATED = "corroborated"
"""The attribute that counts how often a standing entry was stated."""
_MOST_TIMES = 2**53 - 1
"""The largest integer that canonical JSON can hold."""


class Consolidated(Struct, frozen=True):
    """The result of a pass. A second pass over an unchanged memory changes nothing."""

    ref: str
    input_count: int
    output_count: int
    merged: Sequence[str]
    """Ids of the entries that were superseded."""
    duplicates: int
    outdated: int
    seq: int | None
    """Log position of the event; None if there is none."""


class Consolidator:
    """Passes over one memory. No budget, no model, no new text: a pass only decides which entries remain."""

    def __init__(self, parts: Services, rules: RuleBook, after: Callable[[Actor, str], object]) -> None:
        """`after`: called with the actor and the memory after every pass, whether or not it changed something."""
        self._parts = parts
        self._rules = rules
        self._after = after
        self._distiller = ExtractiveDistiller()

    def run(
        self,
        actor: Actor,
        ref: str,
        *,
        trigger: str = "on-demand",
        as_of: int | None = None,
        check: Callable[[ReadTx], None] | None = None,
    ) -> Consolidated:
        """Reconcile the standing entries of a ref in one transaction. Superseded entries leave and keep a link.

        A pass that is a run appends its event even if nothing changed. `as_of`: only entries born at or before this log
        position. `check` is called first in the transaction and may cancel the pass by raising. Raises Busy.
        """
        actor.require(Right.DREAM)
        self._rules.check_ref(actor.tenant, ref)
        if self._parts.read_only:
            raise ReadOnly()
        holder, lease, scope = self._parts.ids.new(), f"dream/{ref}", Scope(actor.tenant, ref)
        until = self._parts.clock.now() + LEASE_MS
        if not self._parts.store.write(scope, lambda tx: tx.claim(lease, holder, until=until)):
            raise Busy("This memory is being dreamt or consolidated right now.")
        try:
            done = retry(lambda _: self._attempt(actor, scope, as_of, trigger, check), busy=_too_fast, tries=_TRIES)
        finally:
            self._parts.store.write(scope, lambda tx: tx.release(lease, holder))
        self._after(actor, ref)
        return done

    def _attempt(
        self, actor: Actor, scope: Scope, as_of: int | None, trigger: str, check: Callable[[ReadTx], None] | None
    ) -> Consolidated:
        entries = self._parts.store.read(scope, lambda tx: _standing(tx, as_of))
        merges = reconcile(to_sources(entries), self._distiller)
        return self._commit(actor, scope.ref or "", entries, merges, trigger, check)

    def _commit(
        self,
        actor: Actor,
        ref: str,
        entries: Sequence[Entry],
        merges: Sequence[Merge],
        trigger: str,
        check: Callable[[ReadTx], None] | None,
    ) -> Consolidated:
        by_id = {entry.id: entry for entry in entries}
        merged = sorted(entry_id for merge in merges for entry_id in merge.merged)
        counts = {why: sum(len(m.merged) for m in merges if m.why == why) for why in ("duplicate", "outdated")}

        def body(tx: WriteTx, rules: Rules) -> Consolidated:
            if check is not None:
                check(tx)
            for entry_id in {*merged, *(merge.kept for merge in merges)}:
                current = tx.get(entry_id)
                if current is None or current.version != by_id[entry_id].version:
                    raise Moved
            seq = None
            if merged or actor.run:
                data: dict[str, Any] = {
                    "ref": ref,
                    "input_count": len(entries),
                    "output_count": len(entries) - len(merged),
                    "merged_ids": merged[:100],
                    "trigger": trigger,
                }
                data |= mark(tx, actor)
                event = NewEvent("agent.memory.consolidated", "CONSOLIDATE", actor.id, data=data)
                seq = tx.append(event)
                known = self._rules.known(actor.tenant, actor.run, rules)
                for merge in merges:
                    _apply(tx, actor, merge, by_id, seq)
                    # an entry that represents others is checked like a fresh write
                    rewrite(tx, self._parts, actor, merge.kept, known, operation="CONSOLIDATE")
            return Consolidated(
                ref=ref,
                input_count=len(entries),
                output_count=len(entries) - len(merged),
                merged=merged,
                duplicates=counts["duplicate"],
                outdated=counts["outdated"],
                seq=seq,
            )

        return self._rules.guard(actor.tenant, lambda rules: lambda tx: body(tx, rules), Scope(actor.tenant, ref))


def _apply(tx: WriteTx, actor: Actor, merge: Merge, by_id: dict[str, Entry], seq: int) -> None:
    said = 0
    for entry_id in merge.merged:
        entry = by_id[entry_id]
        said += _times(entry)
        tx.change(entry_id, seq=seq, expected=entry.version, state=EntryState.SUPERSEDED)
        tx.link(Link(merge.kept, entry_id, "supersedes", merge.why))
    if merge.why == "duplicate":
        kept = tx.get(merge.kept)
        if kept is not None:
            times = min(said + _times(kept), _MOST_TIMES)
            attributes = {**kept.attributes, CORROBORATED: times}
            after = tx.change(merge.kept, seq=seq, attributes=attributes)
            # the attributes are part of what the log vouches for
            data = {"ref": kept.ref, "hash": entry_hash(tx.log_key(), after), "times": times}
            tx.append(NewEvent("memory.corroborated", "CONSOLIDATE", actor.id, entry_id=kept.id, data=data), tick=False)


def _times(entry: Entry) -> int:
    """The count of an entry: 1 unless a pass raised it. Callers may store any JSON under its name."""
    times = entry.attributes.get(CORROBORATED)
    return times if type(times) is int and 0 < times <= _MOST_TIMES else 1


def _too_fast() -> Busy:
    return Busy("This memory changes faster than it can be consolidated. Try again later.")


def _standing(tx: ReadTx, as_of: int | None) -> list[Entry]:
    free = each(lambda cursor: tx.scan(Filter(pinned=False), limit=_PAGE, cursor=cursor, oldest_first=True))
    found = [entry for entry in free if entry.kind not in _UNTOUCHED and not entry.held and not is_for_members(entry)]
    return found if as_of is None else [entry for entry in found if entry.born_seq <= as_of]
