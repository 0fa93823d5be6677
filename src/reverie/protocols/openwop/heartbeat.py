"""Heartbeats: a state is looked at again and again, and something happens only when it changed."""

from __future__ import annotations

from reverie.core.actor import Actor, Right
from reverie.core.canonical import canonical
from reverie.core.entry import Scope
from reverie.core.errors import Conflict, ReadOnly
from reverie.core.event import NewEvent, keyed_hash
from reverie.services import Services
from reverie.store.contract import WriteTx

SPACE = "heartbeat"
MAX_RUNTIME_MS = 5000


class Heartbeats:
    """Remembers of each heartbeat a keyed hash of the state it last saw; never the state."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts

    def beat(self, actor: Actor, heartbeat_id: str, state: object) -> bool:
        """Whether the state is another one than last time. Of beats that race, one sees the change."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        seen = canonical(state).decode()

        def body(tx: WriteTx) -> bool:
            key, now = keyed_hash(tx.log_key(), heartbeat_id), keyed_hash(tx.log_key(), seen).encode()
            before = tx.load(SPACE, key)
            if before is not None and before.body == now:
                return False
            seq = tx.append(NewEvent("document.saved", "HEARTBEAT", actor.id, data={"space": SPACE, "key": key}))
            tx.save(SPACE, key, now, seq=seq, expected=before.version if before else 0)
            return True

        try:
            return self._parts.store.write(Scope(actor.tenant), body)
        except Conflict:
            return False
