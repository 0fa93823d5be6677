"""Messages of the Messages API: pairing of tool uses, the parts that callers repeat, and their text.

The readable layer has one form for every provider, that of the items of a Responses conversation (`transcript.py`):
`readable` makes such items of a message, `restored` makes messages of such items.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reverie.window.items import Item, Json, compact

_SILENT = frozenset({"thinking", "redacted_thinking", "compaction"})
"""Blocks that callers may leave out and that hold no text for a reader."""
_OWN = (
    frozenset({"text", "tool_use", "tool_result", "server_tool_use", "image", "document", "container_upload"}) | _SILENT
)
_OPAQUE = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "data", "cache_control"})
_ATTACHED = ("image", "document", "container_upload", "web_fetch_tool_result")
_SHOWN = 400


def blocks_of(value: Any) -> list[Json]:
    """The blocks of a message; a text is one block."""
    content = value.get("content") if isinstance(value, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def match_form(items: Iterable[Item]) -> list[Any]:
    """Messages without what callers drop when they repeat them. For comparing only."""
    return [_form(item.value) for item in items]


def _form(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = [_part(part) for part in blocks_of(value) if str(part.get("type")) not in _SILENT]
    return {"type": "message", "role": value.get("role"), "content": parts}


def _part(part: Json) -> Json:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": part.get("text", "")}
    if kind == "tool_use":
        return {name: part.get(name) for name in ("type", "id", "name", "input")}
    if kind == "tool_result":
        said = [_part(inner) for inner in blocks_of(part)]
        return {
            "type": kind,
            "tool_use_id": part.get("tool_use_id"),
            "content": said,
            "is_error": bool(part.get("is_error")),
        }
    return {
        name: inner for name, inner in part.items() if name not in ("cache_control", "citations") and inner is not None
    }


# pairs


def has_results(value: Any) -> bool:
    """Whether a message holds results of tools that the caller ran."""
    return any(part.get("type") == "tool_result" for part in blocks_of(value))


def orphans(items: Sequence[Item]) -> bool:
    """Whether a tool result has no tool use before it."""
    used: set[Any] = set()
    for item in items:
        for part in blocks_of(item.value):
            if "tool_use_id" in part and _result_of(part) not in used:
                return True
            if _is_use(part):
                used.add(part.get("id"))
    return False


def boundaries(items: Sequence[Item]) -> list[int]:
    """Every k such that `items[:k]` ends with a finished turn of the model and the rest begins with a message of the
    user: each tool use and its result are on the same side. Empty when a result has no use."""
    if orphans(items):
        return []
    results: list[int] = []
    waiting: set[Any] = set()
    for at, item in enumerate(items):
        for part in blocks_of(item.value):
            waiting.discard(_result_of(part))
            if _is_use(part):
                waiting.add(part.get("id"))
        if waiting or item.value.get("role") != "assistant":
            continue
        after = items[at + 1].value if at + 1 < len(items) else None
        if after is None or (after.get("role") == "user" and not has_results(after)):
            results.append(at + 1)
    return results


def _result_of(part: Json) -> str | None:
    """The id of the tool use that a block is the result of."""
    name = part.get("tool_use_id")
    return name if isinstance(name, str) else None


def _is_use(part: Json) -> bool:
    return str(part.get("type", "")).endswith("tool_use") and isinstance(part.get("id"), str)


# words


def readable(item: Item) -> list[Item]:
    """Convert a message into items of the readable layer: words, tool calls, their results. Thinking and compaction
    belong to the provider. An item that is not a message of the Messages API is returned as it is.
    """
    value = item.value
    if not isinstance(value, dict) or item.type != "message" or not isinstance(value.get("content"), list):
        return [item]
    parts = blocks_of(value)
    if not any(_is_own(str(part.get("type", ""))) for part in parts):
        return [item]
    role = value.get("role")
    text_type = "output_text" if role == "assistant" else "input_text"
    results: list[Item] = []
    said: list[Json] = []

    def flush() -> None:
        if said:
            results.append(Item.of({"type": "message", "role": role, "content": list(said)}))
            said.clear()

    for part in parts:
        kind = str(part.get("type", ""))
        if kind in _SILENT:
            continue
        if kind == "text":
            said.append({"type": text_type, "text": str(part.get("text", ""))})
        elif kind == "tool_use":
            flush()
            about = {"call_id": str(part.get("id", "")), "name": str(part.get("name", ""))}
            results.append(Item.of({"type": "function_call", **about, "arguments": compact(part.get("input") or {})}))
        elif kind == "tool_result":
            flush()
            output = "\n".join(_words(inner) for inner in blocks_of(part))
            about = {"call_id": str(part.get("tool_use_id", "")), "output": output}
            results.append(Item.of({"type": "function_call_output", **about}))
        else:
            said.append({"type": text_type, "text": _words(part)})
    flush()
    return results


def _is_own(kind: str) -> bool:
    return kind in _OWN or kind.endswith(("_tool_result", "_tool_use"))


def _words(part: Json) -> str:
    """Render a block as text: its words, or a short note on its kind and place."""
    if part.get("type") == "text":
        return str(part.get("text", ""))
    if part.get("type") in _ATTACHED:
        return f"[{attachment(part)}]"
    return compact(_bare(part))


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bare(part) for name, part in value.items() if name not in _OPAQUE}
    return [_bare(part) for part in value] if isinstance(value, list) else value


def attachment(part: Json) -> str:
    """The kind and place of a picture, a document or a page, never its bytes."""
    source, inner = (_object(part.get(name)) for name in ("source", "content"))
    named = [part.get("title"), part.get("file_id"), source.get("url"), source.get("file_id"), inner.get("url")]
    return " ".join([str(part.get("type")), *(text for text in named if isinstance(text, str))])[:_SHOWN]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def lost_in(values: Iterable[Mapping[str, Any]]) -> list[str]:
    """List content that a summary of messages cannot hold: pictures, documents, fetched pages, instructions."""
    results: dict[str, None] = {}
    for value in values:
        parts = blocks_of(value)
        if value.get("role") == "system":
            results["system: " + " ".join(_words(part) for part in parts)[:_SHOWN]] = None
        inner = [deep for part in parts if part.get("type") == "tool_result" for deep in blocks_of(part)]
        for part in [*parts, *inner]:
            if part.get("type") in _ATTACHED:
                results[attachment(part)] = None
    return list(results)


# back from the readable layer


def user_note(text: str) -> Item:
    """Build a message that informs the model about items it no longer sees."""
    return Item.of({"role": "user", "content": [{"type": "text", "text": text}]})


def restored(items: Sequence[Item]) -> list[Item]:
    """Messages made of items of the readable layer. Consecutive items of one role become one message; the note in
    front stays a message of its own."""
    made: list[Json] = []
    for at, item in enumerate(items):
        role, part = _block(item)
        if part is None:
            continue
        if made and made[-1]["role"] == role and not (at == 1 and items[0].value.get("role") == "developer"):
            made[-1]["content"].append(part)
        else:
            made.append({"role": role, "content": [part]})
    if made and made[0]["role"] == "assistant":
        made.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The beginning is left out.)"}]})
    return [Item.of(value) for value in made]


def _block(item: Item) -> tuple[str, Json | None]:
    value = item.value
    kind = item.type
    if kind in ("function_call", "custom_tool_call"):
        given = _input(value.get("arguments", value.get("input")))
        use = {"type": "tool_use", "id": value.get("call_id"), "name": value.get("name") or "tool", "input": given}
        return "assistant", use
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = value.get("output")
        text = output if isinstance(output, str) else compact(output)
        return "user", {"type": "tool_result", "tool_use_id": value.get("call_id"), "content": text}
    text = "\n".join(str(part.get("text", "")) for part in blocks_of(value))
    role = "assistant" if value.get("role") == "assistant" else "user"
    return role, {"type": "text", "text": text} if text.strip() else None


def _input(given: Any) -> Any:
    """The input of a tool use, which must be an object."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {"input": given}
