"""The data export of Claude: conversations with messages, content blocks and attachments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.importers.conversations import conversations, looks_like
from reverie.importers.record import CHUNK, OVERLAP, Item, Record, Skipped, damaged, in_pieces, member, moment

EXPECTED = '"chat_messages" with "sender" and "text"'
_ROLES = {"human": "user", "assistant": "assistant"}


def fits(path: Path, head: bytes) -> bool:
    """conversations.json with chat messages."""
    return looks_like(path, head, b'"chat_messages"')


def read(path: Path) -> Iterator[Item]:
    """One record per message; the text of an attachment in pieces."""
    for place, row in conversations(path):
        messages = row.get("chat_messages")
        if not isinstance(messages, list):
            raise damaged(path, f"{place}: expected {EXPECTED}.")
        session = str(row.get("uuid") or place)[:256]
        title = row.get("name") if isinstance(row.get("name"), str) else None
        for order, message in enumerate(messages, 1):
            if not isinstance(message, dict) or str(message.get("sender")) not in _ROLES:
                raise damaged(path, f"{place}, message {order}: expected {EXPECTED}.")
            yield from _message(message, path, f"{place}, message {order}", session, title, order)


def _message(
    message: dict[str, Any], path: Path, place: str, session: str, title: str | None, order: int
) -> Iterator[Item]:
    role = _ROLES[message["sender"]]
    key = str(message.get("uuid") or f"{session}\0{order}")
    about: dict[str, Any] = {"order": order} | ({"title": title[:200]} if title else {})
    at = moment(message.get("created_at"))
    text = _text(message, member(message, "content", list, path, place))
    if text:
        record = Record(
            key, text, place, kind="message", actor=role, role=role, session=session, attributes=about, created_at=at
        )
        yield from in_pieces(record)
    attached = [one for one in member(message, "attachments", list, path, place) if isinstance(one, dict)]
    for number, one in enumerate(attached, 1):
        content, name = one.get("extracted_content"), str(one.get("file_name") or f"attachment {number}")[:200]
        if isinstance(content, str) and content.strip():
            more = {**about, "file": name}
            record = Record(
                f"{key}\0{number}\0{name}", content, place, kind="file", session=session, attributes=more, created_at=at
            )
            yield from in_pieces(record, size=CHUNK, overlap=OVERLAP)
        else:
            yield Skipped(place, "an attachment without text")
    if not text and not attached:
        yield Skipped(place, "a message without text")


def _text(message: dict[str, Any], content: list[Any]) -> str:
    blocks = [one for one in content if isinstance(one, dict) and one.get("type") == "text"]
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    plain = message.get("text")
    return "\n".join(texts).strip() or (plain.strip() if isinstance(plain, str) else "")
