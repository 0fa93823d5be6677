"""The readable layer beside one window: the words of its turns, and checkpoints of what it stood for.

What a person or a memory read may see of a conversation; a window can be made anew from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.core.clock import to_iso
from reverie.core.entry import Draft, Entry, Scope, Source
from reverie.core.query import Filter
from reverie.memory.policy import Rules
from reverie.services import Services
from reverie.store.contract import ReadTx
from reverie.window.checkpoint import Checkpoint, build_checkpoint
from reverie.window.items import Item
from reverie.window.state import WindowState
from reverie.window.transcript import CHECKPOINT_KIND, SCOPE_ATTRIBUTE, TURN_KIND, rebuilt, turn_drafts
from reverie.window.turn import Turn

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


class Checkpoints:
    """Drafts of the entries that tell a window, and the way back from them."""

    def __init__(self, parts: Services, scope: Scope, *, key: str, subject: str | None) -> None:
        self._parts = parts
        self._scope = scope
        self.key = key
        self.subject = subject

    def turn_drafts(self, turn: Turn, rules: Rules) -> list[Draft]:
        """The words of a turn."""
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

    def make(
        self,
        state: WindowState,
        reason: str,
        *,
        work: Mapping[str, Any],
        items: Sequence[Item] | None = None,
        covered: tuple[int, int] | None = None,
    ) -> Checkpoint:
        """A checkpoint of the window: from its items, what the runtime says of the work, and the memory beside it."""

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
            work=work,
            source_refs=refs,
            found=found,
        )

    def draft(self, record: Checkpoint, rules: Rules) -> Draft:
        """A checkpoint as an entry, halved where it is longest until it fits."""
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
