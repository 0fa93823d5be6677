"""why, derived, consolidate: where words come from, what came of them, and one pass of tidying."""

from __future__ import annotations

from typing import Annotated

import typer

from reverie.api.cli.report import tree_lines
from reverie.api.cli.session import DEFAULT_REF, DEFAULT_TENANT, Data, DatabaseUrl, Json, Ref, Tenant, session
from reverie.api.cli.terminal import note, print_json, say

Id = Annotated[str, typer.Argument(metavar="ENTRY", help="The id of a memory.")]
_SHOWN = 20


def why(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    everything: Annotated[bool, typer.Option("--all", help=f"Every source, not only the first {_SHOWN}.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show what a memory was made from, down to the original words.

    \b
    Example:
      reverie why 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    from reverie.api.views import why_document

    with session(tenant, data, database_url, text=False) as opened:
        tree = opened.host.lineage.why(opened.actor, ref, entry_id)
    if json:
        print_json(why_document(tree))
        return
    for line in tree_lines(tree, most=None if everything else _SHOWN):
        say(line)
    if not tree.sources:
        note("These are original words: it was made from nothing else.")


def derived(
    entry_id: Id,
    ref: Ref = DEFAULT_REF,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """List everything that was made from a memory, directly or through others.

    \b
    Example:
      reverie derived 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.lineage.derived(opened.actor, ref, entry_id)
    if json:
        print_json({"items": found})
        return
    for item in found:
        say(item)
    if not found:
        note("Nothing was made from it.")


def consolidate(
    ref: Ref = DEFAULT_REF,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Merge duplicates and supersede outdated statements. A second pass changes nothing.

    \b
    Example:
      reverie consolidate --ref support-bot
    """
    with session(tenant, data, database_url) as opened:
        done = opened.host.consolidating.run(opened.actor, ref)
    if json:
        print_json(done)
        return
    say(
        f"{done.input_count} memories in, {done.output_count} stand: "
        f"{done.duplicates} were said again, {done.outdated} were outdated"
    )
    if done.seq is not None:
        say(f"event {done.seq}: reverie audit export --after {done.seq - 1}")
