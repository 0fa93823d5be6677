"""The passes of one window: every attempt with its outcome, and the metadata of those that were committed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.core.actor import Actor
from reverie.core.clock import to_iso
from reverie.core.entry import Scope
from reverie.core.errors import ReverieError
from reverie.core.event import NewEvent
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import holder, is_dead
from reverie.window.compaction import Attempt
from reverie.window.items import encode, payload_hash, payloads
from reverie.window.sealed import ATTEMPT_SPACE, PASS_SPACE, SealedWindow
from reverie.window.state import WindowState
from reverie.window.steps import Ticket
from reverie.window.turn import Turn

KEPT_ATTEMPTS = 20


class Attempts:
    """Attempts at a pass and their outcomes. One runs at a time: it holds the lease of the window."""

    def __init__(self, parts: Services, actor: Actor, scope: Scope, sealed: SealedWindow) -> None:
        self._parts = parts
        self._actor = actor
        self._scope = scope
        self._sealed = sealed
        self.key = sealed.key

    @property
    def lease(self) -> str:
        """Name of the lease held by a running pass."""
        return f"window:{self.key}"

    def rows(self, tx: ReadTx) -> list[dict[str, Any]]:
        """The last passes of the window, oldest first."""
        document = tx.load(ATTEMPT_SPACE, self.key)
        if document is None:
            return []
        try:
            rows = json.loads(self._sealed.open(document))
        except (ValueError, ReverieError):
            return []
        return rows if isinstance(rows, list) else []

    def begin(self, tx: WriteTx, state: WindowState, attempt: Attempt, ticket: Ticket) -> None:
        """Record an attempt that begins."""
        row = {
            "id": ticket.id,
            "state": "in_flight",
            "generation": attempt.generation,
            "prefix_end": attempt.end,
            "prefix_hash": attempt.prefix_hash,
            "trigger_reason": attempt.reason,
            "method": attempt.method,
            "model": state.model,
            "request_shape_hash": state.request_shape_hash,
            "checkpoint_ref": ticket.checkpoint_ref,
            "holder": ticket.holder,
            "started_at": tx.now,
        }
        data: dict[str, Any] = {"window": self.key, "attempt": ticket.id, "trigger_reason": attempt.reason}
        data |= {"generation": attempt.generation, "items": attempt.end, "checkpoint_ref": ticket.checkpoint_ref}
        seq = tx.append(self._event("remote_compaction_started", "COMPACT", data))
        self._put(tx, [*self.rows(tx), row], seq)

    def finish(self, tx: WriteTx, attempt_id: str, state: str, status: str, seq: int) -> None:
        """Record the end of an attempt."""
        rows = self.rows(tx)
        for row in rows:
            if row["id"] == attempt_id and row["state"] == "in_flight":
                row |= {"state": state, "status": status, "ended_at": tx.now}
        self._put(tx, rows, seq)

    def end(self, ticket: Ticket, report: Mapping[str, Any]) -> None:
        """Record the end of a pass that changed nothing."""
        status = str(report.get("status", "failed"))
        state = "rejected" if status.startswith("rejected") or status == "stale_generation" else "failed"
        type_ = "remote_compaction_rejected" if state == "rejected" else "remote_compaction_failed"

        def body(tx: WriteTx) -> None:
            data = {"window": self.key, "attempt": ticket.id, "status": status}
            data |= {name: report[name] for name in ("http_status", "provider_code") if name in report}
            seq = tx.append(self._event(type_, "COMPACT", data))
            self.finish(tx, ticket.id, state, status, seq)
            tx.release(self.lease, ticket.holder)

        self._parts.store.write(self._scope, body)

    def abandon(self, ticket: Ticket) -> None:
        """Record a pass whose caller left; its outcome is unknown."""

        def body(tx: WriteTx) -> None:
            self._give_up(tx, ticket.id)
            tx.release(self.lease, ticket.holder)

        self._parts.store.write(self._scope, body)

    def bury(self, tx: WriteTx) -> None:
        """Abandon the passes of processes that are gone; each is reported once."""
        for row in self.rows(tx):
            if row["state"] != "in_flight":
                continue
            probe = holder("probe")
            if is_dead(row["holder"]):
                tx.release(self.lease, row["holder"])
            elif not tx.claim(self.lease, probe, until=tx.now + 1):
                continue
            tx.release(self.lease, probe)
            self._give_up(tx, row["id"])

    def metadata(
        self,
        state: WindowState,
        ticket: Ticket,
        report: Mapping[str, Any],
        covered_first: int,
        covered_last: int,
        generation_before: int,
    ) -> dict[str, Any]:
        """Build the stored metadata of a pass that made the window smaller."""
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

    def save_pass(self, tx: WriteTx, row: Mapping[str, Any], seq: int) -> None:
        """Store the metadata of a pass."""
        key = f"{self.key}#{row['compaction_id']}"
        tx.save(PASS_SPACE, key, self._sealed.seal(PASS_SPACE, json.dumps(row).encode()), seq=seq)

    def by_server(self, tx: WriteTx, state: WindowState, turn: Turn, checkpoint: str | None, seq: int) -> None:
        """Store the metadata of the compactions that the provider made by itself within a turn."""
        for number, item in enumerate(item for item in turn.appended if item.is_compaction):
            text = payloads([item])
            report = {
                "trigger_reason": "server_threshold",
                "endpoint_kind": state.dialect.server_kind,
                "compaction_items": 1,
                "usage": turn.usage if number == 0 else None,
                "encrypted_content_hashes": [payload_hash(part) for part in text],
                "encrypted_content_bytes": [len(encode(part)) for part in text],
            }
            ticket = Ticket("", "", checkpoint, "")
            last = turn.first_position + turn.appended.index(item) - 1
            row = self.metadata(state, ticket, report, state.epoch_position, last, state.generation - 1)
            self.save_pass(tx, row, seq)

    def _give_up(self, tx: WriteTx, attempt_id: str) -> None:
        if any(row["id"] == attempt_id and row["state"] == "in_flight" for row in self.rows(tx)):
            data = {"window": self.key, "attempt": attempt_id}
            seq = tx.append(self._event("remote_compaction_abandoned", "COMPACT", data))
            self.finish(tx, attempt_id, "abandoned", "abandoned", seq)

    def _put(self, tx: WriteTx, rows: Sequence[Mapping[str, Any]], seq: int) -> None:
        body = json.dumps(rows[-KEPT_ATTEMPTS:]).encode()
        tx.save(ATTEMPT_SPACE, self.key, self._sealed.seal(ATTEMPT_SPACE, body), seq=seq)

    def _event(self, type_: str, operation: str, data: Mapping[str, Any]) -> NewEvent:
        return NewEvent(type_, operation, self._actor.id, data=data)
