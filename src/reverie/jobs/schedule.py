"""Schedules: when a memory is dreamt, and why it was not.

A schedule is a document. A tick is an instant its cron expression names in its time zone. Exactly one process takes a
tick: it moves the schedule's `last_tick` in a transaction that fails for everyone else. The dream of a tick has an id
made from schedule and tick, so a tick that is taken over after a crash never dreams twice.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.clock import MS_PER_DAY, iso_duration, parse_duration, to_iso
from reverie.core.dream import DreamPlan, DreamReport, GateFailed, Selector
from reverie.core.entry import Scope
from reverie.core.errors import Busy, Invalid, NotFound, ReadOnly, ReverieError
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.core.run import CONSOLIDATE, DISTILL, Interrupted, RunOver, RunStarter, RunStatus
from reverie.dreams.consolidate import Consolidator
from reverie.dreams.engine import DreamEngine, Progress
from reverie.dreams.report import load_report
from reverie.memory.policy import RuleBook, check_ref
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx
from reverie.store.leases import Leases

SCHEDULE_SPACE = "schedule"
HORIZON_MS = 366 * 86_400_000
TAKEN_MS = 60_000
"""How long a tick stays taken without a sign of life; whoever runs it renews the lease meanwhile."""
_KINDS = ("dream", "consolidate")
_MISSED = ("once", "skip")


class Outcome(Struct, frozen=True):
    """How the last tick went."""

    tick: int
    at: int
    status: str
    """`running`, `done`, `nothing` to do, or `failed`."""
    code: str | None = None
    """Why not: an error code, or which threshold was not reached."""
    dreams: Sequence[str] = ()
    attempts: int = 1


class Schedule(Struct, frozen=True):
    """When to dream which memory."""

    id: str
    cron: str = ""
    """Five fields; empty with `delay_ms`."""
    delay_ms: int | None = None
    """Once, this long after the schedule was made, instead of by cron."""
    zone: str = "UTC"
    ref: str | None = None
    """None: every memory of the tenant."""
    kind: str = "dream"
    budget: int | None = None
    fit: bool = True
    older_than_ms: int = 0
    least_entries: int = 2
    least_tokens: int = 0
    """Thresholds: below them a tick does nothing, and says so."""
    jitter_ms: int = 0
    missed: str = "once"
    """After a time without any worker: `once` runs one tick on recovery, `skip` waits for the next."""
    paused: bool = False
    created_at: int = 0
    last_tick: int | None = None
    last: Outcome | None = None


class Due(Struct, frozen=True):
    """A schedule as people see it: last ran, next due, why not."""

    schedule: Schedule
    next_at: int | None
    why_not: str | None


class Scheduler:
    """Keeps schedules and runs what is due."""

    def __init__(
        self, parts: Services, rules: RuleBook, dreaming: DreamEngine, consolidating: Consolidator, runs: RunStarter
    ) -> None:
        self._parts = parts
        self._rules = rules
        self._dreaming = dreaming
        self._consolidating = consolidating
        self._runs = runs
        self._leases = Leases(parts.store, parts.clock, read_only=parts.read_only)

    def save(self, actor: Actor, fields: Mapping[str, Any], *, existing: bool = False) -> Schedule:
        """Make a schedule, or change the one of the same id. Unknown fields are refused.

        `existing`: only change; raises NotFound when there is none. A new schedule is meant in the tenant's zone.
        """
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()

        rules = self._rules.current(actor.tenant)
        zone = rules.policy.zone
        named = str(fields.get("id") or "")
        self._rules.check_names(
            actor.tenant, {f"/{k}": v for k, v in fields.items() if isinstance(v, str)}, rules=rules
        )

        def body(tx: WriteTx) -> Schedule:
            stored = _load(tx, named)
            if stored is None and existing:
                raise NotFound("There is no schedule of that id.")
            made = {"id": self._parts.ids.new(), "created_at": tx.now, "zone": zone}
            values = msgspec.to_builtins(stored) if stored else made
            schedule = _checked({**values, **fields}, now=tx.now)
            data = {"schedule": schedule.id, "cron": schedule.cron, "kind": schedule.kind, "paused": schedule.paused}
            seq = tx.append(NewEvent("schedule.saved", "SCHEDULE", actor.id, data=data))
            tx.save(SCHEDULE_SPACE, schedule.id, msgspec.json.encode(schedule), seq=seq)
            tx.wake(tx.now)
            return schedule

        return self._parts.store.write(Scope(actor.tenant), body)

    def drop(self, actor: Actor, schedule_id: str) -> None:
        """Remove a schedule."""
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()

        def body(tx: WriteTx) -> None:
            if _load(tx, schedule_id) is None:
                raise NotFound("There is no schedule of that id.")
            seq = tx.append(NewEvent("schedule.dropped", "SCHEDULE", actor.id, data={"schedule": schedule_id}))
            tx.drop(SCHEDULE_SPACE, schedule_id, seq=seq)

        self._parts.store.write(Scope(actor.tenant), body)

    def all(self, actor: Actor) -> list[Due]:
        """Every schedule with its last outcome, when it is due next, and why it did not run."""
        actor.require(Right.READ)
        return [self.due(schedule) for schedule in self._parts.store.read(Scope(actor.tenant), stored_schedules)]

    def due(self, schedule: Schedule) -> Due:
        """A schedule as people see it."""
        now = self._parts.clock.now()
        return Due(schedule, None if schedule.paused else next_tick(schedule, now), _why_not(schedule))

    def tick(self, actor: Actor, *, progress: Progress | None = None) -> int:
        """Run every tick that is due and that nobody took. Returns how many this process ran."""
        holder = self._parts.ids.new()
        ran = [self.run_tick(actor, s.id, tick, holder, progress=progress) for s, tick in self.due_ticks(actor)]
        return sum(outcome is not None for outcome in ran)

    def due_ticks(self, actor: Actor) -> list[tuple[Schedule, int]]:
        """Every tick that should run now, with its schedule. Only looks; nothing is taken."""
        if self._parts.read_only:
            return []
        now = self._parts.clock.now()
        found = [(s, due_tick(s, now)) for s in self._parts.store.read(Scope(actor.tenant), stored_schedules)]
        return [(schedule, tick) for schedule, tick in found if tick is not None]

    def run_tick(
        self, actor: Actor, schedule_id: str, tick: int, holder: str, *, progress: Progress | None = None
    ) -> Outcome | None:
        """Run one tick, if it is still due and nobody has it: None otherwise. A sign of life is given meanwhile."""
        if self._parts.read_only:
            return None
        schedule = self._take(actor, schedule_id, tick, holder)
        if schedule is None:
            return None
        with self._leases.beating(actor, _lease(schedule_id), holder, for_ms=TAKEN_MS):
            return self._run(actor, schedule, tick, progress, holder)

    def run_now(self, actor: Actor, schedule_id: str, *, progress: Progress | None = None) -> Outcome:
        """Run a schedule at once, whatever its cron says; its next tick stays as it was."""
        actor.require(Right.DREAM)
        if self._parts.read_only:
            raise ReadOnly()
        found = self._parts.store.read(Scope(actor.tenant), lambda tx: _load(tx, schedule_id))
        if found is None:
            raise NotFound("There is no schedule of that id.")
        return self._run(actor, found, self._parts.clock.now(), progress)

    def _take(self, actor: Actor, schedule_id: str, tick: int, holder: str = "host") -> Schedule | None:
        """Take a tick: at most one process gets the schedule, unless the one that had it died."""

        def body(tx: WriteTx) -> Schedule | None:
            schedule = _load(tx, schedule_id)
            if schedule is None or not (due_tick(schedule, tx.now) == tick or _repeatable(schedule, tick)):
                return None
            if not tx.claim(_lease(schedule_id), holder, until=tx.now + TAKEN_MS):
                return None  # it takes long, and whoever runs it is alive
            attempts = 1
            if schedule.last is not None and schedule.last.tick == tick:
                attempts = schedule.last.attempts + 1
            outcome = Outcome(tick=tick, at=tx.now, status="running", attempts=attempts)
            data = {"schedule": schedule_id, "tick": tick, "attempt": attempts}
            seq = tx.append(NewEvent("schedule.fired", "SCHEDULE", actor.id, data=data))
            taken = msgspec.structs.replace(schedule, last_tick=tick, last=outcome)
            tx.save(SCHEDULE_SPACE, schedule_id, msgspec.json.encode(taken), seq=seq)
            tx.wake(tx.now + TAKEN_MS)
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
                    made = self._one(actor, schedule, tick, ref, progress, skip=short)
                if made is not None:
                    dreams.append(made)
                idle = short or idle
            except GateFailed as fault:
                if fault.details.get("gates") == ["smaller"]:
                    idle = "cannot_be_smaller"
                else:
                    failed = fault.reason
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
        """Which threshold a memory has not reached."""

        def body(tx: ReadTx) -> tuple[int, int]:
            entries = tx.count(Filter())
            tokens = 0
            if schedule.least_tokens and self._parts.tokens is not None:
                cursor: str | None = None
                while tokens < schedule.least_tokens:
                    page = tx.scan(Filter(), limit=500, cursor=cursor)
                    tokens += sum(self._parts.tokens.count(entry.content) for entry in page.items)
                    cursor = page.cursor
                    if cursor is None:
                        break
            return entries, tokens

        entries, tokens = self._parts.store.read(Scope(actor.tenant, ref), body)
        if entries < schedule.least_entries:
            return "below_least_entries"
        return "below_least_tokens" if tokens < schedule.least_tokens else None

    def _one(
        self, actor: Actor, schedule: Schedule, tick: int, ref: str, progress: Progress | None, *, skip: str | None
    ) -> str | None:
        """One memory of a tick, as a run of its own. After a crash it goes on; what was dreamt is not dreamt again."""
        dream_id = tick_dream(schedule.id, tick, ref)

        def body(acting: Actor) -> str | None:
            return None if skip else self._pass(acting, schedule, ref, dream_id, progress)

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
                return made
            except RunOver:
                if run_id is None or self._runs.get(actor, run_id).status is not RunStatus.FAILED:
                    break  # an earlier attempt at this tick got through, or is on its way
        if self._dreamt(actor, dream_id) is not None:
            return dream_id
        if self._runs.get(actor, dream_id).status in (RunStatus.PENDING, RunStatus.RUNNING):
            raise Busy("Another process may still be at this tick.")  # to be tried again, not to be called done
        return None

    def _pass(self, actor: Actor, schedule: Schedule, ref: str, dream_id: str, progress: Progress | None) -> str | None:
        if schedule.kind == "consolidate":
            done = self._consolidating.run(actor, ref, trigger="scheduled")
            return f"{ref}@{done.seq}" if done.merged else None
        if self._dreamt(actor, dream_id) is not None:
            return dream_id  # an earlier attempt at this tick got that far
        plan = DreamPlan(
            ref=ref,
            selector=Selector(older_than_ms=schedule.older_than_ms),
            budget=schedule.budget,
            fit=schedule.fit,
            least_entries=max(schedule.least_entries, 2),
        )
        report = self._dreaming.run(actor, plan, progress=progress, dream_id=dream_id)
        return report.id if report is not None else None

    def _dreamt(self, actor: Actor, dream_id: str) -> DreamReport | None:
        try:
            return self._parts.store.read(Scope(actor.tenant), lambda tx: load_report(tx, dream_id))
        except NotFound:
            return None

    def _note(self, actor: Actor, schedule_id: str, outcome: Outcome, holder: str | None) -> None:
        def body(tx: WriteTx) -> None:
            if holder is not None and not tx.claim(_lease(schedule_id), holder, until=tx.now):
                return  # it was taken over: the other one tells how it went
            schedule = _load(tx, schedule_id)
            if holder is not None:
                tx.release(_lease(schedule_id), holder)
            if schedule is None:
                return
            attempts = schedule.last.attempts if schedule.last and schedule.last.tick == outcome.tick else 1
            noted = msgspec.structs.replace(schedule, last=msgspec.structs.replace(outcome, attempts=attempts))
            data = {"schedule": schedule_id, "tick": outcome.tick, "status": outcome.status, "code": outcome.code}
            seq = tx.append(NewEvent("schedule.ran", "SCHEDULE", actor.id, data=data))
            tx.save(SCHEDULE_SPACE, schedule_id, msgspec.json.encode(noted), seq=seq)
            tx.wake(tx.now)

        self._parts.store.write(Scope(actor.tenant), body)


def _repeatable(schedule: Schedule, tick: int) -> bool:
    """Whether this was the last tick and it failed: then it may be tried again."""
    last = schedule.last
    return not schedule.paused and last is not None and last.tick == tick and last.status == "failed"


def _lease(schedule_id: str) -> str:
    return f"tick/{schedule_id}"


def tick_dream(schedule_id: str, tick: int, ref: str) -> str:
    """The id of the dream of one tick in one memory: the same in every process."""
    return hashlib.sha256(f"{schedule_id}\n{tick}\n{ref}".encode()).hexdigest()[:26].upper()


def next_tick(schedule: Schedule, after: int) -> int | None:
    """The first instant after `after` that the schedule names, with its jitter; None beyond a year."""
    if schedule.delay_ms is not None:
        once = schedule.created_at + schedule.delay_ms
        once += _jitter(schedule, once)
        return once if once > after else None
    zone = ZoneInfo(schedule.zone)
    start = datetime.fromtimestamp(after / 1000, tz=UTC).astimezone(zone)
    try:
        found = int(next(CronSim(schedule.cron, start)).timestamp() * 1000)
    except (CronSimError, StopIteration):
        return None
    return found + _jitter(schedule, found) if found - after <= HORIZON_MS else None


def due_tick(schedule: Schedule, now: int) -> int | None:
    """The tick that should run now: the latest one passed, once; None when there is none or it was taken."""
    return ticks_around(schedule, now)[0]


def ticks_around(schedule: Schedule, now: int) -> tuple[int | None, int | None]:
    """(the tick that should run now, the instant after now at which there may be one)."""
    if schedule.paused:
        return None, None
    if schedule.last is not None and schedule.last.status == "running":
        again = schedule.last.at + TAKEN_MS  # whoever took it may be gone by then: the lease tells
        return (schedule.last.tick, None) if again <= now else (None, again)
    since = schedule.last_tick
    if since is None:  # a delay of nothing is due at once
        since = schedule.created_at - (schedule.delay_ms is not None)
    latest, missed = None, 0
    at = since
    while (tick := next_tick(schedule, at)) is not None and tick <= now:
        latest, missed, at = tick, missed + 1, max(tick, at + 1)
        if missed > 1000:  # long asleep: go straight to the last hour
            at = max(at, now - 3_600_000)
            missed = 2
    if latest is not None and schedule.missed == "skip" and (missed > 1 or now - latest > 3_600_000):
        return None, tick
    return latest, tick


def _jitter(schedule: Schedule, tick: int) -> int:
    """The same for every process: seeded by schedule and tick."""
    if not schedule.jitter_ms:
        return 0
    return random.Random(f"{schedule.id}/{tick}").randrange(schedule.jitter_ms)  # noqa: S311


def _checked(values: Mapping[str, Any], *, now: int) -> Schedule:
    known = set(Schedule.__struct_fields__) | {"older_than", "jitter"}
    for name in values:
        if name not in known:
            raise Invalid(f"A schedule has no field '{name[:64]}'.", pointer=f"/{name[:64]}")
    plain = {k: v for k, v in values.items() if k not in ("older_than", "jitter")}
    for short, field in (("older_than", "older_than_ms"), ("jitter", "jitter_ms")):
        if values.get(short) is not None:
            plain[field] = parse_duration(str(values[short]), pointer=f"/{short}")
    try:
        schedule = msgspec.convert(plain, Schedule)
    except msgspec.ValidationError as fault:
        raise Invalid(f"This is not a schedule: {str(fault)[:160]}") from None
    if schedule.ref is not None:
        check_ref(schedule.ref)
    if schedule.kind not in _KINDS:
        raise Invalid(f"kind is one of {', '.join(_KINDS)}.", pointer="/kind")
    if schedule.missed not in _MISSED:
        raise Invalid(f"missed is one of {', '.join(_MISSED)}.", pointer="/missed")
    if schedule.budget is not None and schedule.budget < 1:
        raise Invalid("budget is at least 1.", pointer="/budget")
    for name in ("older_than_ms", "least_entries", "least_tokens", "jitter_ms"):
        if getattr(schedule, name) < 0:
            raise Invalid(f"{name} is not negative.", pointer=f"/{name}")
    if schedule.jitter_ms > MS_PER_DAY:
        raise Invalid("jitter is at most a day.", pointer="/jitter")
    try:
        ZoneInfo(schedule.zone)
    except (KeyError, ValueError, OSError):
        raise Invalid("zone is an IANA time zone such as Europe/Berlin.", pointer="/zone") from None
    if (schedule.delay_ms is None) == (not schedule.cron):
        raise Invalid("A schedule has a cron expression or a delay: one of them.", pointer="/cron")
    if schedule.delay_ms is not None:
        if schedule.delay_ms < 0:
            raise Invalid("A delay is not negative.", pointer="/delay_ms")
        if schedule.delay_ms > HORIZON_MS:
            raise _beyond("/delay_ms")
        return schedule
    try:
        CronSim(schedule.cron, datetime.now(UTC))
    except CronSimError:
        raise Invalid(
            "cron has five fields, for example '0 3 * * *' for three in the morning.", pointer="/cron"
        ) from None
    if next_tick(schedule, now) is None:
        raise _beyond("/cron")
    return schedule


def _beyond(pointer: str) -> Invalid:
    return Invalid(
        "The schedule names no instant within a year.",
        code="schedule_horizon_exceeded",
        pointer=pointer,
        details={"maxFutureHorizon": iso_duration(HORIZON_MS)},
    )


def _why_not(schedule: Schedule) -> str | None:
    if schedule.paused:
        return "paused"
    if schedule.last is None:
        return "its first tick has not come"
    if schedule.last.status in ("nothing", "failed"):
        return schedule.last.code or "there was nothing to do"
    return None


def _load(tx: ReadTx, schedule_id: str) -> Schedule | None:
    document = tx.load(SCHEDULE_SPACE, schedule_id) if schedule_id else None
    return msgspec.json.decode(document.body, type=Schedule) if document and document.body else None


def stored_schedules(tx: ReadTx) -> list[Schedule]:
    """Every schedule of the tenant."""
    found: list[Schedule] = []
    cursor: str | None = None
    while True:
        page = tx.documents(SCHEDULE_SPACE, limit=500, cursor=cursor)
        found += [msgspec.json.decode(d.body, type=Schedule) for d in page.items if d.body]
        cursor = page.cursor
        if cursor is None:
            return found
