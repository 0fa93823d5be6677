"""Akashik in Python: a Field that a team of agents shares, without a wire.

from reverie.akashik import Field

field = Field()
scout = field.register(id="scout", role="researcher")
scout.record(type="finding", content="The port is 8484.", intent={"purpose": "set up the client"},
             confidence={"score": 0.9, "reasoning": "read in the manual"})
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from reverie.app import build_host
from reverie.core.actor import Actor
from reverie.core.entry import valid_tenant
from reverie.core.errors import Invalid
from reverie.core.ids import TimeIds
from reverie.host import Host
from reverie.http.parsing import parse
from reverie.protocols.akashik.call import FieldServices
from reverie.protocols.akashik.envelope import PROTOCOL, VERSION
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.field import Field as HostField
from reverie.protocols.akashik.notify import FOLLOWED, Feed
from reverie.protocols.akashik.operations.subscriptions import find
from reverie.settings import Settings

_POLL_SECONDS = 0.05
_PAGE = 500


class AkashikError(Exception):
    """The Field refused. `code` is the protocol's, such as MISSING_INTENT; `suggested_action` says what to do."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(f"{body['code']}: {body['message']}")
        self.body = dict(body)
        self.code: str = body["code"]
        self.message: str = body["message"]
        self.operation: str | None = body.get("operation")
        self.recoverable: bool = body["recoverable"]
        self.suggested_action: str = body["suggested_action"]


class Answer(dict[str, Any]):
    """Answer of the Field: the protocol's members, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return Answer(value) if isinstance(value, dict) else value


class Field:
    """A shared memory. `Field()` is in memory and ends with the program; a folder or a database URL makes it durable.

    Safe to share between threads; close it, or use it as a context manager.
    """

    def __init__(
        self,
        target: str | Path | None = None,
        *,
        tenant: str = "default",
        authority: int = 10,
        level: int | None = None,
        host: Host | None = None,
    ) -> None:
        if not valid_tenant(tenant):
            raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -")
        self._own = host is None
        self.host = host or build_host(_settings(target, level))
        self._held = self.host.use(HostField)
        self.actor = Actor(tenant=tenant, id="local:library", authority=authority, door="akashik")
        self._ids = TimeIds()

    def register(self, id: str, role: str, *, session: str | None = None, **payload: Any) -> Agent:  # noqa: A002
        """Join the Field. `interests`, `required_operations` and `authority_level` may be given."""
        agent = Agent(self, id, role, session=session)
        agent.registration = agent.send("REGISTER", {"id": id, "role": role, **payload})
        return agent

    def status(self) -> Answer:
        """Level, clock, counts and log head of the Field."""
        return self._ask(lambda: self._held.status(self.actor))

    def agents(self) -> list[dict[str, Any]]:
        """List the registered agents."""
        return list(self._ask(lambda: self._held.agents(self.actor))["agents"])

    def conflicts(self, *, agent_id: str | None = None, session_id: str | None = None) -> list[dict[str, Any]]:
        """Unresolved conflicts."""
        found = self._ask(lambda: self._held.conflicts(self.actor, agent_id=agent_id, session_id=session_id))
        return list(found["conflicts"])

    def unit(self, unit_id: str) -> Answer:
        """One unit, hot or archived."""
        return self._ask(lambda: self._held.unit(self.actor, unit_id))

    def log(self, **asked: Any) -> Answer:
        """The event log: `after_seq`, `limit`, `session_id`, `agent_id`."""
        return self._ask(lambda: self._held.log(self.actor, **asked))

    def perform(self, document: Mapping[str, Any]) -> Answer:
        """Carry out one message, with its envelope."""
        return self._ask(lambda: self._held.perform(self.actor, _as_json(document)))

    @property
    def services(self) -> FieldServices:
        """The services that subscriptions read with."""
        return self._held.services

    def message_id(self) -> str:
        """A new id for a message."""
        return self._ids.new()

    def _ask(self, work: Any) -> Answer:
        try:
            return Answer(work())
        except FieldError as error:
            raise AkashikError(error.body()) from None

    def close(self) -> None:
        """Finish all accepted work, then release every resource."""
        if self._own:
            self.host.close()

    def __enter__(self) -> Field:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Agent:
    """A registered agent. Every method is one operation; each raises AkashikError with the protocol's code."""

    def __init__(self, field: Field, id: str, role: str, *, session: str | None = None) -> None:  # noqa: A002
        self.field = field
        self.id = id
        self.role = role
        self.session_id = session
        self.epoch = 0
        """The highest epoch this agent has seen."""
        self.registration = Answer()

    def within(self, session: str | None) -> Agent:
        """The same agent, speaking in a session."""
        other = Agent(self.field, self.id, self.role, session=session)
        other.epoch, other.registration = self.epoch, self.registration
        return other

    def send(self, operation: str, payload: Mapping[str, Any], *, message_id: str | None = None) -> Answer:
        """One message. The same `message_id` again is answered as the first was, and does nothing."""
        answer = self.field.perform(
            {
                "protocol": PROTOCOL,
                "version": VERSION,
                "id": message_id or self.field.message_id(),
                "operation": operation,
                "agent_id": self.id,
                "session_id": self.session_id,
                "epoch": self.epoch,
                "payload": dict(payload),
            }
        )
        self.epoch = max(self.epoch, answer["epoch"])
        return answer

    def record(
        self,
        content: str,
        *,
        type: str = "finding",  # noqa: A002
        intent: Mapping[str, Any] | str | None = None,
        confidence: Mapping[str, Any] | None = None,
        relations: Sequence[Mapping[str, Any]] = (),
        mode: str = "committed",
        **more: Any,
    ) -> Answer:
        """Record a unit. `intent` is an object, or just the purpose as text."""
        payload: dict[str, Any] = {"mode": mode, "type": type, "content": content, **more}
        if intent is not None:
            payload["intent"] = {"purpose": intent} if isinstance(intent, str) else dict(intent)
        if confidence is not None:
            payload["confidence"] = dict(confidence)
        if relations:
            payload["relations"] = [dict(relation) for relation in relations]
        return self.send("RECORD", payload)

    def attune(
        self,
        scope: Mapping[str, Any] | None = None,
        *,
        max_units: int = 20,
        context_hint: str | None = None,
        format: str | None = None,  # noqa: A002
        since_epoch: int | None = None,
        **wider: Any,
    ) -> Answer:
        """The units that matter now. Other members of a scope are given by name: `max_tokens`, `interests` ..."""
        payload: dict[str, Any] = {"scope": {"role": self.role, "max_units": max_units, **wider, **(scope or {})}}
        for name, value in (("context_hint", context_hint), ("format", format), ("since_epoch", since_epoch)):
            if value is not None:
                payload[name] = value
        return self.send("ATTUNE", payload)

    def detect(self, mode: str = "list", *, target_id: str | None = None, **filters: Any) -> Answer:
        """Contradictions: `list`, `check` one unit, or `scan` them all."""
        payload: dict[str, Any] = {"mode": mode, "filter": filters}
        return self.send("DETECT", {**payload, **({"target_id": target_id} if target_id else {})})

    def merge(self, conflict_id: str, strategy: str, *, rationale: str, **resolution: Any) -> Answer:
        """Resolve a conflict; give `winner_id` or `synthesis` where the strategy takes one."""
        how = {"rationale": rationale, **resolution}
        return self.send("MERGE", {"conflict_id": conflict_id, "strategy": strategy, "resolution": how})

    def replay(self, target_id: str, *, target_type: str = "memory_unit", depth: str = "summary") -> Answer:
        """Show from the log how something came to be."""
        return self.send("REPLAY", {"target_type": target_type, "target_id": target_id, "depth": depth})

    def compact(self, strategy: str, *, reason: str | None = None, dry_run: bool = False, **filters: Any) -> Answer:
        """Archive, summarize or purge. Filters by name: `max_age_epochs`, `session_id`, `types`, `status`."""
        payload: dict[str, Any] = {"strategy": strategy, "filter": filters}
        if reason is not None:
            payload["reason"] = reason
        return self.send("COMPACT", {**payload, **({"dry_run": True} if dry_run else {})})

    def handoff(self, action: str = "initiate", **payload: Any) -> Answer:
        """Hand a task to another agent, with its context; or answer a handoff."""
        return self.send("HANDOFF", {"action": action, **payload})

    def coordinate(self, action: str, *, reason: str | None = None, **task: Any) -> Answer:
        """Tasks: `create`, `claim`, `start`, `complete` ... with the task's members by name."""
        return self.send("COORDINATE", {"action": action, "task": task, **({"reason": reason} if reason else {})})

    def session(self, action: str, **session: Any) -> Answer:
        """Sessions: `create`, `join`, `pause` ... with the session's members by name."""
        return self.send("SESSION", {"action": action, "session": session})

    def deregister(self, agent_id: str | None = None) -> Answer:
        """Leave the Field. What was recorded stays."""
        return self.send("DEREGISTER", {"agent_id": agent_id or self.id})

    def subscribe(
        self,
        events: Iterable[str],
        *,
        id: str | None = None,  # noqa: A002
        min_relevance: float = 0.0,
        debounce_ms: int = 0,
    ) -> Subscription:
        """Subscribe to events: iterate over the result, or call its `poll`."""
        wanted: dict[str, Any] = {"events": list(events), "min_relevance": min_relevance, "debounce_ms": debounce_ms}
        answer = self.send("SUBSCRIBE", {"action": "subscribe", "subscription": wanted | ({"id": id} if id else {})})
        return Subscription(self, answer["subscription"]["id"])

    def subscriptions(self) -> list[dict[str, Any]]:
        """List this agent's subscriptions."""
        return list(self.send("SUBSCRIBE", {"action": "list"})["subscriptions"])


class Subscription:
    """Notifications of one subscription, each once and in order."""

    def __init__(self, agent: Agent, id: str) -> None:  # noqa: A002
        self.agent = agent
        self.id = id
        field = agent.field
        found = find(field.services, field.actor, agent.id, id)
        self._feed = Feed(field.services, field.actor.tenant, found, None)
        self._at = found.seq
        self.active = True

    def poll(self) -> list[Answer]:
        """Return the notifications since the last poll."""
        field = self.agent.field
        notifications: list[Answer] = []
        while self.active:
            page = field.host.reader.events(field.actor, after=self._at, limit=_PAGE, types=FOLLOWED)
            found, self.active = self._feed.tell(page)
            notifications += [Answer(notification) for notification in found]
            if page:
                self._at = page[-1].seq
            if len(page) < _PAGE:
                break
        return notifications

    def listen(self, *, seconds: float | None = None) -> Iterator[Answer]:
        """Wait for notifications, at most the given number of seconds; by default without a limit, until the
        subscription ends.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            yield from self.poll()
            if not self.active or (until is not None and time.monotonic() >= until):
                return
            time.sleep(_POLL_SECONDS)

    def __iter__(self) -> Iterator[Answer]:
        return self.listen()

    def unsubscribe(self) -> None:
        """End the subscription: no event arrives after this."""
        self.agent.send("SUBSCRIBE", {"action": "unsubscribe", "subscription": {"id": self.id}})
        self.active = False


def _as_json(message: Mapping[str, Any]) -> Any:
    """The message as it would arrive over HTTP: tuples are lists, and whatever JSON cannot hold is refused."""
    try:
        return parse(json.dumps(dict(message), allow_nan=False).encode())
    except (Invalid, RecursionError, TypeError, ValueError):
        said = "A message holds JSON only: sound text, finite numbers, lists and objects."
        raise FieldError("INVALID_ENVELOPE", said, operation=message.get("operation")) from None


def _settings(target: str | Path | None, level: int | None) -> Settings:
    given: dict[str, Any] = {} if level is None else {"akashik_level": level}
    if target is None:
        return Settings.load(database_url="sqlite:///:memory:", **given)
    text = str(target)
    if "://" in text:
        return Settings.load(database_url=text, **given)
    return Settings.load(data=text, **given)
