"""get, list, refs, stats: memories as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.api.cli.session import (
    DEFAULT_REF,
    DEFAULT_TENANT,
    Data,
    DatabaseUrl,
    Json,
    Ref,
    Subject,
    Tags,
    Tenant,
    instant,
    session,
)
from reverie.api.cli.terminal import neutral, note, print_fields, print_json, print_table, say

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.core.query import Filter

KindFilter = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Only this kind.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="RFC 3339, an age such as 7d, or words: 'last week'.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="RFC 3339, an age such as 1h, or words: yesterday.")
]


def get(
    entry_id: Annotated[str, typer.Argument(metavar="ID")],
    ref: Ref = DEFAULT_REF,
    as_of: Annotated[int | None, typer.Option(metavar="SEQ", help="As it was at a log position.")] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Also when archived or retired.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Show one memory.

    \b
    Example:
      reverie get 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    from reverie.memory.export import entry_document

    with session(tenant, data, database_url, text=False) as opened:
        document = entry_document(opened.host.reading.get(opened.actor, ref, entry_id, as_of=as_of, cold=cold))
    if json:
        print_json(document)
        return
    content = document.pop("content")
    source = document.pop("source")
    shown = {name: value for name, value in document.items() if value not in (None, [], {}, False)}
    shown["tags"] = ", ".join(document["tags"]) or None
    shown["by"] = source["actor"]
    print_fields({name: value for name, value in shown.items() if value is not None})
    say("")
    say(content)


def list_entries(
    ref: Ref = DEFAULT_REF,
    tag: Tags = [],  # noqa: B006  (typer copies it)
    kind: KindFilter = None,
    subject: Subject = None,
    since: Since = None,
    until: Until = None,
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Only those.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="The archived ones instead.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many, up to 1000.")] = 20,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="Where the last page ended.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page, to the end.")] = False,
    as_of: Annotated[int | None, typer.Option(metavar="SEQ", help="As it was at a log position.")] = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """List memories, newest first.

    \b
    Examples:
      reverie list --ref support-bot --tag preference
      reverie list --all --json > everything.json
    """
    from reverie.memory.export import entry_document

    where = make_filter(tag, kind, subject, since, until, pinned=pinned, archived=archived)
    found: list[Entry] = []
    with session(tenant, data, database_url, text=False) as opened:
        while True:
            page = opened.host.reading.page(
                opened.actor, ref, where, limit=1000 if everything else limit, cursor=cursor, as_of=as_of
            )
            found += page.items
            cursor = page.cursor
            if cursor is None or not everything:
                break
    if json:
        print_json({"items": [entry_document(entry) for entry in found], "cursor": cursor})
        return
    print_entries(found)
    if cursor is not None:
        note(f"There is more: add --all, or --cursor {cursor}")


def refs(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """List the memories of a tenant, with their sizes.

    \b
    Example:
      reverie refs --tenant acme
    """
    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.reading.refs(opened.actor)
    if json:
        print_json({"items": [{"ref": name, "entries": entries} for name, entries in found]})
        return
    print_table(["ref", "entries"], found, empty="This tenant has no memories yet. Write one: reverie put TEXT")


def stats(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """Count what a tenant has.

    \b
    Example:
      reverie stats --json
    """
    with session(tenant, data, database_url) as opened:
        found = opened.host.reading.stats(opened.actor)
    if json:
        print_json(dict(found))
        return
    print_fields(found)


def make_filter(
    tags: Sequence[str],
    kind: str | None,
    subject: str | None,
    since: str | None,
    until: str | None,
    *,
    pinned: bool | None = None,
    archived: bool = False,
) -> Filter:
    """The filter that the options of list, search and context describe."""
    from reverie.core.query import Filter

    return Filter(
        tags=tuple(tags),
        kinds=None if kind is None else (kind,),
        subject=subject,
        since=instant(since, "--since"),
        until=instant(until, "--until"),
        pinned=pinned,
        archived=archived,
        gone=archived,
    )


def print_entries(entries: Sequence[Entry]) -> None:
    """A table of entries."""
    from reverie.core.clock import to_iso

    rows = [
        (entry.id, to_iso(entry.created_at)[:16].replace("T", " "), ", ".join(entry.tags), neutral(entry.content))
        for entry in entries
    ]
    print_table(["id", "created", "tags", "content"], rows, stretch="content", empty="No memories here.")
