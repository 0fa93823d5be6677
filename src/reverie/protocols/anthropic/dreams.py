"""Dreams of memory stores: requested, run by a worker, and committed in one transaction.

A dream reads files and sessions outside any transaction. Its commit checks that it was not canceled and that every
text is as it was read; then it writes all files at once, or none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.dream import DreamPlan, Selector, SourceTrace
from reverie.core.entry import FILE_KIND, EntryState, Scope
from reverie.core.errors import Busy, Invalid, NotFound, RateLimited, ReadOnly, StoreError
from reverie.core.policy import TenantPolicy
from reverie.core.query import Filter
from reverie.core.retry import Moved, retry
from reverie.core.run import DISTILL, Interrupted, RunOver, RunStarter, RunStatus, stopping
from reverie.dreams.engine import Body, DreamEngine
from reverie.dreams.report import report_of
from reverie.dreams.snapshot import Replan
from reverie.memory.files import File
from reverie.memory.policy import RuleBook, Rules
from reverie.protocols.anthropic import dream_records as records
from reverie.protocols.anthropic import stores as store_records
from reverie.protocols.anthropic.content import Clean, check_room
from reverie.protocols.anthropic.dream_faults import Unavailable, failure
from reverie.protocols.anthropic.dream_plan import DreamPlanner, FileWrite, PlannedWrites, fate_of, subject_tags
from reverie.protocols.anthropic.dream_records import (
    FINAL,
    MOST_ACTIVE,
    TEXT_SPACE,
    Canceled,
    DreamRecord,
    FileChange,
    Options,
    check_options,
)
from reverie.protocols.anthropic.errors import StoreArchived
from reverie.protocols.anthropic.listing import all_files
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import DREAM, STORE, bare
from reverie.protocols.anthropic.stores import ListPage, StoreRecord, Stores, of_door, once
from reverie.protocols.anthropic.transcripts import Transcript, decode, encode
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import Leases

T = TypeVar("T")
LEASE_MS = 60_000
TRIGGER = "anthropic"  # of reports: such dreams are undone through the files of their store


class MemoryDreams:
    """Dreams of memory stores."""

    def __init__(
        self,
        parts: Services,
        rules: RuleBook,
        dreams: DreamEngine,
        stores: Stores,
        memories: Memories,
        runs: RunStarter,
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._stores = stores
        self._memories = memories
        self._dreams = dreams
        self._runs = runs
        self._planner = DreamPlanner(parts, rules, dreams)
        self._leases = Leases(parts.store, parts.clock, read_only=parts.read_only)

    # requests

    def create(
        self,
        actor: Actor,
        store_id: str,
        *,
        model: str,
        distiller: str,
        sessions: Sequence[str] | None = None,
        transcripts: Sequence[Transcript] = (),
        instructions: str | None = None,
        existing: bool = False,
        options: Options = Options(),  # noqa: B008  (immutable)
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> DreamRecord:
        """Request a dream; a worker runs it. With `dry_run` nothing is stored: the answer describes the changes."""
        actor.require(Right.DREAM)
        if existing:
            actor.require(Right.WRITE)
        name = bare(STORE, store_id, "memory store")
        self._planner.sessions.check(actor, sessions or ())
        rules = self._rules.latest(actor.tenant)
        check_options(options, rules.policy)
        names = {"/model": model, **{f"/reverie/exclude/{at}": path for at, path in enumerate(options.exclude)}}
        names |= {f"/reverie/transcripts/{at}/id": one.id for at, one in enumerate(transcripts)}
        self._rules.check_names(actor.tenant, names, rules=rules)
        given = self._planner.sessions.cleaned(transcripts, rules)
        cleaned = self._parts.redactor.text(instructions, rules.known).text if instructions else None
        record = DreamRecord(
            id=self._parts.ids.new(),
            store=name,
            model=model,
            distiller=distiller,
            created_at=self._parts.clock.now(),
            actor=actor.id,
            sessions=tuple(sorted(sessions)) if sessions is not None else None,
            instructions=cleaned,
            existing=existing,
            options=options,
            transcripts=tuple((one.id, one.sha256) for one in given),
        )
        if dry_run:
            return self._dry(actor, record, given)

        def work(tx: WriteTx) -> str:
            store = store_records.load(tx, name)
            if store.archived_at is not None:
                raise StoreArchived("This memory store is archived and cannot be dreamt.")
            waiting = list(records.active(tx))
            if len(waiting) >= MOST_ACTIVE:
                raise RateLimited(
                    f"At most {MOST_ACTIVE} dreams wait or run at once.", details={"retry_after_seconds": 60}
                )
            if existing and any(other.existing and other.store == name for other in waiting):
                raise Busy("Another dream writes to this memory store. Wait until it has ended, or cancel it.")
            made = msgspec.structs.replace(record, created_at=tx.now, output=name if existing else None)
            seq = records.save(tx, actor.id, made)
            if given:
                tx.save(TEXT_SPACE, made.id, encode(given), seq=seq)
            if existing:
                store_records.save(tx, msgspec.structs.replace(store, dream=made.id), seq=seq)
            return made.id

        request = msgspec.to_builtins(msgspec.structs.replace(record, id="", created_at=0))

        def prepare(rules: Rules) -> Callable[[WriteTx], DreamRecord]:
            def body(tx: WriteTx) -> DreamRecord:
                return records.load(tx, once(tx, rules, "dream.create", idempotency_key, request, work))

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant))

    def _dry(self, actor: Actor, record: DreamRecord, given: Sequence[Transcript]) -> DreamRecord:
        store = self._input(actor, record)
        planned = self._planner.plan(actor, record, store, given)
        return msgspec.structs.replace(
            record,
            status="completed",
            ended_at=record.created_at,
            report={"estimate": dict(planned.report)},
        )

    # reads

    def get(self, actor: Actor, dream_id: str) -> DreamRecord:
        """A dream, also an archived one."""
        actor.require(Right.READ)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: records.find(tx, dream_id))

    def list(
        self,
        actor: Actor,
        *,
        statuses: Sequence[str] = (),
        after_instant: int | None = None,
        before_instant: int | None = None,
        archived: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> ListPage:
        """Dreams, newest first."""
        actor.require(Right.READ)

        def wanted(record: DreamRecord) -> bool:
            return (
                (archived or record.archived_at is None)
                and (not statuses or record.status in statuses)
                and (after_instant is None or record.created_at > after_instant)
                and (before_instant is None or record.created_at < before_instant)
            )

        def body(tx: ReadTx) -> ListPage:
            return store_records.list_documents(tx, records.SPACE, DreamRecord, wanted, limit=limit, after=after)

        return self._parts.store.read(Scope(actor.tenant), body)

    def cancel(self, actor: Actor, dream_id: str) -> DreamRecord:
        """Cancel a dream at once: nothing it has not committed is ever written. A canceled dream stays as it is."""
        actor.require(Right.DREAM)

        def body(tx: WriteTx) -> DreamRecord:
            record = records.find(tx, dream_id)
            if record.status == "canceled":
                return record
            if record.status in FINAL:
                raise Invalid(f"This dream is {record.status}. Only one that waits or runs can be canceled.")
            record = msgspec.structs.replace(record, status="canceled", ended_at=tx.now)
            records.save(tx, actor.id, record)
            return record

        canceled = self._rules.guard(actor.tenant, lambda _: body, Scope(actor.tenant))
        if canceled.run is not None:
            with suppress(NotFound):  # its run has not begun
                self._runs.cancel(dataclasses.replace(actor, rights=actor.rights | {Right.WRITE}), canceled.run)
        return canceled

    def archive(self, actor: Actor, dream_id: str) -> DreamRecord:
        """Take an ended dream out of lists. Its output stays as it is."""
        actor.require(Right.DREAM)

        def body(tx: WriteTx) -> DreamRecord:
            record = records.find(tx, dream_id)
            if record.archived_at is not None:
                return record
            if record.status not in FINAL:
                raise Invalid(f"This dream is {record.status}. Only one that has ended can be archived.")
            record = msgspec.structs.replace(record, archived_at=tx.now)
            records.save(tx, actor.id, record)
            return record

        return self._rules.guard(actor.tenant, lambda _: body, Scope(actor.tenant))

    # work

    def work(self, actor: Actor, *, holder: str) -> int:
        """Run the waiting dreams, and those abandoned by another process; return the number of dreams ended."""
        if self._parts.read_only:
            raise ReadOnly()
        waiting = self._parts.store.read(Scope(actor.tenant), lambda tx: [record.id for record in records.active(tx)])
        done = 0
        for dream_id in waiting:
            lease, own = f"memory_dream/{dream_id}", f"{holder}/{dream_id}"
            with self._leases.holding(actor, lease, own, for_ms=LEASE_MS) as ours:
                done += ours and self.run(actor, dream_id)
        return done

    def run(self, actor: Actor, dream_id: str) -> bool:
        """Carry out a dream to its end, as a run. False when it was canceled or has ended already."""
        actor = of_door(actor)
        try:
            record = self._begin(actor, dream_id)
        except Canceled:
            return False
        try:
            run, done = self._runs.around(
                actor,
                DISTILL,
                lambda acting: self._dream(acting, record),
                ref=STORE + record.store,
                inputs={"memoryRef": STORE + record.store},
                metadata={"dream": record.id},
                run_id=record.id,
                interrupted=Interrupted.ELSEWHERE,
            )
            return done if run.status is not RunStatus.CANCELLED else self._end_orphan(actor, record.id)
        except RunOver:
            return self._end_orphan(actor, record.id)
        except StoreError:
            raise  # another worker tries again
        except Exception as fault:
            self._fail(actor, dream_id, fault)
            return True

    def _end_orphan(self, actor: Actor, dream_id: str) -> bool:
        """End a dream whose run ended without it: the run was canceled, or no process came back to it for too long."""
        status = self._runs.get(actor, dream_id).status
        if status is RunStatus.FAILED:
            return self._fail(actor, dream_id, RunOver("The run of this dream was given up."))
        if status is RunStatus.CANCELLED:
            with suppress(Invalid):  # it has ended meanwhile
                self.cancel(actor, DREAM + dream_id)
        return False

    def _dream(self, actor: Actor, record: DreamRecord) -> bool:
        """The work of a run. A fault is noted before the run ends by it."""
        try:
            store = self._input(actor, record)
            if not record.existing:
                store, record = self._clone(actor, record)

            def plan() -> tuple[PlannedWrites, int]:
                given, version = self._transcripts(actor, record)
                now = self._parts.store.read(Scope(actor.tenant), lambda tx: self._current(tx, store))
                return self._planner.plan(actor, record, now, given), version

            done = self._dreams.settle(
                actor, store.ref, plan, lambda made, _, rules: self._commit(actor, record, *made, rules)
            )
            return bool(done)
        except Canceled:
            return False
        except (StoreError, RunOver):
            raise
        except Exception as fault:
            self._fail(actor, record.id, fault)
            raise

    def _begin(self, actor: Actor, dream_id: str) -> DreamRecord:
        def body(tx: WriteTx) -> DreamRecord:
            record = records.load(tx, dream_id)
            if record.status in FINAL:
                raise Canceled
            if record.status == "pending":
                record = msgspec.structs.replace(record, status="running", run=record.id, started_at=tx.now)
                records.save(tx, actor.id, record)
            return record

        return self._parts.store.write(Scope(actor.tenant), body)

    def _input(self, actor: Actor, record: DreamRecord) -> StoreRecord:
        def body(tx: ReadTx) -> StoreRecord:
            try:
                store = store_records.load(tx, record.store)
            except NotFound:
                raise Unavailable("The input memory store was deleted.") from None
            if store.archived_at is not None:
                raise Unavailable("The input memory store was archived.")
            return store

        return self._parts.store.read(Scope(actor.tenant), body)

    def _transcripts(self, actor: Actor, record: DreamRecord) -> tuple[Sequence[Transcript], int]:
        """The transcripts that came with the request, and the version of the document that has them."""
        if not record.transcripts:
            return [], 0
        document = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.load(TEXT_SPACE, record.id))
        if document is None or not document.body:
            raise Canceled
        return decode(document.body), document.version

    def _clone(self, actor: Actor, record: DreamRecord) -> tuple[StoreRecord, DreamRecord]:
        """The output store as a copy of the input: same paths, new ids, one transaction."""
        if record.output is not None:  # made before a process died
            made = self._parts.store.read(Scope(actor.tenant), lambda tx: store_records.load(tx, record.output or ""))
            return made, record
        new_id = self._parts.ids.new()

        def prepare(rules: Rules) -> Callable[[WriteTx], tuple[StoreRecord, DreamRecord]]:
            store = self._input(actor, record)
            metadata = {key: value for key, value in store.metadata.items() if key != store_records.REF}
            if len(metadata) < 16:
                metadata["reverie.dream"] = record.id
            target = msgspec.structs.replace(store, id=new_id, ref=STORE + new_id, bound=False, metadata=metadata)
            copies = []
            files = self._planner.files(actor, store)
            for memory in files:
                file_id, path = self._parts.ids.new(), memory.file.path
                text = memory.content or ""
                clean = self._memories.clean(
                    actor, target, file_id, path, text, rules, session=record.run, tags=subject_tags(memory.entry)
                )
                copies.append((file_id, path, clean))

            def body(tx: WriteTx) -> tuple[StoreRecord, DreamRecord]:
                current = self._running(tx, record.id)
                if msgspec.structs.replace(self._current(tx, store), dream=store.dream) != store:
                    raise Moved  # a description that was forgotten meanwhile is not copied
                if _versions(tx, store) != {memory.file.id: memory.file.version for memory in files}:
                    raise Moved  # nor is a file
                name = f"{store.name[:247]} (dream)"
                made = self._stores.add(tx, actor, new_id, name, store.description, metadata, rules, dream=record.id)
                check_room(tx, made, [clean for _, _, clean in copies], rules.policy, new=len(copies))
                cloned = {}
                for file_id, path, clean in copies:
                    file = self._memories.write(
                        tx, actor, made, None, file_id, path, clean, rules.policy, session=record.run
                    )
                    cloned[file_id] = file.version
                current = msgspec.structs.replace(current, output=new_id, cloned=cloned)
                records.save(tx, actor.id, current)
                return made, current

            return body

        return retry(
            lambda _: self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, STORE + new_id)),
            busy=lambda: Busy("The memory store changes faster than it can be copied. Try again later."),
        )

    def _running(self, tx: ReadTx, dream_id: str) -> DreamRecord:
        record = records.load(tx, dream_id)
        if record.status != "running" or stopping(tx, record.run):
            raise Canceled
        return record

    # commit

    def _commit(
        self, actor: Actor, record: DreamRecord, planned: PlannedWrites, given: int, rules: Rules
    ) -> Body[bool]:
        """The transaction of a dream: not canceled, every text as it was read, then all files and the report.

        `given`: the version of the document with the transcripts; 0 without any.
        """
        ready: list[tuple[FileWrite, str, Clean | None]] = []
        for write in planned.writes:
            file_id = write.before.id if write.before is not None else self._parts.ids.new()
            clean = None
            if write.text is not None:
                clean = self._memories.clean(
                    actor, planned.store, file_id, write.path, write.text, rules, session=record.run, tags=write.tags
                )
            ready.append((write, file_id, clean))

        def body(tx: WriteTx) -> bool:
            current = self._running(tx, record.id)
            records.check_time(tx, current, rules.policy)
            store = self._current(tx, planned.store)
            if store.subject != planned.store.subject:
                raise Replan(1)
            now = {memory.file.id: memory.file for memory in all_files(tx, store, "/")}
            if {name: file.version for name, file in now.items()} != planned.seen:
                raise Replan(1)
            if changed := _changed(tx, planned):
                raise Replan(changed)
            transcripts = tx.load(TEXT_SPACE, record.id)
            if given and (transcripts is None or transcripts.version != given):
                raise Replan(1)
            written = [clean for _, _, clean in ready if clean is not None]
            created = sum(write.before is None for write, _, _ in ready)
            check_room(tx, store, written, rules.policy, new=created - (len(ready) - len(written)))
            changes = [self._write(tx, actor, store, now, one, rules.policy, session=record.run) for one in ready]
            done = msgspec.structs.replace(
                current,
                status="completed",
                ended_at=tx.now,
                usage=dict(planned.usage),
                report=dict(planned.report),
                changes=tuple(changes),
            )
            seq = records.save(tx, actor.id, done)
            if changes:
                self._keep(tx, planned, changes, seq)
            return True

        return body

    def _keep(self, tx: WriteTx, planned: PlannedWrites, changes: Sequence[FileChange], seq: int) -> None:
        """Store the engine's report, and a link from every text to its sources."""
        made, links, fates = planned.made, {}, {}
        stored = {entry.id for entry in made.sources}
        for write, change in zip(planned.writes, changes, strict=True):
            if change.before is not None:
                fates[change.before] = fate_of(write, next((e for e in made.sources if e.id == change.before), None))
            if change.after is not None and tx.get(change.after) is not None:
                origins = [change.before, *(entry.id for entry in write.entries)]
                links[change.after] = [origin for origin in origins if origin in stored]
        plan = DreamPlan(
            planned.store.ref, selector=Selector(kinds=(FILE_KIND,)), trigger=TRIGGER, operation="MEMORY_DREAM"
        )
        report = report_of(tx, plan, made, None, retired=(), position=planned.position, seq=seq)
        former = [entry for entry in made.sources if entry.id in fates]
        traces = [SourceTrace(e.id, e.version, EntryState.ACTIVE, False, fates[e.id]) for e in former]
        report = msgspec.structs.replace(report, sources=traces, outputs=tuple(links))
        self._dreams.keep(tx, report, links)

    def _write(
        self,
        tx: WriteTx,
        actor: Actor,
        store: StoreRecord,
        now: Mapping[str, File],
        one: tuple[FileWrite, str, Clean | None],
        policy: TenantPolicy,
        *,
        session: str | None,
    ) -> FileChange:
        write, file_id, clean = one
        before = now.get(file_id)
        if clean is None:
            if before is not None:
                self._memories.remove(tx, actor, store, before, policy, session=session)
            return FileChange(file_id, "deleted", before.version if before else None, None, write.path)
        file = self._memories.write(
            tx,
            actor,
            store,
            before,
            file_id,
            write.path,
            clean,
            policy,
            session=session,
            made_from=write.made_from,
        )
        operation = "modified" if before is not None else "created"
        return FileChange(file_id, operation, before.version if before else None, file.version, write.path)

    def _current(self, tx: ReadTx, seen: StoreRecord) -> StoreRecord:
        try:
            store = store_records.load(tx, seen.id)
        except NotFound:
            raise Unavailable("The memory store was deleted.") from None
        if store.archived_at is not None:
            raise Unavailable("The memory store was archived.")
        return store

    def _fail(self, actor: Actor, dream_id: str, fault: Exception) -> bool:
        """Store the reason why a dream failed. False when it has ended already."""
        error, more = failure(fault)

        def body(tx: WriteTx) -> bool:
            record = records.load(tx, dream_id)
            if record.status in FINAL:
                return False
            failed = msgspec.structs.replace(
                record, status="failed", ended_at=tx.now, error=error, report={**record.report, **more}
            )
            records.save(tx, actor.id, failed)
            return True

        return self._parts.store.write(Scope(actor.tenant), body)


def _versions(tx: ReadTx, store: StoreRecord) -> dict[str, str]:
    """The version of every file of a store."""
    with tx.within(store.ref):
        return {memory.file.id: memory.file.version for memory in all_files(tx, store, "/")}


def _changed(tx: ReadTx, planned: PlannedWrites) -> int:
    """The number of session entries that changed or went since they were read: none is written that was forgotten."""
    if tx.head().seq == planned.position:
        return 0
    changed = 0
    for ref, said in planned.said.items():
        with tx.within(ref):
            now = tx.at(list(said), Filter())
        changed += sum(position not in now or now[position].version != seen for position, seen in said.items())
    return changed
