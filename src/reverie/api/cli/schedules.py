"""reverie schedules ...: when a memory is dreamt, and why it was not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reverie.api.cli.session import DEFAULT_TENANT, AnyRef, Data, DatabaseUrl, Json, Tenant, session
from reverie.api.cli.terminal import print_json, print_table, say

app = typer.Typer(help="Dream by the clock. A running server does what is due.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="SCHEDULE")]


@app.command("list")
def list_schedules(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """List schedules: last ran, next due, why not.

    \b
    Example:
      reverie schedules list
    """
    from reverie.api.views import due_document

    with session(tenant, data, database_url, text=False) as opened:
        found = [due_document(due) for due in opened.host.schedules.all(opened.actor)]
    if json:
        print_json({"items": found})
        return
    rows = [
        (
            item["id"],
            item["cron"],
            item["zone"],
            item["ref"] or "(all)",
            _last(item),
            _minute(item["next_at"]),
            _why(item),
        )
        for item in found
    ]
    columns = ["id", "cron", "zone", "ref", "last ran", "next due", "why not"]
    print_table(columns, rows, stretch="why not", empty="No schedules. Add one: reverie schedules add '0 3 * * *'")


@app.command("add")
def add(
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Five fields; '0 3 * * *' is three in the morning.")],
    ref: AnyRef = None,
    zone: Annotated[str | None, typer.Option(metavar="ZONE", help="Such as Europe/Berlin; else the policy's.")] = None,
    kind: Annotated[str, typer.Option(metavar="dream|consolidate", help="What to do.")] = "dream",
    budget: Annotated[int | None, typer.Option(metavar="TOKENS", help="Input plus output of each dream.")] = None,
    fit: Annotated[
        bool, typer.Option("--fit/--no-fit", help="Begin with the oldest part that fits, or all or nothing.")
    ] = True,
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Leave younger memories alone.")] = None,
    least_entries: Annotated[int, typer.Option(metavar="N", help="Below this many memories, do nothing.")] = 2,
    least_tokens: Annotated[int, typer.Option(metavar="N", help="Below this many tokens, do nothing.")] = 0,
    jitter: Annotated[str | None, typer.Option(metavar="AGE", help="Spread the start over this long.")] = None,
    missed: Annotated[str, typer.Option(metavar="once|skip", help="After a time without a worker.")] = "once",
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
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
    _save(given, tenant, data, database_url, json, "added", create=True)


@app.command("pause")
def pause(
    schedule_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Do nothing until it is resumed.

    \b
    Example:
      reverie schedules pause 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    _save({"id": schedule_id, "paused": True}, tenant, data, database_url, json, "paused")


@app.command("resume")
def resume(
    schedule_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Go on with a paused schedule.

    \b
    Example:
      reverie schedules resume 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    _save({"id": schedule_id, "paused": False}, tenant, data, database_url, json, "resumed")


@app.command("run")
def run(
    schedule_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Run a schedule now; its next tick stays as it is. Exits 1 when it failed.

    \b
    Example:
      reverie schedules run 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.cli.report import steps
    from reverie.api.views import outcome_document

    with session(tenant, data, database_url) as opened, steps() as progress:
        outcome = opened.host.schedules.run_now(opened.actor, schedule_id, progress=progress)
    if json:
        print_json(outcome_document(outcome))
    else:
        say(f"{outcome.status}" + (f": {outcome.code}" if outcome.code else ""))
        for dream in outcome.dreams:
            say(f"reverie dream show {dream}")
    if outcome.status == "failed":
        raise typer.Exit(1)


@app.command("remove")
def remove(
    schedule_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Remove a schedule.

    \b
    Example:
      reverie schedules remove 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with session(tenant, data, database_url, text=False) as opened:
        opened.host.schedules.drop(opened.actor, schedule_id)
    if json:
        print_json({"id": schedule_id})
        return
    say(f"removed {schedule_id}")


def _save(
    fields: dict[str, Any],
    tenant: str,
    data: str | None,
    database_url: str | None,
    json: bool,
    done: str,
    *,
    create: bool = False,
) -> None:
    from reverie.api.views import due_document

    with session(tenant, data, database_url, create=create, text=False) as opened:
        saved = opened.host.schedules.save(opened.actor, fields, existing="id" in fields)
        document = due_document(opened.host.schedules.due(saved))
    if json:
        print_json(document)
        return
    when = f"next due {_minute(document['next_at'])} UTC" if document["next_at"] else "not due while paused"
    say(f"{done} {saved.id}: {when}")


def _last(item: dict[str, Any]) -> str:
    return f"{_minute(item['last']['at'])} {item['last']['status']}" if item["last"] else "never"


def _minute(instant: str | None) -> str:
    return instant[:16].replace("T", " ") if instant else ""


def _why(item: dict[str, Any]) -> str:
    return item["why_not"] or ""
