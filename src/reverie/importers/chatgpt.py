"""The data export of ChatGPT. A conversation is a graph: its branch in use leads from `current_node` up to the root."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reverie.importers.conversations import conversations, looks_like
from reverie.importers.record import Item, Record, Skipped, damaged, in_pieces, member, moment

EXPECTED = '"mapping" with nodes of "message", "parent" and "children"'
_ROLES = ("user", "assistant")
_CITATION = re.compile("\\s*(?:\ue200.*?\ue201|【\\d[\\d:]*†[^】]{0,80}】)", re.DOTALL)
"""Markers of a source in an answer; the page draws them as links."""
_SAVED = re.compile(r"^\s*(?:\d+\.|[-*])?\s*(?:\[(\d{4}-\d\d-\d\d)\]\.?)?\s*(.*\S)")
"""A line of the saved memories: number, day, words."""
MEMORY = "memory"
"""The tag of what ChatGPT saved as a memory itself."""


def fits(path: Path, head: bytes) -> bool:
    """conversations.json with a mapping."""
    return looks_like(path, head, b'"mapping"')


def read(path: Path) -> Iterator[Item]:
    """One record per message of the branch in use; system and tool messages and hidden ones are left out.

    ChatGPT's saved memories become notes: from each call of its memory tool, and from the newest full list.
    """
    saved: tuple[float, str, str] = (-1.0, "", "")
    for place, row in conversations(path):
        mapping = row.get("mapping")
        if not isinstance(mapping, dict):
            raise damaged(path, f"{place}: expected {EXPECTED}.")
        session = str(row.get("conversation_id") or row.get("id") or place)[:256]
        title = row.get("title") if isinstance(row.get("title"), str) else None
        for order, node in enumerate(_branch(mapping, row.get("current_node"), path, place), 1):
            message = node.get("message")
            if isinstance(message, dict):
                where = f"{place}, message {order}"
                listed = member(message, "content", dict, path, where).get("model_set_context")
                if isinstance(listed, str) and listed.strip():
                    saved = max(saved, (_newest(row), listed, where))
                else:
                    yield from _message(message, path, where, session, title, order)
    for line in saved[1].splitlines():
        if line.strip() and (one := _SAVED.match(line)):
            yield _memory(one[2], saved[2], moment(one[1]))


def _memory(text: str, place: str, at: int | None) -> Record:
    return Record(f"{MEMORY}\0{text}", text, place, tags=(MEMORY,), actor="assistant", role="assistant", created_at=at)


def _newest(row: Mapping[str, Any]) -> float:
    at = row.get("update_time") or row.get("create_time")
    return float(at) if isinstance(at, int | float) else 0.0


def _branch(mapping: Mapping[str, Any], current: Any, path: Path, place: str) -> list[dict[str, Any]]:
    """The nodes from the root to the one in use or, without one, to the newest leaf."""
    if not isinstance(current, str) or current not in mapping:
        leaves = [one for one, node in mapping.items() if isinstance(node, dict) and not node.get("children")]
        current = max(leaves, key=lambda one: _time(mapping[one]), default=None)
    results: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in mapping:
        node = mapping[current]
        if not isinstance(node, dict) or current in seen:
            raise damaged(path, f"{place}: expected a tree of nodes.")
        seen.add(current)
        results.append(node)
        current = node.get("parent")
    return results[::-1]


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    at = message.get("create_time") if isinstance(message, dict) else None
    return float(at) if isinstance(at, int | float) else 0.0


def _message(
    message: dict[str, Any], path: Path, place: str, session: str, title: str | None, order: int
) -> Iterator[Item]:
    role = member(message, "author", dict, path, place).get("role")
    metadata = member(message, "metadata", dict, path, place)
    if message.get("weight") == 0 or metadata.get("is_visually_hidden_from_conversation"):
        yield Skipped(place, "a hidden message")
        return
    if role not in _ROLES:
        named = {"system": "the system", "tool": "a tool"}.get(str(role), "another role")
        yield Skipped(place, f"a message of {named}")
        return
    text = _CITATION.sub("", _text(member(message, "content", dict, path, place)))
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        saved = message["recipient"] == "bio" and text
        yield _memory(text, place, moment(message.get("create_time"))) if saved else Skipped(place, "a call of a tool")
        return
    if not text:
        yield Skipped(place, "a message without text")
        return
    about: dict[str, Any] = {"order": order} | ({"title": title[:200]} if title else {})
    record = Record(
        str(message.get("id") or f"{session}\0{order}"),
        text,
        place,
        kind="message",
        actor=role,
        role=role,
        session=session,
        attributes=about,
        created_at=moment(message.get("create_time")),
    )
    yield from in_pieces(record)


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = [
            part if isinstance(part, str) else part.get("text") or "" for part in parts if isinstance(part, str | dict)
        ]
        return "\n".join(text for text in texts if isinstance(text, str) and text.strip()).strip()
    text = content.get("text") or content.get("result")
    return text.strip() if isinstance(text, str) else ""
