"""Alerts that need a person, worst first. Each names the page on which to act."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reverie.api.console.agents import degraded
from reverie.api.console.page import Look
from reverie.api.console.text import relative, segment
from reverie.core.clock import MS_PER_DAY
from reverie.core.dream import DreamReport
from reverie.ops.backup import last_backup
from reverie.protocols.akashik.field import Field

Alert = dict[str, str]
_ORDER = ("bad", "warn", "note")
BACKUP_DAYS = 7
VERIFY_DAYS = 30


def alerts(look: Look, reports: Sequence[DreamReport]) -> list[Alert]:
    """Everything that needs a decision or a look."""
    results = [
        *_health(look),
        *_jobs(look),
        *_schedules(look),
        *_audit(look),
        *_conflicts(look),
        *_must_keeps(reports),
        *_agents(look),
        *_backup(look),
    ]
    return sorted(results, key=lambda one: _ORDER.index(one["level"]))


def _alert(level: str, what: str, why: str, url: str, action: str) -> Alert:
    return {"level": level, "what": what, "why": why, "url": url, "action": action}


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _health(look: Look) -> Iterator[Alert]:
    """The checks of the host: store, disk, clock, search by meaning."""
    for name, check in look.state.health.ready().checks.items():
        if check.status != "ok":
            level = "bad" if check.status == "unavailable" else "warn"
            yield _alert(level, f"{name.capitalize()} is {check.status}", check.detail, "/operate#health", "See health")


def _jobs(look: Look) -> Iterator[Alert]:
    if not look.may("admin"):
        return
    failed = [job for job in look.host.jobs.all(look.actor) if job.status == "dead"]
    if failed:
        why = f"Last error: {failed[-1].error or 'unknown'}. Retry or discard it."
        yield _alert("bad", f"{_many(len(failed), 'job')} failed for good", why, "/operate#jobs", "Decide")


def _schedules(look: Look) -> Iterator[Alert]:
    for due in look.host.schedules.all(look.actor):
        last = due.schedule.last
        if last is not None and last.status == "failed":
            why = f"Error: {last.code or 'unknown'}."
            what = f"The schedule {due.schedule.cron} failed"
            yield _alert("bad", what, why, "/dreams#schedules", "See schedules")


def _audit(look: Look) -> Iterator[Alert]:
    """A log that failed verification, or was not verified lately."""
    proof, now = look.host.audit.last(look.actor), look.host.parts.clock.now()
    if proof is not None and not proof.ok:
        why = f"Verified {relative(proof.at, now)}: the chain is broken after event {proof.position}."
        yield _alert("bad", "The audit log does not hold", why, "/audit", "See the log")
    elif _old(look, VERIFY_DAYS) and (proof is None or now - proof.at > VERIFY_DAYS * MS_PER_DAY):
        when = "never" if proof is None else f"last {relative(proof.at, now)}"
        yield _alert("note", "The audit log was not verified lately", f"Verified {when}.", "/audit", "Verify")


def _conflicts(look: Look) -> Iterator[Alert]:
    conflicts = look.host.use(Field).conflicts(look.actor)["conflicts"]
    if conflicts:
        what = _many(len(conflicts), "contested fact")
        yield _alert("warn", what, "Two agents say different things.", "/field", "Decide")


def _must_keeps(reports: Sequence[DreamReport]) -> Iterator[Alert]:
    for report in reports[:5]:
        missing = report.gates.get("must_keep", {}).get("missing", 0) if report.state == "done" else 0
        if missing:
            where = f"/dreams/{segment(report.id)}#must-keep"
            what = f"{_many(missing, 'must-keep statement')} not in a dream"
            why = f"Of {report.ref}. The originals are kept: read them, and pin those that matter."
            yield _alert("warn", what, why, where, "Read")


def _agents(look: Look) -> Iterator[Alert]:
    found: list[dict[str, Any]] = degraded(look)
    if found:
        names = ", ".join(str(agent["agentId"]) for agent in found[:3]) + (" …" if len(found) > 3 else "")
        what = f"{_many(len(found), 'agent')} degraded"
        yield _alert("warn", what, f"This host lacks something they ask for: {names}.", "/agents", "See why")


def _backup(look: Look) -> Iterator[Alert]:
    """A missing or old backup. It concerns the whole host, so only administrators see it."""
    parts = look.host.parts
    if not look.may("admin") or not parts.store.durable or not _old(look, 1):
        return
    made, now = last_backup(parts.store), parts.clock.now()
    if made is None:
        yield _alert(
            "note", "No backup of this host yet", "Run: reverie backup create FILE", "/operate#transfer", "Show how"
        )
    elif now - made > BACKUP_DAYS * MS_PER_DAY:
        why = f"The last one was made {relative(made, now)}."
        yield _alert("warn", "The last backup is old", why, "/operate#transfer", "Show how")


def _old(look: Look, days: int) -> bool:
    """Whether the tenant's log is older than some days: a new host needs no reminder."""
    first = look.host.reader.events(look.actor, limit=1)
    return bool(first) and look.host.parts.clock.now() - first[0].at > days * MS_PER_DAY
