"""remember, recall, context, forget, dream: memory for any agent, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from reverie.core.actor import Actor
from reverie.core.clock import to_iso
from reverie.core.dream import DreamPlan, Nothing
from reverie.core.entry import Draft, Entry
from reverie.core.errors import Invalid
from reverie.core.query import Filter
from reverie.host import Host
from reverie.mcp.toolset import Arguments, HostTool
from reverie.memory.hits import Hit

DEFAULT_REF = "default"
INSTRUCTIONS = (
    "Reverie is durable memory. Recall at the start of a task, and before you answer about people, preferences,"
    " earlier decisions or promises. Remember when you learn a fact, a preference, a decision, a correction or a"
    " promise that matters beyond this conversation: one thing each, understandable without it. Do not remember"
    " passing chatter, secrets, or what the files of a project already say."
)
_REF = {"type": "string", "description": "Which memory; leave it out for the default one. Example: support-bot"}


def _remember(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    draft = Draft(
        content=arguments["content"],
        kind=arguments.get("kind") or "note",
        tags=tuple(arguments.get("tags") or ()),
        subject=arguments.get("subject"),
        pinned=bool(arguments.get("pinned")),
    )
    receipt = host.entries.put(actor, _ref(arguments), [draft], idempotency_key=arguments.get("idempotency_key"))[0]
    return {
        "id": receipt.id,
        "ref": receipt.ref,
        "created_at": to_iso(receipt.created_at),
        "redacted": dict(receipt.findings),
    }


def _recall(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    where = Filter(tags=tuple(arguments.get("tags") or ()), subject=arguments.get("subject"))
    since, until, zone = arguments.get("since"), arguments.get("until"), arguments.get("zone")
    if not arguments.get("query"):
        most = _number(arguments, "limit", 10)
        page = host.reader.page(actor, _ref(arguments), where, limit=most, since=since, until=until, zone=zone)
        return {"memories": [entry_view(entry) for entry in page.items], "more": page.cursor is not None}
    found = host.search.search(
        actor,
        _ref(arguments),
        arguments["query"],
        where=where,
        limit=_number(arguments, "limit", 10),
        deep=arguments.get("deep") or "auto",
        since=since,
        until=until,
        zone=zone,
    )
    hits = [
        {**entry_view(hit.entry), "content": hit.text, **_place(hit), "confidence": round(hit.confidence, 2)}
        | {"score": round(hit.score, 4)}
        for hit in found.hits
        if not hit.weak
    ]
    return {"memories": hits, "degraded": list(found.degraded)}


def _place(hit: Hit) -> dict[str, Any]:
    """Fields for the passage of a long entry, a newer entry that contradicts the hit, and cold storage."""
    document: dict[str, Any] = {}
    if hit.passage.of > 1:
        document["passage"] = f"{hit.passage.number} of {hit.passage.of}"
    if hit.older is not None:
        document["older"] = f"{hit.older} is newer"
    if hit.cold:
        document |= {"cold": True, "dream": hit.dream}
    return document


def _context(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    packed = host.search.context(
        actor, _ref(arguments), arguments["purpose"], budget=_number(arguments, "budget", 1000)
    )
    return {"text": packed.text, "tokens": packed.tokens, "budget": packed.budget, "included": list(packed.included)}


def _forget(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    subject, entry_id = arguments.get("subject"), arguments.get("id")
    if bool(subject) == bool(entry_id):
        raise Invalid("Name a subject, or the id of one memory.", pointer="/subject")
    if entry_id:
        return {"forgotten": 1, "bytes": host.lifecycle.erase(actor, _ref(arguments), str(entry_id))}
    ref = arguments.get("ref")
    options = {"mentions": bool(arguments.get("mentions")), "preview": bool(arguments.get("preview"))}
    done = host.forget.forget(actor, str(subject), ref=ref, **options)
    return dict(msgspec.to_builtins(done))


def _dream(host: Host, actor: Actor, arguments: Arguments) -> dict[str, Any]:
    if arguments.get("undo"):
        undone = host.lineage.undo(actor, arguments["undo"])
        return {"undone": undone.id, "restored": len(undone.sources)}
    budget = arguments.get("budget")
    plan = DreamPlan(_ref(arguments), budget=budget, fit=True)
    if arguments.get("preview"):
        return {"dreamt": False, **msgspec.to_builtins(host.dreams.plan(actor, plan))}
    report = host.dreams.attempt(actor, plan)
    if isinstance(report, Nothing):
        return {"dreamt": False, "reason": report.sentence}
    return {
        "dreamt": True,
        "dream": report.id,
        "memory": report.output_id,
        "from": len(report.sources),
        "tokens_before": report.tokens_before,
        "tokens_after": report.output_tokens,
        "left_for_later": report.left_for_later,
    }


def _memories(host: Host, actor: Actor, _: Arguments) -> dict[str, Any]:
    return {"memories": [{"ref": ref, "entries": count} for ref, count in host.reader.refs(actor)]}


def _ref(arguments: Arguments) -> str:
    return arguments.get("ref") or DEFAULT_REF


def _number(arguments: Arguments, name: str, default: int) -> int:
    value = arguments.get(name)
    return default if value is None else int(value)


def entry_view(entry: Entry) -> dict[str, Any]:
    """An entry as a model sees it."""
    return {
        "id": entry.id,
        "content": entry.content,
        "kind": entry.kind,
        "tags": list(entry.tags),
        "subject": entry.subject,
        "by": entry.source.actor,
        "created_at": to_iso(entry.created_at),
    }


TOOLS = (
    HostTool(
        "remember",
        "Store one thing worth knowing later: a fact, a preference, a decision, a promise. Write it so that it is"
        " understood without this conversation. Secrets are removed before anything is stored.",
        {
            "content": {"type": "string", "description": "What to remember, in a sentence or a few."},
            "ref": _REF,
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Labels to filter by later."},
            "subject": {"type": "string", "description": "Whom it is about: forget takes everything about them."},
            "kind": {"type": "string", "description": "note (default), decision, constraint ..."},
            "pinned": {"type": "boolean", "description": "Never distil it away."},
            "idempotency_key": {"type": "string", "description": "A retry with the same key stores nothing twice."},
        },
        _remember,
        required=("content",),
        entries=lambda _: 1,
    ),
    HostTool(
        "recall",
        "Find what is known: by words and by meaning, best first. Use it before answering from memory. Without a query:"
        " the newest first.",
        {
            "query": {"type": "string", "description": "A question or a few words."},
            "since": {"type": "string", "description": "From then on: 2026-03-01, yesterday, 7d."},
            "until": {"type": "string", "description": "Before then; a day or a week is included."},
            "zone": {"type": "string", "description": "The user's time zone: Europe/Lisbon."},
            "ref": _REF,
            "limit": {"type": "integer", "description": "How many at most; 10 by default.", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Only with all of these tags."},
            "subject": {"type": "string", "description": "Only about this subject."},
            "deep": {
                "type": "string",
                "enum": ["auto", "never", "always"],
                "description": "Whether to search what dreams were made from; auto: when nothing else answers.",
            },
        },
        _recall,
        reads=True,
    ),
    HostTool(
        "context",
        "The best memory for a purpose, packed under a token budget, ready to put into a prompt as quoted data.",
        {
            "purpose": {"type": "string", "description": "What the memory is needed for."},
            "budget": {"type": "integer", "description": "Tokens at most; 1000 by default.", "minimum": 1},
            "ref": _REF,
        },
        _context,
        required=("purpose",),
        reads=True,
    ),
    HostTool(
        "forget",
        "Destroy everything about a subject, also what was distilled from it; or one memory by its id. It cannot be"
        " undone: ask with preview first.",
        {
            "subject": {
                "type": "string",
                "description": "Whom or what to forget, in every memory unless ref is given.",
            },
            "id": {"type": "string", "description": "One memory, by its id."},
            "ref": _REF,
            "mentions": {
                "type": "boolean",
                "description": "Also memories that mention the words without being labelled with the subject.",
            },
            "preview": {"type": "boolean", "description": "Only count what would go."},
        },
        _forget,
        destroys=True,
    ),
    HostTool(
        "dream",
        "Distil many small memories into few, under a token budget. Sources stay recoverable. Call it when a"
        " memory has grown long, not after every note.",
        {
            "ref": _REF,
            "budget": {"type": "integer", "description": "Tokens of input and output together.", "minimum": 1},
            "preview": {"type": "boolean", "description": "Only say what would happen."},
            "undo": {"type": "string", "description": "Take this dream back instead: its id."},
        },
        _dream,
        heavy=True,
    ),
    HostTool("memories", "The memories there are, with the number of their entries.", {}, _memories, reads=True),
)
