"""reverie audit ...: verify and read the log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Exit, Group, Option
from reverie.api.cli.session import HERE, AllTenants, At, instant
from reverie.api.cli.terminal import cut, json_line, many, note, print_json, progress, say, shorten_ids, table_width

if TYPE_CHECKING:
    from reverie.core.event import Event

app = Group("The event log: verify, export, tail.")

Type = Annotated[list[str], Option("--type", metavar="TYPE", help="Only this type; may be repeated.")]
Actor = Annotated[str | None, Option("--actor", metavar="ID", help="Only what this actor did.")]
_POLL_SECONDS = 0.3
_TYPE = 18
_FIXED = 6 + 19 + 12 + 4 * 2
"""Columns of position, time and shortened id on a terminal, with the space between columns."""


@app.command("verify")
def verify(all_tenants: AllTenants = False, at: At = HERE) -> None:
    """Verify the log: no gap, every hash fits, and every stored text is the one that was written.

    Exits 1 and names the first broken link when something is wrong.

    \b
    Example:
      reverie audit verify --all-tenants
    """
    with at.session(text=False) as opened:
        names = opened.host.tenants() if all_tenants else [opened.actor.tenant]
        verdicts = {}
        for name in names:
            with progress(f"verifying {name}") as report:
                verdicts[name] = opened.host.audit.verify(opened.acting_for(name), progress=report)
    if at.json:
        rows = [{"tenant": name, **_fields(verdict)} for name, verdict in verdicts.items()]
        print_json({"items": rows} if all_tenants else rows[0])
    else:
        for name, verdict in verdicts.items():
            if verdict.ok:
                checked = f"{many(verdict.events, 'event')}, {many(verdict.entries, 'entry', 'entries')}"
                say(f"{name}: ok, {checked}, head {verdict.head[:16]}")
            else:
                say(f"{name}: BROKEN at {verdict.broken_at}: {verdict.reason}")
    if not all(verdict.ok for verdict in verdicts.values()):
        raise Exit(1)


@app.command("export")
def export(
    after: Annotated[int, Option(metavar="SEQ", help="Only events after this position.")] = 0,
    since: Annotated[
        str | None, Option(metavar="TIME", help="RFC 3339, an age such as 7d, or words: 'last week'.")
    ] = None,
    until: Annotated[
        str | None, Option(metavar="TIME", help="RFC 3339, an age such as 1h, or words: yesterday.")
    ] = None,
    actor: Actor = None,
    type: Type = [],  # noqa: A002, B006  (copied before each call)
    at: At = HERE,
) -> None:
    """Write the log as JSON lines. `hash` is the SHA-256 of the rest of the line in canonical JSON (RFC 8785).

    \b
    Example:
      reverie audit export --since 7d --actor key:4x7k2m9q0r1t > week.jsonl
    """
    first, last = instant(since, "--since"), instant(until, "--until")
    with at.session(text=False) as opened:
        for event in opened.host.audit.export(opened.actor, after=after):
            if first is not None and event.at < first:
                continue
            if last is not None and event.at >= last:
                continue
            if _matches(event, actor, type):
                sys.stdout.buffer.write(json_line(event.document()))


@app.command("tail")
def tail(
    follow: Annotated[bool, Option("--follow", "-f", help="Continue until interrupted.")] = False,
    lines: Annotated[int, Option("--lines", "-n", metavar="N", least=0, most=10_000, help="Number of events.")] = 20,
    actor: Actor = None,
    type: Type = [],  # noqa: A002, B006  (copied before each call)
    at: At = HERE,
) -> None:
    """Show the latest events. With -f, continue as they happen, also those of a running server.

    \b
    Example:
      reverie audit tail -f --type memory.forgotten
    """
    with at.session(text=False) as opened:
        head = opened.host.reader.snapshot(opened.actor)
        latest: list[Event] = []
        before = head
        while before > 0 and len(latest) < lines:
            start = max(0, before - 10_000)
            page = opened.host.reader.events(opened.actor, after=start, limit=max(before - start, 1))
            latest = [event for event in page if event.seq <= before and _matches(event, actor, type)] + latest
            before = start
        for event in latest[len(latest) - min(lines, len(latest)) :]:
            _show(event, at.json)
        if not latest and not at.json:
            note("No events match." if actor or type else "No events yet.")
        while follow:
            sys.stdout.flush()
            time.sleep(_POLL_SECONDS)
            for event in opened.host.reader.events(opened.actor, after=head):
                head = event.seq
                if _matches(event, actor, type):
                    _show(event, at.json)


def _matches(event: Event, actor: str | None, types: list[str]) -> bool:
    return (actor is None or event.actor == actor) and (not types or event.type in types)


def _show(event: Event, json: bool) -> None:
    from reverie.core.clock import to_iso

    if json:
        print_json(event.document())
        return
    at, actor, entry = to_iso(event.at), event.actor, event.entry_id or ""
    if sys.stdout.isatty():
        at, entry = at[:19].replace("T", " "), shorten_ids([entry])[entry]
        actor = cut(actor, table_width() - _FIXED - max(len(event.type), _TYPE))
    say(f"{event.seq:>6}  {at}  {event.type:<{_TYPE}}  {actor}  {entry}".rstrip())


def _fields(verdict: object) -> dict[str, object]:
    import msgspec

    return dict(msgspec.to_builtins(verdict))
