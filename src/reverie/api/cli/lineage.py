"""why, derived, consolidate: sources of an entry, what was made from it, and one pass of consolidation."""

from __future__ import annotations

from typing import Annotated

from reverie.api.cli.command import Argument, Option
from reverie.api.cli.report import tree_lines
from reverie.api.cli.session import DEFAULT_REF, HERE, At, Ref
from reverie.api.cli.terminal import many, note, print_json, say

Id = Annotated[str, Argument(metavar="ENTRY", help="The id of an entry, or a unique beginning of it.")]
_SHOWN = 20


def why(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    everything: Annotated[bool, Option("--all", help=f"Every source, not only the first {_SHOWN}.")] = False,
    at: At = HERE,
) -> None:
    """Show the sources of an entry, down to the original words.

    \b
    Example:
      reverie why 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    from reverie.api.views import why_document

    with at.session(text=False, ref=ref) as opened:
        entry_id = opened.entry_id(ref, entry_id)
        tree = opened.host.lineage.why(opened.actor, ref, entry_id)
    if at.json:
        print_json(why_document(tree))
        return
    for line in tree_lines(tree, most=None if everything else _SHOWN):
        say(line)
    if not tree.sources:
        note("These are original words: it was made from nothing else.")


def derived(entry_id: Id, ref: Ref = DEFAULT_REF, at: At = HERE) -> None:
    """List everything that was made from an entry, directly or through others.

    \b
    Example:
      reverie derived 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    with at.session(text=False, ref=ref) as opened:
        entry_id = opened.entry_id(ref, entry_id)
        found = opened.host.lineage.derived(opened.actor, ref, entry_id)
    if at.json:
        print_json({"items": found})
        return
    for item in found:
        say(item)
    if not found:
        note("Nothing was made from it.")


def consolidate(ref: Ref = DEFAULT_REF, at: At = HERE) -> None:
    """Merge duplicates and supersede outdated statements. A second pass changes nothing.

    \b
    Example:
      reverie consolidate --ref support-bot
    """
    with at.session(ref=ref) as opened:
        opened.check_ref(ref)
        done = opened.host.consolidator.run(opened.actor, ref)
    if at.json:
        print_json(done)
        return
    say(
        f"{many(done.input_count, 'entry', 'entries')} before, {done.output_count} after: "
        f"{many(done.duplicates, 'duplicate')}, {done.outdated} outdated"
    )
    if done.seq is not None:
        say(f"event {done.seq}: reverie audit export --after {done.seq - 1}")
