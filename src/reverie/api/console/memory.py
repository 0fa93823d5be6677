"""One entry: its text, its origin, entries made from it, its links and its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from reverie.api.console import diff
from reverie.api.console.audit import meaning
from reverie.api.console.drawing import lineage
from reverie.api.console.page import Document, Look, Page, See
from reverie.api.console.text import segment
from reverie.api.views import originals, why_document
from reverie.core.clock import to_iso
from reverie.core.entry import Entry
from reverie.core.errors import Invalid, NotFound
from reverie.memory.export import entry_document

_MOST_LEAVES = 60
_MOST_TEXT = 20_000
_EVENTS = 20
_VERSIONS = 20
_MADE = 20
_LINES = 5


def show(look: Look) -> Document:
    """The entry with everything that is known about it."""
    ref, entry_id = look.path["ref"], look.path["id"]
    host, actor = look.host, look.actor
    entry = host.reader.get(actor, ref, entry_id, cold=True)
    tree = host.lineage.why(actor, ref, entry_id)
    leaves = list(originals(tree)) if tree.sources else []
    derived = [_brief(look, ref, made, entry_id) for made in host.lineage.derived(actor, ref, entry_id)[:_MADE]]
    versions = _versions(look, ref, entry)
    links = [
        {"type": link.type, "id": link.to_id if not incoming else link.from_id, "incoming": incoming}
        for incoming in (False, True)
        for link in host.reader.links(actor, ref, entry_id, incoming=incoming)
        if link.type not in ("distilled-from", "supersedes")
    ]
    whole = look.text("whole") == "1" or len(entry.content) <= _MOST_TEXT
    return {
        "entry": entry_document(entry) | ({} if whole else {"content": entry.content[:_MOST_TEXT]}),
        "attributes": {name: _plain(value) for name, value in entry.attributes.items()},
        "characters": len(entry.content),
        "whole": whole,
        "readable": entry.gone_seq is None and not entry.archived,
        "why": why_document(msgspec.structs.replace(tree, sources=tree.sources[:_MOST_LEAVES])),
        "originals": len(leaves),
        "shown_originals": _MOST_LEAVES,
        "derived": derived,
        "versions": [
            {"id": one.id, "created_at": to_iso(one.created_at), "state": one.state.value, "actor": one.source.actor}
            for one in versions
        ],
        "compared": _compare(look, entry, versions),
        "links": links,
        "drawing": lineage(
            entry_id,
            [(leaf.id, leaf.content) for leaf in leaves],
            [(made["id"], made["lines"][0]["text"] if made["lines"] else made["content"]) for made in derived],
            ref=ref,
        ),
        "events": _events(look, entry_id, entry.born_seq),
        "tokens": host.parts.tokens.count(entry.content) if host.parts.tokens and whole else None,
    }


def _plain(value: Any) -> str:
    """An attribute as people read it: text as it is, a structure as JSON without its empty parts."""
    if isinstance(value, str):
        return value
    return orjson.dumps(_without_empty(value), option=orjson.OPT_INDENT_2, default=str).decode()


def _without_empty(value: Any) -> Any:
    """A structure without empty texts, lists and maps."""
    if isinstance(value, Mapping):
        parts = {name: _without_empty(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in ("", [], {}, None)}
    return [_without_empty(part) for part in value] if isinstance(value, list | tuple) else value


def _versions(look: Look, ref: str, entry: Entry) -> list[Entry]:
    """The entry among those that it replaced and that replaced it, newest first."""

    def walk(incoming: bool) -> Iterator[Entry]:
        at, seen = entry.id, {entry.id}
        for _ in range(_VERSIONS):
            links = look.host.reader.links(look.actor, ref, at, incoming=incoming)
            ids = [link.from_id if incoming else link.to_id for link in links if link.type == "supersedes"]
            found = next((one for one in ids if one not in seen), None)
            if found is None:
                return
            seen.add(found)
            try:
                yield look.host.reader.get(look.actor, ref, found, cold=True)
            except NotFound:
                return
            at = found

    return [*reversed(list(walk(True))), entry, *walk(False)]


def _compare(look: Look, entry: Entry, versions: Sequence[Entry]) -> dict[str, Any] | None:
    """Two versions word by word: this one, and the one asked for or else the one before it."""
    if len(versions) < 2:
        return None
    own = next(at for at, one in enumerate(versions) if one.id == entry.id)
    other_id = look.text("with")
    other = next((at for at, one in enumerate(versions) if one.id == other_id), None)
    if other_id and other is None:
        raise NotFound("This entry has no version with that id.")
    if other is None or other == own:
        other = own + 1 if own + 1 < len(versions) else own - 1
    newer, older = versions[min(own, other)], versions[max(own, other)]
    before, after = diff.words(older.content[:_MOST_TEXT], newer.content[:_MOST_TEXT])
    return {
        "older": {"id": older.id, "at": to_iso(older.created_at), "text": before},
        "newer": {"id": newer.id, "at": to_iso(newer.created_at), "text": after},
    }


def _brief(look: Look, ref: str, entry_id: str, source: str) -> dict[str, Any]:
    """An entry made from this one; of a dream, the lines that this one is in."""
    try:
        entry = look.host.reader.get(look.actor, ref, entry_id, cold=True)
    except NotFound:
        return {"id": entry_id, "kind": "erased", "content": None, "dream": None, "lines": []}
    named, lines, content = entry.attributes.get("dream"), [], entry.content[:300]
    dream = named if isinstance(named, str) else None
    if dream is not None and entry.kind == "dream":
        try:
            report = look.host.lineage.report(look.actor, dream, ref=ref)
        except NotFound:
            report = None
        whole = entry.content.split("\n")
        numbers = [one.line for one in report.statements if source in one.sources] if report is not None else []
        lines = [{"number": one, "text": whole[one]} for one in dict.fromkeys(numbers) if one < len(whole)][:_LINES]
    return {"id": entry_id, "kind": entry.kind, "content": content, "dream": dream, "lines": lines}


def _events(look: Look, entry_id: str, born: int) -> list[dict[str, Any]]:
    """The first events of the entry, from its birth on."""
    found = look.host.reader.events(look.actor, after=max(0, born - 1), limit=500)
    named = [event for event in found if event.entry_id == entry_id][:_EVENTS]
    return [{**event.document(), "meaning": meaning(event.type)} for event in named]


def change(look: Look) -> See:
    """Pin, archive, retract, restore or hold this entry."""
    ref, entry_id, what = look.path["ref"], look.path["id"], look.form_field("change")
    lifecycle = look.host.lifecycle
    act = {
        "pin": lifecycle.pin,
        "unpin": lifecycle.unpin,
        "archive": lifecycle.archive,
        "retract": lifecycle.retract,
        "restore": lifecycle.restore,
        "hold": lifecycle.hold,
        "release": lifecycle.release,
    }.get(what)
    if act is None:
        raise Invalid("This page cannot do that.", pointer="/change")
    act(look.actor, ref, entry_id)
    return See(f"/memories/{segment(ref)}/{segment(entry_id)}", f"Done: {what}.")


PAGE = Page("memories", "/memories/{ref}/{id}", "memory.html", show, {"change": change})
