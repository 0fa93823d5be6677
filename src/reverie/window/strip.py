"""Items as they are sent: without the ids of responses that the provider does not keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reverie.window.items import COMPACTIONS, HOSTED, KNOWN_TYPES, OUTPUTS, Item, Json, item_type, plain

_ID_JOINS = frozenset({"mcp_approval_request", "local_shell_call_output", "program", "program_output"})
_CALL_ID = frozenset({"function_call", "custom_tool_call"})
_STATUS_REQUIRED = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "program_output",
        "computer_call",
        "local_shell_call",
        "file_search_call",
        "web_search_call",
        "code_interpreter_call",
        "image_generation_call",
    }
)
"""Types that the API refuses without a `status`."""


def strip_for_compact(
    items: Iterable[Any], store: bool, *, known: Mapping[str, Item] | None = None, hosted_ids: bool = False
) -> list[Any]:
    """Copies of items, ready to be sent. With `store` true they are sent as they are.

    Otherwise a top-level `id` is removed, except where it joins a pair. A `status` is removed where the type does not
    require it; an output keeps one other than `completed`, which shows the model that the call failed, and an item of
    an unknown type keeps any. A reference is replaced by its item from `known`, or left out when that item is among
    `items`; reasoning without its payload is left out. Of a compaction item only an older name of its type changes.
    `hosted_ids`: calls of hosted tools keep their `id`, for a provider that requires it.
    """
    values = [item.value if isinstance(item, Item) else plain(item) for item in items]
    if store:
        return [_rename(value) for value in values]
    present = {value["id"] for value in values if _is_full(value)}
    sent: list[Any] = []
    for value in values:
        if not isinstance(value, dict):
            sent.append(value)
            continue
        kind = item_type(value)
        if kind == "item_reference":
            name = str(value.get("id"))
            if name in present:
                continue
            meant = (known or {}).get(name)
            if meant is None:
                sent.append(value)
                continue
            present.add(name)
            value, kind = meant.value, meant.type
        if kind == "reasoning" and not value.get("encrypted_content"):
            continue
        sent.append(value if hosted_ids and kind in HOSTED else _strip(value, kind))
    return sent


def has_references(items: Iterable[Any]) -> bool:
    """Whether items still hold a reference that only a provider could resolve."""
    return any(item_type(item) == "item_reference" for item in items)


def without_message_ids(items: Sequence[Any]) -> list[Any]:
    """Remove the ids of assistant messages from compact output without reasoning: the provider would miss the reasoning
    that belongs to those ids."""
    if any(item_type(item) == "reasoning" for item in items):
        return list(items)
    return [
        {key: value for key, value in item.items() if key != "id"}
        if isinstance(item, dict) and item_type(item) == "message" and item.get("role") == "assistant"
        else item
        for item in items
    ]


def _is_full(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("id"), str) and item_type(value) != "item_reference"


def _rename(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") == "compaction_summary":
        return {key: part for key, part in value.items() if key != "status"} | {"type": "compaction"}
    return value


def _strip(value: Json, kind: str) -> Json:
    if kind in COMPACTIONS:
        renamed: Json = _rename(value)
        return renamed
    gone = set() if kind in _ID_JOINS else {"id"}
    if not _keeps_status(value, kind):
        gone.add("status")
    copy = {key: part for key, part in value.items() if key not in gone}
    if kind in _CALL_ID and not value.get("call_id") and value.get("id"):
        copy["call_id"] = value["id"]
    return copy


def _keeps_status(value: Json, kind: str) -> bool:
    if kind in _STATUS_REQUIRED or kind not in KNOWN_TYPES:
        return True
    return kind in OUTPUTS and value.get("status") != "completed"
