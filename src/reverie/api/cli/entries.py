"""get, list, refs, tenants, stats: stored entries and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from reverie.api.cli.command import Argument, Option
from reverie.api.cli.session import (
    DEFAULT_REF,
    DEFAULT_TENANT,
    HERE,
    At,
    Data,
    DatabaseUrl,
    Json,
    Options,
    Ref,
    Subject,
    Tags,
    instant,
    session,
)
from reverie.api.cli.terminal import many, neutral, note, print_fields, print_json, print_table, say, shorten_ids

if TYPE_CHECKING:
    from reverie.core.entry import Entry
    from reverie.core.query import Filter

KindFilter = Annotated[str | None, Option("--kind", metavar="KIND", help="Only entries of this kind.")]
Since = Annotated[
    str | None, Option("--since", metavar="TIME", help="RFC 3339, an age such as 7d, or words: 'last week'.")
]
Until = Annotated[
    str | None, Option("--until", metavar="TIME", help="RFC 3339, an age such as 1h, or words: yesterday.")
]


@dataclass(frozen=True, slots=True)
class EntryFilter(Options):
    """The options of list, search and context that choose entries."""

    tag: Tags = field(default_factory=list)
    kind: KindFilter = None
    subject: Subject = None
    since: Since = None
    until: Until = None

    def filter(self, *, pinned: bool | None = None, archived: bool = False) -> Filter:
        """The filter that the options describe."""
        from reverie.core.errors import Invalid
        from reverie.core.query import Filter

        if any(not one.strip() for one in self.tag):
            raise Invalid("--tag is empty: give it a value, or leave the option out.")
        return Filter(
            tags=tuple(self.tag),
            kinds=None if self.kind is None else (self.kind,),
            subject=self.subject,
            since=instant(self.since, "--since"),
            until=instant(self.until, "--until"),
            pinned=pinned,
            archived=archived,
            gone=archived,
        )


ANY = EntryFilter()

AsOf = Annotated[
    str | None, Option("--as-of", metavar="WHEN", help="As of then: a log position, a day, a time, or words.")
]


def get(
    entry_id: Annotated[str, Argument(metavar="ID", help="The id of an entry, or a unique beginning of it.")],
    ref: Ref = DEFAULT_REF,
    as_of: AsOf = None,
    cold: Annotated[bool, Option("--cold", help="Also when archived or retired.")] = False,
    at: At = HERE,
) -> None:
    """Show one entry.

    \b
    Example:
      reverie get 01K9ZJ4V7B3M8Q2X5N6R1T0WAC --ref support-bot
    """
    from reverie.memory.export import entry_document

    with at.session(text=False, ref=ref) as opened:
        entry_id = opened.entry_id(ref, entry_id)
        then = opened.position(as_of)
        document = entry_document(opened.host.reader.get(opened.actor, ref, entry_id, as_of=then, cold=cold))
    if at.json:
        print_json(document)
        return
    content = document.pop("content")
    source = document.pop("source")
    shown = {name: value for name, value in document.items() if value not in (None, [], {}, False)}
    shown["tags"] = ", ".join(_visible_tags(document["tags"])) or None
    shown["by"] = source["actor"]
    print_fields({name: value for name, value in shown.items() if value is not None})
    say("")
    say(content)


def list_entries(
    ref: Ref = DEFAULT_REF,
    where: EntryFilter = ANY,
    pinned: Annotated[
        bool | None, Option("--pinned/--not-pinned", help="Only pinned entries, or only the others.")
    ] = None,
    archived: Annotated[bool, Option("--archived", help="List archived entries instead.")] = False,
    limit: Annotated[int, Option("--limit", "-n", metavar="N", help="Number of entries, 1000 at most.")] = 20,
    cursor: Annotated[
        str | None, Option(metavar="CURSOR", help="Cursor of the next page, as the page before shows it.")
    ] = None,
    everything: Annotated[bool, Option("--all", help="Every page, to the end.")] = False,
    as_of: AsOf = None,
    at: At = HERE,
) -> None:
    """List the entries of one memory, newest first.

    \b
    Examples:
      reverie list --ref support-bot --tag preference
      reverie list --all --json > everything.json
    """
    from reverie.memory.export import entry_documents

    wanted = where.filter(pinned=pinned, archived=archived)
    started = cursor is not None
    found: list[Entry] = []
    with at.session(text=False) as opened:
        then = opened.position(as_of)
        while True:
            page = opened.host.reader.page(
                opened.actor, ref, wanted, limit=1000 if everything else limit, cursor=cursor, as_of=then
            )
            found += page.items
            cursor = page.cursor
            if cursor is None or not everything:
                break
        if not found:
            opened.check_ref(ref)
    if at.json:
        print_json({"items": entry_documents(found), "cursor": cursor})
        return
    if found:
        number = many(len(found), "entry", "entries")
        shown = number if cursor is None else f"the next {number}" if started else f"the newest {number}"
        note(f"{shown} of the memory {ref}, tenant {opened.actor.tenant}, newest first")
    print_entries(found, ref)
    if cursor is not None:
        note(f"There is more: add --all, or --cursor '{cursor}'")


def refs(at: At = HERE) -> None:
    """List the memories of a tenant, with their sizes.

    \b
    Example:
      reverie refs --tenant acme
    """
    with at.session(text=False) as opened:
        found = opened.host.reader.refs(opened.actor)
    if at.json:
        print_json({"items": [{"ref": name, "entries": entries} for name, entries in found]})
        return
    if found:
        note(f"{many(len(found), 'memory', 'memories')} of the tenant {opened.actor.tenant}")
    print_table(
        ["ref", "entries"],
        found,
        stretch="ref",
        keep=("entries",),
        lines=None,
        empty="This tenant has no memories yet. Write one: reverie put TEXT",
    )


def tenants(data: Data = None, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List the tenants of this host, with the number of their memories.

    \b
    Example:
      reverie tenants
    """
    with session(DEFAULT_TENANT, data, database_url, text=False) as opened:
        rows = []
        for name in opened.host.tenants():
            found = opened.host.reader.refs(opened.acting_for(name))
            rows.append((name, len(found), sum(entries for _, entries in found)))
    if json:
        print_json({"items": [{"tenant": name, "refs": refs, "entries": entries} for name, refs, entries in rows]})
        return
    note(f"{many(len(rows), 'tenant')} in {opened.settings.database}")
    print_table(
        ["tenant", "memories", "entries"],
        rows,
        stretch="tenant",
        keep=("memories", "entries"),
        lines=None,
        empty="There are no tenants yet. Write something: reverie put TEXT",
    )


def stats(at: At = HERE) -> None:
    """Count a tenant's entries, bytes, memories and events.

    \b
    Example:
      reverie stats --json
    """
    with at.session() as opened:
        found = opened.host.reader.stats(opened.actor)
    if at.json:
        print_json(dict(found))
        return
    print_fields(found)


def _visible_tags(tags: Sequence[str]) -> list[str]:
    """The tags that people gave, without those of programs and dreams. `--json` has them all."""
    from reverie.core.subject import MARKS

    return [tag for tag in tags if not tag.startswith(MARKS)]


def print_entries(entries: Sequence[Entry], ref: str) -> None:
    """A table of entries of one memory."""
    from reverie.core.clock import to_iso

    short = shorten_ids([entry.id for entry in entries])
    rows = [
        (
            short[entry.id],
            to_iso(entry.created_at)[:16].replace("T", " "),
            ", ".join(_visible_tags(entry.tags)),
            neutral(entry.content),
        )
        for entry in entries
    ]
    print_table(
        ["id", "created", "tags", "content"],
        rows,
        stretch="content",
        keep=("created",),
        empty=f"No entries found in the memory {ref}. The memories that have some: reverie refs",
    )
