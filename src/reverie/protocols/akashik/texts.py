"""Texts of the Field outside units: goals, titles, descriptions, reasons, summaries. A forget reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from reverie.core.actor import Actor
from reverie.core.entry import Entry
from reverie.core.event import NewEvent
from reverie.core.query import each
from reverie.memory.texts import ClearedText, Names, without
from reverie.protocols.akashik.conflicts import CONFLICTS, sides_forgotten
from reverie.protocols.akashik.operations.agents import AGENTS
from reverie.protocols.akashik.operations.handoff import HANDOFFS
from reverie.protocols.akashik.operations.sessions import SESSIONS
from reverie.protocols.akashik.operations.tasks import TASKS, TEXTS
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

_PROSE: Mapping[str, Sequence[str]] = {
    AGENTS: ("interests",),
    SESSIONS: ("goal",),
    TASKS: TEXTS,
    HANDOFFS: ("reason", "summary", "open_questions"),
    CONFLICTS: ("resolution",),
}
"""Members with text, by the space of their documents. The others are ids, types and states."""
_SAID = "rationale"
"""The member of a resolution that is text."""


class FieldTexts:
    """Texts of the Field outside units."""

    def __init__(self, parts: Services) -> None:
        self._ref = parts.field.ref

    def mentions(self, tx: ReadTx, names: Names) -> Iterator[ClearedText]:
        """Documents of the Field that mention the words."""
        for space, members in _PROSE.items():
            for document in each(lambda cursor, space=space: tx.documents(space, cursor=cursor)):  # type: ignore[misc]
                body = orjson.loads(document.body or b"{}")
                after = body | {name: _cleared(body[name], names) for name in members if body.get(name)}
                if after != body:
                    yield ClearedText(document, orjson.dumps(after))

    def release(self, tx: WriteTx, actor: Actor, entries: Sequence[Entry]) -> None:
        """End the conflicts of units, and erase the texts of handoffs that include them: these may quote them."""
        units = {entry.id for entry in entries if entry.ref == self._ref}
        if not units:
            return
        sides_forgotten(tx, actor, self._ref, units)
        for document in list(each(lambda cursor: tx.documents(HANDOFFS, cursor=cursor))):
            body = orjson.loads(document.body or b"{}")
            if not units.isdisjoint(unit for unit, _ in body["units"]):
                after = body | {"reason": None, "summary": None, "open_questions": []}
                seq = tx.append(NewEvent("document.saved", "FORGET", actor.id))
                tx.save(HANDOFFS, document.key, orjson.dumps(after), seq=seq, destroy=True)


def _cleared(value: Any, names: Names) -> Any:
    if isinstance(value, Mapping):
        return {**value, _SAID: without(value.get(_SAID), names)} if _SAID in value else value
    return without(value, names)
