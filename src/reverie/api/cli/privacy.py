"""forget, redact, scan: what must not be kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.api.cli.session import DEFAULT_TENANT, AllTenants, AnyRef, Data, DatabaseUrl, Json, Tenant, session
from reverie.api.cli.terminal import many, note, print_json, print_table, progress, say

if TYPE_CHECKING:
    from reverie.privacy.forget import Forgotten


def forget(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Whom or what to forget.")],
    ref: AnyRef = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only count.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Destroy everything about a subject. Shows the counts and asks first. Cannot be undone.

    \b
    Example:
      reverie forget customer-7
    """
    with session(tenant, data, database_url) as opened:
        forgetting = opened.host.forgetting
        found = forgetting.forget(opened.actor, subject, ref=ref, preview=True)
        if not preview and (found.forgotten or found.derived):
            if not yes:
                note(_counted(found))
                confirm("Destroy them for good?", json)
            found = forgetting.forget(opened.actor, subject, ref=ref)
    if json:
        print_json(found)
        return
    if not found.forgotten and not found.derived:
        say("There is nothing about this subject.")
    elif found.preview:
        say(_counted(found))
    else:
        where = many(found.refs, "ref")
        say(f"forgot {many(found.forgotten, 'memory', 'memories')} ({many(found.bytes, 'byte')}) in {where}")
        if found.derived:
            back = f"; {found.restored} memories came back to be read" if found.restored else ""
            gone = f"{many(found.derived, 'dream')} made from them gone"
            say(f"{gone}, {found.redone} dreamt again without them{back}")
        say(
            f"the certificate is event {found.certificate}: reverie audit export --after {(found.certificate or 1) - 1}"
        )


def redact(
    summary: Annotated[bool, typer.Option("--summary", help="Count the findings by kind, on stderr.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when anything was found.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The summary as JSON, on stderr.")] = False,
) -> None:
    """Copy stdin to stdout without secrets. Needs no database; safe for `tail -f`.

    Lines pass as they come; a private key that spans lines is held back until it is whole.

    \b
    Examples:
      reverie redact < app.log > clean.log
      git diff | reverie redact --summary --check > /dev/null
    """
    from reverie.api.cli.filter import copy_redacted
    from reverie.redact import Redactor

    findings = copy_redacted(sys.stdin.buffer, sys.stdout.buffer, Redactor())
    if json:
        from reverie.api.cli.terminal import json_line

        sys.stderr.buffer.write(json_line({"findings": dict(sorted(findings.items()))}))
    elif summary:
        for kind, count in sorted(findings.items()):
            note(f"{kind}: {count}")
        if not findings:
            note("nothing found")
    if check and findings:
        raise typer.Exit(1)


def scan(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report.")] = False,
    all_tenants: AllTenants = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Redact what older rules missed in what is stored.

    Looks at every entry, readable or cold, with today's rules and secrets.

    \b
    Example:
      reverie scan --dry-run --all-tenants
    """
    with session(tenant, data, database_url) as opened:
        reports = {}
        for name in opened.host.tenants() if all_tenants else [tenant]:
            with progress(f"scanning {name}") as tick:
                reports[name] = opened.host.scanning.scan(opened.acting_for(name), dry_run=dry_run, progress=tick)
    if json:
        import msgspec

        shown = [{"tenant": name, **msgspec.to_builtins(report)} for name, report in reports.items()]
        print_json({"items": shown} if all_tenants else shown[0])
        return
    for name, report in reports.items():
        verb = "would be redacted" if dry_run else "redacted"
        say(f"{name}: {report.entries} entries scanned, {report.affected} {verb} (rules {report.rules})")
        if report.findings:
            print_table(["found", "times"], sorted(report.findings.items()))


def confirm(question: str, json: bool) -> None:
    """Ask on the terminal; refuse to guess when nobody can answer."""
    from reverie.core.errors import Invalid

    if json or not sys.stdin.isatty():
        raise Invalid("This cannot be undone, and there is nobody to ask. Add --yes to go ahead.", code="not_confirmed")
    if not typer.confirm(question, err=True):
        raise typer.Abort


def _counted(found: Forgotten) -> str:
    what = f"{many(found.forgotten, 'memory', 'memories')} ({many(found.bytes, 'byte')}) in {many(found.refs, 'ref')}"
    text = f"about this subject: {what}"
    if found.derived:
        dreams = many(found.derived, "dream")
        text += f"; {dreams} made from them, of which {found.redone} will be dreamt again without them"
    return text + (f"; {found.held} of all these are on hold" if found.held else "")
