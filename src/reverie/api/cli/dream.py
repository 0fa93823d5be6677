"""reverie dream ...: distil many memories into one, look at what was done, and take it back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.api.cli.report import say_estimate, say_report, steps
from reverie.api.cli.session import (
    DEFAULT_REF,
    DEFAULT_TENANT,
    AnyRef,
    Data,
    DatabaseUrl,
    Json,
    Ref,
    Tags,
    Tenant,
    session,
)
from reverie.api.cli.terminal import note, one_line, print_json, print_table, say

if TYPE_CHECKING:
    from reverie.core.dream import DreamPlan

app = typer.Typer(help="Distil many memories into few, under a token budget; trace and undo it.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="DREAM", help="The id of a dream.")]
Budget = Annotated[
    int | None,
    typer.Option("--budget", "-b", metavar="TOKENS", help="Input plus output; default and most: the policy's."),
]
Fit = Annotated[bool, typer.Option("--fit", help="Begin with the oldest part that fits; run again for the rest.")]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="AGE", help="Leave younger memories alone: 7d, 12h, P30D.")
]
Kinds = Annotated[list[str], typer.Option("--kind", metavar="KIND", help="Only this kind; may be repeated.")]
InSession = Annotated[str | None, typer.Option("--session", metavar="ID", help="Only what was said in this session.")]
After = Annotated[
    str,
    typer.Option(
        "--after",
        metavar="cold|archive|purge",
        help="What becomes of the sources: cold storage for the undo window, kept out of recall, or destroyed now.",
    ),
]
Distiller = Annotated[
    str, typer.Option("--distiller", metavar="NAME", help="extractive, llm, or none (only archive or purge).")
]


@app.command("plan")
def plan(
    ref: Ref = DEFAULT_REF,
    budget: Budget = None,
    fit: Fit = False,
    older_than: OlderThan = None,
    kind: Kinds = [],  # noqa: B006  (typer copies it)
    tag: Tags = [],  # noqa: B006
    in_session: InSession = None,
    after: After = "cold",
    distiller: Distiller = "extractive",
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show what a dream would do, and touch nothing.

    \b
    Example:
      reverie dream plan --ref support-bot --budget 4000
    """
    from reverie.api.views import estimate_document

    wanted = _plan(ref, budget, fit, older_than, kind, tag, in_session, after, distiller)
    with session(tenant, data, database_url) as opened:
        estimate = opened.host.dreaming.plan(opened.actor, wanted)
    if json:
        print_json(estimate_document(estimate))
    else:
        say_estimate(estimate)


@app.command("run")
def run(
    ref: Ref = DEFAULT_REF,
    budget: Budget = None,
    fit: Fit = False,
    older_than: OlderThan = None,
    kind: Kinds = [],  # noqa: B006  (typer copies it)
    tag: Tags = [],  # noqa: B006
    in_session: InSession = None,
    after: After = "cold",
    distiller: Distiller = "extractive",
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Dream: all of it happens, or nothing. Shows its report.

    Pinned and held memories stay as they are. When there is nothing to do, it says so and exits 0.

    \b
    Examples:
      reverie dream run --ref support-bot --budget 8000
      reverie dream run --ref support-bot --fit --older-than 7d
    """
    from reverie.api.views import report_document

    wanted = _plan(ref, budget, fit, older_than, kind, tag, in_session, after, distiller)
    with session(tenant, data, database_url) as opened, steps() as progress:
        report = opened.host.dreaming.run(opened.actor, wanted, progress=progress)
    if json:
        print_json(None if report is None else report_document(report))
    elif report is None:
        say("There is nothing to dream: fewer than two memories are taken. `reverie dream plan` says why.")
    else:
        say_report(report)


@app.command("list")
def list_dreams(
    ref: AnyRef = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="At most this many.")] = 20,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """List dreams, newest first.

    \b
    Example:
      reverie dream list --ref support-bot
    """
    from reverie.api.views import report_document
    from reverie.core.clock import to_iso

    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.lineage.reports(opened.actor, ref=ref, limit=limit)
    if json:
        print_json({"items": [report_document(report) for report in found]})
        return
    rows = [
        (
            report.id,
            to_iso(report.created_at)[:16].replace("T", " "),
            report.ref,
            len(report.sources),
            report.tokens_before,
            report.output_tokens,
            report.state,
        )
        for report in found
    ]
    columns = ["id", "when", "ref", "memories", "tokens", "to", "state"]
    print_table(columns, rows, stretch="ref", empty="No dreams yet: reverie dream plan")


@app.command("show")
def show(
    dream_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show the report of a dream, and its text while it is readable.

    \b
    Example:
      reverie dream show 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.views import report_document
    from reverie.core.errors import NotFound

    with session(tenant, data, database_url, text=False) as opened:
        report = opened.host.lineage.report(opened.actor, dream_id)
        text = None
        if report.output_id is not None:
            try:
                text = opened.host.reading.get(opened.actor, report.ref, report.output_id).content
            except NotFound:
                text = None
    if json:
        print_json(report_document(report))
        return
    say_report(report)
    if text is not None:
        say("")
        say(text)


@app.command("diff")
def diff(
    dream_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show what became of every memory a dream took: kept, shortened, merged or retired.

    \b
    Example:
      reverie dream diff 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.lineage.diff(opened.actor, dream_id)
    if json:
        print_json(found)
        return
    marks = (("=", "kept"), ("~", "shortened"), ("+", "merged"), ("-", "retired"))
    for mark, fate in marks:
        for entry_id in getattr(found, fate):
            text = found.texts.get(entry_id)
            say(f"{mark} {entry_id}  {'(its text was destroyed)' if text is None else one_line(text)}")
    note("= kept word for word   ~ shortened   + merged with others   - retired without a line of its own")


@app.command("undo")
def undo(
    dream_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Take a dream back: its sources are readable again exactly as they were.

    Possible within the undo window, while the sources rest in cold storage.

    \b
    Example:
      reverie dream undo 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    from reverie.api.views import report_document

    with session(tenant, data, database_url) as opened:
        report = opened.host.lineage.undo(opened.actor, dream_id)
    if json:
        print_json(report_document(report))
        return
    say(f"undone: {len(report.sources)} memories of {report.ref} are back")


@app.command("verify")
def verify(
    dream_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Dream again from the same sources and compare bytes. Changes nothing; exits 1 when they differ.

    \b
    Example:
      reverie dream verify 01K9ZJ4V7B3M8Q2X5N6R1T0WAC
    """
    with session(tenant, data, database_url) as opened:
        found = opened.host.lineage.verify(opened.actor, dream_id)
    if json:
        print_json(found)
    else:
        say(f"{'ok' if found.ok else 'NOT PROVED'}: {found.reason}")
        if found.checksum:
            say(f"stored      sha256 {found.checksum}")
        if found.recomputed:
            say(f"recomputed  sha256 {found.recomputed}")
    if not found.ok:
        raise typer.Exit(1)


@app.command("index")
def index(
    ref: AnyRef = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show the memory index: what the next session loads at its start.

    \b
    Example:
      reverie dream index --ref support-bot --json > MEMORY-INDEX.json
    """
    with session(tenant, data, database_url, text=False) as opened:
        if json:
            print_json(opened.host.archives.index(opened.actor, ref=ref))
        else:
            say(opened.host.archives.index_page(opened.actor, ref=ref).rstrip("\n"))


@app.command("archive")
def archive(
    checksum: Annotated[str, typer.Argument(metavar="SHA256", help="The checksum a report names.")],
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Annotated[bool, typer.Option("--json", help="An archive is JSON already.")] = True,  # noqa: ARG001
) -> None:
    """Write the archive of a dream to stdout, byte for byte: `| sha256sum` gives its name.

    \b
    Example:
      reverie dream archive 8f43...c1 | sha256sum
    """
    with session(tenant, data, database_url, text=False) as opened:
        sys.stdout.buffer.write(opened.host.archives.get(opened.actor, checksum))


def _plan(
    ref: str,
    budget: int | None,
    fit: bool,
    older_than: str | None,
    kinds: list[str],
    tags: list[str],
    in_session: str | None,
    after: str,
    distiller: str,
) -> DreamPlan:
    from reverie.core.clock import parse_duration
    from reverie.core.dream import After as Fate
    from reverie.core.dream import DreamPlan, Selector
    from reverie.core.errors import Invalid

    if after not in list(Fate):
        raise Invalid(f"--after is one of {', '.join(Fate)}.")
    age = 0 if older_than is None else parse_duration(older_than, pointer="--older-than")
    selector = Selector(kinds=tuple(kinds) or None, tags=tuple(tags), session=in_session, older_than_ms=age)
    return DreamPlan(ref=ref, selector=selector, budget=budget, distiller=distiller, after=Fate(after), fit=fit)
