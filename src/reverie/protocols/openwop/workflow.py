"""Workflows of the host, and the interface that their bodies use: memory as the run sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.entry import Draft, Entry, Scope, Source, valid_ref
from reverie.core.errors import Conflict, Invalid, NotFound, ReverieError
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.core.run import Interrupted, Run, RunOver, RunStatus, mark
from reverie.memory.entries import Entries
from reverie.memory.insertion import insert
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import MAX_PAGE
from reverie.protocols.openwop.run_records import load_run
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

_STEP_SECONDS = 0.1
IMMEDIATE = "immediate"
DRAIN = "drain-current-node"
DRAIN_POLICIES = (IMMEDIATE, DRAIN)
"""Moment at which a pause takes effect: inside a step, whose work is dropped, or after it."""


class Stopped(Exception):
    """The run must stop or pause: a caller asked for it, or its process ends."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step of a workflow, as its definition shows it."""

    id: str
    type_id: str
    name: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """An input that a workflow reads; it ignores all others."""

    name: str
    type: str
    required: bool = False
    default: Any = None
    transient: bool = False
    """Free text that only the work needs. Dropped when the run ends, since a forget would not find it in the record."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Something the host can run."""

    body: Callable[[ActiveRun], Mapping[str, Any]]
    """Returns the run's variables. Entries in them are stored by ref and id, not as text."""
    rights: tuple[Right, ...] = (Right.READ, Right.WRITE)
    fixture: bool = False
    """For conformance suites only."""
    interrupted: Interrupted = Interrupted.AGAIN
    ref: Callable[[Mapping[str, Any]], str | None] = lambda _: None
    """The memory a run works on. Raises Invalid."""
    name: str = ""
    nodes: tuple[Node, ...] = ()
    """Its steps, in order."""
    takes: tuple[Input, ...] = ()
    background: bool = False
    """Whether the start of a run is answered before the run has ended."""
    check: Callable[[Actor, Mapping[str, Any], Mapping[str, Any]], None] = lambda *_: None
    """Raises Invalid for bad inputs or options, before a run begins."""


def _stops(run: Run) -> bool:
    return run.status not in (RunStatus.RUNNING, RunStatus.PAUSED)


def memory_ref(inputs: Mapping[str, Any]) -> str:
    """The memory named in a run's inputs. Raises Invalid for a malformed name, since the run would write there."""
    ref = inputs.get("memoryRef")
    if not isinstance(ref, str) or not valid_ref(ref):
        raise Invalid("inputs.memoryRef names a memory.", pointer="/inputs/memoryRef")
    return ref


class ActiveRun:
    """A run in progress. It reads memory as it was when the run began, plus its own writes since."""

    def __init__(
        self, parts: Services, rules: RuleBook, entries: Entries, actor: Actor, run: Run, *, stopping: threading.Event
    ) -> None:
        self._stopping = stopping
        self._parts = parts
        self._rules = rules
        self._entries = entries
        self.actor = actor
        """Acts in the name of the run: its events go to the run's stream."""
        self.run = run
        self.node_end: NewEvent | None = None
        """The end of a node that shows the run's result or fault: stored together with the end of the run."""
        self._completed: frozenset[str] | None = frozenset() if run.attempts == 1 else None
        """Nodes that ended in an earlier attempt; None: not looked up yet."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        return self.run.inputs

    @property
    def configurable(self) -> Mapping[str, Any]:
        return self.run.configurable

    def id(self, name: str) -> str:
        """An id for something that this run makes: the same when its work is repeated after a crash."""
        return f"{self.run.id}.{name}"

    def check(self, tx: ReadTx) -> None:
        """Raise Stopped when the run must end inside a step. Called in the transaction that commits its work."""
        run = load_run(tx, self.run.id)
        if _stops(run) or (run.pause is not None and run.pause.pending and run.pause.policy == IMMEDIATE):
            raise Stopped()

    def wait(self, milliseconds: int) -> None:
        """Wait. Raises Stopped as soon as the run is asked to stop or the process ends."""
        until = time.monotonic() + milliseconds / 1000
        while (left := until - time.monotonic()) > 0:
            self._parts.store.read(Scope(self.actor.tenant), self.check)
            if self._stopping.wait(min(left, _STEP_SECONDS)):
                raise Stopped()

    @contextmanager
    def node(self, node_id: str, *, output: bool = False) -> Iterator[None]:
        """A step of the run, with an event at its start and its end. `output`: the run's variables are its result.

        Raises Stopped before a step that must not begin. A step that ended in an earlier attempt adds no event.
        """
        self._parts.store.read(Scope(self.actor.tenant), self._boundary)
        if node_id in self._ended_before():
            yield
            return
        self.note("node.started", node=node_id)
        try:
            yield
        except RunOver:
            raise
        except ReverieError as fault:
            self.node_end = self._event("node.failed", node=node_id, code=fault.reason)
            raise
        if output:
            self.node_end = self._event("node.completed", node=node_id, output=True)
        else:
            self.note("node.completed", node=node_id)
        self._completed = self._ended_before() | {node_id}

    def _boundary(self, tx: ReadTx) -> None:
        run = load_run(tx, self.run.id)
        if _stops(run) or (run.pause is not None and run.pause.pending):
            raise Stopped()

    def _ended_before(self) -> frozenset[str]:
        if self._completed is None:
            found = self._parts.store.read(Scope(self.actor.tenant), lambda tx: tx.read_run(self.run.id))
            self._completed = frozenset(str(event.data["node"]) for event in found if event.type == "node.completed")
        return self._completed

    def note(self, name: str, **data: Any) -> None:
        """Append an event to the run's stream. Raises RunOver."""

        def body(tx: WriteTx) -> None:
            mark(tx, self.actor)
            tx.append(self._event(name, **data))

        self._parts.store.write(Scope(self.actor.tenant), body)

    def _event(self, name: str, **data: Any) -> NewEvent:
        return NewEvent(name, "RUN", self.actor.id, data={"run": self.run.id, **data})

    def register(self, secrets: Mapping[str, str]) -> int:
        """Secrets that the run's vault resolved: replaced in all it writes, forgotten when it ends."""
        return self._rules.register_run(self.actor, self.run.id, secrets)

    def list(self, ref: str, *, limit: int = 0, tag: str | None = None) -> list[Entry]:
        """Entries newest first; none for a malformed or unknown name. `limit` 0: one page."""
        if not valid_ref(ref):
            return []
        most = min(limit or MAX_PAGE, MAX_PAGE)
        tags = (tag,) if tag is not None else ()

        def body(tx: ReadTx) -> list[Entry]:
            before = tx.scan(Filter(tags=tags), limit=most, as_of=self.run.snapshot).items
            own = tx.scan(Filter(tags=tags, run=self.run.id), limit=most).items
            results = {entry.id: entry for entry in (*before, *own)}
            return sorted(results.values(), key=lambda entry: (-entry.created_at, -entry.position))[:most]

        return self._parts.store.read(Scope(self.actor.tenant, ref), body)

    def get(self, ref: str, entry_id: str) -> Entry | None:
        """The entry as this run sees it."""
        if not valid_ref(ref):
            return None

        def body(tx: ReadTx) -> Entry | None:
            before = tx.get(entry_id, as_of=self.run.snapshot)
            return before or tx.get(entry_id, where=Filter(run=self.run.id))

        return self._parts.store.read(Scope(self.actor.tenant, ref), body)

    def put(
        self,
        ref: str,
        content: str,
        *,
        name: str,
        node: str | None = None,
        tags: Sequence[str] = (),
        expires_at: int | None = None,
    ) -> Entry:
        """Store an entry whose id is made from `name`. Repeated after a crash, returns the entry stored first."""
        draft = self._draft(content, name, node, tags, expires_at)
        try:
            self._entries.put(self.actor, ref, [draft])
        except Conflict as fault:
            if fault.reason != "id_taken":
                raise
        return self._written(ref, name)

    def plant(self, ref: str, content: str, *, name: str, expires_at: int, node: str | None = None) -> None:
        """Store an entry whose expiry may be past, which `put` refuses."""
        self._rules.check_ref(self.actor.tenant, ref)
        draft = self._draft(content, name, node, (), None)

        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            item = self._entries.prepare(self.actor, ref, [draft], rules)[0]
            entry = msgspec.structs.replace(item.entry, expires_at=expires_at)

            def body(tx: WriteTx) -> None:
                insert(tx, self.actor, msgspec.structs.replace(item, entry=entry), operation="PUT")

            return body

        try:
            self._rules.guard(self.actor.tenant, prepare, Scope(self.actor.tenant, ref))
        except Conflict as fault:
            if fault.reason != "id_taken":
                raise

    def _draft(self, content: str, name: str, node: str | None, tags: Sequence[str], expires_at: int | None) -> Draft:
        source = Source(run=self.run.id, node=node)
        return Draft(content, id=self.id(name), tags=tuple(tags), source=source, expires_at=expires_at)

    def _written(self, ref: str, name: str) -> Entry:
        found = self.get(ref, self.id(name))
        if found is None:
            raise NotFound("The entry that this run wrote is gone.")
        return found
