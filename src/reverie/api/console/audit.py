"""Audit: the log newest first, filtered; the proof of the whole chain; the export."""

from __future__ import annotations

import msgspec
import orjson
from starlette.responses import Response

from reverie.api.console import access
from reverie.api.console.page import Document, Look, Page
from reverie.core.errors import Invalid
from reverie.core.event import EVENT_TYPES
from reverie.http.sse import line_stream
from reverie.search.dates import when

LIMIT = 50
_LOOKED_AT = 2000
"""Events examined for one page of an actor's events; the next page continues from there."""


def show(look: Look) -> Document:
    """A page of events."""
    head = look.host.reader.snapshot(look.actor)
    before = look.number("before", head + 1, least=1, most=2**53)
    chosen, who = look.text("type"), look.text("actor")
    if chosen and chosen not in EVENT_TYPES:
        raise Invalid("There is no such event type.", pointer="/type")
    after = 0
    if look.text("until"):
        before = min(before, look.host.history.position(look.actor, _instant(look, "until") - 1) + 1)
    if look.text("since"):
        after = look.host.history.position(look.actor, _instant(look, "since") - 1)
    most = _LOOKED_AT if who else LIMIT
    types = (chosen,) if chosen else None
    found = look.host.reader.events(look.actor, after=after, before=before, limit=most, types=types)
    looked_to = found[-1].seq if len(found) == most else None
    if who:
        kept = [event for event in found if event.actor == who]
        looked_to = kept[LIMIT - 1].seq if len(kept) > LIMIT else looked_to
        found = kept[:LIMIT]
    return {
        "events": [{**event.document(), "meaning": meaning(event.type)} for event in found],
        "head": head,
        "older": looked_to,
        "types": sorted(EVENT_TYPES),
        "type": chosen,
        "actor": who,
        "since": look.text("since"),
        "until": look.text("until"),
        "verdict": None,
    }


def meaning(kind: str) -> str:
    """Describe a type of event."""
    return EVENT_TYPES.get(kind, kind).replace("`", "")


def _instant(look: Look, name: str) -> int:
    zone = look.host.rules.current(look.actor.tenant).policy.zone
    now = look.host.parts.clock.now()
    return when(look.text(name), now, zone=zone, end=name == "until", pointer=f"/{name}")


def verify(look: Look) -> Document:
    """Walk the whole chain."""
    return show(look) | {"verdict": msgspec.to_builtins(look.host.audit.verify(look.actor))}


def export(look: Look) -> Response:
    """Every event, one JSON document a line."""
    look.host.reader.snapshot(look.actor)

    lines = (orjson.dumps(event.document()) + b"\n" for event in look.host.audit.export(look.actor))
    named = {"Content-Disposition": 'attachment; filename="events.jsonl"'}
    return line_stream(look.state, look.actor, lines, headers=access.HEADERS | named)


PAGE = Page("audit", "/audit", "audit.html", show, {"verify": verify}, heavy=frozenset({"verify"}))
EXPORT = Page("audit", "/audit/export", "", export)
