"""Items of a conversation as entries of the memory, and entries back as items.

The window is the provider's; these are the words. Everything that goes into a window is also an entry: redacted,
searchable, distillable. A conversation can be built again from them for any model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reverie.core.entry import Draft, Entry, Source
from reverie.window.checkpoint import message_text
from reverie.window.estimate import estimate
from reverie.window.items import Item, developer_note
from reverie.window.pairing import boundaries, pair

TURN_KIND = "turn"
CHECKPOINT_KIND = "checkpoint"
SCOPE_ATTRIBUTE = "window_scope"
_EMPTY = "(empty)"
_REPLAYED = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_TEXT_FIELD = {
    "function_call": "arguments",
    "function_call_output": "output",
    "custom_tool_call": "input",
    "custom_tool_call_output": "output",
}


def turn_drafts(
    items: Iterable[Item],
    *,
    scope: str,
    turn: str,
    first_position: int,
    follows: int | None,
    subject: str | None,
    max_bytes: int,
) -> list[Draft]:
    """One draft per item with words in it, several when it is longer than an entry may be.

    `turn` tells apart what two processes said at the same position; `follows` says that a conversation was taken up
    again after an earlier position, so that what stood between is no longer part of it.
    """
    drafts: list[Draft] = []
    for offset, item in enumerate(items):
        value = item.value if isinstance(item.value, dict) else {}
        kind = item.type
        if item.is_compaction or not isinstance(item.value, dict):
            continue
        text = words_of(value, kind)
        if text is None:
            continue
        role = value.get("role") if kind == "message" else ("tool" if kind.endswith("output") else "assistant")
        about: dict[str, Any] = {SCOPE_ATTRIBUTE: scope, "position": first_position + offset, "item": kind[:64]}
        about["turn"] = turn
        if follows is not None:
            about["follows"] = follows
        for name in ("call_id", "name"):
            if isinstance(value.get(name), str) and value[name]:
                about[name] = value[name][:128]
        pieces = _pieces(text, max_bytes)
        for number, piece in enumerate(pieces):
            part = {"part": number, "parts": len(pieces)} if len(pieces) > 1 else {}
            drafts.append(
                Draft(
                    content=piece if piece.strip() else _EMPTY,
                    kind=TURN_KIND,
                    subject=subject,
                    attributes={**about, **part} | ({} if piece.strip() else {"empty": True}),
                    source=Source(role=str(role)[:64], session=scope[:256]),
                )
            )
    return drafts


def words_of(value: Mapping[str, Any], kind: str) -> str | None:
    """What an item says, as text; None when only the provider could tell."""
    if kind == "message":
        text = message_text(value)
        if not text and value.get("content"):
            parts = value["content"] if isinstance(value["content"], list) else []
            text = " ".join(f"[{part.get('type')}]" for part in parts if isinstance(part, dict))
        return _sound(text)
    if kind == "reasoning":
        summary = value.get("summary") or ()
        texts = [str(part["text"]) for part in summary if isinstance(part, dict) and part.get("text")]
        return _sound("\n".join(texts)) if texts else None
    field = _TEXT_FIELD.get(kind)
    given = value.get(field) if field else None
    if given is None:
        given = {k: v for k, v in value.items() if k not in ("id", "status", "type", "call_id", "encrypted_content")}
    if isinstance(given, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in given):
        return _sound("\n".join(part["text"] for part in given))
    return _sound(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))


def _sound(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _pieces(text: str, max_bytes: int) -> list[str]:
    data = text.encode()
    if len(data) <= max_bytes:
        return [text]
    pieces: list[str] = []
    while data:
        piece = data[:max_bytes].decode("utf-8", "ignore")
        pieces.append(piece)
        data = data[len(piece.encode()) :]
    return pieces


def items_from(entries: Sequence[Entry], following: Sequence[Item] = ()) -> list[Item]:
    """Turn entries, oldest first, as items any model takes. Calls that neither they nor `following` answer are left
    out, and so is what only the provider that made it could read."""
    whole: dict[tuple[int, str], dict[str, Any]] = {}
    taken_up: set[str] = set()
    for entry in entries:
        about = entry.attributes
        position, turn, follows = about.get("position"), str(about.get("turn", "")), about.get("follows")
        if not isinstance(position, int):
            continue
        if isinstance(follows, int) and turn not in taken_up:
            taken_up.add(turn)
            whole = {key: known for key, known in whole.items() if key[0] <= follows}
        text = "" if about.get("empty") else entry.content
        known = whole.setdefault((position, turn), {"about": about, "role": entry.source.role, "parts": {}})
        known["parts"][about.get("part", 0)] = text
    items = [item for item in (_item(whole[key]) for key in sorted(whole)) if item is not None]
    found = pair([*items, *following])
    loose = {*found.open, *found.orphans}
    return [item for at, item in enumerate(items) if at not in loose]


def _item(known: Mapping[str, Any]) -> Item | None:
    about = known["about"]
    text = "".join(part for _, part in sorted(known["parts"].items()))
    kind = about.get("item")
    if kind == "message":
        role = known["role"] if known["role"] in ("user", "assistant", "developer", "system") else "user"
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        return Item.of({"type": "message", "role": role, "content": [part]})
    if kind not in _REPLAYED or not about.get("call_id"):
        return None
    value = {"type": kind, "call_id": about["call_id"]}
    if "name" in about:
        value["name"] = about["name"]
    return Item.of(value | {_TEXT_FIELD[kind]: text})


def rebuilt(
    entries: Sequence[Entry], checkpoint: Entry | None, *, most_tokens: int, following: Sequence[Item] = ()
) -> list[Item]:
    """A window from the readable layer: the newest turns that fit, behind a note that says what came before. No call
    that `following` answers is left out."""
    items = items_from(entries, following)
    note = developer_note(checkpoint.content[:8000]) if checkpoint is not None else None
    room = most_tokens - (estimate([note]) if note is not None else 0)
    cut = 0
    if estimate(items) > room:
        cuts = [k for k in boundaries([*items, *following]) if k <= len(items)]
        fitting = [k for k in cuts if estimate(items[k:]) <= room]
        cut = fitting[0] if fitting else (cuts[-1] if cuts else 0)
    kept = items[cut:]
    return [note, *kept] if note is not None and (cut or not kept) else kept
