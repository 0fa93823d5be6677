"""reverie entry ...: what may happen to a memory after it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.api.cli.session import DEFAULT_REF, DEFAULT_TENANT, Data, DatabaseUrl, Json, Ref, Tenant, session
from reverie.api.cli.terminal import print_json, print_table, say

if TYPE_CHECKING:
    from reverie.core.entry import Entry

app = typer.Typer(help="Change one memory: pin, hold, archive, erase ...", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID")]
Expected = Annotated[
    int | None, typer.Option("--expected", metavar="VERSION", help="Only if it is still at this version.")
]

_CHANGES = {
    "pin": ("Never dream this memory away.", "pinned"),
    "unpin": ("Treat it like the others again.", "unpinned"),
    "hold": ("Forbid erasing it, even by forget, until it is released.", "held"),
    "release": ("End a hold.", "released"),
    "archive": ("Take it out of recall and keep it.", "archived"),
    "retract": ("Withdraw it; it can be restored while its text exists.", "retracted"),
    "restore": ("Make an archived, retracted or deleted memory readable again.", "restored"),
    "delete": ("Take it out of every read; its text is destroyed after the undo window.", "deleted"),
}


def _command(name: str, promise: str, done: str) -> Callable[..., None]:
    def change(
        entry_id: Id,
        ref: Ref = DEFAULT_REF,
        expected: Expected = None,
        tenant: Tenant = DEFAULT_TENANT,
        data: Data = None,
        database_url: DatabaseUrl = None,
        json: Json = False,
    ) -> None:
        from reverie.memory.export import entry_document

        with session(tenant, data, database_url) as opened:
            verb: Callable[..., Entry] = getattr(opened.host.lifecycle, name)
            entry = verb(opened.actor, ref, entry_id, expected=expected)
        if json:
            print_json(entry_document(entry))
            return
        say(f"{done} {entry.id} (version {entry.version})")

    change.__doc__ = f"{promise}\n\n\b\nExample:\n  reverie entry {name} 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot\n"
    return change


for _name, (_promise, _done) in _CHANGES.items():
    app.command(_name)(_command(_name, _promise, _done))


@app.command("erase")
def erase(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    expected: Expected = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Destroy its text now. Cannot be undone.

    \b
    Example:
      reverie entry erase 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --yes
    """
    from reverie.api.cli.privacy import confirm

    if not yes:
        confirm("Destroy the text of this memory for good?", json)
    with session(tenant, data, database_url) as opened:
        destroyed = opened.host.lifecycle.erase(opened.actor, ref, entry_id, expected=expected)
    if json:
        print_json({"id": entry_id, "ref": ref, "bytes": destroyed})
        return
    say(f"erased {entry_id} ({destroyed} bytes)")


@app.command("links")
def links(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    incoming: Annotated[bool, typer.Option("--incoming", help="Those that point to it.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show the links from a memory, or to it.

    \b
    Example:
      reverie entry links 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --incoming
    """
    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.reading.links(opened.actor, ref, entry_id, incoming=incoming)
    if json:
        items = [{"from": link.from_id, "to": link.to_id, "type": link.type, "note": link.note} for link in found]
        print_json({"items": items})
        return
    rows = [(link.from_id, link.type, link.to_id, link.note) for link in found]
    print_table(["from", "type", "to", "note"], rows, stretch="note", empty="It has no links.")
