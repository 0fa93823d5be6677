"""Continuation: whether a request continues the last one, and if not, the first difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.window.items import CALLS, COMPACTIONS, HOSTED, OUTPUTS, Item, Json, item_type, kind_of, plain
from reverie.window.shape import canonical, digest, parse

_PART_FIELDS = ("type", "text", "image_url", "file_id", "filename")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_METADATA = frozenset({"id", "status", "metadata", "annotations", "logprobs"})
_LEFT_OUT = frozenset({"reasoning", "web_search_call", "file_search_call"})
_MAY_MISS = (HOSTED | COMPACTIONS) - _LEFT_OUT
_PREVIEW = 80


def match_form(items: Iterable[Any]) -> list[Any]:
    """Items without what callers drop or reorder when they rebuild their history. For comparing only."""
    return [_form(item.value if isinstance(item, Item) else plain(item)) for item in items]


def _form(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    kind = item_type(item)
    if kind == "message":
        role = item.get("role")
        return {"type": "message", "role": role, "content": _parts(item.get("content"), role)}
    if kind == "function_call":
        return _fields_of(item, kind, ("call_id", "name")) | {"arguments": _arguments(item.get("arguments"))}
    if kind == "custom_tool_call":
        return _fields_of(item, kind, ("call_id", "name", "input"))
    if kind in COMPACTIONS:
        return _fields_of(item, "compaction", ("encrypted_content",))
    if kind == "local_shell_call_output":  # its `id` is what joins it to the call
        return _fields_of(item, kind, ("id", "call_id", "output"))
    if (kind in OUTPUTS or kind.endswith("_output")) and "output" in item:
        return _fields_of(item, kind, ("call_id", "output"))
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def _fields_of(item: Json, kind: str, names: Sequence[str]) -> Json:
    return {"type": kind} | {name: item[name] for name in names if name in item}


def _parts(content: Any, role: Any) -> Any:
    text_type = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, str):
        return [{"type": text_type, "text": content}]
    if not isinstance(content, list):
        return [] if content is None else content
    parts: list[Any] = []
    for part in content:
        if isinstance(part, str):
            parts.append({"type": text_type, "text": part})
        elif isinstance(part, dict) and str(part.get("type")) in _TEXT_PARTS:
            parts.append({"type": text_type, "text": part.get("text", "")})
        elif isinstance(part, dict):
            parts.append({name: part[name] for name in _PART_FIELDS if name in part})
        else:
            parts.append(part)
    return parts


def _arguments(given: Any) -> Any:
    if given is None or given == "":
        return "{}"
    if not isinstance(given, str):
        return canonical(given)
    try:
        return canonical(parse(given))
    except (ValueError, RecursionError):
        return given


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """One item that the caller is expected to repeat."""

    hash: str
    type: str
    id: str
    need: str = "required"
    """`required`; `optional`, when a caller may leave it out; `omitted`, when it is not part of `match_items`."""
    form: Any = None
    """The match form; None after a restart, when only hashes are known."""


def matches(items: Iterable[Item], *, returned: bool) -> list[ExpectedItem]:
    """Return the items the caller is expected to repeat, of those that it sent or (`returned`) was given."""
    results = []
    for item in items:
        form = match_form([item])[0]
        need = "required"
        if returned and item.type in _LEFT_OUT:
            need = "omitted"
        elif returned and item.type in _MAY_MISS:
            need = "optional"
        results.append(ExpectedItem(digest(form), item_type(form), item_id(form), need, form))
    return results


@dataclass(frozen=True, slots=True)
class Alignment:
    """The part of an input that repeats the expected items."""

    used: int
    """Items of the input that repeat known ones."""
    at: tuple[int, ...]
    """Index of the expected item that each of them repeats."""
    mismatch: ExpectedItem | None
    """The first expected item that is not repeated."""
    whole: bool
    """Whether everything expected was repeated."""


def align(expected: Sequence[ExpectedItem], given: Sequence[Item], forms: Sequence[Any] | None = None) -> Alignment:
    """Follow `given` along `expected`. Callers may repeat reasoning and hosted calls, or leave them out. `forms`: the
    match forms of `given`, if they are already known."""
    hashes = [digest(form) for form in (match_form(given) if forms is None else forms)]
    results: list[int] = []
    for index, match in enumerate(expected):
        at = len(results)
        # an omitted item may come back with its decoration changed
        same = at < len(given) and (
            hashes[at] == match.hash or (match.need == "omitted" and given[at].type == match.type)
        )
        if same:
            results.append(index)
        elif match.need == "required":
            return Alignment(at, tuple(results), match, False)
    return Alignment(len(results), tuple(results), None, True)


def diff_continuation(
    prev: Sequence[Any], cur: Sequence[Any], *, preview: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Compare expected items with given ones, both as they are (use `match_form` first to ignore decoration).

    `status` is `hit` when `cur` is `prev` and at least one more; else the fields that say where they part.
    """
    before, now = [plain(item) for item in prev], [plain(item) for item in cur]
    fields: dict[str, Any] = {"expected_prefix_items": len(before), "full_input_items": len(now)}
    index = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if digest(a) != digest(b)), None)
    if index is None and len(now) > len(before):
        return {"status": "hit", **fields, "incremental_input_items": len(now) - len(before)}
    fields = {
        "status": "fallback_full_request",
        "fallback_reason": "conversation_not_strict_append_only",
        **fields,
    }
    if index is None and len(now) == len(before):
        return fields | {"first_mismatch_index": None, "mismatch_kind": "length_mismatch"}
    index = min(len(before), len(now)) if index is None else index
    return fields | mismatch(
        index,
        before[index] if index < len(before) else ABSENT,
        now[index] if index < len(now) else ABSENT,
        preview=preview,
    )


ABSENT: Any = object()
"""In the place of an item past the end of a list."""


def mismatch(
    index: int, before: Any, now: Any, *, preview: Callable[[str], str] | None = None, known: ExpectedItem | None = None
) -> dict[str, Any]:
    """The fields of 4.4 for two items that differ. `known`: stands for `before` when its form is not known."""
    fields: dict[str, Any] = {"first_mismatch_index": index}
    absent = known is not None and before is None
    for name, item in (("previous", before), ("current", now)):
        if name == "previous" and absent and known is not None:
            fields |= {"previous_item_type": known.type, "previous_item_id": known.id, "previous_item_hash": known.hash}
        elif item is ABSENT:
            fields |= {f"{name}_item_type": None, f"{name}_item_id": None, f"{name}_item_hash": None}
        else:
            fields[f"{name}_item_type"] = _type_label(item)
            fields[f"{name}_item_id"] = item_id(item)
            fields[f"{name}_item_hash"] = digest(item)
            if preview is not None:
                fields[f"{name}_preview"] = preview(_text_label(item))[:_PREVIEW]
    if ABSENT in (before, now):
        return fields | {"first_mismatch_path": f"/{index}", "mismatch_kind": "length_mismatch"}
    if absent and known is not None:
        same = known.type == fields["current_item_type"]
        return fields | {"mismatch_kind": _tool_kind(known.type) or "semantic_mismatch" if same else _SEMANTIC}
    path = [str(index), *(_first_difference(before, now) or [])]
    fields["first_mismatch_path"] = "/" + "/".join(step.replace("~", "~0").replace("/", "~1") for step in path)
    fields["mismatch_kind"] = _mismatch_kind(before, now, path[1:])
    return fields


_SEMANTIC = "semantic_mismatch"


def _mismatch_kind(before: Any, now: Any, path: Sequence[str]) -> str:
    kind = _type_label(before)
    if kind != _type_label(now):
        return _SEMANTIC
    if _METADATA.intersection(path):
        return "provider_metadata_only"
    if kind == "message" and isinstance(before, dict) and before.get("role") == now.get("role") == "assistant":
        if path[:1] == ["content"] and path[-1] != "text":
            return "assistant_text_shape"
        return _SEMANTIC
    return _tool_kind(kind) or _SEMANTIC


def _tool_kind(kind: str) -> str | None:
    if kind in CALLS or kind in HOSTED or kind.endswith("_call"):
        return "tool_call_shape"
    return "tool_result_shape" if kind in OUTPUTS or kind.endswith("_output") else None


def _first_difference(before: Any, now: Any) -> list[str] | None:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}, key=lambda name: (name != "type", name != "role", name)):
            if key not in before or key not in now:
                return [key]
            deeper = _first_difference(before[key], now[key])
            if deeper is not None:
                return [key, *deeper]
        return None
    if isinstance(before, list) and isinstance(now, list):
        for i, (a, b) in enumerate(zip(before, now, strict=False)):
            deeper = _first_difference(a, b)
            if deeper is not None:
                return [str(i), *deeper]
        return None if len(before) == len(now) else [str(min(len(before), len(now)))]
    return None if canonical(before) == canonical(now) else []


def _type_label(item: Any) -> str:
    return item_type(item) if isinstance(item, dict) else kind_of(item)


def item_id(item: Any) -> str:
    """The first of `id` and `call_id`, else type and role."""
    if isinstance(item, dict):
        for name in ("id", "call_id"):
            if isinstance(item.get(name), str) and item[name]:
                return str(item[name])
        return f"{item_type(item)}:{item['role']}" if isinstance(item.get("role"), str) else item_type(item)
    return kind_of(item)


def _text_label(item: Any) -> str:
    if isinstance(item, dict):
        content = item.get("content", item.get("output", item.get("arguments", item.get("input"))))
        if isinstance(content, list):
            content = " ".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
        if isinstance(content, str):
            return content
    return json.dumps(item, ensure_ascii=False)
