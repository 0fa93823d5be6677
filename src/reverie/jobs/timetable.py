"""The timetable: schedules, the instants they name, and those that are stored.

A tick is an instant that a schedule's cron expression names in its time zone, plus its jitter.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import Struct

from reverie.core.clock import MS_PER_DAY, is_zone, iso_duration, parse_duration
from reverie.core.errors import Invalid
from reverie.core.policy import LIGHT_BYTES, NIGHT, SMALL_MEMORY, TenantPolicy
from reverie.core.query import each
from reverie.memory.policy import POLICY_SPACE, check_ref
from reverie.store.contract import ReadTx

SCHEDULE_SPACE = "schedule"
HORIZON_MS = 366 * 86_400_000
TAKEN_MS = 60_000
"""Time that a claimed tick stays claimed without a heartbeat; its runner renews the lease meanwhile."""
_KINDS = ("dream", "consolidate")
_MISSED = ("once", "skip")
NIGHTLY = "nightly"
"""The schedule that every tenant has whose memories may be large, unless it is switched off or removed."""
_HOUR_MS = 3_600_000


class Outcome(Struct, frozen=True):
    """The outcome of the last tick."""

    tick: int
    at: int
    status: str
    """`running`, `done`, `nothing` to do, or `failed`."""
    code: str | None = None
    """Reason for no dream: an error code, or the threshold that was not reached."""
    dreams: Sequence[str] = ()
    attempts: int = 1


class Schedule(Struct, frozen=True):
    """Times at which a memory is dreamt."""

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
    quiet_seq: int = 0
    """The log position after a nightly dream with nothing to do: until the log moves, the next one is not due."""


class Due(Struct, frozen=True):
    """A schedule, its next tick, and the reason why the last one did nothing."""

    schedule: Schedule
    next_at: int | None
    why_not: str | None


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


def upcoming_tick(schedule: Schedule, now: int) -> int | None:
    """The next tick after now; also one whose instant has passed and whose jitter has not. None while paused."""
    return ticks_around(msgspec.structs.replace(schedule, last=None), now)[1]


def due_tick(schedule: Schedule, now: int) -> int | None:
    """The tick that should run now: the latest one passed, once; None when there is none or it was taken."""
    return ticks_around(schedule, now)[0]


def ticks_around(schedule: Schedule, now: int) -> tuple[int | None, int | None]:
    """(the tick that should run now, the instant after now at which there may be one)."""
    if schedule.paused:
        return None, None
    if schedule.last is not None and schedule.last.status == "running":
        again = schedule.last.at + TAKEN_MS  # its runner may be gone by then: the lease says so
        return (schedule.last.tick, None) if again <= now else (None, again)
    since = schedule.last_tick
    if since is None:  # a delay of nothing is due at once
        since = schedule.created_at - (schedule.delay_ms is not None)
    if schedule.id == NIGHTLY:  # a night that was missed is not made up for by day
        since = max(since, now - _HOUR_MS)
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
    """The jitter of a tick: seeded by schedule and tick, so the same in every process."""
    if not schedule.jitter_ms:
        return 0
    return random.Random(f"{schedule.id}/{tick}").randrange(schedule.jitter_ms)  # noqa: S311


def checked(values: Mapping[str, Any], *, now: int) -> Schedule:
    """A schedule of these fields. Raises Invalid."""
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
    if not is_zone(schedule.zone):
        raise Invalid("zone is an IANA time zone such as Europe/Berlin.", pointer="/zone")
    # A delay fires once and a cron expression again and again; with both, the next tick would be ambiguous.
    if (schedule.delay_ms is None) == (not schedule.cron):
        raise Invalid("A schedule has a cron expression or a delay: one of them.", pointer="/cron")
    if schedule.delay_ms is not None:
        if schedule.delay_ms < 0:
            raise Invalid("A delay is not negative.", pointer="/delay_ms")
        if schedule.delay_ms > HORIZON_MS:
            raise _beyond("/delay_ms")
        return schedule
    try:
        if len(schedule.cron.split()) != 5:  # the parser would take a sixth one for seconds
            raise CronSimError
        CronSim(schedule.cron, datetime.now(UTC))
    except CronSimError:
        raise Invalid(
            "cron has five fields, for example '0 3 * * *' for three in the morning.", pointer="/cron"
        ) from None
    # `0 0 30 2 *` parses, and never comes.
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


def why_not(schedule: Schedule) -> str | None:
    """Return the reason why the last tick did nothing, or none has run."""
    if schedule.paused:
        return "paused"
    if schedule.last is None:
        return "not due yet"
    if schedule.last.status in ("nothing", "failed"):
        return schedule.last.code or "there was nothing to do"
    return None


def load_schedule(tx: ReadTx, schedule_id: str) -> Schedule | None:
    """A schedule by its id."""
    found = load_unswitched(tx, schedule_id)
    return None if found is None else switched(tx, found)


def load_unswitched(tx: ReadTx, schedule_id: str) -> Schedule | None:
    """A schedule to be stored again: the nightly one is not paused by the policy, which may change back."""
    document = tx.load(SCHEDULE_SPACE, schedule_id) if schedule_id else None
    if document and document.body:
        return msgspec.json.decode(document.body, type=Schedule)
    return _nightly(tx) if schedule_id == NIGHTLY else None


def stored_schedules(tx: ReadTx) -> list[Schedule]:
    """Every schedule of the tenant."""
    documents = each(lambda cursor: tx.documents(SCHEDULE_SPACE, limit=500, cursor=cursor))
    found = [switched(tx, msgspec.json.decode(d.body, type=Schedule)) for d in documents if d.body]
    nightly = None if any(schedule.id == NIGHTLY for schedule in found) else _nightly(tx)
    return found if nightly is None else [switched(tx, nightly), *found]


def live_schedules(tx: ReadTx) -> list[Schedule]:
    """The schedules that may be due: all but a nightly one when nothing happened since its last night without work."""
    head = tx.head().seq
    return [schedule for schedule in stored_schedules(tx) if not schedule.quiet_seq or schedule.quiet_seq != head]


def _nightly(tx: ReadTx) -> Schedule | None:
    """The nightly dream of a tenant that never changed it; None for a small tenant, or when it was removed."""
    if tx.head().bytes <= LIGHT_BYTES or tx.load(SCHEDULE_SPACE, NIGHTLY, dropped=True) is not None:
        return None
    zone = _policy(tx).zone
    return Schedule(
        id=NIGHTLY,
        cron=f"0 {NIGHT} * * *",
        zone=zone if is_zone(zone) else "UTC",  # older releases stored a policy with any zone
        least_tokens=SMALL_MEMORY + 1,
        missed="skip",
        created_at=max(tx.now - _HOUR_MS, 0),
    )


def switched(tx: ReadTx, schedule: Schedule) -> Schedule:
    """The nightly dream is paused while the policy `nightly` is off."""
    if schedule.id != NIGHTLY or schedule.paused or _policy(tx).nightly == "on":
        return schedule
    return msgspec.structs.replace(schedule, paused=True)


def _policy(tx: ReadTx) -> TenantPolicy:
    stored = tx.load(POLICY_SPACE, "tenant")
    return TenantPolicy().changed(msgspec.json.decode(stored.body)) if stored and stored.body else TenantPolicy()
