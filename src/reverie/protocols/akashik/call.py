"""One operation while it runs, and the entries of the operation table.

An operation is a module with an `Operation` that `operations/table.py` lists:

    def execute(call: Call) -> dict[str, Any]: ...
    COMPACT = Operation("COMPACT", level=2, execute=execute)

`execute` runs inside the operation's one transaction and may be run again, so it has effects only through `call.tx` and
`call.append`. Envelope, agent, session and clock are checked before it, and every text in `call.payload` has passed the
redactor. It validates the payload, calls `call.require(authority)`, then works.

`execute` returns the answer, to which `epoch` is added. It is stored for 24 hours for repeats of the message, so it
must hold no text of units, which would survive a purge there. An operation that answers with units returns their ids
and has `show(call, result)`, which puts the units in; it runs after `execute` and again for every repeat.

Slow work (models, embeddings) goes into `prepare(ready) -> Any`, which runs outside any transaction, after the checks
of agent and session; its result is `call.prepared`. When the prepared result no longer fits, the transaction raises
`Moved`: it is undone, and both run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry
from reverie.core.event import NewEvent
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.visibility import View
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

if TYPE_CHECKING:
    from reverie.dreams.archive import Archives
    from reverie.dreams.engine import DreamEngine
    from reverie.memory.entries import Entries
    from reverie.memory.insertion import PreparedEntry
    from reverie.protocols.akashik.conformance import FaultSwitches
    from reverie.protocols.akashik.operations.agents import FieldAgent
    from reverie.protocols.akashik.operations.sessions import FieldSession

FIELD_AGENT = "akashik.field"
"""The Field itself, as author of synthesis units."""


_THE_ENVELOPES = "\0envelope"
"""Stands for the session of the envelope; None means no session."""


@dataclass(frozen=True, slots=True)
class FieldServices:
    """Dependencies of the operations."""

    parts: Services
    rulebook: RuleBook
    entries: Entries
    archives: Archives
    dreams: DreamEngine
    faults: FaultSwitches
    ref: str
    """The memory that is the Field."""
    level: int
    """Its conformance level, 0 to 3."""


@dataclass(slots=True)
class Ready:
    """A message whose sender and session are checked: the argument of `prepare`."""

    services: FieldServices
    rules: Rules
    actor: Actor
    operation: str
    agent_id: str
    """As in the envelope; on REGISTER there is no agent yet."""
    session_id: str | None
    payload: Mapping[str, Any]
    """Without secrets."""
    findings: Mapping[str, int]
    """Redactions in the message, counted by kind."""
    agent: FieldAgent | None = None
    session: FieldSession | None = None
    epoch: int = 0
    """The epoch of this operation; in `prepare`, the one it will have unless another operation is first."""
    attempt: int = 0
    """Number of restarts so far."""

    @property
    def level(self) -> int:
        """The Field's conformance level."""
        return self.services.level

    @property
    def speaker(self) -> FieldAgent:
        """The agent; every operation but REGISTER has one."""
        assert self.agent is not None
        return self.agent

    @property
    def authority(self) -> int:
        """Authority of the agent here: its own level, at most its credential's; at least 8 in a session it created."""
        own = min(self.agent.authority_level, self.actor.authority) if self.agent else self.actor.authority
        return max(own, 8) if self.agent and self.session and self.session.creator_id == self.agent.id else own

    def require(self, authority: int, what: str | None = None) -> None:
        """Refuse below `authority`. Authority is enforced from Level 3 on."""
        if self.level >= 3 and self.authority < authority:
            raise self.error(
                "INSUFFICIENT_AUTHORITY",
                f"{what or self.operation} needs authority {authority}; yours is {self.authority}.",
            )

    def error(self, code: str, message: str, **extra: Any) -> FieldError:
        """A refusal of this operation."""
        return FieldError(code, message, operation=self.operation, extra=extra)


@dataclass(slots=True)
class OperationCall(Ready):
    """The operation inside its transaction."""

    tx: WriteTx = field(default=None)  # type: ignore[assignment]
    prepared: Any = None
    clock: int = 0
    """The Field's clock before this message."""
    received: int = 0
    """The epoch the sender sent."""
    logged: int = 0
    """Number of events appended so far."""
    _view: View | None = None

    @property
    def view(self) -> View:
        """View of the agent from the session it named."""
        if self._view is None:
            self._view = view_of(self.tx, self)
        return self._view

    def require_in(self, session_id: str | None, authority: int, what: str) -> None:
        """Refuse below `authority` in a session, whichever session the envelope names."""
        if not self.view.commands(session_id, authority):
            raise self.error("INSUFFICIENT_AUTHORITY", f"{what} needs authority {authority} there.")

    def append(
        self,
        type: str,  # noqa: A002
        *,
        entry_id: str | None = None,
        conflict_id: str | None = None,
        task_id: str | None = None,
        data: Mapping[str, Any] | None = None,
        session: str | None = _THE_ENVELOPES,
        actor: str | None = None,
    ) -> int:
        """Append an event of this operation; the first one ticks the clock. Holds ids and counts, never text."""
        event = NewEvent(
            type,
            self.operation,
            actor or (self.agent.id if self.agent else self.agent_id),
            entry_id=entry_id,
            session=self.session_id if session == _THE_ENVELOPES else session,
            data=data or {},
            conflict_id=conflict_id,
            task_id=task_id,
        )
        seq = self.tx.append(event, tick=not self.logged, received_epoch=self.received)
        self.logged += 1
        return seq

    def insert(
        self, item: PreparedEntry, *, task_id: str | None = None, data: Mapping[str, Any] | None = None
    ) -> Entry:
        """Store a unit with its `memory.recorded`."""
        from reverie.memory.insertion import entry_hash

        entry = item.entry
        facts: dict[str, Any] = {
            "ref": entry.ref,
            "kind": entry.kind,
            "bytes": entry.byte_size,
            "hash": entry_hash(self.tx.log_key(), entry),
            **(data or {}),
        }
        if item.findings:
            facts["redacted"] = dict(item.findings)
        author, session = entry.source.actor, entry.source.session
        seq = self.append(
            "memory.recorded", entry_id=entry.id, task_id=task_id, data=facts, session=session, actor=author
        )
        return self.tx.insert(entry, seq=seq, terms=item.terms, vector=item.vector, minted=item.minted)


def view_of(tx: ReadTx, ready: Ready) -> View:
    """Return the view of a checked sender."""
    return View(
        tx,
        level=ready.level,
        agent=ready.speaker,
        authority=min(ready.speaker.authority_level, ready.actor.authority),
        session_id=ready.session_id,
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table."""

    name: str
    level: int
    """The lowest conformance level that has it."""
    execute: Callable[[OperationCall], dict[str, Any]]
    prepare: Callable[[Ready], Any] | None = None
    show: Callable[[OperationCall, dict[str, Any]], dict[str, Any]] | None = None
    event: str = "field.read"
    """Appended when `execute` appended nothing: reads are operations too, they take an epoch and are in the log."""
    right: Right = Right.WRITE
    """Right that the key must carry."""
    in_session: bool = True
    """Whether the envelope's session must be open to the sender. False: the operation checks that itself."""
