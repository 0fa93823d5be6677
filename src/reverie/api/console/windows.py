"""Windows: conversations with a provider, their tokens over time with compaction marks, and the text of their items."""

from __future__ import annotations

from typing import Any

from reverie.api.console import plots
from reverie.api.console.page import Document, Look, Page, See
from reverie.api.console.span import span_of
from reverie.api.console.text import moment
from reverie.core.clock import from_iso, to_iso
from reverie.core.errors import NotFound

LIMIT = 25
_ITEMS = 100
_HISTORY = 500
_PASSES = 50
_TWIN = 2000
_INSIDE_A_TURN = "_context_management"
"""Suffix of the kinds of compaction that a provider performs by itself."""
_TURNING = (
    "provider_window_reset",
    "provider_window_rewound",
    "remote_compaction_committed",
    "remote_compaction_failed",
    "remote_compaction_rejected",
)


def show(look: Look) -> Document:
    """A page of windows; with `scope`, one of them."""
    page = look.host.windows.all(look.actor, limit=LIMIT, cursor=look.text("cursor") or None)
    tokens = _last_tokens(look)
    document: Document = {
        "windows": [
            {
                "scope": one.scope,
                "ref": one.ref,
                "generation": one.generation,
                "items": one.items,
                "tokens": tokens.get(one.scope),
                "compactions": one.compactions,
                "updated_at": to_iso(one.updated_at),
            }
            for one in page.items
        ],
        "cursor": page.cursor,
        "scope": look.text("scope"),
        "window": None,
        "rebuilt": None,
    }
    return document | (_one(look, look.text("scope")) if look.text("scope") else {})


def _last_tokens(look: Look) -> dict[str, int]:
    """Input tokens of the last request of each window, as far as the newest events name them."""
    head = look.host.reader.snapshot(look.actor)
    types = ("provider_window_updated",)
    results: dict[str, int] = {}
    for event in look.host.reader.events(look.actor, before=head + 1, limit=_HISTORY, types=types):
        if isinstance(tokens := event.data.get("input_tokens"), int):
            results.setdefault(str(event.data.get("window", "")), tokens)
    return results


def _one(look: Look, scope: str) -> Document:
    """A window without its payloads, and the readable twin of its items."""
    window = look.host.windows.show(look.actor, scope)
    readable = window.get("state") != "corrupt_state"
    said = look.host.windows.texts(look.actor, scope) if readable else []
    items = window.get("items", [])
    span = span_of(look)
    first = look.host.history.position(look.actor, span.since - 1)
    last = look.host.history.position(look.actor, span.until - 1)
    traffic = requests(look, since=first, until=last, scope=window["scope"])
    passes = _passes(look, window, traffic)
    twins = {digest: one["twin"] for one in passes for digest in one.get("encrypted_sha256") or ()}
    shown = [
        {**item, "said": said[at] if at < len(said) else "", "twin": twins.get(item.get("encrypted_sha256"))}
        for at, item in enumerate(items)
    ][-_ITEMS:]
    return {
        "window": {key: value for key, value in window.items() if key not in ("items", "compactions", "attempts")},
        "items": shown,
        "item_count": len(items),
        "passes": passes,
        "attempts": window.get("attempts", []),
        "history": _history(look, window["scope"]),
        "span": span.document(),
        "plots": {
            "requests": traffic,
        },
    }


def _history(look: Look, scope: str) -> list[dict[str, Any]]:
    """Resets, rewinds and compactions of this window among the newest events of windows."""
    head = look.host.reader.snapshot(look.actor)
    found = look.host.reader.events(look.actor, before=head + 1, limit=_HISTORY, types=_TURNING)
    return [event.document() for event in found if event.data.get("window") == scope][:20]


def requests(look: Look, *, since: int, until: int, scope: str | None = None) -> list[plots.Row]:
    """Input tokens of the last requests between two log positions, oldest first; a compaction is noted at the next.

    For one window, or for all. Only the newest events of windows are read.
    """
    types = ("provider_window_updated", "remote_compaction_committed")
    found = look.host.reader.events(look.actor, after=since, before=until + 1, limit=_HISTORY, types=types)
    rows: list[plots.Row] = []
    compacted: set[str] = set()
    before: dict[str, int] = {}
    for event in reversed(found):
        window = str(event.data.get("window", ""))
        if scope is not None and window != scope:
            continue
        if event.type == "remote_compaction_committed":
            compacted.add(window)
        elif isinstance(tokens := event.data.get("input_tokens"), int):
            shrunk = window in compacted or tokens < before.get(window, 0)
            note = "compacted" if shrunk else ""
            rows.append([plots.cell(event.at, moment(event.at)), plots.cell(tokens), plots.cell(0, note)])
            compacted.discard(window)
            before[window] = tokens
    return rows


def _passes(look: Look, window: dict[str, Any], traffic: list[plots.Row]) -> list[dict[str, Any]]:
    """List the compactions, newest first, each with its tokens and the checkpoint that describes its coverage."""
    return [
        {
            **one,
            **_sizes(one, traffic),
            "twin": _twin(look, window, one.get("checkpoint_ref")),
        }
        for one in window.get("compactions", [])[-_PASSES:][::-1]
    ]


def _sizes(one: dict[str, Any], traffic: list[plots.Row]) -> dict[str, int | None]:
    """Tokens before and after a compaction.

    A request of its own reports both. One made inside a turn reports the tokens of the turn, so the requests around it
    say how large the window was.
    """
    usage = one.get("usage")
    if not str(one.get("endpoint_kind")).endswith(_INSIDE_A_TURN):
        return {"tokens": _count(usage, "input_tokens"), "tokens_after": _count(usage, "output_tokens")}
    at = from_iso(one["created_at"])
    before = [int(tokens[0]) for when, tokens, _ in traffic if when[0] < at]
    after = [int(tokens[0]) for when, tokens, _ in traffic if when[0] >= at]
    return {"tokens": before[-1] if before else None, "tokens_after": after[0] if after else None}


def _twin(look: Look, window: dict[str, Any], checkpoint: Any) -> dict[str, str] | None:
    """The readable twin of an opaque item: the checkpoint written with it."""
    if not isinstance(checkpoint, str) or not window.get("ref"):
        return None
    try:
        entry = look.host.reader.get(look.actor, str(window["ref"]), checkpoint, cold=True)
    except NotFound:
        return None
    return {"id": entry.id, "ref": entry.ref, "text": entry.content[:_TWIN]}


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) else None


def rebuild(look: Look) -> Document:
    """The conversation as items for another model, from checkpoints and turns alone. Changes nothing."""
    items = look.host.windows.rebuild(look.actor, look.form_field("scope"))
    return show(look) | _one(look, look.form_field("scope")) | {"rebuilt": items, "scope": look.form_field("scope")}


def drop(look: Look) -> See:
    """Remove a window. What was said stays in the memory."""
    done = look.host.windows.drop(look.actor, look.form_field("scope"))
    return See("/windows", "The window was dropped; the conversation stays in memory." if done else "There was none.")


PAGE = Page(
    "windows", "/windows", "windows.html", show, {"rebuild": rebuild, "drop": drop}, heavy=frozenset({"rebuild"})
)
