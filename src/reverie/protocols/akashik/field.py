"""The Field: every operation passes here, in one order of checks and one transaction.

Envelope, then whether this level has the operation, then the agent and its credential, then the session, then the
clock, then (in the operation) payload and authority, then the work. The tick of the clock, the answer remembered for
repeats and everything the operation changes are one commit: a reader who sees epoch E sees everything up to E.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import orjson

from reverie.core.actor import Actor, Right
from reverie.core.entry import EntryState, Scope
from reverie.core.errors import Conflict, ReverieError, StoreBusy
from reverie.core.event import Event, answer_key, keyed_hash
from reverie.core.retry import Moved, retry
from reverie.memory.policy import Rules
from reverie.memory.read import ANYTHING
from reverie.protocols.akashik import conflicts
from reverie.protocols.akashik.call import FieldServices, Operation, OperationCall, Ready
from reverie.protocols.akashik.conformance import FaultSwitches
from reverie.protocols.akashik.envelope import LIMIT_EPOCH, PROTOCOL, VERSION, Envelope, check_texts, read_envelope
from reverie.protocols.akashik.errors import FieldError, translated
from reverie.protocols.akashik.names import name_of, named, with_names
from reverie.protocols.akashik.operations.agents import each_agent, load_agent
from reverie.protocols.akashik.operations.sessions import check_session, enter, load_session
from reverie.protocols.akashik.operations.table import TABLE
from reverie.protocols.akashik.operations.tasks import each_task
from reverie.protocols.akashik.units import ARCHIVED, HOT, PURGED, UNIT_STATES, as_born, tombstone, unit_with_relations
from reverie.protocols.akashik.visibility import CredentialView, View
from reverie.store.contract import ReadTx, WriteTx, each_event

if TYPE_CHECKING:
    from reverie.dreams.archive import Archives
    from reverie.dreams.engine import DreamEngine
    from reverie.jobs.embedding import Embeddings
    from reverie.memory.entries import Entries
    from reverie.memory.policy import RuleBook
    from reverie.services import Services

REMEMBERED_MS = 24 * 3_600_000
_TRIES = 50
MAX_LOG_PAGE = 10_000
_WRITTEN = ("memory.recorded", "memory.written")
"""Events that name the session of their unit whenever it has one."""


class _Repeated(Exception):
    """The message was answered before."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer


class Field:
    """A memory that a team of agents shares."""

    def __init__(
        self,
        parts: Services,
        rulebook: RuleBook,
        entries: Entries,
        archives: Archives,
        dreams: DreamEngine,
        embeddings: Embeddings,
        faults: FaultSwitches,
    ) -> None:
        self._embeddings = embeddings
        self.services = FieldServices(
            parts=parts,
            rulebook=rulebook,
            entries=entries,
            archives=archives,
            dreams=dreams,
            faults=faults,
            ref=parts.field.ref,
            level=parts.field.level,
        )

    def check_right(self, actor: Actor, operation: str) -> None:
        """Refuse a caller who may not use the operation, before the message is read. Raises FieldError."""
        row = TABLE[operation]
        try:
            if row.level <= self.services.level:
                actor.require(row.right)
        except ReverieError as error:
            raise translated(error, operation) from error

    def perform(self, actor: Actor, document: Any, *, operation: str | None = None) -> dict[str, Any]:
        """Carry out one message. `operation` is that of the route. Raises FieldError, and nothing else.

        A repeat of a message (same agent, operation and id) is answered as the first was and does nothing.
        """
        named: str | None = operation
        try:
            envelope = read_envelope(document, operation)
            named = envelope.operation
            row = TABLE[envelope.operation]
            if row.level > self.services.level:
                raise FieldError(
                    "UNSUPPORTED_OPERATION",
                    f"{row.name} is of Level {row.level}; this Field is of Level {self.services.level}.",
                )
            actor.require(row.right)
            return self._perform(actor, envelope, row)
        except ReverieError as error:
            made = translated(error, named)
            if made is error:
                raise
            raise made from error

    def _perform(self, actor: Actor, envelope: Envelope, row: Operation) -> dict[str, Any]:
        scope = Scope(actor.tenant, self.services.ref)

        def prepare(attempt: int, rules: Rules) -> Callable[[WriteTx], dict[str, Any]]:
            ready = replace(self._ready(actor, envelope, rules), attempt=attempt)
            prepared: Any = None
            if row.prepare is not None:
                look = self.services.parts.store.read(scope, lambda tx: self._look(tx, ready, envelope, row))
                prepared = row.prepare(look)
            return lambda tx: self._execute(tx, ready, envelope, row, prepared)

        def attempted(attempt: int) -> dict[str, Any]:
            try:
                return self.services.rulebook.guard(actor.tenant, partial(prepare, attempt), scope)
            except _Repeated as repeated:
                return repeated.answer
            except Conflict as fault:
                if fault.reason != Conflict.code:
                    raise
                raise Moved from fault

        return retry(attempted, busy=StoreBusy, tries=_TRIES)

    def _ready(self, actor: Actor, envelope: Envelope, rules: Rules) -> Ready:
        """Redact the message: everything an operation stores has passed through here."""
        services, known = self.services, rules.known
        redactor = services.parts.redactor
        check_texts(envelope.payload, rules.policy)
        payload, findings = redactor.value(dict(envelope.payload), known)
        names = [envelope.agent_id] if envelope.session_id is None else [envelope.agent_id, envelope.session_id]
        agent_id, *session_id = [name.text for name in redactor.many(names, known)]
        return Ready(
            services=services,
            rules=rules,
            actor=actor,
            operation=envelope.operation,
            agent_id=agent_id,
            session_id=session_id[0] if session_id else None,
            payload=cast("dict[str, Any]", payload),
            findings=findings,
        )

    def _look(self, tx: ReadTx, ready: Ready, envelope: Envelope, row: Operation) -> Ready:
        """The checks before slow work, on a snapshot; they are made again inside the transaction."""
        ready = _named(tx, ready, envelope)
        self._repeat(tx, ready, envelope, row)
        checked = replace(ready)
        self._admit(tx, checked, row)
        checked.epoch = _tick(tx, envelope.epoch, ready)
        return checked

    def _execute(self, tx: WriteTx, ready: Ready, envelope: Envelope, row: Operation, prepared: Any) -> dict[str, Any]:
        ready = _named(tx, ready, envelope)
        key, digest = self._repeat(tx, ready, envelope, row)
        call = self._call(tx, ready)
        self._admit(tx, call, row)
        call.prepared = prepared
        call.clock, call.received = tx.head().epoch, envelope.epoch
        call.epoch = _tick(tx, envelope.epoch, ready)
        if row.in_session:
            enter(call)
        result = row.execute(call)
        if not call.logged:
            call.append(row.event)
        kept = orjson.dumps({"epoch": call.epoch, "result": result})
        tx.remember_answer(key, digest, kept, until=tx.now + REMEMBERED_MS)
        shown = row.show(call, result) if row.show else result
        return {**shown, "epoch": call.epoch}

    def _repeat(self, tx: ReadTx, ready: Ready, envelope: Envelope, row: Operation) -> tuple[str, str]:
        """Raise the stored answer of a repeated message; else return the key and digest to store the answer under."""
        secret = tx.log_key()
        name = orjson.dumps([ready.actor.id, envelope.agent_id, envelope.operation, envelope.id]).decode()
        key, digest = answer_key(secret, "akashik", name), keyed_hash(secret, envelope.fingerprint())
        stored = tx.recall_answer(key)
        if stored is None:
            return key, digest
        if stored[0] != digest:
            raise FieldError("DUPLICATE_MESSAGE", "A message with this id was sent before, with another body.")
        before = orjson.loads(stored[1])
        shown = before["result"]
        if row.show is not None:
            call = self._call(cast("WriteTx", tx), ready)
            call.agent = load_agent(tx, ready.agent_id)
            call.session = load_session(tx, ready.session_id) if ready.session_id else None
            call.epoch = before["epoch"]
            shown = row.show(call, shown)
        raise _Repeated({**shown, "epoch": before["epoch"]})

    def _call(self, tx: WriteTx, ready: Ready) -> OperationCall:
        return OperationCall(
            services=ready.services,
            rules=ready.rules,
            actor=ready.actor,
            operation=ready.operation,
            agent_id=ready.agent_id,
            session_id=ready.session_id,
            payload=ready.payload,
            findings=ready.findings,
            agent=ready.agent,
            session=ready.session,
            attempt=ready.attempt,
            tx=tx,
        )

    def _admit(self, tx: ReadTx, ready: Ready, row: Operation) -> None:
        """The agent, bound to this credential, and the session it names."""
        if row.name != "REGISTER":
            agent = load_agent(tx, ready.agent_id)
            if agent is None:
                raise FieldError("AGENT_NOT_REGISTERED", "No agent with this id is registered.")
            if agent.credential != ready.actor.id:
                raise FieldError("AGENT_NOT_REGISTERED", "This agent was registered by another credential.")
            ready.agent = agent
        if ready.session_id is not None:
            ready.session = load_session(tx, ready.session_id)
            if row.in_session:
                check_session(ready, ready.session)

    def switch_fault(self, actor: Actor, kind: object, on: object) -> None:
        """For tests: turn a fault on or off. Units without a vector are embedded when the embedder is back."""
        self.services.faults.switch(actor.tenant, kind, on)
        if kind == "enrichment" and not on:
            self._embeddings.fill(actor)

    # reads without a message

    def status(self, actor: Actor) -> dict[str, Any]:
        """Level, clock, counts and log head of the Field."""

        def body(tx: ReadTx) -> dict[str, Any]:
            head = tx.head()
            return {
                "status": "ok",
                "protocol": PROTOCOL,
                "protocol_version": VERSION,
                "conformance_level": self.services.level,
                "epoch": head.epoch,
                "units": {"hot": tx.count(HOT), "archived": tx.count(ARCHIVED), "purged": tx.count(PURGED)},
                "agents": sum(1 for _ in each_agent(tx)),
                "conflicts_open": conflicts.open_count(tx),
                "log": {"events": head.seq, "head_hash": head.hash},
            }

        return self._read(actor, body)

    def agents(self, actor: Actor) -> dict[str, Any]:
        """Every registered agent."""
        return self._read(actor, lambda tx: {"agents": [agent.document() for agent in each_agent(tx)]})

    def tasks(self, actor: Actor) -> dict[str, Any]:
        """Every task of the sessions visible to the credential."""

        def body(tx: ReadTx) -> dict[str, Any]:
            view = self._view(tx, actor, None)
            return {"tasks": [task.document() for task in each_task(tx) if view.enters(task.session_id)]}

        return self._read(actor, body)

    def conflicts(self, actor: Actor, *, agent_id: str | None = None, session_id: str | None = None) -> dict[str, Any]:
        """Unresolved conflicts visible to the agent, or to the credential where no agent is named."""

        def body(tx: ReadTx) -> dict[str, Any]:
            view = self._view(tx, actor, agent_id)
            return {"conflicts": conflicts.unresolved_for(tx, view, session_id=self._name(tx, actor, session_id))}

        return self._read(actor, body)

    def unit(self, actor: Actor, unit_id: str, *, agent_id: str | None = None) -> dict[str, Any]:
        """One unit, hot or archived, under the rules of visibility."""

        def body(tx: ReadTx) -> dict[str, Any]:
            entry = tx.get(unit_id, where=ANYTHING)
            if entry is not None and entry.state is EntryState.ERASED:
                entry = as_born(tx, entry)
            if entry is None or not self._view(tx, actor, agent_id).reaches(entry):
                raise FieldError("UNIT_NOT_FOUND", "There is no unit with this id.")
            if entry.state is EntryState.ERASED:
                extra = {"tombstone": tombstone(tx, entry)}
                raise FieldError("UNIT_NOT_FOUND", "The unit was purged; its text is gone.", extra=extra)
            if entry.state not in UNIT_STATES:
                raise FieldError("UNIT_NOT_FOUND", "There is no unit with this id.")
            return unit_with_relations(tx, entry)

        return self._read(actor, body)

    def log(
        self,
        actor: Actor,
        *,
        after_seq: int = 0,
        limit: int = 1000,
        session_id: str | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The event log after a position: every event the agent (or, with none named, the credential) may know of.

        `agent_id` names the reader, as in an envelope; it does not filter. `session_id` restricts the answer to one
        session.
        """
        if after_seq < 0 or not 1 <= limit <= MAX_LOG_PAGE:
            raise FieldError("INVALID_REQUEST", f"after_seq is 0 or more, limit is 1 to {MAX_LOG_PAGE}.")

        def body(tx: ReadTx) -> dict[str, Any]:
            view, head = self._view(tx, actor, agent_id), tx.head()
            session = self._name(tx, actor, session_id)
            found = (
                event.document()
                for event in each_event(tx, after=after_seq)
                if (session is None or session in view.logged(event.session)) and _is_known(tx, view, event)
            )
            return {"events": list(islice(found, limit)), "head_seq": head.seq, "head_hash": head.hash}

        return self._read(actor, body)

    def name(self, actor: Actor, sent: str) -> str:
        """The name under which the Field knows an agent or a session that a caller calls `sent`."""
        scope = Scope(actor.tenant, self.services.ref)
        return self.services.parts.store.read(scope, lambda tx: self._name(tx, actor, sent) or sent)

    def _name(self, tx: ReadTx, actor: Actor, sent: str | None) -> str | None:
        known = self.services.rulebook.current(actor.tenant).known
        return None if sent is None else name_of(tx, self.services.parts.redactor, known, sent)

    def _view(self, tx: ReadTx, actor: Actor, agent_id: str | None) -> View | CredentialView:
        level = self.services.level
        if agent_id is not None:
            agent = load_agent(tx, self._name(tx, actor, agent_id) or "")
            if agent is None or agent.credential != actor.id:
                raise FieldError("AGENT_NOT_REGISTERED", "This credential has registered no agent with this id.")
            return View(tx, level=level, agent=agent, authority=min(agent.authority_level, actor.authority))

        def views() -> Iterator[View]:
            for agent in each_agent(tx):
                if agent.credential == actor.id:
                    yield View(tx, level=level, agent=agent, authority=min(agent.authority_level, actor.authority))

        return CredentialView(View(tx, level=level, agent=None, authority=actor.authority), views)

    def _read(self, actor: Actor, body: Callable[[ReadTx], dict[str, Any]]) -> dict[str, Any]:
        try:
            actor.require(Right.READ)
            return self.services.parts.store.read(Scope(actor.tenant, self.services.ref), body)
        except ReverieError as error:
            made = translated(error)
            if made is error:
                raise
            raise made from error


def _is_known(tx: ReadTx, view: View | CredentialView, event: Event) -> bool:
    """Whether a reader of the log may know of an event. One that names no session is of its unit's session."""
    if event.session is not None or event.entry_id is None or event.type in _WRITTEN:
        return view.enters_logged(event.session)
    entry = tx.get(event.entry_id, where=ANYTHING)
    if entry is not None and entry.state is EntryState.ERASED:
        entry = as_born(tx, entry)
    return entry is None or view.enters_logged(entry.source.session)


def _named(tx: ReadTx, ready: Ready, envelope: Envelope) -> Ready:
    """The message with its redacted names made distinct."""
    session = envelope.session_id
    if not ready.findings and ready.agent_id == envelope.agent_id and ready.session_id == session:
        return ready
    return replace(
        ready,
        agent_id=named(tx, envelope.agent_id, ready.agent_id),
        session_id=named(tx, session, ready.session_id or "") if session is not None else None,
        payload=with_names(tx, envelope.payload, ready.payload),
    )


def _tick(tx: ReadTx, received: int, ready: Ready) -> int:
    """The epoch of this operation: past the Field's clock and the sender's."""
    clock = tx.head().epoch
    if received >= LIMIT_EPOCH and received > clock:
        raise FieldError("EPOCH_OVERFLOW", "An epoch is below 2^53.", operation=ready.operation)
    return max(clock, received) + 1
