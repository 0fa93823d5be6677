"""Memories: every named memory, search with its explanation, and facets."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode

import msgspec

from reverie.api.console.facets import Facets
from reverie.api.console.page import Document, Look, Page
from reverie.core.clock import MS_PER_DAY
from reverie.core.entry import EntryState
from reverie.core.errors import Invalid, NotFound
from reverie.core.query import Filter
from reverie.memory.export import entry_document, entry_documents
from reverie.memory.hits import Hit, Mode
from reverie.memory.read import ANYTHING
from reverie.search.explain import Explanation, ScoredHit

LIMIT = 25
CLOSEST = 5
"""Weak hits shown at once where no hit is strong; the others unfold."""
CHANGES = {
    "pin": ("Pin", "Dreams leave pinned entries as they are."),
    "archive": ("Archive", "Archived entries leave search and prompts and are kept. Restore brings them back."),
    "retract": ("Retract", "Retracted entries are withdrawn: no search finds them. Restore brings them back."),
    "forget": ("Forget", "The text is destroyed now. This cannot be undone."),
}
"""Changes of many entries: title and effect."""
AGES = (("1", "Last day"), ("7", "Last week"), ("30", "Last month"), ("365", "Last year"))


def show(look: Look) -> Document:
    """The entries of one memory: a page of the list, or the hits of a search."""
    refs = look.host.reader.refs(look.actor)
    ref = look.ref(refs)
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
        "near": [],
        "degraded": [],
        "everything": None,
        "narrowed": False,
        "closest": CLOSEST,
        "filtered": _change_address(look),
    }
    where = filter_of(look)
    if query:
        found = look.host.search.search(
            look.actor, ref, query, where=where, limit=LIMIT, mode=mode, explain=True, include=None
        )
        document |= _hits(found) | {"near": _near(look, ref, found.explanation)}
    else:
        question = (ref, *(look.text(name) for name in FACETS))
        page = look.host.reader.page(look.actor, ref, where, limit=LIMIT, cursor=look.cursor(*question))
        document["cursor"] = look.sealed(page.cursor, *question)
        document["items"] = entry_documents(page.items)
        document["narrowed"] = narrowed = any(look.text(name) for name in FACETS)
        known = None if narrowed else next((count for name, count in refs if name == ref), None)
        document["everything"] = {"count": known} if page.cursor or look.text("cursor") else None
    document["facets"] = _facets(look, ref)
    document["states"] = [*_READABLE, *(_COLD if look.text("where") == "cold" else ())]
    return document


_READABLE = (("active", "Active"), ("contested", "Contested"))
_COLD = (("dreamt", "In a dream"), ("superseded", "Superseded"), ("retracted", "Retracted"), ("deleted", "Deleted"))
FACETS: tuple[str, ...] = ("kind", "tag", "subject", "source", "state", "where", "age")


def _change_address(look: Look) -> str:
    """The page that previews a change, with the filter of this one."""
    chosen = [(name, value) for name in FACETS for value in look.query.getlist(name) if value]
    return "/memories/change" + (f"?{urlencode(chosen)}" if chosen else "")


def filter_of(look: Look) -> Filter:
    """The filter that the address asks for."""
    cold = look.text("where") == "cold"
    states, state = ANYTHING.states - {EntryState.ERASED, EntryState.DRAFT}, look.text("state")
    if state:
        try:
            states = frozenset({EntryState(state)})
        except ValueError:
            raise Invalid("There is no such state.", pointer="/state") from None
    age = look.number("age", 0, least=0, most=36_500)
    since = (
        look.host.parts.clock.now() - age * MS_PER_DAY if age else look.number("from", 0, least=0, most=2**53) or None
    )
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
    """Pair each hit with its explanation: lines of one dream are hits of one entry, distinguished by their score."""
    why = {(hit.id, round(hit.score, 5)): hit for hit in found.explanation.hits} if found.explanation else {}
    return {
        "hits": [_hit(hit, why.get((hit.entry.id, round(float(hit.score), 5)))) for hit in found.hits],
        "words": sorted({word for hit in why.values() for word in hit.matched_terms}),
        "explanation": msgspec.to_builtins(found.explanation) if found.explanation else None,
        "degraded": list(found.degraded),
    }


def _hit(hit: Hit, why: ScoredHit | None) -> Document:
    cold = ["found in cold storage: nothing readable answers as well"] if hit.cold else []
    return {
        "entry": entry_document(hit.entry),
        "text": hit.text,
        "score": float(hit.score),
        "confidence": float(hit.confidence),
        "weak": hit.weak,
        "older": hit.older,
        "cold": hit.cold,
        "signals": {name: float(value) for name, value in hit.signals.items()},
        "why": [*cold, *(why.why if why else ())],
        "found_by": list(why.found_by) if why else [],
        "matched": list(why.matched_terms) if why else [],
    }


def _near(look: Look, ref: str, explanation: Explanation | None) -> list[dict[str, Any]]:
    """Return the near misses, each entry once, with its beginning."""
    results: dict[str, dict[str, Any]] = {}
    for miss in explanation.near_misses if explanation else ():
        if miss.id not in results:
            try:
                entry = look.host.reader.get(look.actor, ref, miss.id, cold=True)
            except NotFound:  # destroyed since the search
                continue
            text = "A line of a dream" if entry.kind == "dream" else entry.content[:200]
            results[miss.id] = {"id": miss.id, "rank": miss.rank, "score": miss.score, "why": miss.why, "text": text}
    return list(results.values())


def _facets(look: Look, ref: str) -> list[dict[str, Any]]:
    """Return the facets of the memory, counted over all of its readable entries."""
    counted: Facets = look.state.console_facets
    results = []
    for name, values in counted.of(look.host, look.actor, ref).items():
        chosen = look.text(name)
        rows = [{"value": value, "count": count} for value, count in values]
        if chosen and not any(value["value"] == chosen for value in rows):
            rows.insert(0, {"value": chosen, "count": None})
        results.append({"name": name, "chosen": chosen, "values": rows})
    return results


PAGE = Page("memories", "/memories", "memories.html", show)
