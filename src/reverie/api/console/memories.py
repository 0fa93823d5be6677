"""Memories: every named memory, search with its explanation, facets, and changes of many entries through a preview."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from reverie.api.console.facets import Facets
from reverie.api.console.page import Document, Look, Page, See
from reverie.api.console.text import segment
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import EntryState
from reverie.core.errors import Invalid, NotFound, ReverieError
from reverie.core.query import Filter
from reverie.memory.export import entry_document
from reverie.memory.read import ANYTHING
from reverie.memory.search import Mode

LIMIT = 25
MOST_CHOSEN = 200
AGES = (("1", "Last day"), ("7", "Last week"), ("30", "Last month"), ("365", "Last year"))
CHANGES = {
    "pin": ("Pin", "They are never dreamt away."),
    "archive": ("Archive", "They leave recall and are kept. Restore brings them back."),
    "retract": ("Retract", "They are withdrawn: no search finds them. Restore brings them back."),
    "forget": ("Forget", "Their text is destroyed now. This cannot be undone."),
}


def show(look: Look) -> Document:
    """The entries of one memory: a page of the list, or the hits of a search."""
    refs = look.host.reader.refs(look.actor)
    ref = look.text("ref") or (max(refs, key=lambda one: one[1])[0] if refs else "")
    query, mode = look.text("q"), cast("Mode", look.text("mode", "hybrid"))
    document: Document = {
        "ref": ref,
        "refs": [{"ref": name, "entries": count} for name, count in refs],
        "q": query,
        "mode": mode,
        "ages": AGES,
        "changes": CHANGES,
        "hits": None,
        "items": [],
        "cursor": None,
        "explanation": None,
        "degraded": [],
        "preview": None,
    }
    where = _filter(look)
    if query:
        found = look.host.search.search(
            look.actor, ref, query, where=where, limit=LIMIT, mode=mode, explain=True, include=None
        )
        document |= _hits(found)
    else:
        question = (ref, *(look.text(name) for name in FACETS))
        page = look.host.reader.page(look.actor, ref, where, limit=LIMIT, cursor=look.cursor(*question))
        document["cursor"] = look.sealed(page.cursor, *question)
        document["items"] = [entry_document(entry) for entry in page.items]
    document["facets"] = _facets(look, ref)
    return document


FACETS = ("kind", "tag", "subject", "source", "state", "where", "age")


def _filter(look: Look) -> Filter:
    """The filter that the address asks for."""
    cold = look.text("where") == "cold"
    states, state = ANYTHING.states - {EntryState.ERASED, EntryState.DRAFT}, look.text("state")
    if state:
        try:
            states = frozenset({EntryState(state)})
        except ValueError:
            raise Invalid("There is no such state.", pointer="/state") from None
    age = look.number("age", 0, least=0, most=36_500)
    since = look.host.parts.clock.now() - age * MS_PER_DAY if age else None
    common = Filter(
        tags=tuple(look.query.getlist("tag")),
        kinds=(look.text("kind"),) if look.text("kind") else None,
        subject=look.text("subject") or None,
        actor=look.text("source") or None,
        pinned=True if look.text("where") == "pinned" else None,
        since=since,
    )
    if not cold:
        return _replace(common, states=states & common.states if state else common.states)
    return _replace(common, states=states, archived=None, gone=True)


def _replace(where: Filter, **changes: Any) -> Filter:
    return msgspec.structs.replace(where, **changes)


def _hits(found: Any) -> Document:
    why = {hit.id: hit for hit in found.explanation.hits} if found.explanation else {}
    words = sorted({word for hit in why.values() for word in hit.matched_terms})
    return {
        "hits": [
            {
                "entry": entry_document(hit.entry),
                "text": hit.text,
                "score": float(hit.score),
                "confidence": float(hit.confidence),
                "weak": hit.weak,
                "older": hit.older,
                "signals": {name: float(value) for name, value in hit.signals.items()},
                "why": list(why[hit.entry.id].why) if hit.entry.id in why else [],
                "found_by": list(why[hit.entry.id].found_by) if hit.entry.id in why else [],
                "matched": list(why[hit.entry.id].matched_terms) if hit.entry.id in why else [],
            }
            for hit in found.hits
        ],
        "words": words,
        "explanation": msgspec.to_builtins(found.explanation) if found.explanation else None,
        "degraded": list(found.degraded),
    }


def _facets(look: Look, ref: str) -> list[dict[str, Any]]:
    """What the memory could be narrowed by, counted over all of its readable entries."""
    counted: Facets = look.state.console_facets
    found = []
    for name, values in counted.of(look.host, look.actor, ref).items():
        chosen = look.text(name)
        shown = [{"value": value, "count": count} for value, count in values]
        if chosen and not any(value["value"] == chosen for value in shown):
            shown.insert(0, {"value": chosen, "count": None})
        found.append({"name": name, "chosen": chosen, "values": shown})
    return found


def preview(look: Look) -> See | Document:
    """Everything that a change of the chosen entries would reach, before it happens."""
    change, ref, ids = look.sent("change"), look.sent("ref"), _chosen(look)
    if change not in CHANGES:
        raise Invalid("Choose what to do with the entries.", pointer="/change")
    entries = [look.host.reader.get(look.actor, ref, entry_id, cold=True) for entry_id in ids]
    derived = sorted({made for entry in entries for made in look.host.lineage.derived(look.actor, ref, entry.id)})
    title, effect = CHANGES[change]
    return {
        "preview": {
            "change": change,
            "title": title,
            "effect": effect,
            "entries": [entry_document(entry) for entry in entries],
            "derived": derived if change == "forget" else [],
        },
        "ref": ref,
        "q": "",
    }


def apply(look: Look) -> See:
    """Carry the change out, entry by entry; one that cannot be changed is counted and left."""
    change, ref, ids = look.sent("change"), look.sent("ref"), _chosen(look)
    act = {
        "pin": look.host.lifecycle.pin,
        "archive": look.host.lifecycle.archive,
        "retract": look.host.lifecycle.retract,
        "forget": look.host.lifecycle.erase,
    }.get(change)
    if act is None:
        raise Invalid("Choose what to do with the entries.", pointer="/change")
    done, refused = 0, ""
    for entry_id in ids:
        try:
            act(look.actor, ref, entry_id)
            done += 1
        except NotFound:
            continue
        except ReverieError as error:
            refused = error.message
    title = CHANGES[change][0]
    said = f"{title}: {done} of {len(ids)} done." + (f" {refused}" if refused else "")
    return See(f"/memories?ref={segment(ref)}", said)


def _chosen(look: Look) -> list[str]:
    ids = list(dict.fromkeys(look.all_sent("id")))
    if not 1 <= len(ids) <= MOST_CHOSEN:
        raise Invalid(f"Choose 1 to {MOST_CHOSEN} entries.", pointer="/id")
    return ids


PAGE = Page("memories", "/memories", "memories.html", show, {"preview": preview, "apply": apply})
