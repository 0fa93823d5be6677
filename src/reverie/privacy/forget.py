"""Forget everything about a subject: in every memory of the tenant, and in everything made from it.

Entries readable or cold, words, vectors, archives and every dream made from them go in one transaction; dreams are
made again from what remains. The plan is made outside the transaction, because distilling is slow. Inside it everything
the plan was made from is compared with what is there now; if anything changed, the forget plans again. A certificate
stays in the log: counts and keyed hashes, no text. A ledger outside the database remembers that it happened, so that a
restore from an older backup forgets again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from operator import attrgetter

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, Scope, check_namespace
from reverie.core.errors import Held, Invalid, ReadOnly
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.ports import ForgetLine
from reverie.core.retry import Moved, retry
from reverie.core.subject import fold, named_subjects, subject_hash
from reverie.dreams.archive import Archives
from reverie.dreams.engine import DreamEngine
from reverie.dreams.redream import Redone, Redream, RedreamOutcome
from reverie.dreams.report import redone, save_report
from reverie.memory.entries import Entries
from reverie.memory.lifecycle import purge
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.searches import RecordedSearches
from reverie.memory.texts import ClearedText, TextKeeper
from reverie.privacy.certificate import CERTIFIED, Forgotten, certificate, count, prove
from reverie.privacy.mentions import Mention, phrase
from reverie.privacy.reach import Reach, Target, all_entries, find, mentioning
from reverie.search.analysis import terms
from reverie.search.lexicon import weight
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx, each_event
from reverie.window.admin import drop_window
from reverie.window.transcript import SCOPE_ATTRIBUTE

__all__ = ["UNDER_WAY_MS", "Forget", "Forgotten"]

_TRIES = 8
"""Plans made outside the transaction before one is made inside it, where nothing can change any more."""
UNDER_WAY_MS = 60_000
"""A forget without a certificate is under way for so long; after that it was cut off."""


class Forget:
    """Erasure by subject, through lineage."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        entries: Entries,
        archives: Archives,
        dreams: DreamEngine,
        searches: RecordedSearches,
        *keepers: TextKeeper,
    ) -> None:
        """`keepers`: the texts of protocols that are no entries."""
        self._parts = parts
        self._rules = rules
        self._archives = archives
        self._searches = searches
        self._redoing = Redream(parts, entries, dreams.composer)
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        """Forgets of one tenant in this process go one after another: each makes the same dreams again."""
        self._certified: dict[str, int] = {}
        """Number of ledger lines compared with the tenant's certificates, by tenant."""
        self._keepers = keepers

    def forget(
        self,
        actor: Actor,
        subject: str,
        *,
        ref: str | None = None,
        preview: bool = False,
        mentions: bool = False,
        before: int | None = None,
    ) -> Forgotten:
        """Destroy every entry about `subject` (its field, or the tag `subject:<subject>`) and all that came of it.

        Case, surrounding space, invisible characters and Unicode form do not count. `mentions`: also every entry that
        mentions the words. `before`: only entries made at or before that instant. `preview` counts and changes nothing.

        One transaction, never across tenants: all of it, or none; where there is a certificate, nothing is left. Raises
        Held while a hold protects any of it.
        """
        actor.require(Right.READ if preview else Right.WRITE)
        if not isinstance(subject, str) or not fold(subject) or len(subject) > 256:
            raise Invalid("Name a subject of 1 to 256 characters.", pointer="/subject")
        check_namespace(ref)
        words = phrase(subject) if mentions else None

        def target(tx: ReadTx) -> Target:
            return Target(subject_hash(tx.log_key(), subject), ref, before, words, fold(subject))

        asked = self._parts.store.read(Scope(actor.tenant), target)
        done = self._preview(actor, asked) if preview else self._forget(actor, asked)
        if mentions or done.forgotten or done.derived:
            return done
        asked = replace(asked, mention=phrase(subject))

        def body(tx: ReadTx) -> tuple[int, int]:
            return sum(1 for _ in mentioning(tx, asked)), len(self._texts(tx, asked))

        said, texts = self._parts.store.read(Scope(actor.tenant), body)
        return msgspec.structs.replace(done, mentioned=said, texts=texts)

    def reached(
        self, actor: Actor, subject: str, *, ref: str | None = None, mentions: bool = False, limit: int = 100
    ) -> list[tuple[Entry, str]]:
        """The first entries that a forget with the same arguments would destroy, each with the way it was reached."""
        actor.require(Right.READ)
        check_namespace(ref)
        words = phrase(subject) if mentions else None

        def body(tx: ReadTx) -> list[tuple[Entry, str]]:
            reach = find(tx, Target(subject_hash(tx.log_key(), subject), ref, None, words))
            return [(entry, reach.ways.get((entry.ref, entry.id), "lineage")) for entry in reach.alive[:limit]]

        return self._parts.store.read(Scope(actor.tenant), body)

    def _preview(self, actor: Actor, target: Target) -> Forgotten:
        def body(tx: ReadTx) -> tuple[Reach, int]:
            return find(tx, target), len(self._texts(tx, target))

        reach, texts = self._parts.store.read(Scope(actor.tenant), body)
        outcomes = self._outcomes(actor, reach, self._rules.current(actor.tenant))
        return msgspec.structs.replace(count(reach, outcomes, preview=True), texts=texts)

    def _texts(self, tx: ReadTx, target: Target) -> list[ClearedText]:
        """Texts outside of entries that mention the words. They belong to no memory."""
        words = target.mention
        if words is None or target.ref is not None:
            return []
        found = (text for keeper in self._keepers for text in keeper.mentions(tx, words.occurs_in))
        return [text for text in found if target.before is None or text.document.updated_at <= target.before]

    def _outcomes(self, actor: Actor, reach: Reach, rules: Rules) -> list[RedreamOutcome]:
        return [self._redoing.outcome(actor, item, rules) for item in reach.derived]

    def _forget(self, actor: Actor, target: Target) -> Forgotten:
        if self._parts.read_only:
            raise ReadOnly()
        scope = Scope(actor.tenant)
        with self._lock:
            turn = self._turns.setdefault(actor.tenant, threading.Lock())
        with turn:
            return retry(lambda attempt: self._attempt(actor, scope, target, attempt), tries=_TRIES + 1)

    def _attempt(self, actor: Actor, scope: Scope, target: Target, attempt: int) -> Forgotten:
        if attempt == _TRIES:  # other writers are always faster: plan inside the transaction, where they wait

            def inside(rules: Rules) -> Callable[[WriteTx], Forgotten]:
                return lambda tx: self._plan(actor, target, find(tx, target), rules, tx.log_key())(tx)

            return self._rules.guard(actor.tenant, inside, scope)

        def look(tx: ReadTx) -> tuple[Reach, bool, bytes]:
            return find(tx, target), bool(self._texts(tx, target)), tx.log_key()

        reach, texts, key = self._parts.store.read(scope, look)
        if reach.empty and not texts:
            self._forget_searches(actor, target, key)
            return count(reach, (), preview=False)
        return self._rules.guard(actor.tenant, lambda rules: self._plan(actor, target, reach, rules, key), scope)

    def _plan(
        self, actor: Actor, target: Target, reach: Reach, rules: Rules, key: bytes
    ) -> Callable[[WriteTx], Forgotten]:
        """The slow part of a forget, and the transaction that carries it out if nothing has changed by then."""
        outcomes = self._outcomes(actor, reach, rules)
        counts = count(reach, outcomes, preview=False, outside=self._parts.store.outside)
        if counts.held:
            raise Held(
                f"{counts.held} entries about this subject are on hold. Nothing was erased.",
                details={"held": counts.held, "found": counts.forgotten},
            )
        prepared = [self._redoing.prepare(actor, outcome, rules, key) for outcome in outcomes]
        told: dict[str, set[str]] = {}
        for entry in reach.entries:
            told.setdefault(entry.ref, set()).update(_telling(entry.content))

        def repeats(ref: str, question: str) -> bool:
            return (ref in told and not told[ref].isdisjoint(_telling(question))) or target.named_in(question, key)

        def body(tx: WriteTx) -> Forgotten:
            if tx.head().seq != reach.position and find(tx, target, reach).state != reach.state:
                raise Moved
            self._destroy(tx, actor, target, reach)
            for item in prepared:
                with tx.within(item.derived.entry.ref):
                    self._redoing.apply(tx, actor, item)
            self._reindex(tx, prepared)
            for keeper in self._keepers:
                keeper.release(tx, actor, reach.alive)
            done = msgspec.structs.replace(counts, texts=self._clear(tx, actor, target))
            with tx.within(target.ref):
                gone = {entry.id for entry in (*reach.alive, *reach.tombstones)}
                self._searches.forget(tx, repeats, gone)
            seq = self._certify(tx, actor, target, done)
            for stone in reach.tombstones:
                with tx.within(stone.ref):
                    tx.purge(stone.id, seq=seq, subject=target.subject)
            prove(tx, target, reach, len(self._texts(tx, target)))
            if self._parts.ledger is not None:
                # before the commit: a crash in between forgets once more after a restore, never once less
                words = (target.mention.hash(key), target.mention.size) if target.mention else ()
                at = tx.now if target.before is None else min(tx.now, target.before)  # what came later stays
                self._parts.ledger.add(ForgetLine(actor.tenant, target.subject, target.ref, at, True, *words))
            return msgspec.structs.replace(done, certificate=seq)

        return body

    def _clear(self, tx: WriteTx, actor: Actor, target: Target) -> int:
        """Take the words out of what protocols keep outside of entries; return the number of such texts."""
        found = self._texts(tx, target)
        for text in found:
            space, key = text.document.space, text.document.key
            seq = tx.append(NewEvent(text.event, "FORGET", actor.id, data=text.data))
            if text.body is None:
                tx.drop(space, key, seq=seq, destroy=True)
            else:
                tx.save(space, key, text.body, seq=seq, meta=text.document.meta, destroy=True)
            if text.more is not None:
                text.more(tx, actor)
        return len(found)

    def _forget_searches(self, actor: Actor, target: Target, key: bytes) -> None:
        """No entry is about the subject; a recorded question may be, also one that waits in another process.

        That process drops it when it sees the event. There is no certificate, since nothing was destroyed.
        """
        scope = Scope(actor.tenant, target.ref)
        self._searches.flush(actor.tenant, target.ref)
        data = {"subject": target.subject, "scope": keyed_hash(key, target.ref) if target.ref else None}

        def body(tx: WriteTx) -> None:
            tx.append(NewEvent("searches.forgotten", "FORGET", actor.id, data=data))
            self._searches.forget(tx, lambda _, question: target.named_in(question, key))

        self._parts.store.write(scope, body)

    def _certify(self, tx: WriteTx, actor: Actor, target: Target, counts: Forgotten) -> int:
        data = certificate(counts, target, tx.log_key())
        seq = tx.append(NewEvent("memory.forgotten", "FORGET", actor.id, data=data))
        name = certified_name(target.subject, target.ref, tx.log_key())
        at = tx.now if target.before is None else max(min(tx.now, target.before), _certified_at(tx, name))
        tx.save(CERTIFIED, name, orjson.dumps({"at": at, "seq": seq}), seq=seq, keep=1)
        return seq

    def _destroy(self, tx: WriteTx, actor: Actor, target: Target, reach: Reach) -> None:
        """Purge the entries and those made from them, mark the reports and drop the archives."""
        for ref, entries in groupby(reach.alive, key=attrgetter("ref")):
            with tx.within(ref):
                purge(tx, actor, *entries, operation="FORGET", subject=target.subject)
        for item in reach.derived:
            if item.report is not None:
                seq = tx.head().seq if reach.alive else tx.append(_event(actor, item.report.id))
                save_report(tx, redone(item.report), seq=seq)
        for checksum in sorted({item.archive for item in reach.derived if item.archive}):
            self._archives.drop(tx, actor, checksum)
        scopes = {str(e.attributes[SCOPE_ATTRIBUTE]) for e in reach.alive if SCOPE_ATTRIBUTE in e.attributes}
        for key in sorted(scopes):
            drop_window(tx, actor, key)  # a conversation about the subject goes with its provider window

    def _reindex(self, tx: WriteTx, prepared: Sequence[Redone]) -> None:
        """Rewrite the index without the destroyed entries. Its earlier versions, which may quote them, go too."""
        gone = [item.derived.entry.id for item in prepared if item.derived.report is not None]
        if gone:
            add = [item.index for item in prepared if item.index is not None]
            self._archives.reindex(tx, "", add=add, remove=gone, keep=1)

    def replay(self, actor: Actor) -> int:
        """Repeat the forgets of the ledger, after a restore from an older backup. Returns their number."""
        actor.require(Right.WRITE)
        return self.again(actor, self._parts.ledger.of(actor.tenant)) if self._parts.ledger else 0

    def again(self, actor: Actor, lines: Sequence[ForgetLine]) -> int:
        """Repeat the forgets of these lines. Returns the number of those that found something."""
        actor.require(Right.WRITE)
        if not lines:
            return 0
        spelled: dict[str, str] = {}
        if not all(line.folded for line in lines):
            spelled = self._parts.store.read(Scope(actor.tenant), _spelled)

        def log_key(tx: ReadTx) -> bytes:
            return tx.log_key()

        key = self._parts.store.read(Scope(actor.tenant), log_key)
        done = 0
        for line in lines:
            words = Mention(hashed=line.mention, size=line.tokens, key=key) if line.mention else None
            subject = line.subject if line.folded else spelled.get(line.subject, line.subject)
            try:
                done += self._forget(actor, Target(subject, line.ref, line.at, words)).certificate is not None
            except ValueError:  # a line that holds no hash
                continue
        return done

    def cut_off(self, actor: Actor) -> list[ForgetLine]:
        """Forgets that this machine's ledger names and the log has no certificate of, each named once, earliest first.

        Either the process died between the two, or the database was restored from an older backup.
        """
        if self._parts.ledger is None or self._parts.read_only:
            return []
        compared = self._certified.get(actor.tenant, 0)
        before = self._parts.clock.now() - UNDER_WAY_MS
        lines = self._parts.ledger.of(actor.tenant)[compared:]
        ripe = list(takewhile(lambda line: line.at <= before, lines))
        if not ripe:
            return []
        missing = self._parts.store.read(Scope(actor.tenant), lambda tx: _uncertified(tx, ripe))
        self._certified[actor.tenant] = compared + len(ripe)
        missing.sort(key=attrgetter("at"))
        last = {(line.subject, line.ref, line.mention): line for line in missing}
        return sorted(last.values(), key=attrgetter("at"))  # the certificate of one covers those before it


def _telling(text: str) -> set[str]:
    """The most informative words of a text: names, numbers, rare words."""
    return {word for word in terms(text) if weight(word) == 1}


def _event(actor: Actor, dream_id: str) -> NewEvent:
    return NewEvent("dream.redone", "FORGET", actor.id, data={"dream": dream_id, "sources": 0})


def certified_name(subject: str, ref: str | None, log_key: bytes) -> str:
    """The key of the document that says when a subject was last forgotten in a ref, or everywhere."""
    return f"{subject}/{keyed_hash(log_key, ref)}" if ref else subject


def _certified_at(tx: ReadTx, name: str) -> int:
    """The instant up to which a certificate says that a subject was forgotten; -1 without one."""
    document = tx.load(CERTIFIED, name)
    return int(orjson.loads(document.body)["at"]) if document is not None and document.body else -1


def _uncertified(tx: ReadTx, lines: Sequence[ForgetLine]) -> list[ForgetLine]:
    """The lines without a certificate: by the document of each or, for lines of older releases, by the log."""
    missing = []
    for line in lines:
        if _certified_at(tx, certified_name(line.subject, line.ref, tx.log_key())) < line.at:
            missing.append(line)
    if all(line.folded for line in missing):
        return missing
    last = {event.data.get("subject"): event.at for event in each_event(tx, types=("memory.forgotten",))}
    return [line for line in missing if line.folded or last.get(line.subject, -1) < line.at]


def _spelled(tx: ReadTx) -> dict[str, str]:
    """Today's hash of every subject of the tenant's entries, by the hash that older releases used."""
    key = tx.log_key()
    named = {name for entry in all_entries(tx, None) for name in named_subjects(entry.subject, entry.tags)}
    return {keyed_hash(key, name): subject_hash(key, name) for name in named}
