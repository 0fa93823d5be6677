"""Schedules: when a memory is dreamt, and why it was not.

A schedule is a document. A tick is an instant its cron expression names in its time zone. Exactly one process takes a
tick: it moves the schedule's `last_tick` in a transaction that fails for everyone else. The dream of a tick has an id
made from schedule and tick, so a tick that is taken over after a crash never dreams twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.dream import DreamPlan, DreamReport, GateFailed, Nothing, Selector
from reverie.core.entry import Scope
from reverie.core.errors import Busy, NotFound, ReadOnly, ReverieError
from reverie.core.event import NewEvent
from reverie.core.query import Filter, each
from reverie.core.run import CONSOLIDATE, DISTILL, Interrupted, RunOver, RunStarter, RunStatus
from reverie.dreams.consolidate import Consolidator
from reverie.dreams.engine import DreamEngine, Progress
from reverie.dreams.report import load_report
from reverie.jobs import timetable
from reverie.jobs.timetable import (
    NIGHTLY,
    SCHEDULE_SPACE,
    Due,
    Outcome,
    Schedule,
    checked,
    due_tick,
    live_schedules,
    load_schedule,
    load_unswitched,
    stored_schedules,
    switched,
    upcoming_tick,
    why_not,
)
from reverie.memory.policy import RuleBook
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import Leases

_PARTS = 24
"""Dreams of one memory in one night."""


class Scheduler:
    """Stores schedules and runs those that are due."""

    def __init__(
        self, parts: Services, rules: RuleBook, dreams: DreamEngine, consolidator: Consolidator, runs: RunStarter
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._dreams = dreams
        self._consolidator = consolidator
        self._runs = runs
        self._leases = Leases(parts.store, parts.clock, read_only=parts.read_only)

    def save(self, actor: Actor, fields: Mapping[str, Any], *, existing: bool = False) -> Schedule:
        """Make a schedule, or change the one of the same id. Unknown fields are refused.

        `existing`: only change; raises NotFound when there is none. A new schedule without a zone gets the tenant's.
        """
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()

        rules = self._rules.latest(actor.tenant)
        zone = rules.policy.zone
        named = str(fields.get("id") or "")
        self._rules.check_names(
            actor.tenant, {f"/{k}": v for k, v in fields.items() if isinstance(v, str)}, rules=rules
        )

        def body(tx: WriteTx) -> Schedule:
            stored = load_unswitched(tx, named)
            if stored is None and existing:
                raise NotFound("There is no schedule with that id. `reverie schedules list` shows them.")
            made = {"id": self._parts.ids.new(), "created_at": tx.now, "zone": zone}
            values = msgspec.to_builtins(stored) if stored else made
            schedule = checked({**values, **fields}, now=tx.now)
            data = {"schedule": schedule.id, "cron": schedule.cron, "kind": schedule.kind, "paused": schedule.paused}
            seq = tx.append(NewEvent("schedule.saved", "SCHEDULE", actor.id, data=data))
            tx.save(SCHEDULE_SPACE, schedule.id, msgspec.json.encode(schedule), seq=seq)
            tx.wake(tx.now)
            return switched(tx, schedule)

        return self._parts.store.write(Scope(actor.tenant), body)

    def drop(self, actor: Actor, schedule_id: str) -> None:
        """Remove a schedule."""
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()

        def body(tx: WriteTx) -> None:
            found = load_schedule(tx, schedule_id)
            if found is None:
                raise NotFound("There is no schedule with that id. `reverie schedules list` shows them.")
            seq = tx.append(NewEvent("schedule.dropped", "SCHEDULE", actor.id, data={"schedule": schedule_id}))
            if found.id == NIGHTLY:  # it may not have been stored yet; what was removed stays removed
                tx.save(SCHEDULE_SPACE, schedule_id, msgspec.json.encode(found), seq=seq)
            tx.drop(SCHEDULE_SPACE, schedule_id, seq=seq)

        self._parts.store.write(Scope(actor.tenant), body)

    def all(self, actor: Actor) -> list[Due]:
        """Every schedule with its last outcome, when it is due next, and why it did not run."""
        actor.require(Right.READ)
        return [self.due(schedule) for schedule in self._parts.store.read(Scope(actor.tenant), stored_schedules)]

    def due(self, schedule: Schedule) -> Due:
        """A schedule as people see it."""
        return Due(schedule, upcoming_tick(schedule, self._parts.clock.now()), why_not(schedule))

    def tick(self, actor: Actor, *, progress: Progress | None = None) -> int:
        """Run every tick that is due and not taken. Returns how many this process ran."""
        holder = self._parts.ids.new()
        ran = [self.run_tick(actor, s.id, tick, holder, progress=progress) for s, tick in self.due_ticks(actor)]
        return sum(outcome is not None for outcome in ran)

    def due_ticks(self, actor: Actor) -> list[tuple[Schedule, int]]:
        """Every tick that should run now, with its schedule. Only looks; nothing is taken."""
        if self._parts.read_only:
            return []
        now = self._parts.clock.now()
        found = [(s, due_tick(s, now)) for s in self._parts.store.read(Scope(actor.tenant), live_schedules)]
        return [(schedule, tick) for schedule, tick in found if tick is not None]

    def run_tick(
        self, actor: Actor, schedule_id: str, tick: int, holder: str, *, progress: Progress | None = None
    ) -> Outcome | None:
        """Run one tick under a lease and return its outcome; None when it is no longer due, or taken."""
        if self._parts.read_only:
            return None
        schedule = self._take(actor, schedule_id, tick, holder)
        if schedule is None:
            return None
        with self._leases.beating(actor, _lease(schedule_id), holder, for_ms=timetable.TAKEN_MS):
            return self._run(actor, schedule, tick, progress, holder)

    def run_now(self, actor: Actor, schedule_id: str, *, progress: Progress | None = None) -> Outcome:
        """Run a schedule at once, regardless of its cron expression; its next tick stays as it was."""
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()
        found = self._parts.store.read(Scope(actor.tenant), lambda tx: load_schedule(tx, schedule_id))
        if found is None:
            raise NotFound("There is no schedule with that id. `reverie schedules list` shows them.")
        return self._run(actor, found, self._parts.clock.now(), progress)

    def _take(self, actor: Actor, schedule_id: str, tick: int, holder: str = "host") -> Schedule | None:
        """Take a tick: at most one process gets the schedule, unless the one that had it died."""

        def body(tx: WriteTx) -> Schedule | None:
            schedule = load_schedule(tx, schedule_id)
            if schedule is None or not (due_tick(schedule, tx.now) == tick or _repeatable(schedule, tick)):
                return None
            if not tx.claim(_lease(schedule_id), holder, until=tx.now + timetable.TAKEN_MS):
                return None  # it takes long, and its runner is alive
            attempts = 1
            if schedule.last is not None and schedule.last.tick == tick:
                attempts = schedule.last.attempts + 1
            outcome = Outcome(tick=tick, at=tx.now, status="running", attempts=attempts)
            data = {"schedule": schedule_id, "tick": tick, "attempt": attempts}
            seq = tx.append(NewEvent("schedule.fired", "SCHEDULE", actor.id, data=data))
            taken = msgspec.structs.replace(schedule, last_tick=tick, last=outcome)
            tx.save(SCHEDULE_SPACE, schedule_id, msgspec.json.encode(taken), seq=seq)
            tx.wake(tx.now + timetable.TAKEN_MS)
            return taken

        return self._parts.store.write(Scope(actor.tenant), body)

    def _run(
        self, actor: Actor, schedule: Schedule, tick: int, progress: Progress | None, holder: str | None = None
    ) -> Outcome:
        dreams: list[str] = []
        idle: str | None = None
        failed: str | None = None
        for ref in self._refs(actor, schedule):
            try:
                before = self._dreamt(actor, tick_dream(schedule.id, tick, ref))
                short = None if before else self._below(actor, schedule, ref)  # what was dreamt made it small
                made = None
                if schedule.ref is not None or not short:  # a schedule of one memory has one run for each tick
                    made, small = self._one(actor, schedule, tick, ref, progress, skip=short)
                    short = short or small
                if made is not None:
                    dreams.append(made)
                idle = short or idle
            except ReverieError as fault:
                failed = fault.reason
            except Exception as fault:  # one memory must not stop the others, nor one schedule
                failed = type(fault).__name__
        status = "failed" if failed else "done" if dreams else "nothing"
        code = failed or (None if dreams else idle)
        outcome = Outcome(tick=tick, at=self._parts.clock.now(), status=status, code=code, dreams=dreams)
        self._note(actor, schedule.id, outcome, holder)
        return outcome

    def _refs(self, actor: Actor, schedule: Schedule) -> list[str]:
        if schedule.ref is not None:
            return [schedule.ref]
        return [ref for ref, _ in self._parts.store.read(Scope(actor.tenant), lambda tx: tx.refs())]

    def _below(self, actor: Actor, schedule: Schedule, ref: str) -> str | None:
        """Return the threshold that a memory has not reached, if any."""

        def body(tx: ReadTx) -> tuple[int, int]:
            entries = tx.count(Filter())
            tokens = 0
            if schedule.least_tokens and self._parts.tokens is not None:
                for entry in each(lambda cursor: tx.scan(Filter(), limit=500, cursor=cursor)):
                    tokens += self._parts.tokens.count(entry.content)
                    if tokens >= schedule.least_tokens:
                        break
            return entries, tokens

        entries, tokens = self._parts.store.read(Scope(actor.tenant, ref), body)
        if entries < schedule.least_entries:
            return "below_least_entries"
        return "below_least_tokens" if tokens < schedule.least_tokens else None

    def _one(
        self, actor: Actor, schedule: Schedule, tick: int, ref: str, progress: Progress | None, *, skip: str | None
    ) -> tuple[str | None, str | None]:
        """Process one memory of a tick as a run of its own: return the dream, or the reason why there is none.

        After a crash it resumes; a finished dream is not repeated.
        """
        dream_id = tick_dream(schedule.id, tick, ref)

        def body(acting: Actor) -> tuple[str | None, str | None]:
            if skip:
                return None, skip
            return self._pass(acting, schedule, ref, dream_id, progress)

        for run_id in (dream_id, None):
            try:
                _, made = self._runs.around(
                    actor,
                    CONSOLIDATE if schedule.kind == "consolidate" else DISTILL,
                    body,
                    ref=ref,
                    inputs={"memoryRef": ref},
                    metadata={"schedule": schedule.id, "tick": to_iso(tick)},
                    run_id=run_id,
                    interrupted=Interrupted.ELSEWHERE,
                )
                if made[0] is not None or self._dreamt(actor, dream_id) is None:
                    return made
                break  # another process, which lost the tick, dreamt it just before
            except RunOver:
                if run_id is None or self._runs.get(actor, run_id).status is not RunStatus.FAILED:
                    break  # an earlier attempt at this tick got through, or is on its way
        if self._dreamt(actor, dream_id) is not None:
            return dream_id, None
        if self._runs.get(actor, dream_id).status in (RunStatus.PENDING, RunStatus.RUNNING):
            raise Busy("Another process may still be at this tick.")  # to be tried again, not to be called done
        return None, None

    def _pass(
        self, actor: Actor, schedule: Schedule, ref: str, dream_id: str, progress: Progress | None
    ) -> tuple[str | None, str | None]:
        """(the dream, the reason why there is none)."""
        if schedule.kind == "consolidate":
            done = self._consolidator.run(actor, ref, trigger="scheduled")
            return (f"{ref}@{done.seq}" if done.merged else None), None
        if self._dreamt(actor, dream_id) is not None:
            return dream_id, None  # an earlier attempt at this tick got that far
        plan = DreamPlan(
            ref=ref,
            selector=Selector(older_than_ms=schedule.older_than_ms),
            budget=schedule.budget,
            fit=schedule.fit,
            least_entries=max(schedule.least_entries, 2),
        )
        made = self._dreams.attempt(actor, plan, progress=progress, dream_id=dream_id)
        if made is Nothing.CANNOT_BE_SMALLER and schedule.ref and plan.fit:
            # What is new in a memory asked for by name is dreamt as on demand: a distillation has an event (OpenWOP).
            fresh = Selector(older_than_ms=schedule.older_than_ms, dreams=False)
            whole = msgspec.structs.replace(plan, selector=fresh, fit=False, may_grow=True)
            made = self._dreams.attempt(actor, whole, progress=progress, dream_id=dream_id)
        if isinstance(made, Nothing):
            return None, made.value if made is Nothing.CANNOT_BE_SMALLER else None
        if schedule.id == NIGHTLY:
            self._rest(actor, plan, made, progress)
        return made.id, None

    def _rest(self, actor: Actor, plan: DreamPlan, report: DreamReport, progress: Progress | None) -> None:
        """Dream the other parts of a memory that is larger than a budget, in the same night."""
        for _ in range(_PARTS):
            if not report.left_for_later:
                return
            try:
                made = self._dreams.run(actor, plan, progress=progress)
            except GateFailed:
                return
            if made is None:
                return
            report = made

    def _dreamt(self, actor: Actor, dream_id: str) -> DreamReport | None:
        try:
            return self._parts.store.read(Scope(actor.tenant), lambda tx: load_report(tx, dream_id))
        except NotFound:
            return None

    def _note(self, actor: Actor, schedule_id: str, outcome: Outcome, holder: str | None) -> None:
        def body(tx: WriteTx) -> None:
            if holder is not None and not tx.claim(_lease(schedule_id), holder, until=tx.now):
                return  # it was taken over: the new holder reports the outcome
            schedule = load_unswitched(tx, schedule_id)
            if holder is not None:
                tx.release(_lease(schedule_id), holder)
            if schedule is None:
                return
            attempts = schedule.last.attempts if schedule.last and schedule.last.tick == outcome.tick else 1
            data = {"schedule": schedule_id, "tick": outcome.tick, "status": outcome.status, "code": outcome.code}
            seq = tx.append(NewEvent("schedule.ran", "SCHEDULE", actor.id, data=data))
            quiet = seq if schedule.id == NIGHTLY and outcome.status == "nothing" else 0
            last = msgspec.structs.replace(outcome, attempts=attempts)
            noted = msgspec.structs.replace(schedule, last=last, quiet_seq=quiet)
            tx.save(SCHEDULE_SPACE, schedule_id, msgspec.json.encode(noted), seq=seq)
            tx.wake(tx.now)

        self._parts.store.write(Scope(actor.tenant), body)


def _repeatable(schedule: Schedule, tick: int) -> bool:
    """Whether this was the last tick and failed, so that it may be tried again."""
    last = schedule.last
    return not schedule.paused and last is not None and last.tick == tick and last.status == "failed"


def _lease(schedule_id: str) -> str:
    return f"tick/{schedule_id}"


def tick_dream(schedule_id: str, tick: int, ref: str) -> str:
    """The id of the dream of one tick in one memory: the same in every process."""
    return hashlib.sha256(f"{schedule_id}\n{tick}\n{ref}".encode()).hexdigest()[:26].upper()
