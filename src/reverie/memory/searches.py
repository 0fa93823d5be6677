"""Recorded searches: the last questions asked of a memory, for dreams to replay.

A search costs one append in this process. The questions are stored in batches: before a dream of the memory, with the
sweeps of the worker, and when the host closes. One row for each memory holds them and the outcomes of the last replays:
redacted like every write, sealed with the host's cipher, at most as many as the tenant's policy says. A forget drops
the questions that name its subject or found what it destroys; an erase drops those of its memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.dream import Replay
from reverie.core.entry import Scope
from reverie.core.errors import ReverieError
from reverie.core.query import Filter
from reverie.memory.hits import Hit
from reverie.memory.policy import RuleBook, Rules
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

LONGEST = 1000
"""Characters of a question that is recorded. Longer ones are texts, not questions."""
_UNRECORDED = frozenset({"cli", "console", "host"})
"""Doors whose questions are not recorded: people who look around, and the host itself."""
_MEMORIES = 1000
"""Most memories with questions that are not stored yet. Beyond it, the questions of the earliest are dropped."""
_FOUND = 20
"""Entries that are remembered with a question."""
_REPLAYS = 10
"""Most replays kept of a memory."""
_WAITING = 50
"""Most questions to a memory that wait to be stored."""


_DESTROYING = ("memory.forgotten", "memory.purged", "searches.forgotten")
"""Events after which an earlier question may repeat destroyed words."""


class RecordedSearch(Struct, frozen=True):
    """A question, the log position it was answered at last, and the entries it found there."""

    text: str
    seq: int = 0
    found: Sequence[str] = ()


class _Row(Struct, frozen=True):
    """The row of one memory."""

    questions: Sequence[RecordedSearch] = ()
    """Oldest first."""
    replays: Sequence[Replay] = ()
    """Replays of the last dreams, oldest first."""


class RecordedSearches:
    """Records questions and the outcomes of their replays. Without a cipher, or on a read-only host, nothing is."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self._off = parts.read_only or parts.cipher is None
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], deque[RecordedSearch]] = {}

    def note(self, actor: Actor, ref: str, text: str, seq: int, hits: Sequence[Hit] = ()) -> None:
        """Remember a question, answered at log position `seq`, until it is stored: one append.

        A forget that destroys one of its first hits, or one of their sources, drops the question.
        """
        if self._off or actor.door in _UNRECORDED or len(text) > LONGEST:
            return
        asked = self._waiting.get((actor.tenant, ref))
        if asked is None:
            with self._lock:
                if len(self._waiting) >= _MEMORIES:
                    self._waiting.pop(next(iter(self._waiting)))
                asked = self._waiting.setdefault((actor.tenant, ref), deque(maxlen=_WAITING))
        first = [hit for hit in hits[:3] if not hit.weak]
        found = [one for hit in first for one in (hit.entry.id, *hit.sources)]
        asked.append(RecordedSearch(text, seq, found[:_FOUND]))

    def flush(self, tenant: str | None = None, ref: str | None = None) -> None:
        """Store the waiting questions: all, or those of one tenant or memory. A batch that fails is dropped."""
        with self._lock:
            chosen = [key for key in self._waiting if tenant in (None, key[0]) and ref in (None, key[1])]
            taken = {key: self._waiting.pop(key) for key in chosen}
        for (owner, memory), asked in taken.items():
            try:
                self._store(owner, memory, list(asked))
            except ReverieError:
                continue

    def _store(self, tenant: str, ref: str, asked: Sequence[RecordedSearch]) -> None:
        scope = Scope(tenant, ref)
        if not self._parts.store.read(scope, _exists):
            return  # a question about no memory leaves nothing behind

        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            known, redactor = rules.known, self._parts.redactor
            clean = [msgspec.structs.replace(one, text=redactor.text(one.text, known).text) for one in asked]

            def body(tx: WriteTx) -> None:
                destroyed = tx.read_log(before=tx.head().seq + 1, limit=1, types=_DESTROYING)
                since = destroyed[0].seq if destroyed else 0
                row = self._row(tx, ref)
                new = [one for one in clean if one.seq >= since]
                self._keep(tx, [*row.questions, *new], row.replays, rules.policy.recorded_searches)

            return body

        self._rules.guard(tenant, prepare, scope)

    def forget(self, tx: WriteTx, names: Callable[[str, str], bool], gone: Collection[str] = ()) -> None:
        """Drop the questions to the bound memory, or to any, that name the subject or found one of these entries.

        `names`: whether a question to a memory names the subject or repeats words of a destroyed text.

        Questions that wait in this process are all dropped. Other processes drop those answered before the event of the
        forget; log positions decide, since clocks may disagree.
        """
        tenant = tx.scope.tenant
        with self._lock:
            for key in [key for key in self._waiting if key[0] == tenant and tx.scope.ref in (None, key[1])]:
                del self._waiting[key]
        for ref in tx.searches():
            with tx.within(ref):
                row = self._row(tx, ref)
                told = partial(names, ref)
                asked = {one.text for one in row.questions if told(one.text) or not set(gone).isdisjoint(one.found)}
                questions = [one for one in row.questions if one.text not in asked]
                replays = [_without(replay, asked, told, gone) for replay in row.replays]
                if questions != list(row.questions) or replays != list(row.replays) or row == _Row():
                    self._keep(tx, questions, replays, len(questions) or 1)

    def last(self, tenant: str, ref: str, limit: int) -> list[str]:
        """The last questions, newest first, as today's rules redact them."""
        self.flush(tenant, ref)
        rules = self._rules.current(tenant)
        if self._off or not rules.policy.recorded_searches:
            return []
        row = self._parts.store.read(Scope(tenant, ref), lambda tx: self._row(tx, ref))
        newest = list(reversed(row.questions))[:limit]
        return [self._parts.redactor.text(one.text, rules.known).text for one in newest]

    def keep(self, tenant: str, ref: str, replay: Replay) -> None:
        """Store the replay of a dream. Questions that a forget dropped meanwhile are not brought back by it."""

        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            def body(tx: WriteTx) -> None:
                row = self._row(tx, ref)
                known = {one.text for one in row.questions}
                left = [one for one in replay.questions if one.question in known]
                kept = [*row.replays, msgspec.structs.replace(replay, questions=left)]
                self._keep(tx, row.questions, kept[-_REPLAYS:], rules.policy.recorded_searches)

            return body

        self._rules.guard(tenant, prepare, Scope(tenant, ref))

    def replay(self, tenant: str, ref: str, dream: str) -> Replay | None:
        """The replay of a dream, as long as it is kept."""
        if self._parts.cipher is None:
            return None
        row = self._parts.store.read(Scope(tenant, ref), lambda tx: self._row(tx, ref))
        found = next((one for one in row.replays if one.dream == dream), None)
        if found is None:
            return None
        known, redactor = self._rules.current(tenant).known, self._parts.redactor
        again = [
            msgspec.structs.replace(one, question=redactor.text(one.question, known).text) for one in found.questions
        ]
        return msgspec.structs.replace(found, questions=again)

    def _row(self, tx: ReadTx, ref: str) -> _Row:
        sealed = tx.searches().get(ref)
        if sealed is None or self._parts.cipher is None:
            return _Row()
        try:
            clear = self._parts.cipher.open(sealed, context=_context(tx, ref))
        except ReverieError:  # sealed with another key: unreadable, and written over by the next batch
            return _Row()
        return msgspec.json.decode(clear, type=_Row)

    def _keep(self, tx: WriteTx, questions: Sequence[RecordedSearch], replays: Sequence[Replay], most: int) -> None:
        assert self._parts.cipher is not None
        newest: dict[str, RecordedSearch] = {}
        for one in questions:
            words = " ".join(one.text.casefold().split())
            newest.pop(words, None)  # asked again: now the last
            newest[words] = one
        kept = _Row(list(newest.values())[-most:] if most else (), replays if most else ())
        if not kept.questions and not any(replay.questions for replay in kept.replays):
            tx.keep_searches(None)
            return
        ref = str(tx.scope.ref)
        tx.keep_searches(self._parts.cipher.seal(msgspec.json.encode(kept), context=_context(tx, ref)))


def _without(replay: Replay, asked: Collection[str], names: Callable[[str], bool], gone: Collection[str]) -> Replay:
    left = [
        one
        for one in replay.questions
        if one.question not in asked
        and not names(one.question)
        and all(answer.id not in gone for answer in (*one.before, *one.after))
    ]
    return msgspec.structs.replace(replay, questions=left)


def _exists(tx: ReadTx) -> bool:
    return bool(tx.scan(Filter(), limit=1).items)


def _context(tx: ReadTx, ref: str) -> bytes:
    return f"{tx.scope.tenant}/searches/{ref}".encode()
