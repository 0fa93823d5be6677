"""The answer to a pass: whether it may replace a prefix, and the items that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reverie.window.estimate import estimate, item_tokens
from reverie.window.items import CALLS, HOSTED, Item, input_items, item_type, output_items, well_formed
from reverie.window.pairing import pair

MOST_OF_PREFIX = 0.80
"""Largest share of the replaced prefix that a replacement may have; above it nothing is freed."""


def validate_replacement(
    output: Any,
    method: str = "standalone",
    *,
    prefix_tokens: int | None = None,
    min_reduction: float = 1 - MOST_OF_PREFIX,
    payload_tokens: Mapping[str, int] | None = None,
) -> str | None:
    """Return the reason why an answer may not replace a prefix, or None when it may.

    `output` is the body as text or parsed, or its list of items. `prefix_tokens` is the estimate of what it is to
    replace; without it the reduction is not judged.
    """
    items = replacement_items(output)
    if items is None:
        return "rejected_invalid_output"
    if not items:
        return "rejected_empty_output"
    if not all(isinstance(item.value, dict) for item in items):
        return "rejected_invalid_output"
    compactions = [item for item in items if item.is_compaction]
    if not compactions:
        return "rejected_missing_compaction_item"
    if not all(_is_payload(item.value.get("encrypted_content")) for item in compactions):
        return "rejected_invalid_output"
    if not all(well_formed(item.value) for item in items):
        return "rejected_invalid_output"
    if method == "trigger":
        if len(compactions) != 1 or any(_is_call(item.type) for item in items):
            return "rejected_invalid_output"
        items = compactions
    elif not pair(items).whole:
        return "rejected_invalid_output"
    if prefix_tokens is not None:
        after = estimate(items, payload_tokens=payload_tokens)
        if after > prefix_tokens * (1 - min_reduction):
            return "rejected_no_reduction"
    return None


def replacement_items(output: Any) -> list[Item] | None:
    """The items of an answer; None when it has no list of them."""
    if isinstance(output, str | bytes):
        try:
            return output_items(output)[1]
        except (ValueError, RecursionError):
            return None
    if isinstance(output, Mapping):
        output = output.get("output")
    return input_items(output) if isinstance(output, list | tuple) else None


def retained_messages(prefix: Sequence[Item], most_tokens: int) -> list[Item]:
    """User messages of a prefix, newest first within `most_tokens`, the one at the boundary cut at its end; returned
    oldest first. Those that fit are kept as they are."""
    kept: list[Item] = []
    room = most_tokens
    for item in reversed(prefix):
        if item.type != "message" or item.value.get("role") != "user":
            continue
        size = item_tokens(item, {})
        if size <= room:
            kept.append(item)
            room -= size
            continue
        cut = _cut(item, room)
        if cut is not None:
            kept.append(cut)
        break
    return kept[::-1]


def _cut(item: Item, room: int) -> Item | None:
    """The message with its text cut at its end to `room` tokens; None when nothing of it fits."""
    value = item.value
    content = value.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or [])
    head = {key: part for key, part in value.items() if key != "id"}
    kept: list[Any] = []
    made: Item | None = None
    for part in parts:
        whole = Item.of({**head, "content": [*kept, part]})
        if item_tokens(whole, {}) <= room:
            kept, made = [*kept, part], whole
            continue
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            low, high = 0, len(text)
            while low < high:  # the longest beginning that fits
                middle = (low + high + 1) // 2
                tried = Item.of({**head, "content": [*kept, {**part, "text": text[:middle]}]})
                if item_tokens(tried, {}) <= room:
                    low, made = middle, tried
                else:
                    high = middle - 1
        break
    return made


def _is_payload(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_call(kind: str) -> bool:
    return kind in CALLS or kind in HOSTED or kind.endswith("_call")


def is_ignored_trigger(output: Any) -> bool:
    """Whether the server ignored the trigger item and answered with a message."""
    items = replacement_items(output)
    return bool(items) and not any(
        item_type(item.value) in ("compaction", "compaction_summary") for item in items or []
    )
