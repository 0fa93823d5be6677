"""forget, redact, scan: text that must not be stored."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Abort, Argument, Exit, Option
from reverie.api.cli.command import confirm as ask_yes
from reverie.api.cli.session import HERE, AllTenants, AnyRef, At, load_settings
from reverie.api.cli.terminal import many, note, print_json, print_table, progress, say

if TYPE_CHECKING:
    from reverie.privacy.forget import Forgotten


def forget(
    subject: Annotated[str, Argument(metavar="SUBJECT", help="Subject to forget; case is ignored.")],
    ref: AnyRef = None,
    mentions: Annotated[bool, Option("--mentions", help="Also entries that mention the words.")] = False,
    preview: Annotated[bool, Option("--preview", help="Count what would be destroyed, and change nothing.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    switch_wal: Annotated[
        bool, Option("--switch-wal", help="PostgreSQL: end the WAL segment, and say when it is recycled.")
    ] = False,
    at: At = HERE,
) -> None:
    """Destroy everything about a subject. Shows the counts and asks first. Cannot be undone.

    \b
    Examples:
      reverie forget customer-7
      reverie forget "Ana Lopez" --mentions --preview
    """
    wal: str | None = None
    with at.session() as opened:
        forget = opened.host.forget
        found = forget.forget(opened.actor, subject, ref=ref, mentions=mentions, preview=True)
        if not preview and (found.forgotten or found.derived or found.archives or (mentions and found.texts)):
            if not yes:
                note(_summary(found))
                confirm("Destroy them for good?", at.json)
            found = forget.forget(opened.actor, subject, ref=ref, mentions=mentions)
        if switch_wal and not preview:
            wal = opened.host.parts.store.switch_wal()
    if at.json:
        print_json(found)
    elif found.preview or not found.certificate:
        say(_summary(found))
    else:
        _say_result(found)
    if wal:
        note(wal)


def _say_result(found: Forgotten) -> None:
    where = many(found.refs, "memory", "memories")
    say(f"forgot {many(found.forgotten, 'entry', 'entries')} ({many(found.bytes, 'byte')}) in {where}")
    if set(found.ways) - {"subject"}:
        say("reached by " + ", ".join(f"{way}: {number}" for way, number in found.ways.items()))
    if found.derived:
        back = f"; {many(found.restored, 'entry', 'entries')} readable again" if found.restored else ""
        say(f"{many(found.derived, 'dream')} made from them destroyed, {found.redone} made again without them{back}")
    if found.texts:
        texts = many(found.texts, "file, task or other text", "files, tasks and other texts")
        say(f"{texts} that mentioned it cleared")
    say(f"the certificate is event {found.certificate}: reverie audit export --after {(found.certificate or 1) - 1}")
    if "wal" in found.outside:
        say("the server's write-ahead log and replicas keep copies for a while: see docs/privacy.md, or --switch-wal")


def redact(
    summary: Annotated[bool, Option("--summary", help="Count the findings by kind, on stderr.")] = False,
    check: Annotated[bool, Option("--check", help="Exit 1 when anything was found.")] = False,
    json: Annotated[bool, Option("--json", help="The summary as JSON, on stderr.")] = False,
) -> None:
    """Copy stdin to stdout without secrets. Needs no database; safe for `tail -f`.

    Lines pass as they come; a private key that spans lines is held back until it is complete.

    \b
    Examples:
      reverie redact < app.log > clean.log
      git diff | reverie redact --summary --check > /dev/null
    """
    from reverie.api.cli.filter import copy_redacted
    from reverie.app import build_redactor

    redactor = build_redactor(load_settings(None, None).redact_rules)
    findings = copy_redacted(sys.stdin.buffer, sys.stdout.buffer, redactor)
    if json:
        from reverie.api.cli.terminal import json_line

        sys.stderr.buffer.write(json_line({"findings": dict(sorted(findings.items()))}))
    elif summary:
        for kind, count in sorted(findings.items()):
            note(f"{kind}: {count}")
        if not findings:
            note("nothing found")
    if check and findings:
        raise Exit(1)


def scan(
    dry_run: Annotated[bool, Option("--dry-run", help="Only report.")] = False,
    all_tenants: AllTenants = False,
    at: At = HERE,
) -> None:
    """Apply the current redaction rules to stored text.

    Looks at every entry, readable or cold, with today's rules and secrets.

    \b
    Example:
      reverie scan --dry-run --all-tenants
    """
    with at.session() as opened:
        reports = {}
        for name in opened.host.tenants() if all_tenants else [opened.actor.tenant]:
            with progress(f"scanning {name}") as tick:
                reports[name] = opened.host.rescan.scan(opened.acting_for(name), dry_run=dry_run, progress=tick)
    if at.json:
        import msgspec

        rows = [{"tenant": name, **msgspec.to_builtins(report)} for name, report in reports.items()]
        print_json({"items": rows} if all_tenants else rows[0])
        return
    for name, report in reports.items():
        verb = "would be redacted" if dry_run else "redacted"
        looked = many(report.entries, "entry", "entries")
        say(f"{name}: {looked} scanned, {report.affected} {verb} (rules {report.rules})")
        if report.findings:
            print_table(["found", "times"], sorted(report.findings.items()))


def confirm(question: str, json: bool) -> None:
    """Ask on the terminal. Raises Abort when the answer is no, and Invalid when there is no terminal."""
    from reverie.core.errors import Invalid

    if json or not sys.stdin.isatty():
        raise Invalid("This cannot be undone, and there is no terminal to ask on. Add --yes.", code="not_confirmed")
    if not ask_yes(question):
        raise Abort


def _summary(found: Forgotten) -> str:
    reached = found.forgotten or found.derived or found.archives
    if not reached and (found.mentioned is not None or not found.texts):
        if not found.mentioned and not found.texts:
            return "No entry is labelled with this subject, and none mentions it."
        said = many(found.mentioned or 0, "entry mentions", "entries mention")
        if found.texts:
            texts = many(found.texts, "file, task or other text mentions", "files, tasks and other texts mention")
            said = f"{said} and {texts}" if found.mentioned else texts
        return f"No entry is labelled with this subject, but {said} the words. To forget those too, add --mentions."
    where = many(found.refs, "memory", "memories")
    text = f"about this subject: {many(found.forgotten, 'entry', 'entries')} ({many(found.bytes, 'byte')}) in {where}"
    if "mention" in found.ways:
        text += f", {found.ways['mention']} of them because they mention it"
    if found.derived:
        dreams = many(found.derived, "dream")
        text += f"; {dreams} made from them, of which {found.redone} will be made again without them"
    if found.restored:
        text += f"; {many(found.restored, 'entry', 'entries')} will be readable again"
    if found.archives:
        text += f"; {many(found.archives, 'archive')}"
    if found.texts:
        text += f"; {many(found.texts, 'file, task or other text', 'files, tasks and other texts')} that mention it"
    return text + (f"; {found.held} of all these are on hold" if found.held else "")
