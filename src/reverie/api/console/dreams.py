"""Dreams: the list with the tokens saved by each, the schedules, and a dream planned or run now."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from cronsim import CronSim

from reverie.api.console import plots
from reverie.api.console.drawing import shares
from reverie.api.console.dream import FATES
from reverie.api.console.home import dreamt, positions
from reverie.api.console.page import Begin, Document, Look, Page, See, whole
from reverie.api.console.running import DreamProgress, Running
from reverie.api.console.span import span_of
from reverie.api.console.text import segment
from reverie.api.views import due_document
from reverie.core.actor import Right
from reverie.core.clock import parse_duration, to_iso
from reverie.core.dream import LEFT_OUT, After, DreamPlan, DreamReport, Nothing, Selector
from reverie.core.errors import Invalid, ReverieError

LIMIT = 25
_LEAVING = 50
"""Statements that a plan lists."""


def show(look: Look) -> Document:
    """A page of reports, newest first, and the schedules."""
    host, actor = look.host, look.actor
    span, ref = span_of(look), look.text("ref") or None
    page = host.lineage.page(actor, ref=ref, limit=LIMIT, cursor=look.text("cursor") or None)
    before, last = positions(host.history.series(actor, since=span.since, until=span.until - 1))
    figures = [one for one in dreamt(look, before, last)[0] if ref is None or one.ref == ref]
    policy = host.rules.policy(actor)
    return {
        "ref": ref or "",
        "refs": [name for name, _ in sorted(host.reader.refs(actor), key=lambda one: (-one[1], one[0]))],
        "dreams": [line(report) for report in page.items],
        "cursor": page.cursor,
        "schedules": [_schedule(due_document(due)) for due in host.schedules.all(actor)],
        "budget": policy.dream_budget,
        "zone": policy.zone,
        "distillers": ["extractive", *host.parts.distillers],
        "fate_titles": {name: title.lower() for name, (title, _) in FATES.items()},
        "plan": None,
        "span": span.document(),
        "plots": {
            "tokens": plots.before_and_after(figures),
            "saved": plots.saved(figures),
        },
    }


def _schedule(document: dict[str, Any]) -> dict[str, Any]:
    """A schedule with its cron expression in words: `At 03:00 every day`."""
    if not document["cron"]:
        return {**document, "words": "Once"}
    return {**document, "words": CronSim(document["cron"], datetime.now(UTC)).explain()}


def line(report: DreamReport) -> dict[str, Any]:
    """A report as a row of the list."""
    counted = Counter(source.fate for source in report.sources)
    fates = {name: counted[name] for name in FATES if counted[name]}
    keep = report.gates.get("must_keep", {})
    return {
        "id": report.id,
        "ref": report.ref,
        "created_at": to_iso(report.created_at),
        "state": report.state,
        "trigger": report.trigger,
        "distiller": report.distiller,
        "sources": len(report.sources),
        "tokens_before": report.taken_tokens,
        "tokens_after": report.output_tokens,
        "fates": fates,
        "shares": shares(fates),
        "gates_passed": report.gates.get("passed"),
        "must_keep_missing": keep.get("missing", 0),
        "spend": dict(report.spend),
        "fell_back": report.fell_back,
    }


def _form_plan(look: Look) -> DreamPlan:
    """The plan that the form asks for."""
    ref, after = look.form_field("ref"), look.form_field("after", "cold")
    if not ref:
        raise Invalid("Choose a memory to dream.", pointer="/ref")
    if after not in list(After):
        raise Invalid("There is no such way to treat the sources.", pointer="/after")
    older = look.form_field("older_than")
    return DreamPlan(
        ref=ref,
        selector=Selector(older_than_ms=parse_duration(older, pointer="/older_than") if older else 0),
        budget=_budget(look),
        distiller=look.form_field("distiller", "extractive"),
        after=After(after),
        fit=True,
    )


def _budget(look: Look) -> int | None:
    """The budget typed into a form. Raises Invalid above the policy's: a dream never uses more."""
    budget = whole(look.form_field("budget"), "budget", 0, least=1, most=10_000_000)
    most = look.host.rules.policy(look.actor).dream_budget
    if budget > most:
        message = f"The policy allows a dream {most} tokens. Give it fewer, or raise dream_budget under Operate."
        raise Invalid(message, pointer="/budget")
    return budget or None


def plan(look: Look) -> Document:
    """Show what a dream would do now, without side effects."""
    dream_plan = _form_plan(look)
    estimate = look.host.dreams.plan(look.actor, dream_plan)
    sent = {name: look.form_field(name) for name in ("ref", "budget", "older_than", "distiller", "after")}
    leaving = Counter((part.text, part.reason) for part in estimate.leaving)
    return show(look) | {
        "plan": msgspec.to_builtins(estimate),
        "stay_out": [(count, LEFT_OUT.get(reason, reason)) for reason, count in sorted(estimate.left_out.items())],
        "shares": shares({name: estimate.fates[name] for name in FATES if estimate.fates.get(name)}),
        "leaving": [
            {"text": text, "title": FATES[reason][0] if reason in FATES else reason, "times": times}
            for (text, reason), times in list(leaving.items())[:_LEAVING]
        ],
        "more_leaving": max(0, len(leaving) - _LEAVING),
        "sent": sent,
    }


def run(look: Look) -> Begin:
    """Start a dream; its page shows the progress and ends on its report."""
    look.actor.require(Right.DREAM)
    dream_plan = _form_plan(look)
    running: Running = look.state.console_running
    dream_id = look.host.parts.ids.new()
    running.begin(DreamProgress(dream_id, look.actor.tenant, dream_plan.ref))
    return Begin(f"/dreams/{segment(dream_id)}", partial(_dream, look, dream_plan, dream_id))


def _dream(look: Look, dream_plan: DreamPlan, dream_id: str) -> None:
    running: Running = look.state.console_running
    error: str | None = "The host had a fault. Its log names it; nothing was changed."
    try:
        made = look.host.dreams.attempt(
            look.actor, dream_plan, dream_id=dream_id, progress=partial(running.step, dream_id)
        )
        error = made.sentence if isinstance(made, Nothing) else None
    except ReverieError as fault:
        error = look.host.parts.redactor.text(fault.message).text
    finally:
        running.end(dream_id, error)


def schedule(look: Look) -> See:
    """Make a schedule."""
    fields: dict[str, Any] = {"cron": look.form_field("cron"), "ref": look.form_field("ref") or None, "fit": True}
    fields["kind"] = look.form_field("kind", "dream")
    if look.form_field("zone"):
        fields["zone"] = look.form_field("zone")
    if budget := _budget(look):
        fields["budget"] = budget
    made = look.host.schedules.save(look.actor, fields)
    return See("/dreams#schedules", f"Schedule {made.cron} saved.")


def change(look: Look) -> See:
    """Pause, resume or remove a schedule."""
    name, what = look.form_field("schedule"), look.form_field("change")
    if what == "remove":
        look.host.schedules.drop(look.actor, name)
        return See("/dreams#schedules", "Schedule removed.")
    if what not in ("pause", "resume"):
        raise Invalid("This page cannot do that.", pointer="/change")
    look.host.schedules.save(look.actor, {"id": name, "paused": what == "pause"}, existing=True)
    return See("/dreams#schedules", f"Schedule {what}d.")


def tick(look: Look) -> See:
    """Run a schedule now."""
    outcome = look.host.schedules.run_now(look.actor, look.form_field("schedule"))
    if len(outcome.dreams) == 1:
        return See(f"/dreams/{segment(outcome.dreams[0])}")
    said = {"nothing": "There was nothing to do.", "failed": f"It failed: {outcome.code}."}
    return See("/dreams", said.get(outcome.status, f"{len(outcome.dreams)} dreams made."))


PAGE = Page(
    "dreams",
    "/dreams",
    "dreams.html",
    show,
    {"plan": plan, "run": run, "schedule": schedule, "change": change, "tick": tick},
    heavy=frozenset({"plan", "tick"}),
)
