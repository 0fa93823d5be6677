"""Items of a conversation as entries of the memory, and entries back as items.

The window is the provider's; these are the words. Everything that goes into a window is also an entry: redacted,
searchable, distillable. A conversation can be built again from them for any model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reverie.core.entry import Draft, Entry, Source
from reverie.distil.compaction import compacted
from reverie.distil.source import Source as Distillable
from reverie.window.blocks import readable
from reverie.window.checkpoint import message_text
from reverie.window.estimate import estimate
from reverie.window.items import Item, developer_note
from reverie.window.pairing import boundaries, pair
from reverie.window.replacement import retained_messages

TURN_KIND = "turn"
CHECKPOINT_KIND = "checkpoint"
SCOPE_ATTRIBUTE = "window_scope"
CLEARED_ATTRIBUTE = "window_cleared"
_EMPTY = "(empty)"
_NOTE_CHARACTERS = 8000
_OMISSION_TOKENS = 40
_GIST_TOKENS = 2_000
_LEAST_GIST = 40
_GIST = "Before that, in short:"
_OMITTED = "earlier turns are left out here."
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

    `turn` tells apart items that two processes stored at the same position. `follows` is the position after which the
    conversation was resumed: everything between is no longer part of it.
    """
    drafts: list[Draft] = []
    for offset, item in enumerate(items):
        for block, part in enumerate(readable(item)):
            drafts += _drafts(
                part,
                {SCOPE_ATTRIBUTE: scope, "position": first_position + offset, "turn": turn}
                | ({"block": block} if block else {})
                | ({"follows": follows} if follows is not None else {}),
                subject=subject,
                max_bytes=max_bytes,
            )
    return drafts


def _drafts(item: Item, about: Mapping[str, Any], *, subject: str | None, max_bytes: int) -> list[Draft]:
    """The drafts of one item; none when it says nothing."""
    value, kind = item.value, item.type
    text = words_of(value, kind) if isinstance(value, dict) and not item.is_compaction else None
    if text is None:
        return []
    scope = str(about[SCOPE_ATTRIBUTE])
    role = value.get("role") if kind == "message" else ("tool" if kind.endswith("output") else "assistant")
    named = {
        name: _sound(value[name])[:128]
        for name in ("call_id", "name")
        if isinstance(value.get(name), str) and value[name]
    }
    pieces = _pieces(text, max_bytes)
    drafts: list[Draft] = []
    for number, piece in enumerate(pieces):
        part = {"part": number, "parts": len(pieces)} if len(pieces) > 1 else {}
        drafts.append(
            Draft(
                content=piece if piece.strip() else _EMPTY,
                kind=TURN_KIND,
                subject=subject,
                attributes={**about, "item": _sound(kind)[:64], **named, **part}
                | ({} if piece.strip() else {"empty": True}),
                source=Source(role=_sound(str(role))[:64], session=scope[:256]),
            )
        )
    return drafts


def words_of(value: Mapping[str, Any], kind: str) -> str | None:
    """Return the text of an item; None when only the provider can read it."""
    if kind == "message":
        return _sound("\n".join(part for part in (message_text(value), _attachments(value)) if part))
    if kind == "reasoning":
        given = value.get("summary")
        summary = given if isinstance(given, list) else ()
        texts = [str(part["text"]) for part in summary if isinstance(part, dict) and part.get("text")]
        return _sound("\n".join(texts)) if texts else None
    field = _TEXT_FIELD.get(kind)
    given = value.get(field) if field else None
    if given is None:
        given = {k: v for k, v in value.items() if k not in ("id", "status", "type", "call_id", "encrypted_content")}
    if isinstance(given, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in given):
        return _sound("\n".join(part["text"] for part in given))
    return _sound(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))


def _attachments(value: Mapping[str, Any]) -> str:
    parts = value["content"] if isinstance(value.get("content"), list) else []
    return " ".join(_attachment(part) for part in parts if isinstance(part, dict) and not part.get("text"))


def _attachment(part: Mapping[str, Any]) -> str:
    """A picture or file as a short note: its kind and where it is, never its bytes."""
    named = [part.get(name) for name in ("filename", "file_id", "file_url", "image_url")]
    where = [text for text in named if isinstance(text, str) and not text.startswith("data:")]
    return f"[{' '.join([str(part.get('type')), *where])[:400]}]"


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


def _turn_items(entries: Sequence[Entry], following: Sequence[Item]) -> list[tuple[str, Item]]:
    """The items of entries, oldest first, each with its turn. Calls that neither they nor `following` answer are left
    out, and so are items that only their provider could read."""
    whole: dict[tuple[int, str, int], dict[str, Any]] = {}
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
        key = (position, turn, int(about.get("block", 0)))
        known = whole.setdefault(key, {"about": about, "role": entry.source.role, "parts": {}})
        known["parts"][about.get("part", 0)] = text
    made = [(key[1], item) for key, item in ((key, _item(whole[key])) for key in sorted(whole)) if item is not None]
    found = pair([*(item for _, item in made), *following])
    loose = {*found.open, *found.orphans}
    return [row for at, row in enumerate(made) if at not in loose]


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


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A window from the readable layer."""

    items: list[Item]
    source: str
    """`ledger` or `checkpoint+ledger`."""
    omitted_turns: int = 0
    read: Mapping[int, int] = field(default_factory=dict)
    """Version by position of the entries that it was made from."""

    @property
    def note(self) -> str:
        """The text of the message in front, when there is one."""
        first = self.items[0].value if self.items else {}
        return message_text(first) if first.get("role") == "developer" else ""


def gist_of(items: Sequence[Item]) -> str:
    """The gist that a rebuild wrote in front of a window, when there is one."""
    first = items[0].value if items and isinstance(items[0].value, dict) else {}
    text = message_text(first) if first.get("role") in ("developer", "user") else ""
    return text.partition(_GIST)[2].rpartition("\n\n")[0].strip()


def rebuild(
    entries: Sequence[Entry],
    checkpoint: str,
    *,
    most_tokens: int,
    following: Sequence[Item] = (),
    retained_tokens: int = 64_000,
    left_out: Collection[str] = (),
    gist: str = "",
    clean: Callable[[str], str] = str,
) -> Rebuild:
    """A window from the readable layer: the checkpoint with the gist of what does not fit, the user's messages that fit
    two thirds of the room and `retained_tokens`, and the newest whole turns in the rest. No call that `following`
    answers is left out. `left_out`: turns of the conversation that are not all among `entries`."""
    by_turn = _turn_items(entries, following)
    items = [item for _, item in by_turn]
    text = checkpoint[: max(0, min(_NOTE_CHARACTERS, most_tokens))]
    source = "checkpoint+ledger" if text else "ledger"
    used = estimate([developer_note(text)]) if text else 0
    if not left_out and estimate(items) <= most_tokens - used:
        return Rebuild([*([developer_note(text)] if text else []), *items], source)
    kept = fitting(
        items, following, most_tokens=most_tokens, reserved=used + _OMISSION_TOKENS, retained=retained_tokens
    )
    whole = {at for at, item in kept.users if item is items[at]}
    omitted = {turn for at, (turn, _) in enumerate(by_turn[: kept.cut]) if at not in whole} | set(left_out)
    if omitted:
        said = _gist(entries, omitted, gist, clean, most=kept.spare * 4)
        text = "\n\n".join(part for part in (text, said, _omission(len(omitted))) if part)
    front = [developer_note(text)] if text else []
    return Rebuild([*front, *(item for _, item in kept.users), *items[kept.cut :]], source, len(omitted))


@dataclass(frozen=True, slots=True)
class Fitting:
    """The part of a conversation that fits: messages of the user, then everything from `cut` on."""

    users: list[tuple[int, Item]]
    """Those before `cut`, by index; the oldest may be cut at its end."""
    cut: int
    spare: int
    """Tokens for a gist of the rest."""


def fitting(
    items: Sequence[Item], following: Sequence[Item] = (), *, most_tokens: int, reserved: int, retained: int
) -> Fitting:
    """The user's messages, newest first, within two thirds of `most_tokens` and `retained`; a quarter of what is then
    left for a gist; the newest whole turns in the rest. `reserved`: tokens taken by other parts."""
    sizes = [estimate([item]) for item in items]
    room = most_tokens - reserved
    users = _users(items, sizes, max(0, min(retained, most_tokens * 2 // 3, room)))
    spare = max(0, min(_GIST_TOKENS, (room - sum(size for _, size in users.values())) // 4))
    cut = _cut(items, following, sizes, users, room - spare)
    return Fitting([(at, users[at][0]) for at in sorted(users) if at < cut], cut, spare)


def _omission(turns: int) -> str:
    return f"{turns} {_OMITTED} Search the memory for them."


def _gist(
    entries: Sequence[Entry], omitted: Collection[str], earlier: str, clean: Callable[[str], str], *, most: int
) -> str:
    """Distil the omitted turns, without the user's own words, and the gist of those before them to `most` bytes."""
    left = [e for e in entries if str(e.attributes.get("turn", "")) in omitted and e.source.role != "user"]
    sources = [
        Distillable(e.id, e.content, e.created_at, speaker=e.source.role) for e in left if not e.attributes.get("empty")
    ]
    if earlier:
        first = min((source.created_at for source in sources), default=0)
        sources.insert(0, Distillable("", earlier, first))
    most -= len(_GIST) + 1
    if not sources or most < _LEAST_GIST:
        return ""
    return f"{_GIST}\n{compacted(sources, clean, most=most)[0]}"


def _users(items: Sequence[Item], sizes: Sequence[int], room: int) -> dict[int, tuple[Item, int]]:
    """The user's messages, newest first while they fit, the one at the boundary cut at its end: by index, with size."""
    results: dict[int, tuple[Item, int]] = {}
    for at in range(len(items) - 1, -1, -1):
        if items[at].type != "message" or items[at].value.get("role") != "user":
            continue
        if sizes[at] <= room:
            results[at] = (items[at], sizes[at])
            room -= sizes[at]
            continue
        shorter = retained_messages([items[at]], room)
        if shorter:
            results[at] = (shorter[0], estimate(shorter))
        break
    return results


def _cut(
    items: Sequence[Item],
    following: Sequence[Item],
    sizes: Sequence[int],
    users: Mapping[int, tuple[Item, int]],
    room: int,
) -> int:
    """The earliest safe boundary such that everything behind it fits, together with the user's messages before it."""
    cuts = [k for k in boundaries([*items, *following]) if k <= len(items)]
    total = sum(sizes)
    found = cuts[-1] if cuts else 0
    safe = {0, *cuts}
    for k in range(len(items) + 1):
        if k in safe and total <= room:
            return k
        if k < len(items):
            total -= sizes[k] - (users[k][1] if k in users else 0)
    return found
