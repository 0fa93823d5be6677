"""Runs: work with a beginning, an end, and a stream of events.

A run begins in one transaction (record, `run.started`, lease), works outside any, and ends in another (record, last
event). Its process holds the lease meanwhile. When that process dies, the lease expires, and another process does what
the record says: it repeats the work, or ends the run with `run_interrupted`. Exactly one process does, since taking a
run over is a transaction that fails for all others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import orjson

from reverie.core.actor import Actor, Right
from reverie.core.canonical import canonical
from reverie.core.entry import Entry, EntryState, Scope
from reverie.core.errors import Conflict, Forbidden, Invalid, NotFound, ReadOnly, ReverieError
from reverie.core.event import Event, NewEvent
from reverie.core.query import Filter
from reverie.core.run import RUN_SPACE, Fault, Fork, Interrupted, Run, RunOver, RunStatus
from reverie.memory.entries import Entries
from reverie.memory.policy import RuleBook
from reverie.memory.read import ANYTHING
from reverie.protocols.openwop.background import Background
from reverie.protocols.openwop.pauses import Pauses, in_replay
from reverie.protocols.openwop.run_records import ENTRY, OPEN_SPACE, lease_of, load_run, names_entry, save_run
from reverie.protocols.openwop.workflow import ActiveRun, Stopped, Workflow
from reverie.protocols.openwop.workspace import WORKFLOW as WORKSPACE_WORKFLOW
from reverie.protocols.openwop.workspace import snapshot as workspace_snapshot
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import Leases, holder

T = TypeVar("T")
LEASE_MS = 30_000
"""Time without a heartbeat after which a run counts as abandoned."""
MOST_ATTEMPTS = 3
ABANDONED_MS = 60 * 60_000
"""Time that a run waits for its starter to start it again."""
MAX_OPTION_BYTES = 65_536
MAX_TAGS = 64


class Runs:
    """Starts, shows, cancels and recovers runs."""

    def __init__(self, parts: Services, rules: RuleBook, entries: Entries, workflows: Mapping[str, Workflow]) -> None:
        self._parts = parts
        self._rules = rules
        self._entries = entries
        self._workflows = dict(workflows)
        self._leases = Leases(parts.store, parts.clock, read_only=parts.read_only)
        self._holder = holder(f"runs/{parts.ids.new()}")
        self._background = Background()
        self._pauses = Pauses(self._holder, LEASE_MS)

    # workflows

    def offer(self, workflow_id: str, workflow: Workflow) -> None:
        """Add a workflow."""
        self._workflows[workflow_id] = workflow

    def workflow(self, workflow_id: str, *, fixtures: bool) -> Workflow:
        """A workflow by id. Raises Invalid, also for a fixture unless `fixtures` is true."""
        found = self._workflows.get(workflow_id)
        if found is None or (found.fixture and not fixtures):
            raise Invalid("There is no workflow with that id.", pointer="/workflowId")
        return found

    def fixtures(self) -> list[str]:
        """Ids of the workflows for conformance suites, sorted."""
        return sorted(name for name, workflow in self._workflows.items() if workflow.fixture)

    # the life of a run

    def start(
        self,
        actor: Actor,
        workflow_id: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        configurable: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        fixtures: bool = False,
        fork: Fork | None = None,
        run_id: str | None = None,
    ) -> Run:
        """Run a workflow to its end; a background workflow continues after this returns. An invalid request is refused
        before a run begins.

        `run_id`: the id of the run. An existing run with that id is continued when no process works on it, else
        returned as it is.
        """
        workflow = self.workflow(workflow_id, fixtures=fixtures)
        for right in workflow.rights:
            actor.require(right)
        run = self._draft(actor, workflow_id, inputs or {}, configurable or {}, tags, metadata or {})
        ref = workflow.ref(run.inputs)
        workflow.check(actor, run.inputs, run.configurable)
        run = msgspec.structs.replace(run, ref=ref, interrupted=workflow.interrupted, fork=fork, id=run_id or run.id)
        if workflow.background:
            self._background.check()
        try:
            begun = self._begin(actor, run, again=run_id is not None)
        except RunOver:
            return self.get(dataclasses.replace(actor, rights=actor.rights | {Right.READ}), run.id)
        if workflow.background:
            return self._later(actor, begun, workflow)
        return self._execute(actor, begun, workflow.body)

    def around(
        self,
        actor: Actor,
        workflow_id: str,
        body: Callable[[Actor], T],
        *,
        ref: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        interrupted: Interrupted = Interrupted.FAIL,
        variables: Callable[[T], Mapping[str, Any]] | None = None,
    ) -> tuple[Run, T]:
        """Do the host's own work as a run: `body` gets an actor whose events name the run.

        An error from `body` fails the run and is raised again. With the `run_id` of a run whose process died, that run
        continues; with that of a run that has ended, RunOver is raised.
        """
        run = self._draft(actor, workflow_id, inputs or {}, {}, (), metadata or {})
        run = msgspec.structs.replace(run, ref=ref, interrupted=interrupted, id=run_id or run.id)
        begun = self._begin(actor, run, again=run_id is not None)
        results: list[T] = []
        faults: list[ReverieError] = []

        def work(context: ActiveRun) -> Mapping[str, Any]:
            try:
                results.append(body(context.actor))
            except ReverieError as fault:
                faults.append(fault)
                raise
            return variables(results[0]) if variables else {}

        done = self._execute(actor, begun, work)
        if faults:
            raise faults[0]
        if not results:
            raise RunOver()
        return done, results[0]

    def get(self, actor: Actor, run_id: str) -> Run:
        """A run of the tenant. Raises NotFound."""
        actor.require(Right.READ)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: load_run(tx, run_id))

    def variables(self, actor: Actor, run: Run) -> dict[str, Any]:
        """A run's variables, with entries as they are now: None, or left out of lists, once destroyed or expired."""
        actor.require(Right.READ)
        return {name: self._visible(actor, value) for name, value in run.variables.items()}

    def events(self, actor: Actor, run: Run, *, after: int = -1, limit: int = 1000) -> list[tuple[int, Event]]:
        """(sequence, event) pairs of a run after a sequence. Sequences count from 0 without gaps; the end is last."""
        actor.require(Right.READ)
        skip, scope = max(after + 1, 0), Scope(actor.tenant)
        if run.fork and (recorded := run.fork.recorded):
            shown = self._parts.store.read(scope, lambda tx: in_replay(tx, recorded))
            return list(enumerate(shown))[skip : skip + limit]
        found = self._parts.store.read(scope, lambda tx: tx.read_run(run.id, skip=skip, limit=limit))
        return list(enumerate(found, skip))

    def cancel(self, actor: Actor, run_id: str) -> Run:
        """Ask a run to stop. One that no process works on ends at once; one that has ended stays as it is."""
        return self.ask_to_stop(actor, run_id)[0]

    def ask_to_stop(self, actor: Actor, run_id: str) -> tuple[Run, bool]:
        """Like `cancel`; return also whether the run had ended before."""
        actor.require(Right.WRITE)
        self._writable()

        def body(tx: WriteTx) -> tuple[Run, bool]:
            run = load_run(tx, run_id)
            if run.ended or run.status is RunStatus.CANCELLING:
                return run, run.ended
            if run.workflow == WORKSPACE_WORKFLOW:
                raise Forbidden("This run is the host's own and does not end.", code="run_forbidden")
            if tx.claim(lease_of(run_id), "cancel", until=tx.now + 1):
                tx.release(lease_of(run_id), "cancel")
                return self._end(tx, actor, run, RunStatus.CANCELLED), False
            data = {"run": run_id}
            seq = tx.append(NewEvent("run.cancelling", "RUN", actor.id, data=data))
            next_run = msgspec.structs.replace(run, status=RunStatus.CANCELLING)
            save_run(tx, next_run, seq=seq)
            return next_run, False

        return self._parts.store.write(Scope(actor.tenant), body)

    def pause(self, actor: Actor, run_id: str, policy: str) -> Run:
        """Pause a run: after its current step, or with policy `immediate` inside it; that step then starts afresh.

        Raises Conflict for a run that has ended, is paused or cannot be paused.
        """
        actor.require(Right.WRITE)
        self._writable()

        def body(tx: WriteTx) -> Run:
            run = load_run(tx, run_id)
            return self._pauses.ask(tx, actor, run, policy, known=run.workflow in self._workflows)

        return self._parts.store.write(Scope(actor.tenant), body)

    def resume(self, actor: Actor, run_id: str) -> Run:
        """Continue a paused run, in the background. Raises Conflict for one that is not paused."""
        actor.require(Right.WRITE)
        self._writable()
        self._background.check()
        run = self._parts.store.write(Scope(actor.tenant), lambda tx: self._pauses.end(tx, actor, load_run(tx, run_id)))
        if run.pause is None:  # else its process has not stopped yet, and continues by itself
            self._go_on(actor, run, later=True)
        return run

    def recover(self, actor: Actor) -> int:
        """Resume or end every run of the tenant whose process died. Returns their number."""
        if self._parts.read_only:
            return 0
        done = 0
        for run_id in self._parts.store.read(Scope(actor.tenant), _open_runs):
            run = self._take_over(actor, run_id, waiting=True)
            if run is None:
                continue
            done += 1
            if run.status is RunStatus.CANCELLING:
                self._finish(actor, run, RunStatus.CANCELLED)
            elif run.pause is not None and self._settle(actor, run) is not None:
                continue  # its pause has taken effect
            else:
                self._go_on(actor, run, later=False)
        return done

    def stop(self) -> None:
        """Stop the background work. Its runs resume in another process, or in this one after its next start."""
        self._background.stop()

    # internals

    def _go_on(self, actor: Actor, run: Run, *, later: bool) -> None:
        """Do the work of a run again in the name of its starter, or end it where that is not possible."""
        if run.done:
            self._finish(actor, run, RunStatus.COMPLETED, variables=run.variables)
            return
        workflow = self._workflows.get(run.workflow)
        again = run.interrupted is Interrupted.AGAIN and run.attempts - run.resumes <= MOST_ATTEMPTS
        if workflow is None or not again:
            fault = Fault("run_interrupted", "The process that worked on this run stopped. Start it again.")
            self._finish(actor, run, RunStatus.FAILED, fault=fault)
            return
        rights = frozenset(Right(right) for right in run.rights)
        starter = dataclasses.replace(actor, id=run.actor, rights=rights, authority=run.authority)
        if later or workflow.background:
            self._later(starter, run, workflow)
        else:
            self._execute(starter, run, workflow.body)

    def _later(self, actor: Actor, run: Run, workflow: Workflow) -> Run:
        """Continue in the background; returns the run as it is now."""
        self._background.start(lambda: self._execute(actor, run, workflow.body))
        return run

    def _draft(
        self,
        actor: Actor,
        workflow_id: str,
        inputs: Mapping[str, Any],
        configurable: Mapping[str, Any],
        tags: Sequence[str],
        metadata: Mapping[str, Any],
    ) -> Run:
        """A run as it will be stored: everything a caller wrote has passed the redactor."""
        for name, value in (("inputs", inputs), ("configurable", configurable), ("metadata", metadata)):
            if len(canonical(dict(value))) > MAX_OPTION_BYTES:
                raise Invalid(f"{name} is at most {MAX_OPTION_BYTES} bytes as JSON.", pointer=f"/{name}")
        if len(tags) > MAX_TAGS or any(not 0 < len(tag) <= 256 for tag in tags):
            raise Invalid(f"At most {MAX_TAGS} tags of 1 to 256 characters.", pointer="/tags")
        known = self._rules.latest(actor.tenant).known
        clean, _ = self._parts.redactor.value(
            {"i": dict(inputs), "c": dict(configurable), "t": list(tags), "m": dict(metadata)}, known
        )
        options: Any = clean
        return Run(
            id=self._parts.ids.new(),
            workflow=workflow_id,
            status=RunStatus.RUNNING,
            actor=actor.id,
            rights=tuple(sorted(actor.rights)),
            authority=actor.authority,
            snapshot=0,
            started_at=0,
            inputs=options["i"],
            configurable=options["c"],
            tags=tuple(options["t"]),
            metadata=options["m"],
        )

    def _begin(self, actor: Actor, run: Run, *, again: bool = False) -> Run:
        """Begin a run. `again`: continue an existing run with that id."""
        self._writable()
        names = {"/workflowId": run.workflow, "/runId": run.id, "/inputs/memoryRef": run.ref}
        self._rules.check_names(actor.tenant, names)

        def look(tx: ReadTx) -> tuple[int, int, bool]:
            known = again and tx.load(RUN_SPACE, run.id) is not None
            return tx.head().seq, tx.count(Filter()) if run.ref is not None else 0, known

        snapshot, seen, known = self._parts.store.read(Scope(actor.tenant, run.ref), look)
        if known and (taken := self._take_over(actor, run.id)) is not None:
            return taken

        def body(tx: WriteTx) -> Run:
            begun = msgspec.structs.replace(
                run, snapshot=snapshot, seen=seen, started_at=tx.now, files=workspace_snapshot(tx)
            )
            data: dict[str, Any] = {"run": run.id, "workflow": run.workflow}
            if run.fork:
                data["fork"] = {"source": run.fork.source, "mode": run.fork.mode, "from": run.fork.from_seq}
            seq = tx.append(NewEvent("run.started", "RUN", actor.id, data=data))
            save_run(tx, begun, seq=seq, new=True)
            tx.save(OPEN_SPACE, run.id, b"", seq=seq)
            tx.claim(lease_of(run.id), self._holder, until=tx.now + LEASE_MS)
            tx.wake(tx.now + LEASE_MS)  # the process that works on it may be gone by then
            return begun

        return self._parts.store.write(Scope(actor.tenant), body)

    def _take_over(self, actor: Actor, run_id: str, *, waiting: bool = False) -> Run | None:
        """Take over a run that no process works on; None when there is no such run. Raises RunOver when it has ended,
        is paused, or a process works on it.

        `waiting`: return None in those cases too, and leave a run to its starter for an hour.
        """
        self._writable()
        taker = f"{self._holder}/taker"  # another name than our own: a lease that this process holds is not free either

        def body(tx: WriteTx) -> Run | None:
            try:
                run = load_run(tx, run_id)
            except NotFound:
                return None
            except Conflict:  # a newer host wrote it, and recovers it
                if waiting:
                    return None
                raise
            if run.ended:
                if waiting:
                    return None
                raise RunOver()
            if run.pause is not None and run.pause.noted:
                if waiting:
                    return None
                raise RunOver("This run is paused.")
            if waiting and run.interrupted is Interrupted.ELSEWHERE and tx.now - run.started_at < ABANDONED_MS:
                return None
            if not tx.claim(lease_of(run_id), taker, until=tx.now + LEASE_MS):
                if waiting:
                    return None
                raise RunOver("Another process works on this run.")
            taken = msgspec.structs.replace(run, attempts=run.attempts + 1)
            data = {"resumed": run_id, "attempt": taken.attempts}
            save_run(tx, taken, seq=tx.append(NewEvent("run.resumed", "RUN", actor.id, data=data)))
            tx.release(lease_of(run_id), taker)
            tx.claim(lease_of(run_id), self._holder, until=tx.now + LEASE_MS)
            return taken

        return self._parts.store.write(Scope(actor.tenant), body)

    def _execute(self, actor: Actor, run: Run, body: Callable[[ActiveRun], Mapping[str, Any]]) -> Run:
        acting = dataclasses.replace(actor, run=run.id)
        work = ActiveRun(self._parts, self._rules, self._entries, acting, run, stopping=self._background.stopping)
        with self._leases.beating(actor, lease_of(run.id), self._holder, for_ms=LEASE_MS):
            while True:
                try:
                    variables = body(work)
                except Stopped:
                    if (settled := self._settle(actor, run)) is not None:
                        return settled
                    continue
                except RunOver:
                    return self.get(dataclasses.replace(actor, rights=actor.rights | {Right.READ}), run.id)
                except ReverieError as error:
                    fault = Fault(error.reason, error.message, _plain(error.details))
                    return self._finish(actor, run, RunStatus.FAILED, fault=fault, node_end=work.node_end)
                except Exception as error:
                    fault = Fault("internal_error", "Something went wrong here.")
                    self._finish(actor, run, RunStatus.FAILED, fault=fault)
                    raise error
                finally:
                    self._rules.end_run(actor, run.id)
                stored = _stored_variables(variables)
                return self._finish(actor, run, RunStatus.COMPLETED, variables=stored, node_end=work.node_end)

    def _settle(self, actor: Actor, run: Run) -> Run | None:
        """Settle a run that stopped inside or between its steps: cancelled, paused, or left as it is because the
        process ends. None: its pause was withdrawn, and it continues.
        """

        def body(tx: WriteTx) -> Run | None:
            stored = load_run(tx, run.id)
            if stored.ended or stored.attempts != run.attempts:
                return stored  # someone else took it over
            if stored.status is RunStatus.CANCELLING:
                return self._end(tx, actor, stored, RunStatus.CANCELLED)
            if stored.pause is None or stored.pause.noted:
                return stored
            settled = self._pauses.take_effect(tx, actor, stored)
            return settled if settled.status is RunStatus.PAUSED else None

        return self._parts.store.write(Scope(actor.tenant), body)

    def _finish(
        self,
        actor: Actor,
        run: Run,
        status: RunStatus,
        *,
        fault: Fault | None = None,
        variables: Mapping[str, Any] | None = None,
        node_end: NewEvent | None = None,
    ) -> Run:
        known = self._rules.latest(actor.tenant).known
        clean = fault
        if fault:
            said = self._parts.redactor.value({"message": fault.message, "details": dict(fault.details)}, known)[0]
            clean = msgspec.convert({"code": fault.code, **said}, Fault)  # type: ignore[dict-item]

        def body(tx: WriteTx) -> Run:
            stored = load_run(tx, run.id)
            if stored.ended or stored.attempts != run.attempts:
                return stored  # someone else took it over
            if node_end is not None:
                tx.append(node_end)
            end = RunStatus.CANCELLED if stored.status is RunStatus.CANCELLING else status
            if end is not RunStatus.CANCELLED:
                stored = msgspec.structs.replace(stored, fault=clean, variables=variables or {})
            if end is RunStatus.COMPLETED and stored.pause is not None and stored.pause.pending:
                stored = self._pauses.take_effect(tx, actor, stored, done=True)
                if stored.status is RunStatus.PAUSED:
                    return stored
            return self._end(tx, actor, stored, end)

        return self._parts.store.write(Scope(actor.tenant), body)

    def _end(self, tx: WriteTx, actor: Actor, run: Run, status: RunStatus) -> Run:
        """Store the last event of a run with its record. Nothing is written in its name afterwards."""
        workflow = self._workflows.get(run.workflow)
        transient = {taken.name for taken in workflow.takes if taken.transient} if workflow else set()
        inputs = {name: value for name, value in run.inputs.items() if name not in transient}
        ended = msgspec.structs.replace(run, status=status, completed_at=tx.now, inputs=inputs, pause=None)
        data: dict[str, Any] = {"run": run.id, "workflow": run.workflow}
        if status is RunStatus.FAILED and run.fault:
            data["code"] = run.fault.code
        seq = tx.append(NewEvent(f"run.{status.value}", "RUN", actor.id, data=data))
        save_run(tx, ended, seq=seq)
        tx.drop(OPEN_SPACE, run.id, seq=seq)
        tx.release(lease_of(run.id), self._holder)
        return ended

    def _visible(self, actor: Actor, value: Any) -> Any:
        if isinstance(value, list):
            rows = [self._visible(actor, item) for item in value]
            return [item for item, kept in zip(rows, value, strict=True) if item is not None or not names_entry(kept)]
        if names_entry(value):
            ref, entry_id = value[ENTRY]
            where = msgspec.structs.replace(ANYTHING, expired=False)
            entry = self._parts.store.read(Scope(actor.tenant, ref), lambda tx: tx.get(entry_id, where=where))
            return None if entry is None or entry.state is EntryState.ERASED else entry
        return value

    def _writable(self) -> None:
        if self._parts.read_only:
            raise ReadOnly()


def upcoming_recovery(tx: ReadTx) -> int | None:
    """Return the time of the next check for abandoned runs; None when all have ended."""
    begun = [document.updated_at for document in tx.documents(OPEN_SPACE, limit=1000).items]
    return min(begun) + LEASE_MS if begun else None


def _open_runs(tx: ReadTx) -> list[str]:
    return [document.key for document in tx.documents(OPEN_SPACE, limit=1000).items]


def _stored_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Variables as stored: entries by ref and id."""
    return {name: _by_name(value) for name, value in variables.items()}


def _by_name(value: Any) -> Any:
    if isinstance(value, Entry):
        return {ENTRY: [value.ref, value.id]}
    return [_by_name(item) for item in value] if isinstance(value, list | tuple) else value


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """Details of an error as JSON."""
    return dict(orjson.loads(orjson.dumps(dict(details), default=str)))
