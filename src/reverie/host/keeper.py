"""Keeps the window of one scope: loads it, grows it, compacts it, drops it; each in one transaction.

A window is transport state. Its documents are sealed with the host's cipher, so nothing in them can be read at rest;
what a person or a memory read may see of a conversation are the entries written beside it, redacted like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from reverie.core.actor import Actor
from reverie.core.clock import to_iso
from reverie.core.entry import Document, Draft, Entry, Scope, Source
from reverie.core.errors import Conflict, QuotaExceeded, ReverieError
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.query import Filter
from reverie.host.holder import holder, is_dead
from reverie.host.parts import Parts
from reverie.host.rules import RuleBook, Rules
from reverie.host.turns import CHECKPOINT_KIND, SCOPE_ATTRIBUTE, TURN_KIND, rebuilt, turn_drafts
from reverie.host.write import Writing, insert
from reverie.store.contract import ReadTx, WriteTx
from reverie.window.checkpoint import Checkpoint, build_checkpoint
from reverie.window.continuation import matches
from reverie.window.engine import Ticket
from reverie.window.items import Item, encode, payload_hash, payloads
from reverie.window.passes import KINDS
from reverie.window.policy import Base, NegativeCache, WindowPolicy
from reverie.window.record import CorruptWindow, dump, load
from reverie.window.state import Reset, Turn, WindowState, developer_note

T = TypeVar("T")
WINDOW_SPACE = "window"
PAST_SPACE = "window_past"
ATTEMPT_SPACE = "window_attempt"
PASS_SPACE = "window_pass"
SPACES = (WINDOW_SPACE, PAST_SPACE, ATTEMPT_SPACE, PASS_SPACE)
KEPT_GENERATIONS = 4
KEPT_ATTEMPTS = 20
_TRIES = 10
_MARGIN_MS = 60_000
_FOUND = {
    "objective": "objective",
    "decision": "decisions",
    "constraint": "constraints",
    "plan": "plan",
    "risk": "risks",
    "artifact": "artifacts",
    "verification": "verification",
}
"""Kinds of entries that a checkpoint quotes, by the field they go to."""


class Keeper:
    """The durable side of one window."""

    def __init__(
        self,
        parts: Parts,
        rules: RuleBook,
        writing: Writing,
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
        self._writing = writing
        self._actor = actor
        self._scope = Scope(actor.tenant, ref)
        self.key = key
        self.ref = ref
        self.policy = policy
        self.negative = negative
        self.subject = subject
        self.work: dict[str, Any] = {}
        """What the runtime says about the work; every checkpoint quotes it."""

    def clock(self) -> int:
        """Now, in milliseconds."""
        return self._parts.clock.now()

    # loading

    def open(self, *, provider: str, base: Base, account: str) -> WindowState:
        """The window as last committed; passes that died are abandoned. A window made elsewhere, or one that fails
        its own checks, is dropped."""

        def body(tx: WriteTx) -> tuple[Document | None, str]:
            self._bury(tx)
            return tx.load(WINDOW_SPACE, self.key), keyed_hash(tx.log_key(), account)

        document, fingerprint = self._parts.store.write(self._scope, body)
        state = self._state(document)
        if state is None:
            return WindowState(
                scope_id=self.key,
                base=base,
                provider=provider,
                account_fingerprint=fingerprint,
                policy=self.policy,
                negative=self.negative,
                redact=self._redact,
            )
        state.rebind(provider=provider, base=base, account_fingerprint=fingerprint)
        if state.resets and not state.model:
            state.account_fingerprint = fingerprint
        return state

    def refresh(self, state: WindowState) -> WindowState:
        """`state`, or what another process made of the window since."""
        document = self._parts.store.read(self._scope, lambda tx: tx.load(WINDOW_SPACE, self.key))
        current = document.version if document is not None else 0
        if current == state.version:
            return state
        if document is None:
            fresh = WindowState(scope_id=self.key, base=state.base, provider=state.provider, policy=self.policy)
            fresh.account_fingerprint = state.account_fingerprint
            fresh.negative = self.negative
            fresh.redact = self._redact
            return fresh
        newest = self._state(document)
        assert newest is not None
        newest.rebind(provider=state.provider, base=state.base, account_fingerprint=state.account_fingerprint)
        return carry(newest, state)

    def _state(self, document: Document | None) -> WindowState | None:
        if document is None:
            return None
        try:
            state = load(self._opened(document), policy=self.policy, negative=self.negative)
        except (CorruptWindow, ReverieError):
            meta = document.meta
            state = WindowState(scope_id=self.key, policy=self.policy, negative=self.negative)
            state.generation = int(meta.get("generation", 0))
            state.epoch = int(meta.get("epoch", 0))
            state.next_position = state.epoch_position = int(meta.get("position", 0))
            state.reset("corrupt_state")
        wanted = self.policy.mode_for(state.base.kind)
        if state.mode != wanted and not (wanted == "server_side" and state.mode == "standalone"):
            state.mode = wanted
        state.redact = self._redact
        state.version = document.version
        return state

    # turns

    def save_turn(self, state: WindowState, turn: Turn) -> WindowState:
        """Keep an answered turn: the window and, beside it, the words. What others appended meanwhile stays; a drop
        meanwhile wins."""
        repeats = state.match[len(state.match) - len(turn.appended) :] if turn.appended else []
        try:
            return self._save_turn(state, turn, repeats)
        except QuotaExceeded:  # the window goes on; the quota says no to words only
            return self._save_turn(state, turn, repeats, words=False)

    def _save_turn(self, state: WindowState, turn: Turn, repeats: Sequence[Any], *, words: bool = True) -> WindowState:
        def prepare(rules: Rules) -> Callable[[WriteTx], tuple[WindowState, int]]:
            drafts = self._turn_drafts(turn, rules) if words and self.policy.ledger else []
            after = self._checkpoint(state, "server_threshold") if words and turn.server_items else None
            if after is not None:
                drafts = [*drafts, self._checkpoint_draft(after, rules)]
            prepared = self._writing.prepare(self._actor, self.ref, drafts, rules) if drafts else []

            def body(tx: WriteTx) -> tuple[WindowState, int]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                kept: WindowState | None = state
                if current != state.version:
                    kept = self._merged(document, state, turn, repeats)
                if prepared:
                    self._check_quota(tx, rules, prepared)
                receipts = [insert(tx, self._actor, item, operation="TURN") for item in prepared]
                if kept is None:  # dropped meanwhile
                    fresh = WindowState(scope_id=self.key, base=state.base, policy=self.policy)
                    return fresh, 0
                data = {"window": self.key, "generation": kept.generation, "items": len(kept.items)}
                seq = tx.append(self._event("provider_window_updated", "TURN", data))
                saved = self._save(tx, kept, seq, current)
                if turn.server_items:
                    ref = receipts[-1].id if after is not None and receipts else None
                    self._server_passes(tx, kept, turn, ref, seq)
                return kept, saved.version

            return body

        kept, version = self._commit(prepare)
        kept.version = version
        return kept if kept is state else carry(kept, state)

    def _merged(
        self, document: Document | None, state: WindowState, turn: Turn, repeats: Sequence[Any]
    ) -> WindowState | None:
        if document is None:
            return None
        try:
            newest = load(self._opened(document), policy=self.policy, negative=self.negative)
        except (CorruptWindow, ReverieError):
            return state
        if newest.epoch != state.epoch:
            return newest
        newest.append(turn.appended, repeats)
        newest.shape, newest.request_shape_hash, newest.model = state.shape, state.request_shape_hash, state.model
        newest.response_id = None
        return newest

    def _turn_drafts(self, turn: Turn, rules: Rules) -> list[Draft]:
        # a marker may be longer than the secret it replaces, and the limit is judged before redaction
        most = max(256, rules.policy.max_entry_bytes)
        return turn_drafts(
            turn.appended[turn.known :],
            scope=self.key,
            turn=self._parts.ids.new(),
            first_position=turn.first_position + turn.known,
            follows=turn.follows,
            subject=self.subject,
            max_bytes=most,
        )

    def _check_quota(self, tx: WriteTx, rules: Rules, prepared: Sequence[Any]) -> None:
        head, size = tx.head(), sum(item.entry.byte_size for item in prepared)
        limits = rules.policy
        if head.entries + len(prepared) > limits.max_entries or head.bytes + size > limits.max_bytes:
            raise QuotaExceeded()

    # passes

    def begin_pass(self, state: WindowState) -> Ticket | None:
        """Before a pass: the checkpoint and the attempt, in one transaction. None: someone else is at it."""
        attempt = state.attempt
        assert attempt is not None
        ticket_id = self._parts.ids.new()
        name = holder(ticket_id)
        until = self._parts.clock.now() + int(self.policy.compact_timeout_seconds * 1000) + _MARGIN_MS
        record = self._checkpoint(state, attempt.reason)

        def prepare(rules: Rules) -> Callable[[WriteTx], Ticket | None]:
            prepared = self._writing.prepare(self._actor, self.ref, [self._checkpoint_draft(record, rules)], rules)

            def body(tx: WriteTx) -> Ticket | None:
                self._bury(tx)
                if not tx.claim(self._lease, name, until=until):
                    return None
                receipt = insert(tx, self._actor, prepared[0], operation="CHECKPOINT")
                row = {
                    "id": ticket_id,
                    "state": "in_flight",
                    "generation": attempt.generation,
                    "prefix_end": attempt.end,
                    "prefix_hash": attempt.prefix_hash,
                    "trigger_reason": attempt.reason,
                    "method": attempt.method,
                    "model": state.model,
                    "request_shape_hash": state.request_shape_hash,
                    "checkpoint_ref": receipt.id,
                    "holder": name,
                    "started_at": tx.now,
                }
                data: dict[str, Any] = {"window": self.key, "attempt": ticket_id, "trigger_reason": attempt.reason}
                data |= {"generation": attempt.generation, "items": attempt.end, "checkpoint_ref": receipt.id}
                seq = tx.append(self._event("remote_compaction_started", "COMPACT", data))
                self._put_attempt(tx, row, seq)
                return Ticket(ticket_id, name, receipt.id, record.brief())

            return body

        return self._commit(prepare)

    def end_pass(self, ticket: Ticket, report: Mapping[str, Any]) -> None:
        """A pass that changed nothing: how it ended."""
        status = str(report.get("status", "failed"))
        state = "rejected" if status.startswith("rejected") or status == "stale_generation" else "failed"
        type_ = "remote_compaction_rejected" if state == "rejected" else "remote_compaction_failed"

        def body(tx: WriteTx) -> None:
            data = {"window": self.key, "attempt": ticket.id, "status": status}
            data |= {name: report[name] for name in ("http_status", "provider_code") if name in report}
            seq = tx.append(self._event(type_, "COMPACT", data))
            self._finish_attempt(tx, ticket.id, state, status, seq)
            tx.release(self._lease, ticket.holder)

        self._parts.store.write(self._scope, body)

    def abandon(self, ticket: Ticket) -> None:
        """The one who waited for a pass went away; nobody knows how it ended."""

        def body(tx: WriteTx) -> None:
            self._give_up(tx, ticket.id)
            tx.release(self._lease, ticket.holder)

        self._parts.store.write(self._scope, body)

    def commit_pass(
        self, state: WindowState, ticket: Ticket, answer: str, *, http_status: int, duration_ms: int
    ) -> tuple[WindowState, dict[str, Any]]:
        """Judge the answer to a pass against the window as it is now, and keep what it made of it: new items,
        metadata, attempt and event in one transaction. Anything wrong leaves the window as it was."""
        attempt = state.attempt
        assert attempt is not None
        now = self._parts.clock.now()
        note = developer_note(ticket.brief) if self.policy.inject_checkpoint == "brief" else None

        def prepare(_: Rules) -> Callable[[WriteTx], tuple[WindowState, dict[str, Any], int, bool]]:
            def body(tx: WriteTx) -> tuple[WindowState, dict[str, Any], int, bool]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                if document is None:
                    return state, {"status": "stale_generation", **attempt.base}, current, False
                fresh = load(self._opened(document), policy=self.policy, negative=self.negative)
                before = fresh.generation
                fresh.attempt = attempt
                fresh.base = state.base
                fresh.mode = state.mode
                report = fresh.accept_compaction(
                    answer, http_status=http_status, now=now, note=note, duration_ms=duration_ms
                )
                if report["status"] != "compacted":
                    return fresh, report, current, False
                row = self._metadata(fresh, ticket, report, attempt.covered_first, attempt.covered_last, before)
                data: dict[str, Any] = {"window": self.key, "attempt": ticket.id, "trigger_reason": attempt.reason}
                data |= {"generation_before": before, "generation_after": fresh.generation}
                data |= {"covered_items": attempt.end, "compaction_items": report["compaction_items"]}
                data["checkpoint_ref"] = ticket.checkpoint_ref
                seq = tx.append(self._event("remote_compaction_committed", "COMPACT", data))
                self._keep_past(tx, document, seq)
                saved = self._save(tx, fresh, seq, current)
                self._put_pass(tx, row, seq)
                self._finish_attempt(tx, ticket.id, "committed", "compacted", seq)
                tx.release(self._lease, ticket.holder)
                return fresh, report, saved.version, True

            return body

        fresh, report, version, committed = self._commit(prepare)
        if not committed:
            # the window stays; cooldowns and failures are told to the one in hand
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
        """An event that changes nothing else."""
        event = self._event(type_, "WINDOW", {"window": self.key, **data})
        self._parts.store.write(self._scope, lambda tx: tx.append(event))

    # drops, undo

    def save_reset(self, state: WindowState, reset: Reset) -> str | None:
        """Keep a drop: the checkpoint of what is dropped, the event and the new generation. Returns the checkpoint."""
        old = self._stored_items()
        record = self._checkpoint(state, reset.reason, items=old, covered=(reset.covered_first, reset.covered_last))

        def prepare(rules: Rules) -> Callable[[WriteTx], tuple[str, int]]:
            prepared = self._writing.prepare(self._actor, self.ref, [self._checkpoint_draft(record, rules)], rules)

            def body(tx: WriteTx) -> tuple[str, int]:
                document = tx.load(WINDOW_SPACE, self.key)
                current = document.version if document is not None else 0
                receipt = insert(tx, self._actor, prepared[0], operation="CHECKPOINT")
                data = {
                    "window": self.key,
                    "reason": reset.reason,
                    "generation_before": reset.generation_before,
                    "generation_after": reset.generation_after,
                    "compaction_items_dropped": reset.compaction_items_dropped,
                    "checkpoint_ref": receipt.id,
                }
                seq = tx.append(self._event("provider_window_reset", "RESET", data))
                if document is not None:
                    self._keep_past(tx, document, seq)
                return receipt.id, self._save(tx, state, seq, current).version

            return body

        checkpoint, state.version = self._commit(prepare)
        return checkpoint

    def clear(self, state: WindowState, reason: str) -> None:
        """Begin anew because the caller says so."""
        self.save_reset(state, state.reset(reason))
        state.resets.clear()

    def rewind(self, state: WindowState) -> Item | None:
        """Take the newest item back, if need be by going back to the generation before a compaction."""
        item = state.pop()
        if item is None and state.items:
            past = self._past()
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
                data = {"window": self.key, "generation": state.generation, "items": len(state.items)}
                seq = tx.append(self._event("provider_window_rewound", "REWIND", data))
                return self._save(tx, state, seq, current).version

            return body

        state.version = self._commit(prepare)
        return item

    def append(self, state: WindowState, items: Sequence[Item]) -> WindowState:
        """Grow the window by items that no response brought: what a session was given to keep."""
        repeats = matches(items, returned=False)
        turn = Turn(completed=True, stored=True, appended=list(items), first_position=state.next_position)
        state.append(items, repeats)
        return self.save_turn(state, turn)

    def readable(self, *, most_tokens: int, following: Sequence[Item] = ()) -> list[Item]:
        """A window from the readable layer alone: the newest checkpoint and the newest turns that fit, with every
        call that `following` answers."""

        def body(tx: ReadTx) -> tuple[list[Entry], Entry | None]:
            turns: list[Entry] = []
            cursor: str | None = None
            size = 0
            while size < most_tokens * 8:
                page = tx.scan(Filter(kinds=(TURN_KIND,), session=self.key[:256]), limit=200, cursor=cursor)
                turns += [entry for entry in page.items if entry.attributes.get(SCOPE_ATTRIBUTE) == self.key]
                size = sum(entry.byte_size for entry in turns)
                cursor = page.cursor
                if cursor is None:
                    break
            newest = tx.scan(Filter(kinds=(CHECKPOINT_KIND,), session=self.key[:256]), limit=1).items
            return turns[::-1], newest[0] if newest else None

        turns, checkpoint = self._parts.store.read(self._scope, body)
        return rebuilt(turns, checkpoint, most_tokens=most_tokens, following=following)

    # inside

    @property
    def _lease(self) -> str:
        return f"window:{self.key}"

    def _commit(self, prepare: Callable[[Rules], Callable[[WriteTx], T]]) -> T:
        for _ in range(_TRIES):
            try:
                return self._rules.guarded(self._actor.tenant, prepare, self._scope)
            except Conflict:
                continue
        return self._rules.guarded(self._actor.tenant, prepare, self._scope)

    def _event(self, type_: str, operation: str, data: Mapping[str, Any]) -> NewEvent:
        return NewEvent(type_, operation, self._actor.id, data=data)

    def _save(self, tx: WriteTx, state: WindowState, seq: int, expected: int) -> Document:
        meta = {
            "generation": state.generation,
            "epoch": state.epoch,
            "items": len(state.items),
            "position": state.next_position,
            "compactions": sum(item.is_compaction for item in state.items),
            "ref": self.ref,
        }
        body = self._sealed(WINDOW_SPACE, dump(state))
        return tx.save(WINDOW_SPACE, self.key, body, seq=seq, expected=expected, meta=meta, keep=2)

    def _keep_past(self, tx: WriteTx, document: Document, seq: int) -> None:
        """The generation before a pass or a drop, for undo: appends between passes can be taken back one by one."""
        clear = self._opened_or_raw(document)
        body = self._sealed(PAST_SPACE, clear)
        tx.save(PAST_SPACE, self.key, body, seq=seq, meta=document.meta, keep=KEPT_GENERATIONS)

    def _past(self) -> WindowState | None:
        document = self._parts.store.read(self._scope, lambda tx: tx.load(PAST_SPACE, self.key))
        if document is None:
            return None
        try:
            return load(self._opened(document))
        except (CorruptWindow, ReverieError):
            return None

    def _stored_items(self) -> list[Item]:
        document = self._parts.store.read(self._scope, lambda tx: tx.load(WINDOW_SPACE, self.key))
        try:
            return load(self._opened(document)).items if document is not None else []
        except (CorruptWindow, ReverieError):
            return []

    def _checkpoint(
        self,
        state: WindowState,
        reason: str,
        *,
        items: Sequence[Item] | None = None,
        covered: tuple[int, int] | None = None,
    ) -> Checkpoint:
        def body(tx: ReadTx) -> tuple[dict[str, list[str]], list[str], str]:
            found: dict[str, list[str]] = {}
            for entry in tx.scan(Filter(kinds=tuple(_FOUND)), limit=60).items:
                found.setdefault(_FOUND[entry.kind], []).append(entry.content)
            turns = tx.scan(Filter(kinds=(TURN_KIND,), session=self.key[:256]), limit=8).items
            first = tx.scan(Filter(kinds=(CHECKPOINT_KIND,), session=self.key[:256]), limit=1).items
            objective = ""
            if first and isinstance(first[0].attributes.get("checkpoint"), dict):
                objective = str(first[0].attributes["checkpoint"].get("objective") or "")
            return found, [entry.id for entry in reversed(turns)], objective

        found, refs, objective = self._parts.store.read(self._scope, body)
        if objective and "objective" not in found:
            found["objective"] = [objective]  # what the user first asked may be compacted away by now
        attempt = state.attempt
        if covered is None:
            last = attempt.covered_last if attempt is not None else state.next_position - 1
            covered = (state.epoch_position, last)
        return build_checkpoint(
            state.items if items is None else items,
            reason=reason,
            created_at=to_iso(self._parts.clock.now()),
            covered=covered,
            work=self.work,
            source_refs=refs,
            found=found,
        )

    def _checkpoint_draft(self, record: Checkpoint, rules: Rules) -> Draft:
        document = record.document()
        text = record.text()
        while len(json.dumps(document).encode()) > rules.policy.max_attribute_bytes - 512:
            longest = max(document, key=lambda name: len(json.dumps(document[name])))
            value = document[longest]
            document[longest] = value[: len(value) // 2] if isinstance(value, list | str) else {}
        return Draft(
            content=text.encode()[: rules.policy.max_entry_bytes].decode("utf-8", "ignore"),
            kind=CHECKPOINT_KIND,
            subject=self.subject,
            attributes={SCOPE_ATTRIBUTE: self.key, "checkpoint": document},
            source=Source(session=self.key[:256]),
        )

    def _metadata(
        self,
        state: WindowState,
        ticket: Ticket,
        report: Mapping[str, Any],
        covered_first: int,
        covered_last: int,
        generation_before: int,
    ) -> dict[str, Any]:
        return {
            "compaction_id": self._parts.ids.new(),
            "scope_id": self.key,
            "attempt_id": ticket.id,
            "trigger_reason": report.get("trigger_reason"),
            "provider": state.provider,
            "model": state.model,
            "base_kind": state.base.kind,
            "endpoint_kind": report.get("endpoint_kind"),
            "request_shape_hash": state.request_shape_hash,
            "covered_first": covered_first,
            "covered_last": covered_last,
            "covered_items": report.get("input_items"),
            "retained_tail_items": report.get("retained_tail_items"),
            "compaction_items": report.get("compaction_items"),
            "usage": report.get("usage"),
            "encrypted_sha256": report.get("encrypted_content_hashes", []),
            "encrypted_bytes": report.get("encrypted_content_bytes", []),
            "generation_before": generation_before,
            "generation_after": state.generation,
            "checkpoint_ref": ticket.checkpoint_ref,
            "trust_class": "observability",
            "created_at": to_iso(self._parts.clock.now()),
        }

    def _server_passes(self, tx: WriteTx, state: WindowState, turn: Turn, checkpoint: str | None, seq: int) -> None:
        for number, item in enumerate(item for item in turn.appended if item.is_compaction):
            text = payloads([item])
            report = {
                "trigger_reason": "server_threshold",
                "endpoint_kind": "responses_context_management",
                "compaction_items": 1,
                "usage": turn.usage if number == 0 else None,
                "encrypted_content_hashes": [payload_hash(part) for part in text],
                "encrypted_content_bytes": [len(encode(part)) for part in text],
            }
            ticket = Ticket("", "", checkpoint, "")
            last = turn.first_position + turn.appended.index(item) - 1
            row = self._metadata(state, ticket, report, state.epoch_position, last, state.generation - 1)
            self._put_pass(tx, row, seq)

    def _put_pass(self, tx: WriteTx, row: Mapping[str, Any], seq: int) -> None:
        key = f"{self.key}#{row['compaction_id']}"
        tx.save(PASS_SPACE, key, self._sealed(PASS_SPACE, json.dumps(row).encode()), seq=seq)

    def attempts(self, tx: ReadTx) -> list[dict[str, Any]]:
        """The last passes of the window, oldest first."""
        document = tx.load(ATTEMPT_SPACE, self.key)
        if document is None:
            return []
        try:
            rows = json.loads(self._opened(document))
        except (ValueError, ReverieError):
            return []
        return rows if isinstance(rows, list) else []

    def _put_attempts(self, tx: WriteTx, rows: Sequence[Mapping[str, Any]], seq: int) -> None:
        body = json.dumps(rows[-KEPT_ATTEMPTS:]).encode()
        tx.save(ATTEMPT_SPACE, self.key, self._sealed(ATTEMPT_SPACE, body), seq=seq)

    def _put_attempt(self, tx: WriteTx, row: Mapping[str, Any], seq: int) -> None:
        self._put_attempts(tx, [*self.attempts(tx), row], seq)

    def _finish_attempt(self, tx: WriteTx, attempt_id: str, state: str, status: str, seq: int) -> None:
        rows = self.attempts(tx)
        for row in rows:
            if row["id"] == attempt_id and row["state"] == "in_flight":
                row |= {"state": state, "status": status, "ended_at": tx.now}
        self._put_attempts(tx, rows, seq)

    def _bury(self, tx: WriteTx) -> None:
        """Abandon the passes of processes that are gone; each is reported once."""
        for row in self.attempts(tx):
            if row["state"] != "in_flight":
                continue
            probe = holder("probe")
            if is_dead(row["holder"]):
                tx.release(self._lease, row["holder"])
            elif not tx.claim(self._lease, probe, until=tx.now + 1):
                continue
            tx.release(self._lease, probe)
            self._give_up(tx, row["id"])

    def _give_up(self, tx: WriteTx, attempt_id: str) -> None:
        if any(row["id"] == attempt_id and row["state"] == "in_flight" for row in self.attempts(tx)):
            data = {"window": self.key, "attempt": attempt_id}
            seq = tx.append(self._event("remote_compaction_abandoned", "COMPACT", data))
            self._finish_attempt(tx, attempt_id, "abandoned", "abandoned", seq)

    def _redact(self, text: str) -> str:
        known = self._rules.current(self._actor.tenant).known
        return self._parts.redactor.text(text, known).text

    def _sealed(self, space: str, clear: bytes) -> bytes:
        return seal(self._parts, self._actor.tenant, space, clear)

    def _opened(self, document: Document) -> bytes:
        return unseal(self._parts, self._actor.tenant, document)

    def _opened_or_raw(self, document: Document) -> bytes:
        try:
            return self._opened(document)
        except ReverieError:
            return b""


def carry(newest: WindowState, held: WindowState) -> WindowState:
    """What only this process knows of a window, put on a newer copy of it."""
    forms = {match.hash: match for match in held.match if match.form is not None}
    newest.match = [forms.get(match.hash, match) if match.form is None else match for match in newest.match]
    newest.pending = held.pending
    newest.round, newest.passed_round, newest.local_ranges = held.round, held.passed_round, held.local_ranges
    newest.redact, newest.negative, newest.policy = held.redact, held.negative, held.policy
    if newest.remote_compaction is None:
        newest.remote_compaction = held.remote_compaction
    newest.resets = [*newest.resets, *held.resets] if newest is not held else newest.resets
    return newest


def seal(parts: Parts, tenant: str, space: str, clear: bytes) -> bytes:
    """Window bytes as stored: sealed, unless the store lives in memory only and has no key."""
    if parts.cipher is None:
        if parts.store.durable:
            raise ReverieError(
                "Windows can only be kept sealed, and this host has no key. Set REVERIE_KEY_FILE.", code="no_cipher"
            )
        return clear
    return parts.cipher.seal(clear, context=f"{tenant}/{space}".encode())


def unseal(parts: Parts, tenant: str, document: Document) -> bytes:
    """The clear bytes of a window document."""
    body = document.body or b""
    if parts.cipher is None:
        return body
    return parts.cipher.open(body, context=f"{tenant}/{document.space}".encode())


ENDPOINT_KINDS = (*KINDS.values(), "responses_context_management")
