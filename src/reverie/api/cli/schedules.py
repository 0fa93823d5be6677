"""reverie schedules ...: schedules of dreams."""

from __future__ import annotations

from typing import Annotated, Any

from reverie.api.cli.command import Argument, Exit, Group, Option
from reverie.api.cli.session import HERE, AnyRef, At, CommandSession, pick
from reverie.api.cli.terminal import print_json, print_table, say, shorten_ids

app = Group("Schedules of dreams: list, add, pause, resume, run, remove. A running server runs them.")

Id = Annotated[str, Argument(metavar="SCHEDULE", help="The id of a schedule, or a unique beginning of it.")]

_NONE = (
    "No schedules yet: a large memory is dreamt at 03:00 by itself (policy nightly). "
    "Add your own: reverie schedules add '0 3 * * *'"
)


@app.command("list")
def list_schedules(at: At = HERE) -> None:
    """List schedules: last run, next run, status.

    \b
    Example:
      reverie schedules list
    """
    from reverie.api.views import due_document

    with at.session(text=False) as opened:
        results = [due_document(due) for due in opened.host.schedules.all(opened.actor)]
    if at.json:
        print_json({"items": results})
        return
    short = shorten_ids([item["id"] for item in results])
    rows = [
        (
            short[item["id"]],
            item["cron"],
            item["zone"] if item["zone"] != "UTC" else None,
            item["ref"] or "(all)",
            _last(item),
            _minute(item["next_at"]),
            _why(item),
        )
        for item in results
    ]
    columns = ["id", "cron", "zone", "ref", "last run", "next run", "status"]
    print_table(columns, rows, stretch="ref", keep=("cron", "next run", "status"), lines=None, empty=_NONE)


@app.command("add")
def add(
    cron: Annotated[str, Argument(metavar="CRON", help="Five fields; '0 3 * * *' is three in the morning.")],
    ref: AnyRef = None,
    zone: Annotated[
        str | None, Option(metavar="ZONE", help="Time zone, such as Europe/Berlin; else the policy's.")
    ] = None,
    kind: Annotated[str, Option(metavar="dream|consolidate", help="Distil entries, or merge duplicates.")] = "dream",
    budget: Annotated[
        int | None, Option(metavar="TOKENS", help="Most tokens of each dream, input plus output.")
    ] = None,
    fit: Annotated[bool, Option("--fit/--no-fit", help="Take the oldest part that fits, or all or nothing.")] = True,
    older_than: Annotated[str | None, Option(metavar="AGE", help="Only entries older than this.")] = None,
    least_entries: Annotated[int, Option(metavar="N", help="Do nothing below this many entries.")] = 2,
    least_tokens: Annotated[int, Option(metavar="N", help="Do nothing below this many tokens.")] = 0,
    jitter: Annotated[str | None, Option(metavar="AGE", help="Delay each start by a random time up to this.")] = None,
    missed: Annotated[
        str, Option(metavar="once|skip", help="Run one of the ticks missed without a worker, or none.")
    ] = "once",
    at: At = HERE,
) -> None:
    """Add a schedule, for one memory or (without --ref) for each of the tenant's.

    \b
    Examples:
      reverie schedules add '0 3 * * *' --ref support-bot --older-than 7d
      reverie schedules add '30 2 * * sun' --kind consolidate --zone Europe/Berlin
    """
    fields: dict[str, Any] = {
        "cron": cron,
        "ref": ref,
        "zone": zone,
        "kind": kind,
        "budget": budget,
        "fit": fit,
        "older_than": older_than,
        "least_entries": least_entries,
        "least_tokens": least_tokens,
        "jitter": jitter,
        "missed": missed,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    _save(given, at, "added", create=True)


@app.command("pause")
def pause(schedule_id: Id, at: At = HERE) -> None:
    """Pause a schedule until it is resumed.

    \b
    Example:
      reverie schedules pause 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    _save({"id": schedule_id, "paused": True}, at, "paused")


@app.command("resume")
def resume(schedule_id: Id, at: At = HERE) -> None:
    """Resume a paused schedule.

    \b
    Example:
      reverie schedules resume 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    _save({"id": schedule_id, "paused": False}, at, "resumed")


@app.command("run")
def run(schedule_id: Id, at: At = HERE) -> None:
    """Run a schedule now; its next tick stays as it is. Exits 1 when it failed.

    \b
    Example:
      reverie schedules run 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.cli.report import steps
    from reverie.api.views import outcome_document

    with at.session() as opened, steps() as progress:
        outcome = opened.host.schedules.run_now(opened.actor, _one(opened, schedule_id), progress=progress)
    if at.json:
        print_json(outcome_document(outcome))
    else:
        say(f"{outcome.status}" + (f": {outcome.code}" if outcome.code else ""))
        for dream in outcome.dreams:
            say(f"reverie dream show {dream}")
    if outcome.status == "failed":
        raise Exit(1)


@app.command("remove")
def remove(schedule_id: Id, at: At = HERE) -> None:
    """Remove a schedule.

    \b
    Example:
      reverie schedules remove 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with at.session(text=False) as opened:
        schedule_id = _one(opened, schedule_id)
        opened.host.schedules.drop(opened.actor, schedule_id)
    at.answer({"id": schedule_id}, f"removed {schedule_id}")


def _save(fields: dict[str, Any], at: At, done: str, *, create: bool = False) -> None:
    from reverie.api.views import due_document

    with at.session(create=create, text=False) as opened:
        if "id" in fields:
            fields = {**fields, "id": _one(opened, fields["id"])}
        saved = opened.host.schedules.save(opened.actor, fields, existing="id" in fields)
        document = due_document(opened.host.schedules.due(saved))
    if at.json:
        print_json(document)
        return
    when = f"next due {_minute(document['next_at'])} UTC" if document["next_at"] else "not due while paused"
    say(f"{done} {saved.id}: {when}")


def _one(opened: CommandSession, given: str) -> str:
    return pick(given, (due.schedule.id for due in opened.host.schedules.all(opened.actor)))


def _last(item: dict[str, Any]) -> str:
    return f"{_minute(item['last']['at'])} {item['last']['status']}" if item["last"] else "never"


def _minute(instant: str | None) -> str:
    return instant[:16].replace("T", " ") if instant else ""


def _why(item: dict[str, Any]) -> str:
    return item["why_not"] or ""
