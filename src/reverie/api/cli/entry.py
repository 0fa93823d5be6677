"""reverie entry ...: operations on a stored entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Argument, Group, Option
from reverie.api.cli.session import DEFAULT_REF, HERE, At, Ref
from reverie.api.cli.terminal import print_json, print_table, shorten_ids

if TYPE_CHECKING:
    from reverie.core.entry import Entry

app = Group("Change one entry: pin, hold, archive, erase and more.")

Id = Annotated[str, Argument(metavar="ID", help="The id of an entry, or a unique beginning of it.")]
Expected = Annotated[int | None, Option("--expected", metavar="VERSION", help="Only if it is still at this version.")]

_CHANGES = {
    "pin": ("Keep this entry out of dreams.", "pinned"),
    "unpin": ("Let dreams take this entry again.", "unpinned"),
    "hold": ("Forbid erasing it, even by forget, until the hold is released.", "held"),
    "release": ("End a hold.", "released"),
    "archive": ("Keep it, but out of lists, search and prompts.", "archived"),
    "retract": ("Withdraw it; it can be restored while its text exists.", "retracted"),
    "restore": ("Make an archived, retracted or deleted entry readable again.", "restored"),
    "delete": ("Take it out of every read; its text is destroyed after the undo window.", "deleted"),
}


def _command(name: str, promise: str, done: str) -> Callable[..., None]:
    def change(entry_id: Id, ref: Ref = DEFAULT_REF, expected: Expected = None, at: At = HERE) -> None:
        from reverie.memory.export import entry_document

        with at.session(ref=ref) as opened:
            entry_id = opened.entry_id(ref, entry_id)
            verb: Callable[..., Entry] = getattr(opened.host.lifecycle, name)
            entry = verb(opened.actor, ref, entry_id, expected=expected)
        at.answer(entry_document(entry), f"{done} {entry.id} (version {entry.version})")

    change.__doc__ = f"{promise}\n\n\b\nExample:\n  reverie entry {name} 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot\n"
    return change


for _name, (_promise, _done) in _CHANGES.items():
    app.command(_name)(_command(_name, _promise, _done))


@app.command("erase")
def erase(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    expected: Expected = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    at: At = HERE,
) -> None:
    """Destroy the text of an entry now. Cannot be undone.

    \b
    Example:
      reverie entry erase 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --yes
    """
    from reverie.api.cli.privacy import confirm

    if not yes:
        confirm("Destroy the text of this entry for good?", at.json)
    with at.session(ref=ref) as opened:
        entry_id = opened.entry_id(ref, entry_id)
        destroyed = opened.host.lifecycle.erase(opened.actor, ref, entry_id, expected=expected)
    at.answer({"id": entry_id, "ref": ref, "bytes": destroyed}, f"erased {entry_id} ({destroyed} bytes)")


@app.command("links")
def links(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    incoming: Annotated[bool, Option("--incoming", help="Links to the entry instead of from it.")] = False,
    at: At = HERE,
) -> None:
    """Show the links from an entry, or to it.

    \b
    Example:
      reverie entry links 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --incoming
    """
    with at.session(text=False, ref=ref) as opened:
        entry_id = opened.entry_id(ref, entry_id)
        found = opened.host.reader.links(opened.actor, ref, entry_id, incoming=incoming)
    if at.json:
        items = [{"from": link.from_id, "to": link.to_id, "type": link.type, "note": link.note} for link in found]
        print_json({"items": items})
        return
    short = shorten_ids([end for link in found for end in (link.from_id, link.to_id)])
    rows = [(short[link.from_id], link.type, short[link.to_id], link.note) for link in found]
    print_table(["from", "type", "to", "note"], rows, stretch="note", empty="It has no links.")
