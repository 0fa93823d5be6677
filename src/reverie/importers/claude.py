"""The data export of Claude: conversations with messages and attachments, its own memory, and projects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.importers.conversations import conversations, documents, looks_like
from reverie.importers.pages import blocks
from reverie.importers.record import CHUNK, OVERLAP, Item, Record, Skipped, damaged, in_pieces, member, moment

EXPECTED = '"chat_messages" with "sender" and "text"'
_ROLES = {"human": "user", "assistant": "assistant"}
_TITLE = re.compile(r"\*\*([^*\n]{1,80})\*\*:?")
"""A paragraph of Claude's memory that names those below it."""


def fits(path: Path, head: bytes) -> bool:
    """conversations.json with chat messages."""
    return looks_like(path, head, b'"chat_messages"')


def read(path: Path) -> Iterator[Item]:
    """One record per message and per paragraph of Claude's memory; attachments and files of projects in pieces."""
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
    if path.is_dir() or path.suffix.lower() == ".zip":
        yield from _memories(path)


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


def _memories(path: Path) -> Iterator[Item]:
    """Claude's memory of the person and of projects, and the instructions and files of projects."""
    names: dict[str, str] = {}
    for place, project in _objects(path, "projects"):
        key, name = str(project.get("uuid") or place), str(project.get("name") or "")[:200]
        names[key] = name
        texts = [("instructions", project.get("prompt_template"), key)]
        for doc in member(project, "docs", list, path, place):
            if isinstance(doc, dict):
                named = str(doc.get("filename") or "file")[:200]
                texts.append((named, doc.get("content"), str(doc.get("uuid") or f"{key}\0{named}")))
        for file, content, own in texts:
            if isinstance(content, str) and content.strip():
                about = {"project": name, "file": file}
                at = moment(project.get("created_at"))
                record = Record(f"project\0{own}", content, place, kind="file", attributes=about, created_at=at)
                yield from in_pieces(record, size=CHUNK, overlap=OVERLAP)
    for place, memory in _objects(path, "memories"):
        yield from _paragraphs(memory.get("conversations_memory"), place, {})
        for key, text in member(memory, "project_memories", dict, path, place).items():
            yield from _paragraphs(text, place, {"project": names.get(key, key)})


def _objects(path: Path, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, document in documents(path, kind):
        rows = document if isinstance(document, list) else [document]
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise damaged(path, f"{name}: expected objects.")
            yield f"{name}, {number}", row


def _paragraphs(text: Any, place: str, about: dict[str, Any]) -> Iterator[Item]:
    section = ""
    for block in blocks(text) if isinstance(text, str) else ():
        title = _TITLE.fullmatch(block.text)
        if title:
            section = title[1]
            continue
        named = section or " / ".join(block.section)
        more = {**about, "section": named} if named else about
        key = "\0".join(("memory", *more.values(), block.text))
        tags = (named.lower()[:100],) if named else ()
        yield from in_pieces(Record(key, block.text, place, tags=tags, attributes=more))


def _text(message: dict[str, Any], content: list[Any]) -> str:
    blocks = [one for one in content if isinstance(one, dict) and one.get("type") == "text"]
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    plain = message.get("text")
    return "\n".join(texts).strip() or (plain.strip() if isinstance(plain, str) else "")
