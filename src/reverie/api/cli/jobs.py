"""reverie jobs ...: jobs that wait, run or failed, and what can be done with them."""

from __future__ import annotations

from typing import Annotated, Any

from reverie.api.cli.command import Argument, Group, Option
from reverie.api.cli.session import HERE, AllTenants, At, CommandSession, pick
from reverie.api.cli.terminal import note, print_fields, print_json, print_table, say, shorten_ids

app = Group("Pending, running and failed jobs: list, show, add, retry, discard.")

JobId = Annotated[str, Argument(metavar="ID", help="The id of a job, or a unique beginning of it.")]


@app.command("list")
def list_(
    status: Annotated[str | None, Option(metavar="STATUS", help="waiting, running or dead.")] = None,
    all_tenants: AllTenants = False,
    at: At = HERE,
) -> None:
    """List pending, running and failed jobs. Scheduled work that succeeds does not appear here.

    \b
    Example:
      reverie jobs list --status dead --all-tenants
    """
    from reverie.core.errors import Invalid
    from reverie.core.job import STATUSES

    if status is not None and status not in STATUSES:
        raise Invalid(f"--status is one of {', '.join(STATUSES)}.")
    with at.session(text=False) as opened:
        names = opened.host.tenants() if all_tenants else [opened.actor.tenant]
        results = [
            _document(job) for name in names for job in opened.host.jobs.all(opened.acting_for(name), status=status)
        ]
    if at.json:
        print_json({"items": results})
        return
    columns = ["id", "name", "tenant", "status", "attempts", "error", "due_at"]
    short = shorten_ids([job["id"] for job in results])
    rows = [[short[job["id"]], *(job[column] for column in columns[1:])] for job in results]
    print_table(columns, rows, keep=("status", "error"), empty="No pending, running or failed jobs.")


@app.command("show")
def show(job_id: JobId, at: At = HERE) -> None:
    """Show one job: its arguments, attempts and last error.

    \b
    Example:
      reverie jobs show 01K2Y3Z4A5B6C7D8E9F0G1H2J3
    """
    with at.session(text=False) as opened:
        found = _document(opened.host.jobs.get(opened.actor, _one(opened, job_id)))
    print_json(found) if at.json else print_fields(found)


@app.command("add")
def add(
    name: Annotated[str, Argument(metavar="NAME", help="dream, consolidate, reindex, retain, scan or forget.")],
    ref: Annotated[str | None, Option("--ref", "-r", metavar="REF", help="For dream and consolidate.")] = None,
    at: At = HERE,
) -> None:
    """Add a job for the next free worker.

    \b
    Examples:
      reverie jobs add scan
      reverie jobs add dream --ref support-bot
    """
    with at.session(text=False) as opened:
        made = opened.host.jobs.add(opened.actor, name, {"ref": ref} if ref is not None else {})
    if at.json:
        print_json({"added": made is not None, "job": _document(made) if made else None})
    elif made is None:
        note("The same job waits already.")
    else:
        say(f"added {made.name} ({made.id}). A running server or `reverie worker` does it.")


@app.command("retry")
def retry(job_id: JobId, at: At = HERE) -> None:
    """Run a dead or waiting job at once.

    \b
    Example:
      reverie jobs retry 01K2Y3Z4A5B6C7D8E9F0G1H2J3
    """
    with at.session(text=False) as opened:
        found = _document(opened.host.jobs.retry(opened.actor, _one(opened, job_id)))
    at.answer(found, f"{found['name']} runs again as soon as a worker is free")


@app.command("discard")
def discard(job_id: JobId, at: At = HERE) -> None:
    """Remove a job that does not run.

    \b
    Example:
      reverie jobs discard 01K2Y3Z4A5B6C7D8E9F0G1H2J3
    """
    with at.session(text=False) as opened:
        opened.host.jobs.discard(opened.actor, _one(opened, job_id))
    at.answer({"discarded": job_id}, "discarded")


def _one(opened: CommandSession, given: str) -> str:
    return pick(given, (job.id for job in opened.host.jobs.all(opened.actor)))


def _document(job: Any) -> dict[str, Any]:
    import msgspec

    from reverie.core.clock import to_iso

    document: dict[str, Any] = msgspec.to_builtins(job)
    del document["unique"]
    return {**document, "created_at": to_iso(job.created_at), "due_at": to_iso(job.due_at)}
