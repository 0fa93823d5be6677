"""The durable side of one scope's window: it is loaded, extended, compacted and dropped in one transaction each.

A window is transport state, and sealed (`sealed.py`). People and memory reads see only the entries that are written
with it, redacted like any other (`checkpoints.py`). Passes are recorded in `attempts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from reverie.core.actor import Actor
from reverie.core.entry import Document, Scope
from reverie.core.errors import Conflict, QuotaExceeded, ReverieError
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.query import Filter
from reverie.core.retry import Moved, retry
from reverie.memory.entries import Entries
from reverie.memory.insertion import PreparedEntry, insert
from reverie.memory.policy import RuleBook, Rules
from reverie.services import Services
from reverie.store.contract import WriteTx
from reverie.store.leases import holder
from reverie.window.attempts import Attempts
from reverie.window.checkpoint import Checkpoint
from reverie.window.checkpoints import Checkpoints
from reverie.window.items import Item
from reverie.window.policy import Base, NegativeCache, WindowPolicy
from reverie.window.record import CorruptWindow, carry, load
from reverie.window.sealed import WINDOW_SPACE, SealedWindow
from reverie.window.state import WindowState
from reverie.window.steps import Before, Ticket
from reverie.window.transcript import Rebuild, gist_of
from reverie.window.turn import Turn

T = TypeVar("T")
_MARGIN_MS = 60_000


class WindowStore:
    """The durable side of one window."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        entries: Entries,
        actor: Actor,
        *,
        key: str,
        ref: str,
        policy: WindowPolicy,
        negative: NegativeCache,
        subject: str | None = None,
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._entries = entries
        self._actor = actor
        self._scope = Scope(actor.tenant, ref)
        self.key = key
        self.ref = ref
        self.policy = policy
        self.negative = negative
        self._sealed = SealedWindow(parts, self._scope, key=key)
        self.attempts = Attempts(parts, actor, self._scope, self._sealed)
        self._checkpoints = Checkpoints(parts, self._scope, key=key, subject=subject)
        self.work: dict[str, Any] = {}
        """The runtime's description of the work; every checkpoint quotes it."""

    def clock(self) -> int:
        """Now, in milliseconds."""
        return self._parts.clock.now()

    # loading

    def open(self, *, provider: str, base: Base, account: str) -> WindowState:
        """The window as last committed; passes that died are abandoned. A window made elsewhere, or one that fails
        its own checks, is dropped."""

        def body(tx: WriteTx) -> tuple[Document | None, str]:
            self.attempts.bury(tx)
            return tx.load(WINDOW_SPACE, self.key), keyed_hash(tx.log_key(), account)

        document, fingerprint = self._parts.store.write(self._scope, body)
        state = self._state(document)
        if state is None:
            return self._missing(WindowState(base=base, provider=provider, account_fingerprint=fingerprint))
        state.rebind(provider=provider, base=base, account_fingerprint=fingerprint)
        if state.resets and not state.model:
            state.account_fingerprint = fingerprint
        return state

    def refresh(self, state: WindowState) -> WindowState:
        """`state`, or a newer version that another process stored."""
        document = self._parts.store.read(self._scope, lambda tx: tx.load(WINDOW_SPACE, self.key))
        current = document.version if document is not None else 0
        if document is None and (state.version or (state.empty and not state.resets)):
            fresh = self._missing(state)
            fresh.take_server_faults(state)
            return fresh
        if document is None or current == state.version:
            return state
        newest = self._state(document)
        assert newest is not None
        newest.rebind(provider=state.provider, base=state.base, account_fingerprint=state.account_fingerprint)
        return carry(newest, state)

    def _missing(self, held: WindowState) -> WindowState:
        """A window that is not stored: an empty one for a new conversation, one to be rebuilt when the ledger has turns
        of it."""
        fresh = self._fresh(held)
        fresh.negative = self.negative
        fresh.redact = self._redact
        end = self._parts.store.read(self._scope, self._checkpoints.end)
        if end is not None:
            fresh.next_position = end
            fresh.reset("semantic_rebuild")
        return fresh

    def _state(self, document: Document | None) -> WindowState | None:
        if document is None:
            return None
        try:
            state = load(self._sealed.open(document), policy=self.policy, negative=self.negative)
        except (CorruptWindow, ReverieError):
            meta = document.meta
            state = WindowState(scope_id=self.key, policy=self.policy, negative=self.negative)
            state.generation = int(meta.get("generation", 0))
            state.epoch = int(meta.get("epoch", 0))
            state.next_position = state.epoch_position = int(meta.get("position", 0))
            state.reset("corrupt_state")
        wanted = self.policy.mode_for(state.base.kind)
        if wanted != "server_side" or not state.server_disabled:
            state.mode, state.server_disabled = wanted, False
        state.redact = self._redact
        state.version = document.version
        return state

    # turns

    def save_turn(self, state: WindowState, turn: Turn) -> WindowState:
        """Store an answered turn: the window, its words, and the drops that the turn began with, in one transaction.
        Items that others appended meanwhile stay; a drop meanwhile wins."""
        repeats = state.match[len(state.match) - len(turn.appended) :] if turn.appended else []
        try:
            return self._save_turn(state, turn, repeats)
        except QuotaExceeded:  # the window continues; the quota refuses only its words
            return self._save_turn(state, turn, repeats, words=False)

    def _save_turn(self, state: WindowState, turn: Turn, repeats: Sequence[Any], *, words: bool = True) -> WindowState:
        def prepare(rules: Rules) -> Callable[[WriteTx], tuple[WindowState, int, str | None]]:
            drafts = self._checkpoints.turn_drafts(turn, rules) if words and self.policy.ledger else []
            after = (
                self._checkpoints.make(state, "server_threshold", work=self.work)
                if words and turn.server_items
                else None
            )
            if after is not None:
                drafts = [*drafts, self._checkpoints.draft(after, rules)]
            prepared = self._entries.prepare(self._actor, self.ref, drafts, rules) if drafts else []
            dropped = self._drop_checkpoint(state, rules)

            def body(tx: WriteTx) -> tuple[WindowState, int, str | None]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                kept = self._continued(tx, document, state)
                dropped_meanwhile = kept is None or kept.epoch != state.epoch
                if kept is not None and kept is not state and not dropped_meanwhile:
                    if turn.answers is not None and not _waits_for(kept, turn.answers):
                        return kept, current, None  # another process took the answer
                    self._join(kept, state, turn, repeats)
                if prepared:
                    self._check_quota(tx, rules, prepared)
                ref, _ = self._record_drops(tx, state, document, dropped if kept is state else None)
                said = prepared[:-1] if after is not None and dropped_meanwhile else prepared
                receipts = [insert(tx, self._actor, item, operation="TURN") for item in said]
                if kept is None:
                    return self._fresh(state), 0, None
                data = {"window": self.key, "generation": kept.generation, "items": len(kept.items)}
                if kept.reported_input_tokens is not None:
                    data["input_tokens"] = kept.reported_input_tokens
                seq = tx.append(self._event("provider_window_updated", "TURN", data))
                saved = self._sealed.save(tx, kept, seq, current)
                if turn.server_items and not dropped_meanwhile:
                    last = receipts[-1].id if after is not None and receipts else None
                    self.attempts.by_server(tx, kept, turn, last, seq)
                return kept, saved.version, ref

            return body

        kept, version, turn.checkpoint_ref = self._commit(prepare)
        state.resets.clear()
        state.read = {}
        kept.version = version
        return kept if kept is state else carry(kept, state)

    @staticmethod
    def _join(kept: WindowState, state: WindowState, turn: Turn, repeats: Sequence[Any]) -> None:
        """Add a turn of `state` to the window as others stored it meanwhile."""
        kept.append(turn.appended, repeats)
        kept.shape, kept.request_shape_hash = state.shape, state.request_shape_hash
        kept.model, kept.response_id = state.model, None
        if turn.answers is not None:
            kept.background = None

    def save_question(self, state: WindowState, turn: Turn | None, *, ended: str | None = None) -> WindowState:
        """Store a window whose answer is fetched later, with the words of the question; without a turn, store that
        the response `ended` brings no answer. The drops that the turn began with are stored in the same transaction; a
        drop meanwhile wins."""
        try:
            return self._save_question(state, turn, ended)
        except QuotaExceeded:  # as for a turn
            return self._save_question(state, None, ended)

    def _save_question(self, state: WindowState, turn: Turn | None, ended: str | None) -> WindowState:
        def prepare(rules: Rules) -> Callable[[WriteTx], tuple[WindowState, int]]:
            drafts = self._checkpoints.turn_drafts(turn, rules) if turn is not None and self.policy.ledger else []
            prepared = self._entries.prepare(self._actor, self.ref, drafts, rules) if drafts else []
            dropped = self._drop_checkpoint(state, rules)

            def body(tx: WriteTx) -> tuple[WindowState, int]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                kept = self._continued(tx, document, state)
                if kept is not None and kept.epoch == state.epoch and (ended is None or _waits_for(kept, ended)):
                    kept.background = state.background
                if prepared:
                    self._check_quota(tx, rules, prepared)
                self._record_drops(tx, state, document, dropped if kept is state else None)
                for item in prepared:
                    insert(tx, self._actor, item, operation="TURN")
                if kept is None:
                    return self._fresh(state), 0
                data = {"window": self.key, "generation": kept.generation, "items": len(kept.items)}
                seq = tx.append(self._event("provider_window_updated", "TURN", data))
                return kept, self._sealed.save(tx, kept, seq, current).version

            return body

        kept, version = self._commit(prepare)
        state.resets.clear()
        state.read = {}
        kept.version = version
        return kept if kept is state else carry(kept, state)

    def note(self, state: WindowState, items: Sequence[Item]) -> None:
        """Record items in the ledger that are no part of the window, because the caller keeps that conversation at the
        provider."""
        if not self.policy.ledger or not items:
            return
        turn = Turn(completed=True, stored=True, appended=list(items), first_position=state.next_position)
        state.next_position += len(items)

        def prepare(rules: Rules) -> Callable[[WriteTx], int]:
            drafts = self._checkpoints.turn_drafts(turn, rules)
            prepared = self._entries.prepare(self._actor, self.ref, drafts, rules) if drafts else []

            def body(tx: WriteTx) -> int:
                if prepared:
                    self._check_quota(tx, rules, prepared)
                for item in prepared:
                    insert(tx, self._actor, item, operation="TURN")
                document = tx.load(WINDOW_SPACE, self.key)
                if document is None or document.version != state.version or state.resets:
                    return state.version
                data = {"window": self.key, "generation": state.generation, "items": len(state.items)}
                seq = tx.append(self._event("provider_window_updated", "TURN", data))
                return self._sealed.save(tx, state, seq, document.version).version

            return body

        try:
            state.version = self._commit(prepare)
        except QuotaExceeded:  # the answer continues; the quota refuses only its words
            return

    def _continued(self, tx: WriteTx, document: Document | None, state: WindowState) -> WindowState | None:
        """The window that a write based on `state` continues: `state` when no other process wrote, else theirs, or
        `state` where it drops what they added or theirs cannot be read; None when it was dropped, or made from words
        that were destroyed before it was stored."""
        if document is None:
            return state if state.version == 0 and not _changed(tx, state) else None
        if document.version == state.version:
            return state
        try:
            newest = load(self._sealed.open(document), policy=self.policy, negative=self.negative)
        except (CorruptWindow, ReverieError):
            return state
        if state.resets and newest.epoch == state.epoch - len(state.resets):
            state.generation = max(state.generation, newest.generation + 1)
            return state
        return newest

    def _fresh(self, held: WindowState) -> WindowState:
        """An empty window in the place of one that was dropped."""
        fresh = WindowState(scope_id=self.key, base=held.base, provider=held.provider, policy=self.policy)
        fresh.account_fingerprint = held.account_fingerprint
        return fresh

    def _check_quota(self, tx: WriteTx, rules: Rules, prepared: Sequence[Any]) -> None:
        head, size = tx.head(), sum(item.entry.byte_size for item in prepared)
        limits = rules.policy
        if head.entries + len(prepared) > limits.max_entries or head.bytes + size > limits.max_bytes:
            raise QuotaExceeded()

    # passes

    def begin_pass(self, state: WindowState) -> Ticket | None:
        """Store checkpoint and attempt before a pass, in one transaction. None when another process makes a pass, or
        has dropped the window."""
        attempt = state.attempt
        assert attempt is not None
        ticket_id = self._parts.ids.new()
        name = holder(ticket_id)
        until = self._parts.clock.now() + int(self.policy.compact_timeout_seconds * 1000) + _MARGIN_MS
        record = self._checkpoint(state, attempt.reason)

        def prepare(rules: Rules) -> Callable[[WriteTx], Ticket | None]:
            prepared = self._entries.prepare(self._actor, self.ref, [self._checkpoints.draft(record, rules)], rules)

            def body(tx: WriteTx) -> Ticket | None:
                self.attempts.bury(tx)
                document = tx.load(WINDOW_SPACE, self.key)
                if document is None or int(document.meta.get("epoch", state.epoch)) != state.epoch:
                    return None  # dropped meanwhile: the checkpoint would keep words that a forget may have destroyed
                if not tx.claim(self.attempts.lease, name, until=until):
                    return None
                receipt = insert(tx, self._actor, prepared[0], operation="CHECKPOINT")
                ticket = Ticket(ticket_id, name, receipt.id, record.brief())
                self.attempts.begin(tx, state, attempt, ticket)
                return ticket

            return body

        return self._commit(prepare)

    def end_pass(self, ticket: Ticket, report: Mapping[str, Any]) -> None:
        """Record the end of a pass that changed nothing."""
        self.attempts.end(ticket, report)

    def abandon(self, ticket: Ticket) -> None:
        """Record a pass whose caller left; its outcome is unknown."""
        self.attempts.abandon(ticket)

    def commit_pass(
        self, state: WindowState, ticket: Ticket, answer: str, *, http_status: int, duration_ms: int
    ) -> tuple[WindowState, dict[str, Any]]:
        """Judge the answer to a pass against the window as it is now, and store new items, metadata, attempt and event
        in one transaction. An answer that is rejected leaves the window as it was."""
        attempt = state.attempt
        assert attempt is not None
        now = self._parts.clock.now()
        note = state.dialect.note(ticket.brief) if self.policy.inject_checkpoint == "brief" else None

        def prepare(_: Rules) -> Callable[[WriteTx], tuple[WindowState, dict[str, Any], int, bool]]:
            def body(tx: WriteTx) -> tuple[WindowState, dict[str, Any], int, bool]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                if document is None:
                    return state, {"status": "stale_generation", **attempt.base}, current, False
                fresh = load(self._sealed.open(document), policy=self.policy, negative=self.negative)
                before = fresh.generation
                fresh.attempt = attempt
                fresh.base = state.base
                fresh.mode = state.mode
                report = fresh.accept_compaction(
                    answer, http_status=http_status, now=now, note=note, duration_ms=duration_ms
                )
                if report["status"] != "compacted":
                    return fresh, report, current, False
                row = self.attempts.metadata(fresh, ticket, report, attempt.covered_first, attempt.covered_last, before)
                data: dict[str, Any] = {"window": self.key, "attempt": ticket.id, "trigger_reason": attempt.reason}
                data |= {"generation_before": before, "generation_after": fresh.generation}
                data |= {"covered_items": attempt.end, "compaction_items": report["compaction_items"]}
                data["checkpoint_ref"] = ticket.checkpoint_ref
                seq = tx.append(self._event("remote_compaction_committed", "COMPACT", data))
                self._sealed.keep_past(tx, document, seq)
                saved = self._sealed.save(tx, fresh, seq, current)
                self.attempts.save_pass(tx, row, seq)
                self.attempts.finish(tx, ticket.id, "committed", "compacted", seq)
                tx.release(self.attempts.lease, ticket.holder)
                return fresh, report, saved.version, True

            return body

        fresh, report, version, committed = self._commit(prepare)
        if not committed:
            # the window stays; cooldowns and failures are recorded in the one in hand
            state.attempt = attempt
            if report["status"] != "stale_generation":
                report = state.accept_compaction(answer, http_status=http_status, now=now, duration_ms=duration_ms)
            state.attempt = None
            state.remote_compaction = report
            self.end_pass(ticket, report)
            return state, report
        fresh.version = version
        return carry(fresh, state), report

    def tell(self, type_: str, data: Mapping[str, Any]) -> None:
        """Append an event to the log; nothing else changes."""
        event = self._event(type_, "WINDOW", {"window": self.key, **data})
        self._parts.store.write(self._scope, lambda tx: tx.append(event))

    # drops, undo

    def clear(self, state: WindowState, reason: str) -> None:
        """Drop the window at the caller's request: checkpoint, event and new generation in one transaction."""
        state.reset(reason)

        def prepare(rules: Rules) -> Callable[[WriteTx], int]:
            dropped = self._drop_checkpoint(state, rules, cleared=True)

            def body(tx: WriteTx) -> int:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                _, seq = self._record_drops(tx, state, document, dropped)
                return self._sealed.save(tx, state, seq, current).version

            return body

        state.version = self._commit(prepare)
        state.resets.clear()
        state.read = {}

    def _drop_checkpoint(self, state: WindowState, rules: Rules, *, cleared: bool = False) -> PreparedEntry | None:
        """The checkpoint of the kept window that the first of `state.resets` drops; None when there is no drop."""
        if not state.resets:
            return None
        first = state.resets[0]
        record = self._checkpoints.make(
            state,
            first.reason,
            work=self.work,
            items=self._sealed.items() or state.items,
            covered=(first.covered_first, first.covered_last),
        )
        draft = self._checkpoints.draft(record, rules, cleared=cleared)
        return self._entries.prepare(self._actor, self.ref, [draft], rules)[0]

    def _record_drops(
        self, tx: WriteTx, state: WindowState, document: Document | None, checkpoint: PreparedEntry | None
    ) -> tuple[str | None, int]:
        """Record the drops of a window in the transaction that replaces it: (id of the checkpoint, log position)."""
        if checkpoint is None:
            return None, 0
        ref = insert(tx, self._actor, checkpoint, operation="CHECKPOINT").id
        seq = 0
        for reset in state.resets:
            data = {
                "window": self.key,
                "reason": reset.reason,
                "generation_before": reset.generation_before,
                "generation_after": reset.generation_after,
                "compaction_items_dropped": reset.compaction_items_dropped,
                "checkpoint_ref": ref,
            }
            seq = tx.append(self._event("provider_window_reset", "RESET", data))
        if document is not None:
            self._sealed.keep_past(tx, document, seq)
        return ref, seq

    def rewind(self, state: WindowState) -> Item | None:
        """Take the newest item back, if need be from the generation before a compaction; None when there is none.
        Raises Moved when another process changed the window since `state` was read."""
        item = state.pop()
        if item is None and state.items:
            past = self._sealed.past()
            if past is None:
                self.clear(state, "rolled_back")
                return None
            surplus = max(0, past.next_position - state.next_position)
            state.items = past.items[: len(past.items) - surplus]
            state.replaced = min(past.replaced, len(state.items))
            state.payload_tokens = past.payload_tokens
            state.awaiting_usage = False
            item = state.pop()
        if item is None:
            return None

        def prepare(_: Rules) -> Callable[[WriteTx], int]:
            def body(tx: WriteTx) -> int:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                if current != state.version:
                    raise Moved
                data = {"window": self.key, "generation": state.generation, "items": len(state.items)}
                seq = tx.append(self._event("provider_window_rewound", "REWIND", data))
                return self._sealed.save(tx, state, seq, current).version

            return body

        state.version = self._commit(prepare)
        return item

    def append(self, state: WindowState, items: Sequence[Item]) -> WindowState:
        """Append items that no response brought: those given to a session."""
        repeats = state.dialect.matches(items, returned=False)
        turn = Turn(completed=True, stored=True, appended=list(items), first_position=state.next_position)
        turn.follows = -1 if state.empty and not state.resets else None
        state.append(items, repeats)
        return self.save_turn(state, turn)

    def readable(self, *, most_tokens: int, following: Sequence[Item] = (), before: Before | None = None) -> Rebuild:
        """A window from the readable layer alone: the newest checkpoint (of `before`, when it is given) with the gist
        of what is left out, the user's messages and the newest turns that fit, with every call that `following`
        answers."""
        record, gist = None, ""
        if before is not None:
            record = self._redact(self._checkpoint(before.state, before.reason).text())
            gist = gist_of(before.state.items)
        return self._checkpoints.readable(
            most_tokens=most_tokens,
            following=following,
            retained_tokens=self.policy.retained_message_tokens,
            checkpoint=record,
            gist=gist,
            clean=self._redact,
        )

    # inside

    def _commit(self, prepare: Callable[[Rules], Callable[[WriteTx], T]]) -> T:
        return retry(lambda _: self._rules.guard(self._actor.tenant, prepare, self._scope), on=Conflict)

    def _event(self, type_: str, operation: str, data: Mapping[str, Any]) -> NewEvent:
        return NewEvent(type_, operation, self._actor.id, data=data)

    def _checkpoint(self, state: WindowState, reason: str, **given: Any) -> Checkpoint:
        return self._checkpoints.make(state, reason, work=self.work, **given)

    def _redact(self, text: str) -> str:
        known = self._rules.current(self._actor.tenant).known
        return self._parts.redactor.text(text, known).text


def _changed(tx: WriteTx, state: WindowState) -> bool:
    """Whether an entry that a window was made from has changed or gone since."""
    now = tx.at(list(state.read), Filter()) if state.read else {}
    return any(position not in now or now[position].version != seen for position, seen in state.read.items())


def _waits_for(state: WindowState, response_id: str) -> bool:
    """Whether a window waits for the answer of this response."""
    return state.background is not None and state.background["response_id"] == response_id
