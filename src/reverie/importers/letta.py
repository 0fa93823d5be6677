"""Letta agent files (.af): memory blocks and messages. Secrets and environment values in it are never stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from reverie.importers.record import (
    Item,
    Record,
    Skipped,
    content_text,
    damaged,
    in_pieces,
    json_document,
    member,
    moment,
)

EXPECTED = 'an agent file: "agents" and "blocks", or one agent with "core_memory" and "messages"'
_HIDDEN = ("secrets", "tool_exec_environment_variables", "environment_variables")
_ROLES = ("user", "assistant")


def fits(path: Path, head: bytes) -> bool:
    """A file named .af, or JSON with the fields of one."""
    if path.is_dir():
        return False
    named = path.suffix.lower() == ".af"
    return named or (head.lstrip()[:1] == b"{" and (b'"core_memory"' in head or b'"block_ids"' in head))


def read(path: Path) -> Iterator[Item]:
    """One record per block and per message. A secret's value is replaced wherever a text repeats it."""
    document = json_document(path, EXPECTED)
    if not isinstance(document, dict) or not ("agents" in document or "core_memory" in document):
        raise damaged(path, f"expected {EXPECTED}.")
    agents = document.get("agents") if "agents" in document else [document]
    if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
        raise damaged(path, f"expected {EXPECTED}.")
    hidden = dict(_hidden(document)) | {name: value for agent in agents for name, value in _hidden(agent)}
    for name in hidden:
        yield Skipped(path.name, f"a secret of the agent file ({name[:64]})")
    blocks = list(member(document, "blocks", list, path, "the file"))
    for number, agent in enumerate(agents, 1):
        own = member(agent, "core_memory", list, path, f"agent {number}")
        blocks += [{**block, "agent": agent.get("name")} for block in own if isinstance(block, dict)]
    for number, block in enumerate(blocks, 1):
        yield from _block(block, path, number, hidden)
    for agent in agents:
        yield from _messages(agent, path, hidden)


def _hidden(holder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in _HIDDEN:
        values = holder.get(field) or {}
        rows = (
            values.items()
            if isinstance(values, dict)
            else [(one.get("key"), one.get("value")) for one in _rows(values) if isinstance(one, dict)]
        )
        for name, value in rows:
            if isinstance(value, str) and len(value) >= 4:
                yield str(name), value


def _rows(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


def _without(text: str, hidden: Mapping[str, str]) -> str:
    for name, value in hidden.items():
        text = text.replace(value, f"[REDACTED:{name[:48]}]")
    return text


def _block(block: Any, path: Path, number: int, hidden: Mapping[str, str]) -> Iterator[Item]:
    place = f"{path.name}, block {number}"
    if (
        not isinstance(block, dict)
        or not isinstance(block.get("value"), str)
        or not isinstance(block.get("label"), str)
    ):
        raise damaged(path, f'block {number}: expected "label" and "value".')
    label = block["label"][:200]
    if not block["value"].strip():
        yield Skipped(place, "an empty block")
        return
    key = f"block\0{block.get('id') or block.get('agent') or ''}\0{label}"
    about = {"label": label, "description": str(block.get("description") or "")[:500]}
    record = Record(key, _without(block["value"], hidden), place, kind="block", tags=(label,), attributes=about)
    yield from in_pieces(record)


def _messages(agent: Mapping[str, Any], path: Path, hidden: Mapping[str, str]) -> Iterator[Item]:
    name = str(agent.get("name") or agent.get("id") or "agent")[:200]
    for number, message in enumerate(member(agent, "messages", list, path, name), 1):
        place = f"{path.name}, message {number} of {name}"
        if not isinstance(message, dict):
            raise damaged(path, f"message {number} of {name}: expected an object.")
        role, text = message.get("role"), _message_text(message)
        if role not in _ROLES or not text:
            yield Skipped(place, "a message without text" if role in _ROLES else "a message of another role")
            continue
        key = str(message.get("id") or f"{name}\0{number}")
        record = Record(
            key,
            _without(text, hidden),
            place,
            kind="message",
            actor=name if role == "assistant" else "user",
            role=role,
            session=name,
            attributes={"order": number},
            created_at=moment(message.get("created_at")),
        )
        yield from in_pieces(record)


def _message_text(message: Mapping[str, Any]) -> str:
    """The words of a message. A user's may be packed in JSON; so are events of the program, which have none. An
    assistant's may be the argument of its tool `send_message`, next to its thoughts.
    """
    text = content_text(message.get("content"))
    if message.get("role") == "user" and isinstance((packed := _object(text)).get("type"), str):
        return content_text(packed.get("message")) if packed["type"] == "user_message" else ""
    for call in _rows(message.get("tool_calls")):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name") == "send_message":
            return content_text(_object(function.get("arguments")).get("message")) or text
    return text


def _object(text: Any) -> dict[str, Any]:
    """The object in a text; empty when it is none."""
    if not isinstance(text, str) or not text.startswith("{"):
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
