"""Notifications, made from the log: the events that one subscription asks for and its agent may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.event import Event
from reverie.core.query import Key, Vector
from reverie.protocols.akashik.call import FieldServices
from reverie.protocols.akashik.operations.agents import FieldAgent, load_agent
from reverie.protocols.akashik.operations.subscriptions import EVENTS, Subscription, load_subscription
from reverie.protocols.akashik.relevance import RelevanceQuery, meaning_of, rank_units, vector_of
from reverie.protocols.akashik.units import find_unit, type_of
from reverie.protocols.akashik.visibility import View
from reverie.redact import KnownSecrets
from reverie.store.contract import ReadTx

LOGGED = {"handoff.initiated" if name == "handoff.incoming" else name: name for name in EVENTS}
"""Events of the log, with the names used by subscribers."""
FOLLOWED = (*LOGGED, "field.subscribed", "field.unsubscribed")
"""Events of the log that a feed must be given."""
SUMMARY = 160
"""Characters of a unit's text in a notification."""


class Feed:
    """Serves one subscription. Only what prevents repeats is remembered; visibility is checked for every event."""

    def __init__(self, services: FieldServices, tenant: str, subscription: Subscription, key_id: str | None) -> None:
        self._services = services
        self._scope = Scope(tenant, services.ref)
        self.tenant = tenant
        self.key_id = key_id
        self.subscription = subscription
        self._notified: dict[str, int] = {}
        """Time of the last notification, by entity."""
        self._query = ""
        self._vector: Vector | None = None

    def tell(self, events: Sequence[Event]) -> tuple[list[dict[str, Any]], bool]:
        """Return the notifications for a page of the log, and whether the subscription continues."""
        key = self._key()
        if self.key_id is not None and key is None:
            return [], False
        self._embed_interests(events)
        known = self._services.rulebook.current(self.tenant).known

        def body(tx: ReadTx) -> tuple[list[dict[str, Any]], bool]:
            subscription = self.subscription
            agent = load_agent(tx, subscription.agent_id)
            current = load_subscription(tx, subscription.agent_id, subscription.id)
            notifications: list[dict[str, Any]] = []
            for event in events:
                if self._ends(event):
                    return notifications, False
                if agent is not None:
                    found = self._notification(tx, event, agent, key, known)
                    if found is not None:
                        notifications.append(found)
            return notifications, agent is not None and current is not None and current.seq == subscription.seq

        return self._services.parts.store.read(self._scope, body)

    def _key(self) -> Key | None:
        store, clock = self._services.parts.store, self._services.parts.clock
        key = store.control(lambda tx: tx.key(self.key_id or "")) if self.key_id else None
        now = clock.now()
        if key is None or (key.revoked_at is not None and key.revoked_at <= now):
            return None
        return None if key.expires_at is not None and key.expires_at <= now else key

    def _ends(self, event: Event) -> bool:
        """Whether this event ends the subscription: it was cancelled, or replaced by one with the same id."""
        own = self.subscription
        return (
            event.type in ("field.unsubscribed", "field.subscribed")
            and event.actor == own.agent_id
            and event.data.get("subscription") == own.id
            and event.seq > own.seq
        )

    def _notification(
        self, tx: ReadTx, event: Event, agent: FieldAgent, key: Key | None, known: KnownSecrets
    ) -> dict[str, Any] | None:
        own = self.subscription
        name = LOGGED.get(event.type)
        if name is None or name not in own.events or event.seq <= own.seq:
            return None
        of_agents = name.startswith("agent.") and event.session is None
        if event.session != own.session_id and not of_agents:
            return None
        authority = min(agent.authority_level, key.authority) if key else agent.authority_level
        view = View(tx, level=self._services.level, agent=agent, authority=authority, session_id=own.session_id)
        if not view.enters(event.session):
            return None
        data, mine, relevance = event.data, False, 1.0
        units = [event.entry_id] if event.entry_id else []
        if name.startswith("conflict."):
            units = [str(data.get("unit_a")), str(data.get("unit_b"))]
        summary = _plain(name, event)
        for unit_id in units:
            entry = find_unit(tx, unit_id)
            if entry is None:
                continue
            if not view.reaches(entry) or entry.state is EntryState.DRAFT:
                return None
            mine = mine or view.wrote(entry)
            if name.startswith("memory."):
                relevance = self._relevance(tx, agent, entry, event)
                text = self._services.parts.redactor.text(entry.content, known).text
                summary = f"{type_of(entry)} by {entry.source.actor}: {_short(text)}"
        if name == "handoff.incoming" and data.get("to_agent") != agent.id:
            return None
        if relevance < own.min_relevance or self._too_soon(event, name):
            return None
        return {
            "subscription_id": own.id,
            "event": name,
            "epoch": event.epoch,
            "relevance_score": relevance,
            "summary": summary,
            "memory_unit_id": event.entry_id,
            "conflict_id": event.conflict_id,
            "requires_action": (name == "conflict.detected" and mine)
            or (name == "task.assigned" and data.get("assignee") in (None, agent.id))
            or name == "handoff.incoming",
            "task_id": event.task_id,
            "seq": event.seq,
        }

    def _embed_interests(self, events: Sequence[Event]) -> None:
        """Embed the agent's interests outside any transaction, and again only when they have changed."""
        if not any(event.type.startswith("memory.") for event in events):
            return
        agent = self._services.parts.store.read(self._scope, lambda tx: load_agent(tx, self.subscription.agent_id))
        query = " ".join(agent.interests) if agent is not None else ""
        if query != self._query:
            self._query, self._vector = query, vector_of(query, self._services.parts.embedder)

    def _relevance(self, tx: ReadTx, agent: FieldAgent, entry: Entry, event: Event) -> float:
        query = " ".join(agent.interests)
        asked = RelevanceQuery(role=agent.role, query=query, task_id=agent.current_task_id, epoch=event.epoch)
        meaning = meaning_of(tx, [entry], query, self._vector if query == self._query else None)
        return rank_units([entry], asked, meaning)[0].score

    def _too_soon(self, event: Event, name: str) -> bool:
        """Whether this entity had a notification within the debounce time, by the clock of the log."""
        pause = self.subscription.debounce_ms
        if not pause:
            return False
        agent = event.data.get("agent", event.actor) if name.startswith("agent.") else ""
        entity = event.entry_id or event.conflict_id or event.task_id or f"{name} {agent}"
        before = self._notified.get(entity)
        if before is not None and event.at - before < pause:
            return True
        self._notified[entity] = event.at
        if len(self._notified) > 10_000:
            self._notified = {entity: at for entity, at in self._notified.items() if event.at - at < pause}
        return False


def _plain(name: str, event: Event) -> str:
    about = event.conflict_id or event.task_id or event.entry_id or event.session
    return f"{name} by {event.actor}" + (f": {about}" if about else "")


def _short(text: str) -> str:
    """The beginning of a text that was redacted before: half a secret matches no rule."""
    text = " ".join(text.split())
    return text if len(text) <= SUMMARY else text[: SUMMARY - 1].rstrip() + "…"
