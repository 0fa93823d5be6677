"""SUBSCRIBE: the events an agent asks for. Subscriptions are documents; the sender of notifications follows the log."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct, convert, to_builtins

from reverie.core.actor import Actor, Right
from reverie.core.entry import Scope
from reverie.protocols.akashik import documents
from reverie.protocols.akashik.call import FieldServices, Operation, OperationCall
from reverie.protocols.akashik.envelope import MAX_NAME
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.names import name_of
from reverie.protocols.akashik.operations.agents import load_agent
from reverie.store.contract import ReadTx

SUBSCRIPTIONS = "akashik.subscription"
EVENTS = (
    "memory.recorded",
    "memory.superseded",
    "memory.contested",
    "conflict.detected",
    "conflict.resolved",
    "task.state_changed",
    "task.assigned",
    "task.completed",
    "handoff.incoming",
    "agent.joined",
    "agent.failed",
    "session.paused",
    "session.ended",
)
ACTIONS = ("subscribe", "unsubscribe", "list")
AUTHORITY = 2
MAX_DEBOUNCE_MS = 86_400_000
MOST = 1000
"""Subscriptions of one agent."""


class Subscription(Struct, frozen=True):
    """The events one agent asks for, in one session."""

    id: str
    agent_id: str
    events: list[str]
    min_relevance: float = 0.0
    debounce_ms: int = 0
    session_id: str | None = None
    seq: int = 0
    """Position in the log where it begins."""

    def document(self) -> dict[str, Any]:
        """The subscription on the wire."""
        return {
            "id": self.id,
            "events": list(self.events),
            "min_relevance": self.min_relevance,
            "debounce_ms": self.debounce_ms,
            "session_id": self.session_id,
        }


def key_of(agent_id: str, subscription_id: str) -> str:
    """The document key of a subscription; with an empty id, the prefix of all keys of the agent."""
    return f"{len(agent_id)}:{agent_id}/{subscription_id}"


def load_subscription(tx: ReadTx, agent_id: str, subscription_id: str) -> Subscription | None:
    """An active subscription; None when absent, or when it belongs to an earlier agent of the same id."""
    agent = load_agent(tx, agent_id)
    found = documents.load(tx, SUBSCRIPTIONS, key_of(agent_id, subscription_id))
    if agent is None or found is None:
        return None
    made = convert(found[0], Subscription)
    return made if made.seq >= agent.since_seq else None


def subscriptions_of(tx: ReadTx, agent_id: str) -> list[Subscription]:
    """List an agent's subscriptions, by id."""
    agent = load_agent(tx, agent_id)
    found = [convert(body, Subscription) for _, body, _ in documents.each(tx, SUBSCRIPTIONS, key_of(agent_id, ""))]
    return [made for made in found if agent is not None and made.seq >= agent.since_seq]


def _execute(call: OperationCall) -> dict[str, Any]:
    action = call.payload.get("action")
    if action not in ACTIONS:
        raise call.error("INVALID_REQUEST", f"action is one of {', '.join(ACTIONS)}.")
    asked = call.payload.get("subscription")
    if action != "list" and not isinstance(asked, dict):
        raise call.error("INVALID_REQUEST", "subscription is an object.")
    wanted = _subscription(call, asked or {}) if action == "subscribe" else None
    call.require(AUTHORITY)
    agent = call.speaker.id
    if action == "list":
        return {"status": "ok", "subscriptions": [s.document() for s in subscriptions_of(call.tx, agent)]}
    if wanted is None:
        return _unsubscribe(call, asked or {})
    return _subscribe(call, wanted)


def _subscription(call: OperationCall, asked: dict[str, Any]) -> Subscription:
    def no(text: str) -> FieldError:
        return call.error("INVALID_REQUEST", text)

    key, events = asked.get("id"), asked.get("events")
    least, debounce = asked.get("min_relevance"), asked.get("debounce_ms")
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= MAX_NAME):
        raise no(f"subscription.id is a string of 1 to {MAX_NAME} characters.")
    if not isinstance(events, list) or not events or any(event not in EVENTS for event in events):
        raise no(f"subscription.events lists some of: {', '.join(EVENTS)}.")
    if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1):
        raise no("subscription.min_relevance is a number from 0 to 1.")
    if debounce is not None and (type(debounce) is not int or not 0 <= debounce <= MAX_DEBOUNCE_MS):
        raise no(f"subscription.debounce_ms is a whole number from 0 to {MAX_DEBOUNCE_MS}.")
    return Subscription(
        id=key or "",
        agent_id=call.speaker.id,
        events=list(dict.fromkeys(events)),
        min_relevance=float(least or 0),
        debounce_ms=debounce or 0,
        session_id=call.session_id,
    )


def _subscribe(call: OperationCall, wanted: Subscription) -> dict[str, Any]:
    """Store a subscription, in place of an earlier one with the same id."""
    agent = call.speaker.id
    key = wanted.id or call.services.parts.ids.new()
    stored = documents.load(call.tx, SUBSCRIPTIONS, key_of(agent, key))
    if stored is None and len(subscriptions_of(call.tx, agent)) >= MOST:
        raise call.error("INVALID_REQUEST", f"An agent has at most {MOST} subscriptions.")
    data = {"subscription": key, "events": wanted.events}
    seq = call.append("field.subscribed", data=data)
    made = convert({**to_builtins(wanted), "id": key, "seq": seq}, Subscription)
    documents.save(
        call.tx, SUBSCRIPTIONS, key_of(agent, key), to_builtins(made), seq=seq, expected=stored[1] if stored else None
    )
    return {"status": "ok", "subscription": made.document()}


def _unsubscribe(call: OperationCall, asked: dict[str, Any]) -> dict[str, Any]:
    key, agent = asked.get("id"), call.speaker.id
    found = load_subscription(call.tx, agent, key) if isinstance(key, str) and key else None
    if found is None:
        raise call.error("NOT_FOUND", "You have no subscription with this id.")
    seq = call.append("field.unsubscribed", data={"subscription": found.id})
    call.tx.drop(SUBSCRIPTIONS, key_of(agent, found.id), seq=seq)
    return {"status": "ok", "subscription": found.document()}


def find(services: FieldServices, actor: Actor, agent_id: str, subscription_id: str) -> Subscription:
    """A subscription of an agent that this credential registered; both ids as the caller sends them."""
    known = services.rulebook.current(actor.tenant).known

    def body(tx: ReadTx) -> Subscription | None:
        name = partial(name_of, tx, services.parts.redactor, known)
        agent = load_agent(tx, name(agent_id))
        if agent is None or agent.credential != actor.id:
            raise FieldError("AGENT_NOT_REGISTERED", "No agent with this id is registered with this credential.")
        return load_subscription(tx, agent.id, name(subscription_id))

    found = services.parts.store.read(Scope(actor.tenant, services.ref), body)
    if found is None:
        raise FieldError("NOT_FOUND", "There is no subscription with this id.")
    return found


SUBSCRIBE = Operation("SUBSCRIBE", level=2, execute=_execute, right=Right.READ)
