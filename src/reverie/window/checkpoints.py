"""The readable layer of one window: the words of its turns, and checkpoints of its content.

The part of a conversation that people and memory reads may see; a window can be rebuilt from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reverie.core.clock import to_iso
from reverie.core.entry import Draft, Entry, Scope, Source
from reverie.core.query import Filter, each, pages
from reverie.memory.policy import Rules
from reverie.services import Services
from reverie.store.contract import ReadTx
from reverie.window.checkpoint import Checkpoint, build_checkpoint
from reverie.window.items import Item
from reverie.window.state import WindowState
from reverie.window.transcript import (
    CHECKPOINT_KIND,
    CLEARED_ATTRIBUTE,
    SCOPE_ATTRIBUTE,
    TURN_KIND,
    Rebuild,
    rebuild,
    turn_drafts,
)
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
    """Entries that describe a window, and the window rebuilt from them."""

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
        """Make a checkpoint of the window: from its items, the runtime's description of the work, and its memory."""

        def body(tx: ReadTx) -> tuple[dict[str, list[str]], list[str], str]:
            results: dict[str, list[str]] = {}
            for entry in tx.scan(Filter(kinds=tuple(_FOUND)), limit=60).items:
                results.setdefault(_FOUND[entry.kind], []).append(entry.content)
            turns = tx.scan(Filter(kinds=(TURN_KIND,), session=self.key[:256]), limit=8).items
            first = self._newest(tx, CHECKPOINT_KIND)
            objective = ""
            if first and not first.attributes.get(CLEARED_ATTRIBUTE):
                known = first.attributes.get("checkpoint")
                objective = str(known.get("objective") or "") if isinstance(known, dict) else ""
            return results, [entry.id for entry in reversed(turns)], objective

        results, refs, objective = self._parts.store.read(self._scope, body)
        if objective and "objective" not in results:
            results["objective"] = [objective]  # what the user first asked may be compacted away by now
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
            found=results,
        )

    def draft(self, record: Checkpoint, rules: Rules, *, cleared: bool = False) -> Draft:
        """A checkpoint as a draft; its longest fields are halved until it fits. `cleared`: the conversation ends here,
        and nothing before it is ever put into a window again."""
        document = record.document()
        text = record.text()
        while len(json.dumps(document).encode()) > rules.policy.max_attribute_bytes - 512:
            longest = max(document, key=lambda name: len(json.dumps(document[name])))
            value = document[longest]
            if not value:  # the names of the fields alone are too long
                document = {}
                break
            document[longest] = value[: len(value) // 2] if isinstance(value, list | str) else {}
        return Draft(
            content=text.encode()[: rules.policy.max_entry_bytes].decode("utf-8", "ignore"),
            kind=CHECKPOINT_KIND,
            subject=self.subject,
            attributes={SCOPE_ATTRIBUTE: self.key, "checkpoint": document}
            | ({CLEARED_ATTRIBUTE: True} if cleared else {}),
            source=Source(session=self.key[:256]),
        )

    def readable(
        self,
        *,
        most_tokens: int,
        following: Sequence[Item] = (),
        retained_tokens: int = 64_000,
        checkpoint: str | None = None,
        gist: str = "",
        clean: Callable[[str], str] = str,
    ) -> Rebuild:
        """A window from the readable layer alone: the newest checkpoint (or `checkpoint`), the user's messages and the
        newest turns that fit, with every call that `following` answers. What was said before the conversation was
        cleared is no part of it. `gist`: what an earlier rebuild left out, in short."""
        few = most_tokens * 8
        users = min(retained_tokens, most_tokens) * 8

        def body(tx: ReadTx) -> tuple[list[Entry], set[str], Entry | None]:
            mark = self._newest(tx, CHECKPOINT_KIND)
            cleared = mark is not None and bool(mark.attributes.get(CLEARED_ATTRIBUTE))
            turns: list[Entry] = []
            left_out: set[str] = set()
            size = said = 0
            begun: str | None = None
            where = Filter(kinds=(TURN_KIND,), session=self.key[:256])
            for page in pages(lambda cursor: tx.scan(where, limit=200, cursor=cursor)):
                if size >= few and said >= users:
                    break
                for entry in page.items:
                    about = entry.attributes
                    if about.get(SCOPE_ATTRIBUTE) != self.key:
                        continue
                    turn = str(about.get("turn", ""))
                    if (begun is not None and turn != begun) or (mark and cleared and entry.born_seq < mark.born_seq):
                        return turns[::-1], left_out, mark
                    begun = turn if about.get("follows") == -1 else None
                    own = entry.source.role == "user" and about.get("item") == "message"
                    if size >= few and not own and "follows" not in about:
                        left_out.add(turn)
                        continue
                    turns.append(entry)
                    size += entry.byte_size
                    said += entry.byte_size if own else 0
            return turns[::-1], left_out, mark

        turns, left_out, newest = self._parts.store.read(self._scope, body)
        if not turns:
            return Rebuild([], "ledger")
        if checkpoint is None and newest is not None and not _is_of_the_past(newest):
            checkpoint = newest.content
        made = rebuild(
            turns,
            checkpoint or "",
            gist=gist,
            clean=clean,
            most_tokens=most_tokens,
            following=following,
            retained_tokens=retained_tokens,
            left_out=left_out,
        )
        quoted = [*turns, newest] if newest is not None else turns
        return replace(made, read={entry.position: entry.version for entry in quoted})

    def end(self, tx: ReadTx) -> int | None:
        """The position behind the newest turn since the conversation was last cleared; None without one."""
        newest, mark = self._newest(tx, TURN_KIND), self._newest(tx, CHECKPOINT_KIND)
        if newest is None or not isinstance(newest.attributes.get("position"), int):
            return None
        if mark is not None and mark.attributes.get(CLEARED_ATTRIBUTE) and mark.born_seq > newest.born_seq:
            return None
        return int(newest.attributes["position"]) + 1

    def _newest(self, tx: ReadTx, kind: str) -> Entry | None:
        where = Filter(kinds=(kind,), session=self.key[:256])
        found = each(lambda cursor: tx.scan(where, limit=8, cursor=cursor))
        return next((entry for entry in found if entry.attributes.get(SCOPE_ATTRIBUTE) == self.key), None)


def _is_of_the_past(checkpoint: Entry) -> bool:
    """Whether a checkpoint describes a conversation that the caller cleared or took back."""
    known = checkpoint.attributes.get("checkpoint")
    reason = known.get("reason") if isinstance(known, dict) else None
    return bool(checkpoint.attributes.get(CLEARED_ATTRIBUTE)) or reason == "not_append_only"
